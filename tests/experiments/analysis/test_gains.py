"""Ratios to the native methods: paired, by kind of plan, and from light to heavy patterns."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cepbench.experiments.analysis.gains import gains_by_weight, gains_over
from cepbench.experiments.studies.kolchinsky2018.figure_data import NATIVE
from cepbench.experiments.sweeps.cells import ERROR, LIMIT, results_frame
from cepbench.presentation.figures import static
from tests.experiments.made_rows import made_rows

RATES = {"TRIVIAL": 50.0, "EFREQ": 100.0, "DP-LD": 200.0, "ZSTREAM": 400.0, "DP-B": 1200.0}


def results(patterns: int = 4, strategies: tuple[str, ...] = ("any",)) -> pd.DataFrame:
    """Pattern k runs at 1 / (k + 1) of :data:`RATES`; DP-LD gains a factor k + 1 more."""

    def speed(run: Any) -> dict[str, float]:
        more = run.number + 1 if run.generator == "DP-LD" else 1
        return {"events_per_second": RATES[run.generator] * more / (run.number + 1)}

    numbers = range(patterns)
    rows = made_rows(speed, strategy=strategies, size=(3, 7), number=numbers, generator=RATES)
    return results_frame(rows)


def test_each_kind_of_plan_has_its_native_method_as_baseline() -> None:
    gains = gains_over(results(), "events_per_second", NATIVE)
    overall = gains[gains["size"].isna()].set_index("generator")
    assert dict(overall["baseline"]) == {"TRIVIAL": "EFREQ", "DP-LD": "EFREQ", "DP-B": "ZSTREAM"}
    assert overall.loc["TRIVIAL", "value"] == pytest.approx(0.5)
    assert overall.loc["DP-B", "value"] == pytest.approx(3.0)
    assert overall.loc["DP-LD", "value"] == pytest.approx(2 * (1 * 2 * 3 * 4) ** (1 / 4))
    assert set(gains["size"].dropna()) == {3, 7}


def test_one_baseline_for_all_and_groups_by_strategy() -> None:
    table = results(strategies=("any", "consuming"))
    gains = gains_over(
        table, "events_per_second", dict.fromkeys(("order", "tree"), "TRIVIAL"), ("strategy",)
    )  # fmt: skip
    assert len(gains) == 2 * 4
    found = gains.set_index(["generator", "strategy"])["value"]
    assert found["ZSTREAM", "consuming"] == pytest.approx(8.0)


def test_a_ratio_is_taken_within_one_evaluator() -> None:
    slow = results().assign(evaluator="slow")
    slow["events_per_second"] /= 10
    table = pd.concat([results(), slow[slow["plan_kind"] == "order"]], ignore_index=True)
    gains = gains_over(table, "events_per_second", NATIVE, ["pattern_set"])
    found = gains.set_index(["generator", "evaluator"])["value"]
    assert found["TRIVIAL", "lazy-nfa"] == pytest.approx(0.5)
    assert found["TRIVIAL", "slow"] == pytest.approx(0.5)
    # One whose evaluator the baseline did not run in is compared with the first that it did.
    alone = table[(table["generator"] != "EFREQ") | (table["evaluator"] != "slow")]
    other = gains_over(alone, "events_per_second", NATIVE, ["pattern_set"])
    assert other.set_index(["generator", "evaluator"])["value"]["TRIVIAL", "slow"] == pytest.approx(
        0.05
    )


def test_without_a_baseline_there_are_no_ratios() -> None:
    table = results()
    alone = table[table["generator"].isin(["DP-LD", "DP-B"])]
    assert gains_over(alone, "events_per_second", NATIVE).empty


@pytest.mark.parametrize("strategies", [("any",), ("any", "consuming")])
def test_ratios_are_over_the_patterns_that_all_generators_have(strategies: tuple[str, ...]) -> None:
    table = results(4, strategies)
    slow = (table["generator"] == "TRIVIAL") & table["pattern_id"].isin(
        ["sequence-3-3", "sequence-7-3"]
    )
    table.loc[slow & (table["strategy"] == "any"), "status"] = ERROR
    by = ("pattern_set",) if len(strategies) == 1 else ("strategy",)
    gains = gains_over(table, "events_per_second", NATIVE, by)
    # DP-LD gains most on the patterns that TRIVIAL fails on, under whichever strategy.
    own = gains[gains["generator"] == "DP-LD"]
    assert own["value"].tolist() == pytest.approx([2 * 6 ** (1 / 3)] * len(strategies))
    assert set(gains["patterns"]) == {6} and set(gains["left_out"]) == {2}
    missing = gains.groupby("generator")["missing"].sum().to_dict()
    assert missing == {"TRIVIAL": 2, "DP-LD": 0, "DP-B": 0}


def test_patterns_without_a_weight_are_counted() -> None:
    table = results(10)
    table.loc[
        (table["generator"] == "DP-B") & (table["pattern_id"] == "sequence-3-9"), "status"
    ] = ERROR
    parts = gains_by_weight(table, "events_per_second", "DP-B", "ZSTREAM", parts=5)
    last = parts.iloc[-1]
    assert parts["patterns"].sum() == 19 and len(parts) == 6
    assert (last["part"], last["patterns"], last["left_out"]) == ("of unknown weight", 0, 1)
    assert pd.isna(last["value"]) and pd.isna(last["microseconds_per_event"])


def test_ratios_can_be_drawn() -> None:
    gains = gains_over(results(), "events_per_second", NATIVE)
    figure = static.bars_by_group(gains, "events_per_second", statistic="ratio")
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}
    assert "relative to EFREQ" in figure.get_suptitle()
    lines = static.lines_by_size(gains, "events_per_second", "sequence", statistic="ratio")
    assert "sequence patterns" in lines.get_suptitle()


def test_parts_go_from_light_to_heavy_and_hold_every_pattern() -> None:
    parts = gains_by_weight(results(10), "events_per_second", "DP-B", "ZSTREAM", parts=5)
    assert list(parts["part"]) == [f"{k} of 5" for k in range(1, 6)]
    assert parts["microseconds_per_event"].is_monotonic_increasing
    assert parts["patterns"].sum() == 20
    assert list(parts["value"]) == pytest.approx([3.0] * 5)
    few = gains_by_weight(results(1), "events_per_second", "DP-LD", "EFREQ", parts=5)
    assert len(few) == 2


def test_ratios_of_runs_at_the_limit_are_counted_as_bounds() -> None:
    table = results()
    at_limit = (table["generator"] == "EFREQ") & (table["pattern_id"] == "sequence-7-3")
    table.loc[at_limit, "status"] = LIMIT
    gains = gains_over(table, "events_per_second", NATIVE)
    overall = gains[gains["size"].isna()].set_index("generator")
    assert dict(overall["bounds"]) == {"TRIVIAL": 1, "DP-LD": 1, "DP-B": 0}
    assert (overall["patterns"] == 8).all()
    figure = static.bars_by_group(gains, "events_per_second", statistic="ratio")
    assert "bounds, as a run ended at the limit: TRIVIAL 1, DP-LD 1" in figure.get_supxlabel()
