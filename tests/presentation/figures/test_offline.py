"""Charts as HTML: whatever names and values of the data are, they stay data."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.presentation.exploration.rates_chart import rates_chart
from cepbench.presentation.figures.offline import offline, use_offline_charts
from tests.presentation.reporting.browser import Browser

EVIL = "</script><script>document.title = 'taken'</script><!--<script>"


class _Scripts(HTMLParser):
    """The scripts of a page, as a browser finds their ends."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data


def charts() -> dict[str, alt.TopLevelMixin]:
    frame = pd.DataFrame(
        {"type": [EVIL, "B"] * 3, "time": range(6), EVIL: np.arange(6.0), "k": [EVIL] * 6}
    )
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    text = f'PATTERN SEQ("{EVIL}" a, B b) WITHIN 3 units'
    pattern = cep.parse(text)
    matches = cep.evaluate(pattern, stream, cep.OrderPlan(["a", "b"]))
    values = cep.aggregate("PATTERN SEQ(ANY a, B b) GROUP BY a.k AGG COUNT WITHIN 3 units", stream)
    return {
        "timeline": cep.match_timeline(stream, matches, pattern, attribute=EVIL),
        "series": cep.value_series(values),
        "rates": rates_chart(cep.rates_over_time(stream)),
        "any": offline(
            alt.Chart(pd.DataFrame({"x": [1], "name": [EVIL]}), title=EVIL)
            .mark_point()
            .encode(x="x", tooltip="name")
        ),
    }


@pytest.fixture(scope="module", name="drawn")
def drawn_charts() -> dict[str, alt.TopLevelMixin]:
    return charts()


NAMES = ("timeline", "series", "rates", "any")


@pytest.mark.parametrize("name", NAMES)
def test_no_name_or_value_ends_the_script(
    drawn: dict[str, alt.TopLevelMixin], name: str, tmp_path: Path
) -> None:
    chart = drawn[name]
    assert EVIL in json.dumps(chart.to_dict(), ensure_ascii=False)
    chart.save(str(tmp_path / "chart.html"))
    to_file = io.StringIO()
    chart.save(to_file, format="html", inline=False)
    bundles = []
    for renderer in ("html", "colab"):
        with alt.renderers.enable(renderer):
            bundles.append(chart._repr_mimebundle_()["text/html"])
    pages = [
        (tmp_path / "chart.html").read_text(encoding="utf-8"), to_file.getvalue(), chart.to_html(),
        chart.to_html(json_kwds={"indent": 1}), *bundles,
    ]  # fmt: skip
    for page in pages:
        scripts = _Scripts(page).scripts
        assert "taken" in scripts[-1]  # the script with the specification is whole
        assert scripts[-1].strip().endswith((";", "});", "console.error);", ")"))
        assert "<script" not in scripts[-1] and "<!--" not in scripts[-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_browser_keeps_them_as_data(
    drawn: dict[str, alt.TopLevelMixin], name: str, chromium: Browser, tmp_path: Path
) -> None:
    drawn[name].save(str(tmp_path / "chart.html"))
    chromium.open(tmp_path / "chart.html", 1000)
    chromium.wait("!!document.querySelector('svg, canvas')")
    assert chromium.evaluate("document.title") != "taken" and chromium.console == []


def test_the_specification_is_the_same(drawn: dict[str, alt.TopLevelMixin], tmp_path: Path) -> None:
    chart = drawn["any"]
    page = chart.to_html(fullhtml=False)
    spec, _ = json.JSONDecoder().raw_decode(page[page.index("var spec = ") + 11 :])
    assert spec == chart.to_dict()
    chart.save(str(tmp_path / "chart.json"))
    assert json.loads((tmp_path / "chart.json").read_text()) == chart.to_dict()


def test_pictures_of_notebooks_escape_them(drawn: dict[str, alt.TopLevelMixin]) -> None:
    for use in (lambda: None, use_offline_charts):
        with alt.renderers.enable("default"):
            use()
            for chart in drawn.values():
                assert "<script" not in chart._repr_mimebundle_()["image/svg+xml"]
