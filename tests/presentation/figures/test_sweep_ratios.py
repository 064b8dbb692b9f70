"""Charts of two sweeps compared: every ratio with its interval, significant differences filled."""

from __future__ import annotations

from typing import Any

import matplotlib
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.sweep_comparison import BETTER, SAME, TOO_FEW, WORSE
from cepbench.presentation.figures import interactive, static
from cepbench.presentation.figures.styles import style_of
from cepbench.presentation.figures.sweep_ratios import sweep_ratio_ends, sweep_ratio_rows
from tests.presentation.figures.test_figures import encodings_in, told_by, values_in

RUNS = [("EFREQ", "order", "any", WORSE), ("DP-LD", "order", "any", SAME),
        ("DP-LD", "order", "consuming", BETTER), ("DP-B", "tree", "any", TOO_FEW)]  # fmt: skip


def made_up_ratios(**grouped: Any) -> pd.DataFrame:
    """A value of its own in every row."""
    return pd.DataFrame(
        [
            {
                **grouped, "generator": name, "plan_kind": plans, "evaluator": "tree",
                "strategy": strategy, "alpha": 0.0, "metric": "events_per_second",
                "value": 0.8 + 0.2 * rank, "low": 0.7 + 0.2 * rank, "high": 0.95 + 0.2 * rank,
                "common": 0.9 + rank / 10,
                "pairs": 10 + rank, "left_out": 0, "verdict": verdict,
            }
            for rank, (name, plans, strategy, verdict) in enumerate(RUNS)
        ]
    )  # fmt: skip


def test_rows_are_labelled_by_what_tells_them_apart() -> None:
    rows = sweep_ratio_rows(made_up_ratios(), "events_per_second")
    assert list(rows["label"]) == ["EFREQ any", "DP-LD any", "DP-LD consuming", "DP-B any"]
    assert list(rows["significant"]) == [True, False, True, False]
    assert list(rows["verdict"]) == ["slower", SAME, "faster", TOO_FEW]
    assert set(rows["panel"]) == {""} and list(rows)[:2] == ["panel", "label"]
    one = made_up_ratios().iloc[[0, 1, 3]]
    assert list(sweep_ratio_rows(one, "events_per_second")["label"]) == ["EFREQ", "DP-LD", "DP-B"]
    low, high = sweep_ratio_ends(rows)
    assert low < rows["low"].min() < rows["high"].max() < high and low * high == pytest.approx(1)
    assert sweep_ratio_ends(rows.assign(common=float("nan"))) == (low, high)
    assert sweep_ratio_ends(rows.assign(common=9.0))[1] > 9
    with pytest.raises(ExperimentError, match="no ratios of 'peak_bytes'"):
        sweep_ratio_rows(made_up_ratios(), "peak_bytes")


def grouped_ratios() -> pd.DataFrame:
    parts = [made_up_ratios(pattern_set=name, size=size)
             for name, size in (("sequence", 3), ("sequence", pd.NA), ("kleene", 4))]  # fmt: skip
    return pd.concat(parts, ignore_index=True).astype({"size": "Int64"})


def test_the_static_chart_has_every_ratio_in_its_panel() -> None:
    rows = sweep_ratio_rows(grouped_ratios(), "events_per_second")
    figure = static.sweep_ratios(grouped_ratios(), "events_per_second")
    panels = [axes.get_title("left") for axes in figure.axes]
    assert panels == ["sequence size 3", "sequence all sizes", "kleene size 4"]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    for axes, panel in zip(figure.axes, panels, strict=True):
        marked = [line for line in axes.lines if line.get_marker() not in ("None", "", None)]
        marks = [line for line in marked if line.get_marker() != "|"]
        common = [float(line.get_xdata()[0]) for line in marked if line.get_marker() == "|"]
        own = rows[rows["panel"] == panel].to_dict("records")
        assert len(marks) == len(own) == 4
        for line, row in zip(marks, own, strict=True):
            assert float(line.get_xdata()[0]) == row["value"]
            assert names[-round(float(line.get_ydata()[0]))] == row["label"]
            colour = style_of(row["generator"], row["kind"]).colour
            assert matplotlib.colors.to_hex(line.get_markeredgecolor()).upper() == colour
            filled = matplotlib.colors.to_hex(line.get_markerfacecolor()).upper()
            assert filled == (colour if row["significant"] else "#FFFFFF")
        assert common == [row["common"] for row in own]
        spans = {
            (low, high)
            for container in axes.containers
            if isinstance(container, ErrorbarContainer) and container.has_xerr
            for segments in container.lines[2]
            for (low, _), (high, _) in segments.get_segments()
        }
        assert {(row["low"], row["high"]) for row in own} == spans


@pytest.mark.parametrize("library", [static, interactive])
def test_patterns_left_out_are_counted(library: Any) -> None:
    ratios = grouped_ratios()
    ratios.loc[[1, 4], "left_out"] = [3, 2]
    # A run without any pair has no mark, and is told for that.
    ratios.loc[1, ["value", "low", "high", "common"]] = float("nan")
    told = told_by(library.sweep_ratios(ratios, "events_per_second"))
    assert "DP-LD any 3 (sequence size 3), EFREQ any 2 (sequence all sizes)." in told
    assert "left out" not in told_by(library.sweep_ratios(grouped_ratios(), "events_per_second"))


def test_the_interactive_chart_carries_the_same_numbers() -> None:
    rows = sweep_ratio_rows(grouped_ratios(), "events_per_second")
    chart = interactive.sweep_ratios(grouped_ratios(), "events_per_second").to_dict()
    carried = pd.DataFrame([row for row in values_in(chart) if "label" in row])
    key = ["panel", "label"]
    pd.testing.assert_frame_equal(
        carried.sort_values(key)[rows.columns].reset_index(drop=True),
        rows.sort_values(key).reset_index(drop=True),
    )
    scales = [found["scale"] for found in encodings_in(chart, "color") if "scale" in found]
    assert scales and all(scale["domain"] == scales[0]["domain"] for scale in scales)
    assert scales[0]["range"][0] == style_of("EFREQ", "order").colour


def test_losses_are_within_the_axis_as_gains_are() -> None:
    for factor in (0.01, 1.0, 100.0):
        rows = sweep_ratio_rows(made_up_ratios(), "events_per_second")
        columns = ["value", "low", "high", "common"]
        low, high = sweep_ratio_ends(rows.assign(**{name: rows[name] * factor for name in columns}))
        assert low < rows["low"].min() * factor and high > rows["high"].max() * factor
        assert low < 1 < high
