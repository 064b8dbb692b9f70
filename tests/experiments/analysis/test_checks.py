"""What each kind of check measures; kinds are an open registry: a study adds its own."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.checks import (
    CHECK_KINDS,
    NO_CASE,
    NO_DATA,
    TOO_FEW,
    Bootstrap,
    ClaimCheck,
    Measured,
    Selection,
    check_kind,
    estimated,
    measure,
    sample_of,
)
from cepbench.experiments.sweeps.cells import ERROR, LIMIT, OK

CHECK = ClaimCheck("spread", "seconds", Selection(("A",)), Selection(("B",)))


def runs(sizes: tuple[int, ...] = (3, 4), patterns: int = 6) -> pd.DataFrame:
    """The ratio of pattern k is k + 1."""
    return pd.DataFrame(
        [
            {"size": size, "pattern_id": f"{size}-{k}", "generator": name, "seconds": value}
            for size in sizes
            for k in range(patterns)
            for name, value in (("A", 2.0 * (k + 1)), ("B", 2.0))
        ]
    )


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    @check_kind("spread", "largest over smallest ratio")
    def spread(check: ClaimCheck, logs: pd.DataFrame, resampling: Bootstrap) -> Measured:
        sample = sample_of(check, logs)
        return estimated(
            sample, lambda rows: np.exp(np.ptp(sample.columns[rows], axis=(1, 2))), resampling
        )

    yield
    del CHECK_KINDS["spread"]


def test_a_study_adds_a_kind_of_check() -> None:
    found = measure(CHECK, runs(), resamples=50)
    assert found.value == pytest.approx(6.0)
    assert found.low <= found.high <= found.value and found.patterns == 12
    assert CHECK_KINDS["spread"].words == "largest over smallest ratio"


def test_its_table_is_checked_like_that_of_any_other() -> None:
    assert "B was not measured" in measure(CHECK, runs()[lambda t: t["generator"] == "A"]).problem
    assert "fewer than 5" in measure(CHECK, runs((3,), 2)).problem
    assert "no column seconds" in measure(CHECK, runs().drop(columns="seconds")).problem


def test_a_kind_has_one_meaning() -> None:
    with pytest.raises(ExperimentError, match="'ratio' already; choose another name"):
        check_kind("ratio", "something else")(lambda check, logs, resampling: Measured())


def results(ratios: list[float], **more: object) -> pd.DataFrame:
    """DP-LD's throughput is ``ratio`` times EFREQ's, a pattern a ratio."""
    return pd.DataFrame(
        [
            {"pattern_set": "sequence", "size": 3, "pattern_id": str(number), "status": OK,
             "generator": name, "events_per_second": value, **more}
            for number, ratio in enumerate(ratios)
            for name, value in (("EFREQ", 100.0), ("DP-LD", 100.0 * ratio))
        ]
    )  # fmt: skip


GAIN = ClaimCheck("ratio", "events_per_second", Selection(("DP-LD",)), Selection(("EFREQ",)))


def test_a_ratio_is_the_geometric_mean_over_patterns() -> None:
    measured = measure(GAIN, results([1.0, 4.0] * 5))
    assert measured.value == pytest.approx(2.0)
    assert 1.0 < measured.low < 2.0 < measured.high < 4.0
    assert (measured.patterns, measured.left_out) == (10, 0)


def test_repetitions_count_once_and_one_that_failed_leaves_the_pattern_out() -> None:
    table = pd.concat([results([2.0] * 8), results([3.0] * 8), results([2.0] * 8)])
    assert measure(GAIN, table).value == pytest.approx(2.0)
    failing = (table["pattern_id"] == "3") & (table["events_per_second"] == 300.0)
    table.loc[failing, "status"] = ERROR
    measured = measure(GAIN, table)
    assert (measured.patterns, measured.left_out) == (7, 1)


def test_more_patterns_left_out_than_counted_decide_nothing() -> None:
    table = results([2.0] * 12)
    slow = table["generator"] == "EFREQ"
    for failing in (6, 7):
        table.loc[slow & (table["pattern_id"].astype(int) < failing), "status"] = ERROR
        measured = measure(GAIN, table)
        assert (measured.patterns, measured.left_out) == (12 - failing, failing)
        if failing == 6:
            assert measured.value == pytest.approx(2.0) and not measured.problem
        else:
            assert "7 were left out, more than the 5 that count" in measured.problem
            assert math.isnan(measured.value) and measured.lack == TOO_FEW


def test_the_level_of_a_set_is_no_trend() -> None:
    """Conjunctions gain ten times as much, and are of larger sizes; each set falls with the size."""
    table = pd.concat(
        [
            results([10.0**which * 2.0 ** -(size - first)] * 6).assign(pattern_set=name, size=size)
            for which, (name, first) in enumerate({"sequence": 3, "conjunction": 6}.items())
            for size in range(first, first + 3)
        ]
    )
    table["pattern_id"] = table["pattern_id"] + "-" + table["size"].astype(str)
    measured = measure(ClaimCheck("trend", GAIN.metric, GAIN.over, GAIN.under), table)
    assert measured.value == pytest.approx(0.5)
    assert measured.low == pytest.approx(0.5) and measured.high == pytest.approx(0.5)


def test_plans_that_cost_nearly_the_same_are_not_equal() -> None:
    rows = [
        {"size": 5, "pattern_id": str(number), "generator": name, "status": OK,
         "plan_log_cost": 7.0 + (by if name == "GREEDY" else 0.0)}
        for number, by in enumerate([0.0, 1e-12, 1e-3, 0.05] * 3)
        for name in ("GREEDY", "DP-LD")
    ]  # fmt: skip
    check = ClaimCheck("share_equal", "plan_cost", Selection(("GREEDY",)), Selection(("DP-LD",)))
    assert measure(check, pd.DataFrame(rows)).value == pytest.approx(0.5)


def test_across_sets_the_highest_counts() -> None:
    table = pd.concat(
        [results([2.0] * 6), results([8.0] * 6).assign(pattern_set="conjunction"),
         results([3.0] * 6).assign(pattern_set="kleene")]
    )  # fmt: skip
    for take, value in {"lowest": 2.0, "median": 3.0, "highest": 8.0}.items():
        check = ClaimCheck("ratio", "events_per_second", GAIN.over, GAIN.under,
                      across="pattern_set", take=take)  # fmt: skip
        assert measure(check, table).value == pytest.approx(value)


def test_a_run_that_did_not_end_leaves_a_maximum_without_bound() -> None:
    table = pd.DataFrame(
        [
            {"size": 22, "pattern_id": str(number), "generator": "DP-B", "plan_seconds": seconds,
             "status": OK if seconds < 4 else "time_budget"}
            for number, seconds in enumerate([1.0, 2.0, 3.0, 4.0])
        ]
    )  # fmt: skip
    check = ClaimCheck("maximum", "plan_seconds", Selection(("DP-B",)))
    measured = measure(check, table)
    assert (measured.value, measured.low, measured.high) == pytest.approx((3.0, 3.0, math.inf))
    assert measured.left_out == 1
    none = measure(check, table.assign(status="time_budget"))
    assert (none.lack, none.left_out) == (TOO_FEW, 4)  # known to exist, so that readers see it


def test_a_run_at_the_limit_is_a_bound_unless_both_are() -> None:
    table = results([2.0] * 8)
    slow = table["generator"] == "EFREQ"
    ids = table["pattern_id"].astype(int)
    table.loc[slow & (ids < 3), "status"] = LIMIT
    table.loc[~slow & (ids == 0), "status"] = LIMIT
    measured = measure(GAIN, table)
    assert measured.value == pytest.approx(2.0)
    assert (measured.patterns, measured.left_out, measured.bounds) == (7, 1, 2)


def test_beside_no_other_run_a_bound_says_nothing() -> None:
    table = results([2.0] * 8)
    table.loc[table["pattern_id"] == "0", "status"] = LIMIT
    measured = measure(ClaimCheck("ratio", "events_per_second", Selection(("DP-LD",))), table)
    assert (measured.patterns, measured.left_out, measured.bounds) == (7, 1, 0)


def test_the_cost_of_a_plan_at_the_limit_is_known() -> None:
    table = results([2.0] * 8).assign(status=LIMIT, plan_log_cost=1.0)
    check = ClaimCheck("share_equal", "plan_cost", GAIN.over, GAIN.under)
    measured = measure(check, table)
    assert (measured.value, measured.left_out, measured.bounds) == (1.0, 0, 0)


def test_averages_follow_the_pattern_of_the_largest_value() -> None:
    ratios = [1.0] * 9 + [991.0]
    table = results(ratios)
    check = ClaimCheck("ratio_of_averages", "events_per_second", GAIN.over, GAIN.under)
    assert measure(check, table).value == pytest.approx(100.0)
    assert measure(GAIN, table).value == pytest.approx(991**0.1)


def test_a_bound_counts_in_an_average_unless_both_runs_have_one() -> None:
    table = results([2.0] * 7 + [9.0])
    slow = table["generator"] == "EFREQ"
    ids = table["pattern_id"].astype(int)
    table.loc[slow & (ids == 0), "status"] = LIMIT
    table.loc[ids == 7, "status"] = LIMIT
    check = ClaimCheck("ratio_of_averages", "events_per_second", GAIN.over, GAIN.under)
    measured = measure(check, table)
    assert measured.value == pytest.approx(2.0)
    assert (measured.patterns, measured.left_out, measured.bounds) == (7, 1, 1)


def test_of_ratios_of_averages_the_largest_of_all_sizes_and_pairs_counts() -> None:
    more = pd.concat(
        [results([ratio] * 6).assign(size=size) for size, ratio in ((3, 2.0), (4, 8.0))]
    )
    more["pattern_id"] += "-" + more["size"].astype(str)
    third = more[more["generator"] == "EFREQ"].assign(generator="DP-B")
    third["events_per_second"] = 300.0
    check = ClaimCheck(
        "ratio_of_averages", "events_per_second", GAIN.over, GAIN.under,
        than=(Selection(("DP-B",)), Selection(("EFREQ",))), across="size", take="highest",
    )  # fmt: skip
    table = pd.concat([more, third])
    assert measure(check, table).value == pytest.approx(8.0)
    table.loc[table["generator"] == "DP-B", "events_per_second"] = 1200.0
    assert measure(check, table).value == pytest.approx(12.0)


def test_averages_beyond_the_largest_float_have_a_ratio() -> None:
    rows = [
        {"size": 5, "pattern_id": str(number), "generator": name, "tree_log_cost": cost}
        for number in range(6)
        for name, cost in (("EFREQ", 2000.0), ("GREEDY", math.log(4.0)), ("DP-LD", math.log(2.0)))
    ]
    check = ClaimCheck(
        "ratio_of_averages", "normalized_cost", Selection(("DP-LD",)), Selection(("GREEDY",))
    )
    assert measure(check, pd.DataFrame(rows)).value == pytest.approx(2.0)


def test_one_set_is_compared_with_the_nearest_of_the_others() -> None:
    table = pd.concat(
        [results([ratio] * 6).assign(pattern_set=name)
         for name, ratio in (("kleene", 2.0), ("sequence", 3.0), ("conjunction", 8.0))]
    )  # fmt: skip
    for apart, take, value in (("conjunction", "highest", 8 / 3), ("kleene", "lowest", 2 / 3)):
        check = ClaimCheck(
            "set_contrast", GAIN.metric, GAIN.over, GAIN.under, apart=apart, take=take
        )
        assert measure(check, table).value == pytest.approx(value)
    lacking = measure(check, table[table["pattern_set"] != "kleene"])
    assert lacking.lack == NO_DATA and "kleene" in lacking.problem
    saved = table.assign(seconds=np.where(table["pattern_set"] == "kleene", -1.0, 1.0))
    check = ClaimCheck("set_contrast", "seconds", GAIN.over, apart="kleene", take="median")
    nothing = measure(check, saved)
    assert nothing.lack == TOO_FEW and "above zero" in nothing.problem and nothing.left_out == 6


def test_plans_without_partial_matches_are_equal() -> None:
    table = results([1.0] * 6).assign(partial_matches_created=0)
    check = ClaimCheck("ratio", "fewer_partial_matches", GAIN.over, GAIN.under)
    assert measure(check, table).value == pytest.approx(1.0)
    table.loc[table["generator"] == "EFREQ", "partial_matches_created"] = 999
    assert measure(check, table).value == pytest.approx(1000.0)


def test_a_median_counts_runs_without_partial_matches() -> None:
    check = ClaimCheck("median", "partial_matches_per_event", Selection(("EFREQ",)))
    table = results([1.0] * 7).assign(events=10)
    table["partial_matches_created"] = table["pattern_id"].astype(int) * 10
    assert measure(check, table).value == pytest.approx(3.0)
    table["partial_matches_created"] = 0
    assert measure(check, table).value == 0.0


def test_a_check_can_ask_for_matches_and_for_weights_of_latency() -> None:
    table = results([2.0] * 6 + [16.0] * 6)
    table["matches"] = (table["pattern_id"].astype(int) < 6).astype(int)
    check = ClaimCheck("ratio", GAIN.metric, GAIN.over, GAIN.under, with_matches=True)
    assert measure(check, table).value == pytest.approx(2.0)
    assert measure(check, table.assign(matches=0)).lack == NO_CASE
    weighed = pd.concat([results([2.0] * 6, alpha=0.5), results([8.0] * 6, alpha=100.0)])
    check = ClaimCheck("ratio", GAIN.metric, GAIN.over, GAIN.under, alphas=(0.0, 0.5))
    assert measure(check, weighed).value == pytest.approx(2.0)


def test_a_fit_reads_plans_or_the_runs_of_a_strategy() -> None:
    rows = pd.DataFrame(
        [
            {"pattern_id": str(k), "generator": name, "strategy": strategy, "status": OK,
             "matches": 1, "plan_log_cost": float(k), "value": math.exp(slope * k)}
            for k in range(8) for name in ("A", "B") for _ in range(2)
            for strategy, slope in (("any", 1.0), ("consuming", 2.0))
        ]
    )  # fmt: skip
    of = Selection(("A",), strategy="consuming")
    measured = measure(ClaimCheck("exponent", "value", of, with_matches=True), rows)
    assert measured.value == pytest.approx(2.0) and measured.patterns == 8
    plans = rows[rows["strategy"] == "any"].rename(columns={"plan_log_cost": "log_cost"})
    check = ClaimCheck("exponent", "value", Selection(("A",)))
    assert measure(check, plans.drop(columns="status")).value == pytest.approx(1.0)
