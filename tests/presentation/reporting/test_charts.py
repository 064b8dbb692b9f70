"""Every kind of chart in a browser: large letters, whole on a phone, named, and a silent console."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from nbconvert import HTMLExporter

from cepbench.presentation.figures.offline import VEGALITE_MIME
from cepbench.presentation.reporting.shell import write_assets
from tests.presentation.figures.test_figures import OURS
from tests.presentation.reporting.browser import Browser
from tests.presentation.reporting.every_chart import every_chart
from tests.presentation.reporting.test_pages import (
    chart_output,
    html_of,
    new_output,
    notebook_of,
    shown,
)

pytestmark = pytest.mark.xdist_group("notebooks")

#: Of each chart: its width and the room for it, the smallest text, the texts outside of it, the
#: name of its menu, and all of its texts.
LOOK = """[...document.querySelectorAll('.chart')].map((place) => {
  const chart = place.querySelector('svg.marks');
  const box = chart.getBoundingClientRect();
  const style = getComputedStyle(place);
  const texts = [...chart.querySelectorAll('text')].filter((text) => text.textContent);
  const scale = box.width / chart.viewBox.baseVal.width;
  const outside = (text) => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.bottom > box.bottom + 1;
  };
  return {
    width: box.width,
    room: place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight),
    smallest: Math.min(...texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale)),
    outside: texts.filter(outside).map((text) => text.textContent),
    menu: place.querySelector('summary').getAttribute('aria-label'),
    texts: texts.map((text) => text.textContent),
    marks: chart.querySelectorAll('.mark-rect path[aria-label], .mark-symbol path[aria-label]').length,
  };
})"""


@pytest.fixture(scope="module", name="charts")
def all_charts() -> dict[str, Any]:
    return every_chart()


@pytest.fixture(scope="module", name="page")
def page_of_charts(charts: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("charts")
    write_assets(folder)
    outputs = [
        new_output("display_data", {VEGALITE_MIME: chart.to_dict()}) for chart in charts.values()
    ]
    (folder / "page.html").write_text(html_of(notebook_of(*outputs)), encoding="utf-8")
    return folder / "page.html"


#: Of a phone and of a desk.
WIDTHS = (390, 1280)


def test_charts_are_whole_and_can_be_read_at_any_width(
    page: Path, charts: dict[str, Any], chromium: Browser
) -> None:
    marks = []
    for width in WIDTHS:
        chromium.open(page, width)
        assert chromium.console == []  # no warning of Vega's either
        looks = dict(zip(charts, chromium.evaluate(LOOK), strict=True))
        marks.append({name: look["marks"] for name, look in looks.items()})
        for name, look in looks.items():
            assert look["smallest"] >= 11.99, name
            assert look["outside"] == [], name
            assert look["width"] <= look["room"], (name, look["width"], look["room"])
        names = [look["menu"] for look in looks.values()]
        assert all(menu.startswith("Save as a picture: ") and len(menu) > 22 for menu in names)
        for wanted in ("DP-LD", "QUICKPICK", "MY-OWN-IDEA"):
            assert wanted in looks["bars"]["texts"]  # in the legend
        assert {f"SYMBOL-{k}" for k in range(8)} <= set(looks["rates"]["texts"])
        # Panels one below the other have names of rows each, and all of their marks.
        panels = 4 if width == WIDTHS[0] else 1
        assert looks["ranges"]["texts"].count("MY-IDEA") == panels
        assert not {"0M", "0k", "0B", "0.0"} & set(looks["comparison"]["texts"])
        memory = set(looks["memory"]["texts"])
        assert {"0", "100 B"} <= memory and "0 B" not in memory
    assert marks[0] == marks[1] and marks[0]["rows of one panel"] > 0


def test_a_saved_chart_is_drawn_without_a_network(
    charts: dict[str, Any], chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same for all charts, and a second each time.
    monkeypatch.setattr(vl_convert, "javascript_bundle", cache(vl_convert.javascript_bundle))
    for name in ("bars", "timeline", "rates"):
        charts[name].save(tmp_path / "saved.html")
        chromium.open(tmp_path / "saved.html", 1000)
        chromium.wait("!!document.querySelector('canvas, svg.marks')")
        assert chromium.console == [], name
    charts["bars"].save(str(tmp_path / "small.html"), inline=False)
    sizes = [(tmp_path / f"{name}.html").stat().st_size for name in ("saved", "small")]
    assert sizes[0] > 500_000 > 100_000 > sizes[1]
    for ending, beginning in (("png", b"\x89PNG"), ("svg", b"<svg"), ("json", b"{")):
        charts["ranges"].save(tmp_path / f"saved.{ending}")
        assert (tmp_path / f"saved.{ending}").read_bytes().startswith(beginning)


def test_a_notebook_shows_its_charts_to_whatever_draws_no_vega(charts: dict[str, Any]) -> None:
    outputs = {name: shown(chart) for name, chart in charts.items()}
    for name, output in outputs.items():
        assert {VEGALITE_MIME, "image/svg+xml", "text/plain"} == set(output.data), name
    exporter = HTMLExporter(template_name="classic")
    html, _ = exporter.from_notebook_node(notebook_of(*outputs.values()))
    assert html.count("data:image/svg+xml;base64") == len(charts) > 1
    assert "an altair chart" not in html


def test_the_picture_beside_a_chart_costs_a_page_nothing() -> None:
    notebook = notebook_of(chart_output(OURS))
    bare = html_of(notebook)
    notebook.cells[1].outputs[0].data["image/svg+xml"] = "<svg/>" * 10_000
    assert html_of(notebook) == bare
