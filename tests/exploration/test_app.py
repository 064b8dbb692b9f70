"""The app without a front end: what its widgets hold after they were used, against plain calls."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import DatasetError
from cepbench.exploration.app import Explorer
from cepbench.exploration.coalesced import Coalesced
from cepbench.figures.offline import VEGALITE_MIME
from tests.reporting.offline import read_page

TEXT = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND c.x > 0 WITHIN 20 seconds"
GENERATORS = ("TRIVIAL", "GREEDY", "DP-B")


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    rng = np.random.default_rng(2)
    count = 900
    frame = pd.DataFrame(
        {
            "type": rng.choice(list("ABCD"), count, p=[0.5, 0.3, 0.15, 0.05]),
            "time": pd.Timestamp("2026-01-05")
            + pd.to_timedelta(np.sort(rng.integers(0, 3000, count)), unit="s"),
            "x": rng.normal(size=count).round(2),
        }
    )
    return cep.EventStream.from_pandas(frame, type="type", time="time")


@pytest.fixture
def app(stream: cep.EventStream) -> Explorer:
    found = cep.explore(stream, TEXT)
    found.generators.value = GENERATORS
    return found


def shown(output: Any) -> dict[str, Any]:
    (only,) = output.outputs
    return only["data"]


def test_its_state_is_that_of_the_plain_calls(app: Explorer, stream: cep.EventStream) -> None:
    pattern = cep.parse(TEXT)
    statistics = cep.measure_statistics(pattern, stream)
    assert (app.stream, app.pattern, app.statistics) == (stream, pattern, statistics)
    assert app.error == "" and app.dataset is None and app.results is None
    side = cep.plans_side_by_side(pattern, statistics, GENERATORS)
    pd.testing.assert_frame_equal(app.plans.table, side.table)
    assert set(app.sliders) == {"window", "alpha", "a", "b", "c", ("a", "b"), ("c", "c")}


def test_sliders_change_plans_and_costs_at_once(app: Explorer) -> None:
    before = app._side_by_side.value
    app.sliders["window"].value = 40.0
    app.sliders["c"].value = 240.0  # a minute
    app.sliders["a", "b"].value = 0.01
    app.sliders["alpha"].value = 0.5
    twin = cep.what_if(
        app.pattern, app.statistics, window=40, rates={"c": 4.0}, selectivities={("a", "b"): 0.01},
        alpha=0.5, generators=GENERATORS,
    )  # fmt: skip
    assert app.what_if.statistics.rates["c"] == pytest.approx(4.0)
    pd.testing.assert_frame_equal(app.what_if.table, twin.table)
    assert str(app.plans.pattern).endswith("WITHIN 40 seconds")
    assert app._side_by_side.value != before
    assert f"cost {app.plans.table['cost'].min():.4g}" in app._side_by_side.value
    app._controls.reset()
    assert app._side_by_side.value == before


def test_a_mistake_in_the_text_is_shown_where_it_is_and_mended(app: Explorer) -> None:
    app.text.value = TEXT.replace("c.x >", "q.x >")
    assert app.pattern is None and app.plans is None
    told = read_page(app.error).text
    assert "line 1, column" in told and "^" in told and "'q'" in told
    assert app._side_by_side.value == ""
    assert app.run() is None and "mend the text" in app._runs.message.value
    app.text.value = TEXT.replace("C c", "CC c")
    assert "no event of type" in app.error
    app.text.value = TEXT
    assert app.error == "" and len(app.plans.plans) == 3


def test_what_nobody_foresaw_is_shown_too(app: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no window")

    monkeypatch.setattr("cepbench.exploration.app.predicate_graph", broken)
    app.tabs.selected_index = 1
    assert "ZeroDivisionError: no window" in app.error and "Traceback" in app.error
    app.tabs.selected_index = 2
    monkeypatch.setattr("cepbench.exploration.app.what_if", broken)
    app._tell(None)
    app.sliders["window"].value = 30.0
    assert "ZeroDivisionError: no window" in app.error


def test_every_tab_is_drawn_when_it_is_seen(app: Explorer) -> None:
    assert app._rates.outputs == () and app._graph.value == ""
    app.tabs.selected_index = 0
    chart = shown(app._rates)[VEGALITE_MIME]
    rows = next(iter(chart["datasets"].values()))
    assert {row["type"] for row in rows} == {"A", "B", "C"}
    app.types.index = 1
    rows = next(iter(shown(app._rates)[VEGALITE_MIME]["datasets"].values()))
    assert {row["type"] for row in rows} == {"A", "B", "C", "D"}
    app.every.value = "5 minutes"
    twin = cep.rates_over_time(app.stream, every="5 minutes")
    rows = next(iter(shown(app._rates)[VEGALITE_MIME]["datasets"].values()))
    assert sum(row["events"] for row in rows) == twin["events"].sum() == len(app.stream)
    app.tabs.selected_index = 1
    assert "<svg" in app._graph.value


def test_a_run_fills_bars_timeline_and_nodes(app: Explorer) -> None:
    table = app.run()
    assert table is app.results and list(table["algorithm"]) == list(GENERATORS)
    plan = cep.plan(app.pattern, app.statistics)
    found = cep.evaluate(app.pattern, app.stream, plan).matches
    pd.testing.assert_frame_equal(app.matches.matches, found)
    assert (table["matches"] == len(found)).all() and len(found) > 5
    assert f"{len(found):,} matches" in app._runs.message.value
    bars = shown(app._runs.bars)[VEGALITE_MIME]
    assert len(bars["hconcat"]) == 2
    app._runs.highlight.value = 3
    app._runs.zoom.value = None
    twin = cep.match_timeline(app.stream, found, app.pattern, 3)
    assert shown(app._runs.timeline)[VEGALITE_MIME]["datasets"] == twin.to_dict()["datasets"]
    app._runs.generator.value = "GREEDY"
    assert "GREEDY" in shown(app._runs.nodes)["text/html"]
    app.text.value = TEXT.replace("20 s", "10 s")
    assert app.results is None and app.matches is None


def test_a_data_set_brings_its_patterns() -> None:
    app = cep.explore("ten-symbols/sample")
    dataset = cep.open_dataset("ten-symbols/sample")
    assert list(app.library.options) == list(dataset.patterns)
    assert app.pattern == next(iter(dataset.patterns.values())) and app.error == ""
    app.library.value = list(dataset.patterns)[-1]
    assert app.pattern == list(dataset.patterns.values())[-1] and app.error == ""
    # A text that is typed is none of them, and the same one can be chosen again.
    app.text.value = "PATTERN"
    assert app.library.value is None and "line 1" in app.error
    app.library.value = list(dataset.patterns)[-1]
    assert app.error == ""
    app.chooser.value = "lobster/sample"
    assert app.dataset.name == "lobster/sample" and app.error == "" and app.pattern is not None
    with pytest.raises(DatasetError):
        cep.explore("nasdaq")


def test_latency_of_a_conjunction_asks_for_the_last_event(stream: cep.EventStream) -> None:
    app = cep.explore(stream, "PATTERN AND(A a, B b) WHERE a.x < b.x WITHIN 20 seconds")
    app.sliders["alpha"].value = 1.0
    assert app.error == ""
    app._controls._last.value = "b"
    twin = cep.plans_side_by_side(app.pattern, app.statistics, alpha=1.0, last="b")
    assert app.plans.table["cost"].tolist() == pytest.approx(twin.table["cost"].tolist())


def test_large_patterns_are_not_planned_by_those_that_would_take_minutes(
    stream: cep.EventStream,
) -> None:
    items = ", ".join(f"A a{number}" for number in range(15))
    app = cep.explore(stream, f"PATTERN SEQ({items}) WITHIN 1 seconds")
    assert "no exact generator" in app._message.value
    assert {"TRIVIAL", "GREEDY", "ZSTREAM-ORD"} <= set(app.plans.plans)
    assert not {"DP-LD", "DP-B"} & set(app.plans.table["algorithm"])


def test_without_a_front_end_it_is_a_picture(app: Explorer) -> None:
    data = app._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    page = read_page(data["text/html"])
    assert not page.loads and not page.scripts
    assert [tag for tag, _ in page.elements].count("svg") == 1 + len(GENERATORS)
    assert "your stream" in data["text/plain"]


def test_many_moves_of_a_slider_are_one_answer(app: Explorer) -> None:
    calls: list[int] = []

    async def drag() -> None:
        asked = Coalesced(lambda: calls.append(1), 0.005)
        for _ in range(20):
            asked()
        assert not calls
        await asyncio.sleep(0.05)
        assert len(calls) == 1
        asked()
        asked.settle()
        assert len(calls) == 2
        # What is read from the app is never older than what was moved.
        app.sliders["window"].value = 30.0
        assert app._what_if.pattern.window.amount == 20
        assert app.what_if.pattern.window.amount == pytest.approx(30)

    asyncio.run(drag())
