"""The app without a front end: what its widgets hold after they were used, against plain calls."""

from __future__ import annotations

import asyncio
import html
import math
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import ipywidgets as widgets
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import DatasetError, StreamError
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.presentation.app.app import Explorer
from cepbench.presentation.app.coalesced import Coalesced
from cepbench.presentation.exploration.what_if import WhatIf
from cepbench.presentation.figures.offline import VEGALITE_MIME
from cepbench.streams.dataset_folder import Declaration, finish_dataset
from tests.drawn_events import drawn_stream, normal
from tests.presentation.app.widget_tree import drawn, inside, named, tab, texts
from tests.presentation.reporting.offline import read_page

TEXT = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND c.x > 0 WITHIN 20 seconds"
GENERATORS = ("TRIVIAL", "GREEDY", "DP-B")


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    return drawn_stream(900, "ABCD", seed=2, p=[0.5, 0.3, 0.15, 0.05], seconds=3000, x=normal)


@pytest.fixture
def app(stream: cep.EventStream) -> Explorer:
    found = cep.explore(stream, TEXT)
    found.generators.value = GENERATORS
    return found


def test_its_state_is_that_of_the_plain_calls(app: Explorer, stream: cep.EventStream) -> None:
    pattern = cep.parse(TEXT)
    statistics = cep.measure_statistics(pattern, stream)
    assert (app.stream, app.pattern, app.statistics) == (stream, pattern, statistics)
    assert app.error == "" and app.dataset is None and app.results is None
    side = cep.plans_side_by_side(pattern, statistics, GENERATORS)
    pd.testing.assert_frame_equal(app.plans.table, side.table)
    assert set(app.sliders) == {"window", "alpha", "a", "b", "c", ("a", "b"), ("c", "c")}


def test_sliders_change_plans_and_costs_at_once(app: Explorer) -> None:
    before = texts(tab(app, "Plans"))
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
    assert texts(tab(app, "Plans")) != before
    assert f"cost {app.plans.table['cost'].min():.4g}" in texts(tab(app, "Plans"))
    named(app.widget, "as measured").click()
    assert texts(tab(app, "Plans")) == before


def test_what_sliders_change_is_said_where_plans_are_and_where_they_run(app: Explorer) -> None:
    assert "changed numbers" not in texts(app.widget)
    app.sliders["window"].value = 5.0
    app.sliders["a", "b"].value = 0.01
    before = app.statistics.selectivities["a", "b"]
    said = f"window, seconds 5 instead of 20; selectivity a, b 0.01 instead of {before:.4g}"
    assert app.plans is not None  # which applies what is pending
    assert f"plans are for changed numbers: {said}" in texts(app.widget)
    assert f"Runs the plans for changed numbers on the events as they are: {said}." in texts(
        tab(app, "Run")
    )
    named(app.widget, "as measured").click()
    assert app.plans is not None
    assert "changed numbers" not in texts(app.widget)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_shared_code_makes_the_same_plans(
    app: Explorer, stream: cep.EventStream, alpha: float
) -> None:
    app.sliders["window"].value = 5.0
    app.sliders["c"].value = 240.0
    app.sliders["c", "c"].value = 0.25
    app.sliders["alpha"].value = alpha
    named(app.widget, "share as code").click()
    code = app.code
    assert html.escape(code, quote=False) in texts(app.widget).replace("&#39;", "'").replace(
        "&#34;", '"'
    )
    app.sliders["window"].value = 6.0
    assert app.plans is not None and "cep-code" not in texts(app.widget)  # of the state before
    app.sliders["window"].value = 5.0
    given = "stream = ...  # the stream that was given to cep.explore\n"
    assert given in code
    found: dict[str, object] = {"stream": stream}
    exec(code.replace(given, ""), found)
    plans = found["plans"]
    assert isinstance(plans, WhatIf)
    pd.testing.assert_frame_equal(plans.table, app.what_if.table)
    assert (plans.pattern, plans.statistics) == (app.what_if.pattern, app.what_if.statistics)


def test_untouched_sliders_change_nothing_whatever_the_browser_reports(app: Explorer) -> None:
    measured = app.what_if.before.table
    places = {key: its.slider.value for key, its in app.sliders.items()}
    # Between two places of its slider, as numbers that were measured are.
    own = app.sliders["a", "b"]
    assert own.value == app.statistics.selectivities["a", "b"]
    assert abs(math.log10(own.value) + 4 - 0.02 * places["a", "b"]) > 1e-3
    for its in app.sliders.values():
        its.slider.set_state({"value": its.slider.value})
        its.field.set_state({"value": its.field.value})
    assert (app.what_if.statistics, app.what_if.pattern) == (app.statistics, app.pattern)
    pd.testing.assert_frame_equal(app.plans.table, measured)
    # Set by code a slider is as exact, and what it is drawn at is no report of a move.
    app.sliders["window"].value = 5
    app.sliders["alpha"].value = 0.33
    for name in ("window", "alpha"):
        app.sliders[name].slider.set_state({"value": app.sliders[name].slider.value})
    assert (app.sliders["window"].value, app.sliders["alpha"].value) == (5, 0.33)
    twin = cep.what_if(app.pattern, app.statistics, window=5, alpha=0.33, generators=GENERATORS)
    pd.testing.assert_frame_equal(app.what_if.table, twin.table)
    named(app.widget, "as measured").click()
    assert {key: its.slider.value for key, its in app.sliders.items()} == places
    assert (app.what_if.statistics, app.what_if.pattern) == (app.statistics, app.pattern)
    pd.testing.assert_frame_equal(app.plans.table, measured)


def test_what_is_drawn_has_only_places_that_a_browser_keeps(app: Explorer) -> None:
    """Of a floating-point slider it reports the nearest step, moved or not."""
    found = [widget for widget in inside(app.widget) if hasattr(widget, "readout")]
    assert len(found) == len(app.sliders) + 1  # and the number of repetitions
    assert all(isinstance(widget, widgets.IntSlider) for widget in found)


def test_a_step_of_a_slider_is_a_change(app: Explorer) -> None:
    for key, its in app.sliders.items():
        before, drawn = its.value, its.slider.value
        its.slider.set_state({"value": drawn + 1})
        assert its.value > before and its.slider.value == drawn + 1, key
        assert app.error == "" and app.what_if.before.statistics == app.statistics
    assert app.what_if.pattern.window.amount == pytest.approx(20.94)
    rates = app.what_if.statistics.rates
    assert all(rates[name] > app.statistics.rates[name] for name in "abc")


def test_the_field_of_a_slider_shows_and_takes_numbers(app: Explorer) -> None:
    its = app.sliders["window"]
    assert its.field.value == 20
    its.field.value = 7.7654321
    assert app.what_if.pattern.window.amount == 7.7654321 and its.field.value == 7.765
    its.value = 30.0
    assert its.field.value == 30
    for number, end in ((1e6, 200), (0.0, 2)):
        its.field.value = number
        assert [its.value, its.field.value] == pytest.approx([end, end])
    # What was measured is shown even where no power of ten can be.
    app.text.value = "PATTERN SEQ(A a, B b) WHERE a.x > 100 WITHIN 20 seconds"
    assert app.statistics.selectivities["a", "a"] == 0
    assert app.sliders["a", "a"].field.value == 0 and app.what_if.statistics == app.statistics


def test_every_menu_has_a_name_and_shows_what_is_chosen(app: Explorer) -> None:
    app.run()
    found = [widget for widget in inside(app.widget) if isinstance(widget, widgets.Dropdown)]
    assert len(found) == 5
    for menu in found:
        assert menu.description, menu.options
        assert menu.index is not None or menu is app.library, menu.description
        last = len(menu.options) - 1
        for index in (last // 2, last, 0):
            menu.set_state({"index": index})  # chosen in a browser
            assert menu.index == index and menu.label, menu.description
    assert app.error == ""


def test_a_mistake_in_the_text_is_shown_where_it_is_and_mended(app: Explorer) -> None:
    app.text.value = TEXT.replace("c.x >", "q.x >")
    assert app.pattern is None and app.plans is None
    told = read_page(app.error).text
    assert "line 1, column" in told and "^" in told and "'q'" in told
    assert texts(tab(app, "Plans")) == ""
    assert app.run() is None and "correct the text" in texts(tab(app, "Run"))
    app.text.value = TEXT.replace("C c", "CC c")
    assert "no event of type" in app.error
    app.text.value = TEXT
    assert app.error == "" and len(app.plans.plans) == 3


def test_the_app_opens_without_what_takes_long_to_import() -> None:
    code = "import sys, cepbench.presentation.app.app; print('altair' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_an_error_while_planning_or_drawing_is_shown_too(stream: cep.EventStream) -> None:
    with PLAN_GENERATORS.restored():
        cep.plan_generator("GONE", kind="order")(lambda problem, rng: list(range(problem.n)))
        app = cep.explore(stream, TEXT)
        app.generators.value = ("GONE",)
        app.sliders["window"].value = 25.0
        assert app.error == ""
    app.sliders["window"].value = 30.0
    assert "&#39;GONE&#39;" in app.error and "Traceback" not in app.error
    app.generators.value = GENERATORS
    app.sliders["window"].value = 25.0
    assert app.error == ""
    app.stream = None  # which nobody foresaw
    app.tabs.selected_index = 0
    assert "AttributeError" in app.error and "Traceback" in app.error


def test_every_tab_is_drawn_when_it_is_seen(app: Explorer) -> None:
    data, pattern = tab(app, "Data"), tab(app, "Pattern")
    assert drawn(data) == [] and texts(pattern) == ""
    app.tabs.selected_index = 0
    (chart,) = drawn(data)
    rows = next(iter(chart[VEGALITE_MIME]["datasets"].values()))
    assert {row["type"] for row in rows} == {"A", "B", "C"}
    app.types.index = 1
    (chart,) = drawn(data)
    rows = next(iter(chart[VEGALITE_MIME]["datasets"].values()))
    assert {row["type"] for row in rows} == {"A", "B", "C", "D"}
    app.every.value = "5 minutes"
    twin = cep.rates_over_time(app.stream, every="5 minutes")
    (chart,) = drawn(data)
    rows = next(iter(chart[VEGALITE_MIME]["datasets"].values()))
    assert sum(row["events"] for row in rows) == twin["events"].sum() == len(app.stream)
    app.tabs.selected_index = 1
    assert "<svg" in texts(pattern)


def test_a_run_fills_bars_timeline_and_nodes(app: Explorer) -> None:
    table = app.run()
    assert table is app.results and list(table["generator"]) == list(GENERATORS)
    plan = cep.plan(app.pattern, app.statistics)
    found = cep.evaluate(app.pattern, app.stream, plan).matches
    pd.testing.assert_frame_equal(app.matches.matches, found)
    assert (table["matches"] == len(found)).all() and len(found) > 5
    panel = tab(app, "Run")
    assert f"{len(found):,} matches" in texts(panel)
    best = table.loc[table["events_per_second"].idxmax(), "generator"]
    assert f"{best} was the fastest" in texts(panel)
    assert named(panel, "nodes of").value == best
    bars, _, _ = drawn(panel)
    assert len(bars[VEGALITE_MIME]["hconcat"]) == 2
    named(panel, "match no.").value = 3
    named(panel, "show").label = "the whole stream"
    twin = cep.match_timeline(app.stream, found, app.pattern, 3)
    _, timeline, _ = drawn(panel)
    assert timeline[VEGALITE_MIME]["datasets"] == twin.to_dict()["datasets"]
    named(panel, "nodes of").value = "GREEDY"
    _, _, nodes = drawn(panel)
    assert "GREEDY" in nodes["text/html"]
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
    app.chooser.value = "ticker-trades/sample"  # without the AGG of its patterns
    length_2 = cep.open_dataset("ticker-trades/sample").patterns["length-2"]
    assert app.pattern == length_2.without_aggregate() and app.error == ""
    with pytest.raises(DatasetError):
        cep.explore("nasdaq")


def test_a_stream_of_ones_own_begins_with_a_pattern_of_its_most_frequent_types(
    stream: cep.EventStream,
) -> None:
    app = cep.explore(stream)
    assert [variable.type for variable in app.pattern.variables] == ["A", "B", "C"]
    assert app.error == "" and "branch" not in texts(app.widget)
    # About five events of the most frequent type are in a window.
    assert 4 < app.statistics.cardinality("a", app.pattern.window.seconds) < 6
    ticks = cep.EventStream.from_pandas(
        pd.DataFrame({"type": ["x", "y", "y", *['z"<i>'] * 3] * 50, "time": range(0, 3000, 10)}),
        type="type", time="time",
    )  # fmt: skip
    own = cep.explore(ticks)
    assert [variable.type for variable in own.pattern.variables] == ['z"<i>', "y", "x"]
    assert "<i>" not in texts(own.widget)
    assert 4 < own.statistics.cardinality("a", own.pattern.window.seconds) < 6
    assert own.sliders["window"].field.description == "window, units"
    with pytest.raises(StreamError, match="an empty stream has nothing to explore"):
        cep.explore(ticks[:0])


@pytest.mark.parametrize("more", [0, 1])
def test_of_a_large_data_set_the_first_days_are_read(tmp_path: Path, more: int) -> None:
    """It says how many events it has; there are five days, an event of each type an hour."""
    hours = [datetime(2026, 1, 5) + timedelta(hours=hour) for hour in range(5 * 24)]
    frame = pd.DataFrame(
        [(name, hour) for hour in hours for name in "AB"], columns=["symbol", "ts"]
    )
    (tmp_path / "month=2026-01").mkdir()
    frame.to_parquet(tmp_path / "month=2026-01" / "part.parquet")
    counts = {"A": 1_000_000, "B": 1_000_000 + more}
    declared = Declaration(
        kind="own", parameters={}, events=2_000_000 + more, counts=counts,
        columns={"symbol": "string", "ts": "timestamp[ns]"},
    )  # fmt: skip
    finish_dataset(tmp_path, declared)
    app = cep.explore(str(tmp_path), "PATTERN SEQ(A a, B b) WITHIN 2 hours")
    assert app.error == "" and len(app.stream) == (3 if more else 5) * 48
    assert ("Only the first 3 days of this data set" in texts(app.widget)) == bool(more)


def test_latency_of_a_conjunction_asks_for_the_last_event(stream: cep.EventStream) -> None:
    app = cep.explore(stream, "PATTERN AND(A a, B b) WHERE a.x < b.x WITHIN 20 seconds")
    app.sliders["alpha"].value = 1.0
    assert app.error == ""
    named(app.widget, "arrives last").value = "b"
    twin = cep.plans_side_by_side(app.pattern, app.statistics, alpha=1.0, last="b")
    assert app.plans.table["cost"].tolist() == pytest.approx(twin.table["cost"].tolist())


def test_large_patterns_are_not_planned_by_those_that_would_take_minutes(
    stream: cep.EventStream,
) -> None:
    fourteen, fifteen = (", ".join(f"A a{number}" for number in range(size)) for size in (14, 15))
    app = cep.explore(stream, f"PATTERN SEQ({fourteen}) WITHIN 1 seconds")
    assert "exact generators" not in texts(app.widget) and {"DP-LD", "DP-B"} <= set(app.plans.plans)
    app = cep.explore(stream, f"PATTERN SEQ({fifteen}) WITHIN 1 seconds")
    assert "exact generators" in texts(app.widget)
    assert {"TRIVIAL", "GREEDY", "ZSTREAM-ORD"} <= set(app.plans.plans)
    assert not {"DP-LD", "DP-B"} & set(app.plans.table["generator"])


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
        assert texts(tab(app, "Plans")) == before
        assert app.what_if.pattern.window.amount == pytest.approx(30)
        assert texts(tab(app, "Plans")) != before

    before = texts(tab(app, "Plans"))
    asyncio.run(drag())
