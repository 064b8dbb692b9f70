"""What is drawn, read back from both libraries: every mark, bar and whisker is where it is in the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import cepbench as cep
from cepbench.experiments.analysis.cost_fit import cost_fit
from cepbench.presentation.comparison.bars import comparison_bars
from cepbench.presentation.figures import interactive, static
from cepbench.presentation.figures.chart import spread_apart
from cepbench.presentation.figures.matplotlib_panels import TEXT
from cepbench.presentation.figures.q_errors import Axis
from tests.presentation.figures.test_figures import (
    MINE,
    OURS,
    failed,
    plans_of,
    summary_of,
    trade_offs,
)
from tests.presentation.figures.test_q_error_charts import LOOK, POINTS, SUMMARY
from tests.presentation.figures.test_ranges import by_size
from tests.presentation.figures.test_ranges import summary_of as ranges_of
from tests.presentation.figures.test_sweep_ratios import grouped_ratios

#: Titles of tooltips for one end of a distribution → what the column's name has.
ENDS = {
    "lower quartile": "_q1", "upper quartile": "_q3", "95 % from": "low", "to": "high",
    "median": "median", "90th percentile": "p90", "95th percentile": "p95", "worst case": "worst",
}  # fmt: skip

#: Channels of an axis, and those of the other end of what a mark spans.
ENDS_OF = {"x": "x2", "y": "y2"}


class Drawn(NamedTuple):
    """What a panel has: ends of spans, and the numbers of marks, along each axis that has numbers."""

    spans: set[tuple[str, str, str]]
    marks: dict[str, set[str]]


def shown(value: float) -> str:
    """A number as far as both libraries have the same."""
    return f"{value:.9g}"


def add_span(drawn: Drawn, axis: str, low: float, high: float) -> None:
    if low == low and high == high:
        drawn.spans.add((axis, shown(low), shown(high)))


def add_marks(drawn: Drawn, axis: str, values: Any) -> None:
    drawn.marks[axis] |= {shown(value) for value in values if value == value}


def panels_in(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The panels of a specification, from left to right and from top to bottom."""
    joined = node.get("vconcat") or node.get("hconcat")
    if joined is None:
        yield node
    for child in joined or ():
        yield from panels_in(child)


def of_altair(specification: dict[str, Any]) -> list[Drawn]:
    """What the encodings of each panel draw of the data."""
    found = []
    for panel in panels_in(specification):
        drawn = Drawn(set(), {"x": set(), "y": set()})
        for layer in panel.get("layer", [panel]):
            named = layer.get("data") or panel.get("data") or specification["data"]
            add_layer(drawn, layer, pd.DataFrame(specification["datasets"][named["name"]]))
        found.append(drawn)
    return found


def add_layer(drawn: Drawn, layer: dict[str, Any], data: pd.DataFrame) -> None:
    mark, encoding = layer["mark"]["type"], layer["encoding"]
    if "x2Offset" in layer["mark"]:  # a line that leads to a name
        return
    numbers = {
        axis: data[encoding[axis]["field"]].astype(float)
        for axis in ENDS_OF
        if encoding.get(axis, {}).get("type") == "quantitative"
    }
    ends = {axis: encoding[end] for axis, end in ENDS_OF.items() if end in encoding}
    for axis, end in ends.items():
        for low, high in zip(numbers[axis], data[end["field"]].astype(float), strict=True):
            add_span(drawn, axis, low, high)
    if not ends and mark in ("bar", "point", "line", "tick"):  # no line at one, no text
        for axis, values in numbers.items():
            add_marks(drawn, axis, values)


def of_matplotlib(figure: Any) -> list[Drawn]:
    """What the artists of each panel of a figure are."""
    found = []
    for axes in figure.axes:
        drawn = Drawn(set(), {"x": set(), "y": set()})
        add_artists(drawn, axes)
        found.append(drawn)
    return found


def add_artists(drawn: Drawn, axes: Axes) -> None:
    caps = []
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            _, its_caps, whiskers = container.lines
            caps += its_caps
            for segments in whiskers:
                for (x1, y1), (x2, y2) in filter(len, segments.get_segments()):  # none of a gap
                    add_span(drawn, *(("y", y1, y2) if x1 == x2 else ("x", x1, x2)))
    for bar in axes.patches:
        assert isinstance(bar, Rectangle) and bar.get_y() == 0
        add_marks(drawn, "y", [bar.get_height()])
    for line in axes.lines:
        x, y = line.get_xdata(), line.get_ydata()
        if line in caps or line.get_transform() != axes.transData:  # such as a line at one
            continue
        if line.get_marker() == "None" and len(x) == 2 and y[0] == y[1]:
            add_span(drawn, "x", *x)
            continue
        add_marks(drawn, "x", x)
        add_marks(drawn, "y", y)


def tooltips_in(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield from node.get("tooltip", ())
        node = [*node.values()]
    if isinstance(node, list):
        for child in node:
            yield from tooltips_in(child)


def check_tooltips(specification: dict[str, Any]) -> int:
    """How many tooltips show an end of a distribution; each has the end that its title names."""
    named = [its for its in tooltips_in(specification) if its.get("title") in ENDS]
    for its in named:
        assert ENDS[its["title"]] in its["field"]
    return len(named)


def of_settings() -> pd.DataFrame:
    of_sets = summary_of(OURS)[lambda its: its["size"].isna()]
    faster = {name: of_sets[name] * 1.7 for name in ("value", "low", "high")}
    return pd.concat([of_sets.assign(engine="tree"), of_sets.assign(engine="zstream", **faster)])


def of_counts() -> pd.DataFrame:
    """Times until three numbers of results, of which one has a whisker far beyond all others."""
    rows = of_settings()[lambda its: (its["engine"] == "tree") & (its["metric"] == SPEED)]
    first = rows[rows["pattern_set"] == rows["pattern_set"].iloc[0]]
    parts = [
        first.assign(
            metric="seconds", pattern_set=f"{1000 * number:,}", value=0.1 * number,
            low=0.09 * number, high=90.0 if number == 2 else 0.11 * number,
        )
        for number in (1, 2, 3)
    ]  # fmt: skip
    return pd.concat(parts)


def of_map() -> tuple[pd.DataFrame, pd.DataFrame, str]:
    keys = {"metric": "events_per_second", "comparison": "DP-B / ZSTREAM", "engine": "columnar"}
    points = pd.DataFrame(
        {
            "pattern_id": list("pqrs"), "rates": ["1–4", "1–4", "4–12", "4–12"],
            "selectivity": "0.5", "expected": [1e-5, 0.2, 3.0, 40.0], "gain": [1.1, 0.9, 2.5, 7.0],
            "measured": [0.1, 0.3, 2.0, 50.0], "bound": [False, False, False, True],
        }
    )  # fmt: skip
    means = pd.DataFrame(
        {
            "class": ["below 1", "1 to 10"], "expected": [0.4, 4.0], "value": [1.05, 4.2],
            "low": [0.95, 2.0], "high": [1.3, 6.5], "patterns": 2, "bounds": [0, 1],
        }
    )  # fmt: skip
    return points.assign(**keys), means.assign(**keys), "events_per_second"


SPEED = "events_per_second"
PLANS = plans_of(OURS)
AXES = Axis("measured", "measured"), Axis("estimated", "estimated")

#: Function, its arguments, and the axes whose numbers both libraries have.
CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "bars": ("bars_by_group", (summary_of(OURS | MINE), SPEED), {}, "y"),
    "failures": ("bars_by_group", (failed(summary_of(OURS)), SPEED), {}, "y"),
    "marks": ("bars_by_group", (summary_of(OURS, 1e4), SPEED), {}, "y"),
    "lines": ("lines_by_size", (summary_of(OURS | MINE), SPEED, "sequence"), {}, "y"),
    "far": ("lines_by_size", (by_size([3, 24, 200], "distance"), "distance", "sequence"), {}, "y"),
    "settings": ("lines_by_setting", (of_settings(), SPEED, "set"), {}, "y"),
    "side by side": ("lines_by_setting", (of_settings(), SPEED, "set"), {"lines": False}, "y"),
    "points": ("points_by_cost", (PLANS, cost_fit(PLANS, SPEED, resamples=9), SPEED), {}, "xy"),
    "trade-off": ("throughput_against_latency", (trade_offs(),), {}, "xy"),
    "ranges": ("ranges_by_factor", (ranges_of(), "regret"), {}, "x"),
    "q-errors": ("q_errors_by_events", (SUMMARY,), {}, "y"),
    "scatter": ("scatter_in_panels", (POINTS, *AXES), {**LOOK, "diagonal": True}, "xy"),
    "two sweeps": ("sweep_ratios", (grouped_ratios(), SPEED), {}, "x"),
    "printed": (
        "lines_with_printed",
        (of_settings(), SPEED, "set", {"DP-B": {"sequence": 40_000.0}}),
        {},
        "y",
    ),
    "over time": ("results_over_time", (of_counts(),), {}, "xy"),
    "map": ("gain_map", of_map(), {}, "xy"),
}


def test_every_chart_is_among_the_cases() -> None:
    drawn, printed = (
        {name for name, function in vars(module).items() if hasattr(function, "__wrapped__")}
        for module in (interactive, static)
    )
    assert {name for name, *_ in CASES.values()} == drawn == printed


def check_numbers(case: str, chart: dict[str, Any], figure: Figure) -> None:
    """Both libraries draw the same numbers, and no series twice."""
    *_, axes = CASES[case]
    of_screen, of_print = of_altair(chart), of_matplotlib(figure)
    assert len(of_screen) == len(of_print) > 0
    for one, other in zip(of_screen, of_print, strict=True):
        # What spans nothing is no whisker in matplotlib.
        assert {its for its in one.spans if its[1] != its[2]} == {
            its for its in other.spans if its[1] != its[2]
        }
        for axis in axes:
            assert one.marks[axis] == other.marks[axis] != set()
    assert any(drawn.spans for drawn in of_screen) or case in ("points", "scatter")
    assert check_tooltips(chart) or case in ("points", "scatter", "map")
    for panel in figure.axes:
        labels = panel.get_legend_handles_labels()[1]
        assert len(labels) == len(set(labels))
    for panel in panels_in(chart):
        channels = [pair for layer in panel["layer"] for pair in layer["encoding"].items()]
        # Vega-Lite joins the legends of colours, shapes and dashes, but not that of fillings.
        shown = {key for key, its in channels if '"legend": {' in json.dumps(its)}
        assert shown <= {"color", "shape", "strokeDash"}


def test_one_whisker_does_not_scale_the_results_over_time() -> None:
    (axes,) = static.results_over_time(of_counts()).axes
    assert 300 < axes.get_xlim()[1] < 500
    chart = interactive.results_over_time(of_counts()).to_dict()
    told = [row for rows in chart["datasets"].values() for row in rows if "high" in row]
    assert max(row["high"] for row in told) == 90_000  # what was measured
    assert max(row["high_drawn"] for row in told) < 500


@pytest.fixture(name="compared", scope="module")
def comparison() -> pd.DataFrame:
    events = pd.DataFrame({"type": list("ABAC" * 20), "time": range(80)})
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    pattern = "PATTERN SEQ(A a, B b, C c) WITHIN 6 units"
    return cep.compare(pattern, stream, generators=["TRIVIAL", "DP-B"], repetitions=3, seconds=0)


def test_a_comparison_is_drawn_as_its_table_has_it(compared: pd.DataFrame) -> None:
    chart = comparison_bars(compared).to_dict()
    speed, memory = of_altair(chart)
    quartiles = compared[[f"{SPEED}_q1", f"{SPEED}_q3"]].itertuples(index=False)
    assert speed.spans == {("x", shown(low), shown(high)) for low, high in quartiles}
    assert speed.marks["x"] == {*map(shown, compared[SPEED])}
    assert memory.marks["x"] == {*map(shown, compared["peak_bytes"])} and not memory.spans
    assert check_tooltips(chart) == 4 + 2


@pytest.mark.parametrize("case", ["marks", "lines", "side by side"])
def test_whiskers_that_reach_zero_stay_in_their_panel_and_hold_their_marks(case: str) -> None:
    """A logarithmic axis has no place for 0: the whisker begins at the lower end of the panel."""
    name, (summary, *given), named, _ = CASES[case]
    summary = summary.assign(low=0.0)
    top = summary["generator"].eq("DP-B")
    summary.loc[top, ["value", "high"]] *= 1e3
    figure = getattr(static, name)(summary, *given, **named)
    low, high = figure.axes[0].get_ylim()
    whiskers = [
        (line.get_xydata()[:, 1], [s[:, 1] for s in segments.get_segments()])
        for axes in figure.axes
        for container in axes.containers
        if isinstance(container, ErrorbarContainer)
        for line, _, (segments,) in [container.lines]
    ]
    assert low > 0 and whiskers
    for values, spans in whiskers:
        for value, (start, end) in zip(values, spans, strict=True):
            assert low * 0.999 <= start <= value <= end <= high * 1.001
    chart = getattr(interactive, name)(summary, *given, **named).to_dict()
    told = [row["low"] for rows in chart["datasets"].values() for row in rows if "low" in row]
    assert told and set(told) == {0.0}  # what tooltips show is what was measured
    for panel, drawn in zip(panels_in(chart), of_altair(chart), strict=True):
        (domain,) = {tuple(each["encoding"]["y"]["scale"]["domain"]) for each in panel["layer"]}
        assert domain == pytest.approx((low, high))
        for _, start, end in drawn.spans:
            marks = [float(mark) for mark in drawn.marks["y"]]
            assert low * 0.999 <= float(start) and float(end) <= high * 1.001
            assert any(float(start) <= mark <= float(end) for mark in marks)
        assert len(drawn.spans) > 1


def test_names_at_ends_keep_their_order_and_distance() -> None:
    shares = np.sort(np.concatenate([np.full(4, 0.01), [0.5, 0.52], np.full(3, 1.0)]))
    spread = spread_apart(shares, 0.07)
    assert (np.diff(spread) >= 0.07 - 1e-9).all() and spread[0] > 0 and spread[-1] <= 1
    assert spread[4:6] == pytest.approx([0.475, 0.545])  # moved alike, both ways
    assert spread_apart(np.array([0.2, 0.9]), 0.07) == pytest.approx([0.2, 0.9])
    assert len(spread_apart(np.zeros(0), 0.07)) == 0


@pytest.mark.parametrize("case", ["lines", "far", "settings", "printed"])
def test_lines_are_named_at_the_same_places_in_both_libraries(case: str) -> None:
    name, given, named, _ = CASES[case]
    figure = getattr(static, name)(*given, **named)
    chart = getattr(interactive, name)(*given, **named).to_dict()
    printed = {
        (text.get_text(), shown(text.xyann[1])) for axes in figure.axes for text in axes.texts
    }
    told = [row for rows in chart["datasets"].values() for row in rows if "place" in row]
    assert {(row["series"], shown(row["place"])) for row in told} == printed != set()
    assert '"legend": {' not in json.dumps(chart["hconcat"]) and not figure.legends


@pytest.mark.parametrize("case", ["bars", "points", "trade-off", "over time"])
def test_a_legend_stands_beside_the_words_below(case: str) -> None:
    name, given, named, _ = CASES[case]
    figure = getattr(static, name)(*given, **named)
    figure.draw_without_rendering()
    (legend,), words = figure.legends, figure.get_supxlabel().strip()
    box = legend.get_window_extent()
    lines = len(words.split("\n")) if words else 0
    assert box.y0 > lines * 1.15 * TEXT / 72 * figure.dpi
    assert all(not box.overlaps(axes.get_tightbbox()) for axes in figure.axes)


def test_labels_wider_than_a_panel_leave_room_for_it() -> None:
    name, (summary, *given), named, _ = CASES["lines"]
    renamed = summary["generator"].astype(str) + " under a name as long as that, 2000 ms"
    figure = getattr(static, name)(summary.assign(generator=renamed), *given, **named)
    figure.draw_without_rendering()  # a warning, which is an error here, says that nothing fits
    assert all(axes.get_window_extent().height > 50 for axes in figure.axes)
