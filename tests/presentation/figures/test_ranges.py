"""Charts of plans from wrong numbers, and sizes so far apart that their axis is logarithmic."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.presentation.figures import interactive, static
from cepbench.presentation.figures.averages import size_ticks
from cepbench.presentation.figures.ranges import MARKS, range_ends, range_rows
from cepbench.presentation.figures.rows import few_ticks
from tests.presentation.figures.test_figures import drawn, encodings_in, told_by

GENERATORS = {"ZSTREAM": "tree", "EFREQ": "order", "MY-IDEA": "order"}


def summary_of(factors: tuple[float, ...] = (1.0, 2.0, 100.0)) -> pd.DataFrame:
    """A value of its own in every row, trees before orders."""
    return pd.DataFrame(
        [
            {
                "generator": name, "plan_kind": plans, "factor": factor, "metric": "regret",
                "statistic": statistic, "value": 1.0 + place * factor + rank / 10, "patterns": 7,
                "left_out": 0, "missing": 0,
            }
            for rank, (name, plans) in enumerate(GENERATORS.items())
            for factor in factors
            for place, statistic in enumerate(MARKS)
        ]
    )  # fmt: skip


def test_rows_are_orders_before_trees_without_the_right_numbers() -> None:
    rows = range_rows(summary_of(), "regret")
    assert rows["generator"].tolist() == ["EFREQ", "MY-IDEA", "ZSTREAM"] * 2
    assert rows["factor"].tolist() == [2.0] * 3 + [100.0] * 3
    assert rows.loc[0, list(MARKS)].tolist() == pytest.approx([1.1, 3.1, 5.1])
    with pytest.raises(ExperimentError, match="no distribution of 'slowdown'"):
        range_rows(summary_of(), "slowdown")
    with pytest.raises(ExperimentError, match="no distribution of 'regret'"):
        range_rows(summary_of((1.0,)), "regret")


@pytest.mark.parametrize("library", [static, interactive])
def test_generators_without_plans_are_named(library: Any) -> None:
    summary = summary_of().assign(patterns=5, left_out=2)
    its = summary["generator"] == "EFREQ"
    summary.loc[its, ["patterns", "left_out", "missing"]] = [0, 7, 4]
    summary.loc[its, "value"] = float("nan")
    told = told_by(library.ranges_by_factor(summary, "regret"))
    assert "Over 5 of 7 patterns" in told and "of 7: EFREQ 4." in told
    assert "more than half are missing: EFREQ." in told
    assert "Over" not in told_by(library.ranges_by_factor(summary_of(), "regret"))


@pytest.mark.parametrize("worst", [1.0, 1.3, 6.0, 90.0, 3e5])
def test_ticks_of_a_narrow_panel_are_few_and_inside(worst: float) -> None:
    rows = range_rows(summary_of(), "regret").assign(**dict.fromkeys(MARKS, 1.0))
    low, high = range_ends(rows.assign(**{"worst case": worst}))
    assert low < 1.0 and worst < high
    ticks = few_ticks(low, high)
    assert 1 <= len(ticks) <= 7
    assert all(low <= tick <= high for tick in ticks)


def by_size(sizes: list[int], metric: str) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "pattern_set": "sequence", "size": size, "generator": name, "plan_kind": plans,
                "metric": metric, "statistic": "median", "value": 1.0 + rank, "low": 1.0,
                "high": 3.0 + rank, "patterns": 3, "left_out": 0,
            }
            for size in sizes
            for rank, (name, plans) in enumerate(GENERATORS.items())
        ]
    )  # fmt: skip


@pytest.mark.parametrize(("sizes", "is_far"), [([3, 12, 22], False), ([3, 24, 50, 200], True)])
def test_sizes_that_are_far_apart_have_a_logarithmic_axis(sizes: list[int], is_far: bool) -> None:
    figure = static.lines_by_size(by_size(sizes, "search_seconds"), "search_seconds", "sequence")
    for axes in figure.axes:
        assert axes.get_xscale() == ("log" if is_far else "linear")
        assert [label.get_text() for label in axes.get_xticklabels()] == [str(n) for n in sizes]
    for line in (line for axes in figure.axes for line in axes.containers):
        np.testing.assert_allclose(line.lines[0].get_xdata(), sizes, rtol=0.06)
    assert set(drawn(figure)) == set(GENERATORS)
    chart = interactive.lines_by_size(
        by_size(sizes, "search_seconds"), "search_seconds", "sequence"
    ).to_dict()
    for encoding in encodings_in(chart, "x"):
        assert encoding["type"] == ("quantitative" if is_far else "ordinal")
        assert encoding.get("scale", {}).get("type") == ("log" if is_far else None)


def test_named_sizes_keep_a_distance() -> None:
    named = size_ticks([*range(3, 25), 50, 100, 200])
    assert named[0] == 3 and named[-3:] == [50, 100, 200]
    assert all(later / one > 1.3 for one, later in itertools.pairwise(named))


def test_distances_are_always_on_a_logarithmic_axis() -> None:
    def scale_of(metric: str) -> Any:
        figure = static.lines_by_size(by_size([3, 4], metric), metric, "sequence")
        return figure.axes[0].get_yscale()

    assert (scale_of("distance"), scale_of("search_seconds")) == ("log", "linear")
