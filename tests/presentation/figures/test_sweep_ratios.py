"""Charts of two sweeps compared: every ratio with its interval, significant differences filled."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.sweep_comparison import BETTER, SAME, TOO_FEW, WORSE
from cepbench.presentation.figures import interactive, static
from cepbench.presentation.figures.sweep_ratios import sweep_ratio_ends, sweep_ratio_rows
from tests.presentation.figures.test_figures import told_by

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


@pytest.mark.parametrize("library", [static, interactive])
def test_patterns_left_out_are_counted(library: Any) -> None:
    ratios = grouped_ratios()
    ratios.loc[[1, 4], "left_out"] = [3, 2]
    # A run without any pair has no mark, and is told for that.
    ratios.loc[1, ["value", "low", "high", "common"]] = float("nan")
    told = told_by(library.sweep_ratios(ratios, "events_per_second"))
    assert "DP-LD any 3 (sequence size 3), EFREQ any 2 (sequence all sizes)." in told
    assert "left out" not in told_by(library.sweep_ratios(grouped_ratios(), "events_per_second"))


def test_losses_are_within_the_axis_as_gains_are() -> None:
    for factor in (0.01, 1.0, 100.0):
        rows = sweep_ratio_rows(made_up_ratios(), "events_per_second")
        columns = ["value", "low", "high", "common"]
        low, high = sweep_ratio_ends(rows.assign(**{name: rows[name] * factor for name in columns}))
        assert low < rows["low"].min() * factor and high > rows["high"].max() * factor
        assert low < 1 < high
