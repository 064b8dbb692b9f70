"""Both charts of one summary table show its values, all its generators, and nothing of their own."""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import altair as alt
import matplotlib.colors
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

import cepbench.presentation.figures
from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.cost_fit import cost_fit
from cepbench.experiments.analysis.summary import summarize
from cepbench.experiments.sweeps.cells import NO_PLAN
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.presentation.figures import interactive, static
from cepbench.presentation.figures.offline import VEGALITE_MIME, use_offline_charts
from cepbench.presentation.figures.rows import log_ticks
from cepbench.presentation.figures.styles import series_labels, style_of

OURS = {"TRIVIAL": "order", "DP-LD": "order", "ZSTREAM": "tree", "DP-B": "tree"}
MINE = {"MY-IDEA": "order", "my <tree>": "tree"}
SETS = ("sequence", "conjunction")


def summary_of(
    generators: dict[str, str], spread: float = 1.0, metric: str = "events_per_second"
) -> pd.DataFrame:
    """A summary with a value of its own in every row; the last generator's are ``spread`` times."""
    rows = []
    for pattern_set in SETS:
        for size in (3, 4, None):
            for rank, (generator, plans) in enumerate(generators.items()):
                value = 100.0 + 10 * rank + (size or 0) + 1000 * SETS.index(pattern_set) / 10
                value *= spread if rank == len(generators) - 1 else 1
                rows.append(
                    {
                        "pattern_set": pattern_set,
                        "size": size,
                        "generator": generator,
                        "plan_kind": plans,
                        "evaluator": "tree" if plans == "tree" else "lazy-nfa",
                        "metric": metric,
                        "statistic": "median",
                        "value": value,
                        "low": value * 0.9,
                        "high": value * 1.2,
                        "patterns": 5,
                        "left_out": 0,
                    }
                )
    return pd.DataFrame(rows).astype({"size": "Int64"})


def drawn(figure: Figure) -> dict[str, tuple[list[float], str]]:
    """Label -> heights in order and colour, read back from the axes."""
    found = {}
    for axes in figure.axes:
        for container in axes.containers:
            label = container.get_label()
            if isinstance(container, BarContainer):
                heights = [bar.get_height() for bar in container]
                colour = container[0].get_facecolor()
            elif isinstance(container, ErrorbarContainer) and not label.startswith("_"):
                line = container.lines[0]
                heights, colour = list(line.get_ydata()), line.get_color()
            else:
                continue  # whiskers of bars
            found[label] = (heights, matplotlib.colors.to_hex(colour).upper())
    return found


def values_in(specification: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows that an altair chart carries."""
    return [row for rows in specification["datasets"].values() for row in rows]


def encodings_in(node: Any, channel: str) -> Iterator[dict[str, Any]]:
    """Every encoding of a channel, however deep in the specification."""
    if isinstance(node, dict):
        if isinstance(node.get("encoding"), dict) and channel in node["encoding"]:
            yield node["encoding"][channel]
        for child in node.values():
            yield from encodings_in(child, channel)
    elif isinstance(node, list):
        for child in node:
            yield from encodings_in(child, channel)


def test_runs_without_plans_have_a_panel() -> None:
    summary = summary_of({"a-seq": NO_PLAN, "two-step": NO_PLAN})
    for draw in (static.bars_by_group, partial(static.lines_by_size, pattern_set=SETS[0])):
        figure = draw(summary, "events_per_second")
        assert set(drawn(figure)) == {"a-seq", "two-step"}
        assert [axes.get_title(loc="left") for axes in figure.axes] == ["without plans"]
    chart = interactive.bars_by_group(summary, "events_per_second").to_dict()
    assert {row["generator"] for row in values_in(chart)} == {"a-seq", "two-step"}


@pytest.mark.parametrize("spread", [40.0, 1e3, 1e7])
def test_a_logarithmic_axis_has_round_ticks_inside_its_range(spread: float) -> None:
    drawing = interactive.bars_by_group(summary_of(OURS, spread), "events_per_second")
    encoding = next(e for e in encodings_in(drawing.to_dict(), "y") if "scale" in e)
    low, high = encoding["scale"]["domain"]
    ticks = encoding["axis"]["values"]
    assert 2 <= len(ticks) <= 12
    for tick in ticks:
        assert low <= tick <= high
        assert f"{tick:.0e}"[0] in "125" and float(f"{tick:.0e}") == tick


@pytest.mark.parametrize(("low", "high"), [(0.88, 1.12), (0.98, 1.01), (350.0, 620.0), (2.1, 2.9)])
def test_a_short_logarithmic_axis_has_more_ticks_than_one(low: float, high: float) -> None:
    ticks = log_ticks(low, high)
    assert 3 <= len(ticks) <= 8 and ticks == sorted(ticks)
    assert all(low <= tick <= high and float(f"{tick:.3g}") == tick for tick in ticks)


def test_a_generator_keeps_its_look_whoever_else_is_there() -> None:
    alone = drawn(static.bars_by_group(summary_of({"MY-IDEA": "order"}), "events_per_second"))
    among = drawn(static.bars_by_group(summary_of(OURS | MINE), "events_per_second"))
    assert alone["MY-IDEA"][1] == among["MY-IDEA"][1]
    assert style_of("my-idea", "order") == style_of("MY-IDEA", "order")


def test_the_paper_s_generators_can_be_told_apart() -> None:
    built_in = {name: g.kind for name, g in PLAN_GENERATORS.items() if g.is_builtin}
    assert len(built_in) >= 9
    looks = {name: style_of(name, plans) for name, plans in built_in.items()}
    assert len({look.colour for look in looks.values()}) == len(looks)
    # Without colour too: a mark of its own, and the line tells the kind of plan.
    assert len({look.mark.vega for look in looks.values()}) == len(looks)
    for name, look in looks.items():
        assert bool(look.dash) == (built_in[name] == "tree")


def test_a_generator_in_two_evaluators_is_two_series() -> None:
    one = summary_of({"GREEDY": "order", "DP-LD": "order"})
    other = one[one["generator"] == "GREEDY"].assign(evaluator="tree", value=1.0, low=1.0, high=1.0)
    both = pd.concat([one, other], ignore_index=True)
    assert set(series_labels(both)) == {"GREEDY in lazy-nfa", "GREEDY in tree", "DP-LD"}
    assert set(drawn(static.bars_by_group(both, "events_per_second"))) == set(series_labels(both))


def test_missing_values_leave_a_gap_and_no_warning() -> None:
    summary = summary_of(OURS)
    unfinished = (summary["generator"] == "TRIVIAL") & (summary["pattern_set"] == "sequence")
    summary.loc[unfinished, ["value", "low", "high"]] = float("nan")
    heights, _ = drawn(static.bars_by_group(summary, "events_per_second"))["TRIVIAL"]
    assert pd.isna(heights[0]) and heights[1] > 0
    specification = json.loads(interactive.bars_by_group(summary, "events_per_second").to_json())
    gaps = [row for row in values_in(specification) if row["value"] is None]
    assert [(row["series"], row["pattern_set"]) for row in gaps] == [("TRIVIAL", "sequence")]


@pytest.mark.parametrize("draw", [static.bars_by_group, interactive.bars_by_group])
def test_what_is_not_in_the_summary_is_named(draw: Any) -> None:
    summary = summary_of(OURS)
    with pytest.raises(ExperimentError, match=r"no metric 'peak_bytes'; it has events_per_second"):
        draw(summary, "peak_bytes")
    with pytest.raises(ExperimentError, match=r"no statistic 'mean'; it has median"):
        draw(summary, "events_per_second", statistic="mean")
    with pytest.raises(ExperimentError, match=r"no column 'low'.*summarize"):
        draw(summary.drop(columns="low"), "events_per_second")


@pytest.mark.parametrize("draw", [static.lines_by_size, interactive.lines_by_size])
def test_a_pattern_set_that_was_not_run_is_named(draw: Any) -> None:
    with pytest.raises(ExperimentError, match="no rows of pattern set 'negation' by size"):
        draw(summary_of(OURS), "events_per_second", "negation")


def test_saved_figures_are_the_same_file_each_time(tmp_path: Path) -> None:
    figure = static.bars_by_group(summary_of(OURS), "events_per_second")
    paths = static.save_figure(figure, tmp_path / "a", "figure_3")
    again = static.save_figure(
        static.bars_by_group(summary_of(OURS), "events_per_second"), tmp_path / "b", "figure_3"
    )
    assert [path.name for path in paths] == ["figure_3.svg", "figure_3.png"]
    assert paths[0].read_bytes() == again[0].read_bytes()
    assert paths[1].read_bytes()[:4] == b"\x89PNG"


def test_a_figure_is_shown_as_it_was_saved(tmp_path: Path) -> None:
    figure = static.bars_by_group(summary_of(OURS), "events_per_second")
    shell = InteractiveShell.instance(ipython_dir=str(tmp_path))
    try:
        with capture_output() as shown:
            static.show_figure(figure, tmp_path, "figure_3")
    finally:
        shell.history_manager.end_session()
        InteractiveShell.clear_instance()
    saved = (tmp_path / "figure_3.svg").read_text(encoding="utf-8")
    (output,) = shown.outputs
    assert output.data == {"image/svg+xml": saved, "text/plain": "figure_3"}


def test_altair_loads_without_the_grammar_of_iris_which_others_can_load() -> None:
    code = """if True:
        import sys, cepbench.presentation.figures.interactive
        assert "altair" in sys.modules and "rfc3987_syntax" not in sys.modules
        from importlib.util import find_spec
        print(find_spec("rfc3987_syntax") is None)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{find_spec('rfc3987_syntax') is None}\n"


def test_charts_hand_out_their_specification_and_no_address_to_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = interactive.bars_by_group(summary_of(OURS), "events_per_second")
    users = alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x")
    bundles = [own._repr_mimebundle_()]
    before = alt.renderers.active
    use_offline_charts()
    try:
        validated: list[Any] = []
        with monkeypatch.context() as patched:
            patched.setattr(
                alt.utils.schemapi,
                "validate_jsonschema",
                lambda its, *_, **__: validated.append(its),
            )
            bundles.append(own._repr_mimebundle_())
        # Its parts were when they were made, and to validate the whole takes as long as to write it.
        assert not any("config" in its for its in validated)
        bundles.append(users._repr_mimebundle_())
        alt.renderers.enable("json")
        assert "application/json" in own._repr_mimebundle_()[0]  # who asks for another gets it
    finally:
        alt.renderers.enable(before)
    for data in bundles:
        assert set(data) == {VEGALITE_MIME, "image/svg+xml", "text/plain"}
        assert (
            data["image/svg+xml"].startswith("<svg") and "http" not in data["image/svg+xml"][150:]
        )
        specification = dict(data[VEGALITE_MIME])
        specification.pop("$schema")  # a name, which nobody loads
        assert "http" not in json.dumps(specification)


def test_figures_compute_nothing() -> None:
    """No averages, no sums, no groups but for labels: those belong to the summary."""
    forbidden = re.compile(r"^(mean|median|std|var|sum|quantile|percentile|cumsum|agg|apply)$")
    for path in Path(cepbench.presentation.figures.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert not forbidden.match(node.func.attr), f"{path.name}: {node.func.attr}"


def test_a_summary_of_results_can_be_drawn() -> None:
    from tests.experiments.analysis.test_summary import made_up_results

    summary = summarize(made_up_results(), ["events_per_second", "peak_bytes"], resamples=50)
    for metric in ("events_per_second", "peak_bytes"):
        assert len(drawn(static.bars_by_group(summary, metric))) == 3
        assert interactive.lines_by_size(summary, metric, "sequence").to_dict()


def plans_of(kinds: dict[str, str]) -> pd.DataFrame:
    """Plans as points: throughput is 1000 / cost, a pattern a plan."""
    return pd.DataFrame(
        [
            {
                "pattern_set": "sequence", "size": 3, "pattern_id": f"p{number}", "plan": "a, b",
                "generator": generator, "plan_kind": plans, "evaluator": plans,
                "cost": 10.0**number, "log_cost": math.log(10.0**number),
                "events_per_second": 1000 / 10.0**number, "peak_bytes": 64 * number, "missing": 0,
            }
            for generator, plans in kinds.items()
            for number in range(4)
        ]
    )  # fmt: skip


@pytest.mark.parametrize("chart", ["points", "bars"])
def test_legends_have_one_order(chart: str) -> None:
    kinds = {"MY-IDEA": "order", "DP-LD": "order", "TRIVIAL": "order", "GREEDY": "order"}
    expected = ["TRIVIAL", "GREEDY", "DP-LD", "MY-IDEA"]
    if chart == "points":
        points = plans_of(kinds)
        given: Any = (points, cost_fit(points, "peak_bytes", resamples=9), "peak_bytes")
        figure, drawing = static.points_by_cost(*given), interactive.points_by_cost(*given)
    else:
        given = (summary_of(kinds), "events_per_second")
        figure, drawing = static.bars_by_group(*given), interactive.bars_by_group(*given)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == expected
    scales = [
        e["scale"]["domain"] for e in encodings_in(drawing.to_dict(), "color") if "scale" in e
    ]
    assert scales and all(domain == expected for domain in scales)


def test_long_names_below_an_axis_are_in_lines() -> None:
    def drawn_below(group: str) -> set[str | None]:
        summary = summary_of(OURS).assign(pattern_set=group)
        specification = interactive.bars_by_group(summary, "events_per_second").to_dict()
        return {its["axis"].get("labelExpr") for its in encodings_in(specification, "x")}

    assert drawn_below("many rare events") == {"split(datum.label, ' ')"}
    assert drawn_below("conjunction") == {None}


def test_plans_without_memory_cannot_be_drawn_on_a_logarithmic_axis() -> None:
    points = plans_of(OURS)
    fit = cost_fit(points, "peak_bytes", resamples=20)
    figure = static.points_by_cost(points, fit, "peak_bytes")
    assert {len(mark.get_ydata()) for axes in figure.axes for mark in axes.lines[:-1]} == {3}
    with pytest.raises(ExperimentError, match="no plan has both a cost and a peak_bytes"):
        static.points_by_cost(points.assign(peak_bytes=0), fit, "peak_bytes")


def trade_offs() -> pd.DataFrame:
    """DP-LD trades throughput for latency; DP-B has the same plan for every α."""
    rows = []
    for generator, plans in (("DP-LD", "order"), ("DP-B", "tree")):
        for alpha in (0.0, 0.5, 1.0):
            factor = 1 + alpha if generator == "DP-LD" else 1.0
            for statistic in ("mean", "geometric mean"):
                throughput, latency = 1000.0 / factor, 0.004 / factor
                rows.append(
                    {
                        "generator": generator, "plan_kind": plans, "evaluator": plans,
                        "alpha": alpha, "statistic": statistic,
                        "throughput": throughput, "latency": latency,
                        "throughput_low": throughput * 0.9, "throughput_high": throughput * 1.1,
                        "latency_low": latency * 0.9, "latency_high": latency * 1.1,
                        "patterns": 5, "left_out": 0, "missing": 0,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def test_latency_that_was_not_measured_is_named() -> None:
    for draw in (static.throughput_against_latency, interactive.throughput_against_latency):
        with pytest.raises(ExperimentError, match="no latency was measured"):
            draw(trade_offs().assign(latency=float("nan")))


def in_regimes(table: pd.DataFrame) -> pd.DataFrame:
    """The table twice, in two regimes."""
    return pd.concat([table.assign(regime=name) for name in ("sparse", "dense")], ignore_index=True)


def test_regimes_are_rows_of_panels_on_the_same_axes() -> None:
    summary = in_regimes(summary_of(OURS))
    points = in_regimes(plans_of(OURS))
    fit = cost_fit(points, "events_per_second", ["regime", "plan_kind"], resamples=9)
    for number, figure in enumerate(
        (
            static.bars_by_group(summary, "events_per_second"),
            static.lines_by_size(summary, "events_per_second", "sequence"),
            static.points_by_cost(points, fit, "events_per_second"),
        )
    ):
        headings = [axes.get_title(loc="left").split("\n")[:2] for axes in figure.axes]
        assert [regime for regime, _ in headings] == ["sparse", "sparse", "dense", "dense"]
        assert len({axes.get_ylim() for axes in figure.axes}) == 1
        # One legend for all panels; lines are named at their ends.
        named = [{text.get_text() for text in axes.texts} & set(OURS) for axes in figure.axes]
        assert len(figure.legends) == (number != 1) and all(map(bool, named)) == (number == 1)
        assert number < 2 or len({axes.get_xlim() for axes in figure.axes}) == 1
    for chart in (
        interactive.bars_by_group(summary, "events_per_second"),
        interactive.lines_by_size(summary, "events_per_second", "sequence"),
        interactive.points_by_cost(points, fit, "events_per_second"),
    ):
        rows = chart.to_dict()["vconcat"]
        assert [len(row["hconcat"]) for row in rows] == [2, 2]
    with_latency = in_regimes(trade_offs())
    figure = static.throughput_against_latency(with_latency)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["sparse", "dense"]
    assert len(interactive.throughput_against_latency(with_latency).to_dict()["hconcat"]) == 2


def test_evaluators_apart_are_no_series_of_their_own() -> None:
    summary = summary_of({"TRIVIAL": "order", "DP-LD": "order"})
    both = pd.concat([summary, summary.assign(evaluator="mine")])
    figure = static.bars_by_group(both, "events_per_second", apart=("evaluator",))
    assert len(figure.axes) == 2 and set(drawn(figure)) == {"TRIVIAL", "DP-LD"}


@pytest.mark.parametrize("draw", [static.bars_by_group, interactive.bars_by_group])
def test_strategies_are_groups_too(draw: Any) -> None:
    summary = summary_of(OURS)
    of_set = summary[summary["pattern_set"] == "sequence"]
    both = [of_set.assign(strategy=name) for name in ("any", "strict_contiguity")]
    chart = draw(pd.concat(both), "events_per_second", group="strategy", log=True)
    if isinstance(chart, Figure):
        labels = [tick.get_text() for tick in chart.axes[0].get_xticklabels()]
        assert labels == ["any", "strict contiguity"]
        assert chart.axes[0].get_yscale() == "log"
    else:
        groups = {row["group"] for row in values_in(chart.to_dict())}
        assert groups == {"any", "strict contiguity"}


def failed(summary: pd.DataFrame) -> pd.DataFrame:
    """DP-B without a median, for its failures in conjunctions; the others have one pattern less."""
    part = summary["pattern_set"] == "conjunction"
    its = part & (summary["generator"] == "DP-B")
    found = summary.assign(missing=0)
    found.loc[part, ["patterns", "left_out"]] = [4, 1]
    found.loc[part & (summary["generator"] == "TRIVIAL"), "missing"] = 1
    found.loc[its, ["patterns", "left_out", "missing"]] = [0, 5, 3]
    found.loc[its, ["value", "low", "high"]] = float("nan")
    return found


def told_by(chart: Any) -> str:
    """All that stands below a static chart, or above an interactive one, as one line."""
    if isinstance(chart, Figure):
        return " ".join(chart.get_supxlabel().split())
    return " ".join(chart.to_dict()["title"]["subtitle"])


@pytest.mark.parametrize("library", [static, interactive])
def test_a_chart_says_what_its_averages_leave_out(library: Any) -> None:
    summary = failed(summary_of(OURS))
    for told in (
        told_by(library.bars_by_group(summary, "events_per_second")),
        told_by(library.lines_by_size(summary, "events_per_second", "conjunction")),
    ):
        assert "patterns: those that all compared have." in told
        assert "Not compared where more than half are missing: DP-B." in told
    bars = told_by(library.bars_by_group(summary, "events_per_second"))
    assert "Over 9 of 10 patterns" in bars
    assert "Patterns missing, of 10: TRIVIAL 1, DP-B 3." in bars
    lines = told_by(library.lines_by_size(summary, "events_per_second", "conjunction"))
    assert "Over 8 of 10 patterns" in lines and "of 10: TRIVIAL 2, DP-B 6." in lines
    whole = library.lines_by_size(summary, "events_per_second", "sequence")
    assert "atterns missing" not in told_by(whole) and "Over" not in told_by(whole)


@pytest.mark.parametrize("library", [static, interactive])
def test_plans_that_are_no_points_are_counted(library: Any) -> None:
    points = plans_of(OURS)
    points.loc[points["generator"] == "GREEDY", "missing"] = 0
    points.loc[points["generator"] == "DP-LD", "missing"] = 7
    fit = cost_fit(points, "peak_bytes", resamples=20)
    told = told_by(library.points_by_cost(points, fit, "peak_bytes"))
    assert "without a point, as a run did not end well: DP-LD 7." in told
    offs = trade_offs()
    offs.loc[offs["generator"] == "DP-B", "missing"] = 2
    told = told_by(library.throughput_against_latency(offs.assign(patterns=3, left_out=2)))
    assert "Over 3 of 5 patterns" in told and "of 5: DP-B 2." in told


@pytest.mark.parametrize("name", ["bars", "lines", "points", "trade-off"])
def test_no_text_of_a_printed_figure_is_smaller_than_twelve_pixels(name: str) -> None:
    summary, points = failed(summary_of(OURS)), plans_of(OURS)
    fit = cost_fit(points, resamples=9)
    figure = {
        "bars": lambda: static.bars_by_group(summary, "events_per_second"),
        "lines": lambda: static.lines_by_size(summary, "events_per_second", "conjunction"),
        "points": lambda: static.points_by_cost(points, fit, "events_per_second"),
        "trade-off": lambda: static.throughput_against_latency(trade_offs()),
    }[name]()
    assert small_texts(figure) == []


def small_texts(figure: Figure) -> list[str]:
    """Texts below nine points, which a page draws as twelve pixels."""
    texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
    assert len(texts) > 5
    return [text.get_text() for text in texts if text.get_fontsize() < 9]


def test_units_are_on_the_axis() -> None:
    memory = static.bars_by_group(summary_of(OURS, metric="peak_bytes"), "peak_bytes")
    format_value = memory.axes[0].yaxis.get_major_formatter()
    assert format_value(2000, 0) == "2 kB"
    ratios = summary_of(OURS).assign(statistic="ratio")
    drawing = static.bars_by_group(ratios, "events_per_second", statistic="ratio")
    assert drawing.axes[0].yaxis.get_major_formatter()(0.5, 0) == "0.5"
    encoding = next(
        e
        for e in encodings_in(
            interactive.bars_by_group(
                summary_of(OURS, metric="peak_bytes"), "peak_bytes"
            ).to_dict(), "y",
        )
        if "scale" in e
    )  # fmt: skip
    assert encoding["axis"]["labelExpr"].endswith("+ 'B' : '0'")
