"""Plans from wrong numbers: the errors, regrets by hand, runs, and what is concluded."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError, PlanningRefusedError
from cepbench.experiments.studies.kolchinsky2018.planning import PlanningCase, left_out_table
from cepbench.experiments.studies.kolchinsky2018.regrets import (
    conclusions,
    measured_conclusions,
    regret_summary,
    regret_table,
)
from cepbench.experiments.studies.kolchinsky2018.robustness import (
    cases_of_sweep,
    measured_regrets,
    planning_regrets,
    spread_sample,
    wrong_statistics,
)
from cepbench.experiments.sweeps.cells import ERROR, OK, REFUSED, results_frame
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import measure_pattern
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.registry import PLAN_GENERATORS, plan_generator
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.seeds import rng_for
from cepbench.streams.event_stream import EventStream
from tests.drawn_events import drawn_stream, normal
from tests.naive.plans import all_orders, all_trees

TEXT = (
    "PATTERN SEQ(A a, B b, C c, D d) WHERE a.difference < c.difference "
    "AND b.difference > d.difference WITHIN 60 seconds"
)
SPEC = PatternSpec("sequence-4-0000", "sequence", 4, TEXT, 0)
STATISTICS = Statistics(
    rates={"a": 0.5, "b": 0.02, "c": 0.1, "d": 0.3},
    selectivities={("a", "c"): 0.4, ("b", "d"): 0.9},
    stream_rate=1.0,
)
CASE = PlanningCase(SPEC, STATISTICS)


@pytest.fixture(scope="module")
def stream() -> EventStream:
    return drawn_stream(
        900, "AABCCCCDD", seed=7, seconds=3000, names=("symbol", "ts"), difference=normal
    )


def test_numbers_are_wrong_by_at_most_the_factor_and_evenly_in_logarithms() -> None:
    shares = []
    for seed in range(400):
        wrong = wrong_statistics(STATISTICS, 10.0, np.random.default_rng(seed))
        assert wrong.stream_rate == 1.0
        assert max(wrong.selectivities.values()) <= 1.0
        assert list(wrong.rates or {}) == ["a", "b", "c", "d"]
        for name, rate in (STATISTICS.rates or {}).items():
            shares.append(math.log10((wrong.rates or {})[name] / rate))
        smaller = wrong.selectivity("a", "c") / 0.4
        assert 0.1 <= smaller <= 2.5
    assert -1 <= min(shares) < -0.99 and 0.99 < max(shares) <= 1
    # Uniform from -1 to 1: mean 0, and half of them within half of the way.
    assert abs(np.mean(shares)) < 0.05
    assert np.mean(np.abs(shares) < 0.5) == pytest.approx(0.5, abs=0.05)


def test_errors_of_a_seed_have_one_direction_whatever_the_factor() -> None:
    by_factor = [
        wrong_statistics(STATISTICS, factor, np.random.default_rng(5)) for factor in (2.0, 32.0)
    ]
    for name, rate in (STATISTICS.rates or {}).items():
        small, large = (math.log((found.rates or {})[name] / rate) for found in by_factor)
        assert large == pytest.approx(5 * small)
    cardinalities = Statistics(cardinalities={"a": 3.0})
    assert wrong_statistics(cardinalities, 2.0, np.random.default_rng(0)).rates is None
    same = wrong_statistics(STATISTICS, 1.0, np.random.default_rng(0))
    assert (same.rates, same.selectivities) == (STATISTICS.rates, STATISTICS.selectivities)
    for factor in (0.5, math.inf):
        with pytest.raises(ExperimentError, match="by a factor of at least 1"):
            wrong_statistics(STATISTICS, factor, np.random.default_rng(0))


def naive_order(rates: dict[str, float]) -> list[str]:
    return sorted(rates, key=lambda name: rates[name])


def test_regrets_are_as_by_hand() -> None:
    """EFREQ from wrong rates takes the wrong order, whose cost under the right ones is known."""

    def misleads(seed: int) -> bool:
        rng = rng_for(seed, CASE.spec.pattern_id, 0)
        return naive_order(wrong_statistics(STATISTICS, 50.0, rng).rates or {}) == list("abcd")

    seed = next(filter(misleads, range(1000)))
    table = planning_regrets([CASE], ["EFREQ", "TRIVIAL"], factors=[50.0], draws=1, seed=seed)
    assert table["factor"].tolist() == [1.0, 50.0] * 2
    n = {name: rate * 60 for name, rate in (STATISTICS.rates or {}).items()}
    # A half for each two neighbours of the sequence that are both there, and the predicates.
    right = n["b"] + n["b"] * n["c"] / 2 + n["b"] * n["c"] * n["d"] * 0.9 / 4
    whole = n["a"] * n["b"] * n["c"] * n["d"] * 0.4 * 0.9 / 8
    misled = n["a"] + n["a"] * n["b"] / 2 + n["a"] * n["b"] * n["c"] * 0.4 / 4
    efreq = table[table["generator"] == "EFREQ"].set_index("factor")
    assert efreq.loc[1.0, "plan"] == "b, c, d, a" and efreq.loc[50.0, "plan"] == "a, b, c, d"
    assert efreq.loc[1.0, "regret"] == 1.0
    assert efreq.loc[50.0, "regret"] == pytest.approx((misled + whole) / (right + whole))
    assert efreq.loc[50.0, "log_cost"] == pytest.approx(math.log(misled + whole))
    trivial = table[table["generator"] == "TRIVIAL"]
    assert trivial["regret"].tolist() == [1.0, 1.0]
    problem = CostedProblem.from_pattern(SPEC.pattern, STATISTICS)
    least = min(map(problem.order_cost, all_orders(4)))
    np.testing.assert_allclose(
        efreq["distance"], [(right + whole) / least, (misled + whole) / least]
    )


def test_factor_one_has_no_regret_and_no_generator_beats_the_optimum() -> None:
    table = planning_regrets([CASE], factors=[1.0, 3.0], draws=4, seed=2)
    assert set(table["generator"]) == set(PLAN_GENERATORS)
    assert len(table) == len(PLAN_GENERATORS) * 8  # factor 1, draw 0, is the plan from right ones
    made = table[table["status"] == OK]
    assert (made[made["factor"] == 1]["regret"] == 1).all()
    assert (made["distance"] >= 1 - 1e-9).all()
    problem = CostedProblem.from_pattern(SPEC.pattern, STATISTICS)
    best = {
        "DP-LD": min(map(problem.order_cost, all_orders(4))),
        "DP-B": min(map(problem.tree_cost, all_trees([0, 1, 2, 3]))),
    }
    for name, least in best.items():
        own = made[made["generator"] == name]
        assert math.exp(own["log_cost"].iloc[0]) == pytest.approx(least)
        assert (own["regret"] >= 1 - 1e-9).all()
        np.testing.assert_allclose(own["regret"], own["distance"])
    again = planning_regrets([CASE], factors=[1.0, 3.0], draws=4, seed=2)
    pd.testing.assert_frame_equal(table, again)
    other = planning_regrets([CASE], ["GREEDY"], factors=[100.0], draws=8, seed=3)
    assert other["plan"].nunique() > 1  # errors differ from draw to draw
    with pytest.raises(ExperimentError, match="0 draws"):
        planning_regrets([CASE], draws=0)


def test_plans_of_one_pattern_run_on_the_same_events(stream: EventStream) -> None:
    case = PlanningCase(SPEC, measure_statistics(SPEC.pattern, stream))
    names = ["TRIVIAL", "EFREQ", "DP-LD", "DP-B"]
    table = measured_regrets(
        [case], lambda _: stream, names, factors=[100.0], draws=2, repetitions=1
    )
    assert len(table) == 4 * 3 and set(table["status"]) == {OK}
    assert table["matches"].nunique() == 1
    right = table[table["factor"] == 1]
    for name in ("slowdown", "more_partial_matches", "more_comparisons"):
        assert (right[name] == 1).all()
    # Plans are what ran: equal ones share a run, and others are those of a sweep.
    equal = table.groupby(["plan_kind", "plan"])[["events_per_second", "comparisons"]].nunique()
    assert (equal == 1).all(axis=None)
    swept = results_frame(
        measure_pattern(SPEC, stream, case.statistics, Grid(generators=names, repetitions=1))
    )
    for row in swept.to_dict("records"):
        own = right[right["generator"] == row["generator"]].iloc[0]
        assert own["plan"] == row["plan"]
        for name in ("partial_matches_created", "comparisons", "matches"):
            assert own[name] == row[name]
    base = right.set_index("generator")
    for row in table.to_dict("records"):
        own = base.loc[row["generator"]]
        assert row["slowdown"] == own["events_per_second"] / row["events_per_second"]
        assert row["more_comparisons"] == row["comparisons"] / own["comparisons"]


def test_refusals_and_failures_are_rows(stream: EventStream) -> None:
    @plan_generator("PICKY", kind="order")
    def picky(problem: Any, rng: Any) -> Any:
        if not math.isclose(problem.rate(0), 0.5):
            raise PlanningRefusedError("only exact numbers")
        return range(problem.n)

    @plan_generator("BROKEN", kind="tree")
    def broken(problem: Any, rng: Any) -> Any:
        return 0

    table = measured_regrets(
        [CASE], lambda _: stream, ["PICKY", "BROKEN"], factors=[2.0], repetitions=1
    )
    assert table["status"].tolist() == [OK, REFUSED, ERROR, ERROR]
    assert table["regret"].isna().tolist() == [False, True, True, True]
    missing = left_out_table(table)
    assert missing[["generator", "status", "rows", "patterns"]].to_numpy().tolist() == [
        ["PICKY", "refused", 1, 1],
        ["BROKEN", "error", 2, 1],
    ]
    assert missing["reason"].iloc[0] == "only exact numbers"
    none = measured_regrets([CASE], lambda _: stream, ["BROKEN"], repetitions=1)
    assert set(none["status"]) == {ERROR} and none["slowdown"].isna().all()


def made_up(
    regrets: dict[str, dict[float, list[list[float]]]], kind: str = "order"
) -> pd.DataFrame:
    """Regrets by generator, factor, pattern and draw; distances are one and a half times as much."""
    return pd.DataFrame(
        [
            {
                "pattern_id": f"p{pattern}", "generator": name, "plan_kind": kind, "factor": factor,
                "draw": draw, "regret": value, "distance": 1.5 * value, "status": OK,
            }
            for name, by_factor in regrets.items()
            for factor, patterns in by_factor.items()
            for pattern, values in enumerate(patterns)
            for draw, value in enumerate(values)
        ]
    )  # fmt: skip


def test_distributions_are_over_patterns_and_draws() -> None:
    values = [[1.0, 2.0], [3.0, 5.0], [1.0, 8.0]]
    table = made_up({"X": {1.0: [[1.0]] * 3, 10.0: values}})
    summary = regret_summary(table, resamples=300).set_index(["metric", "factor", "statistic"])
    flat = list(itertools.chain(*values))
    expected = {
        "geometric mean": math.prod(flat) ** (1 / 6), "median": 2.5,
        "90th percentile": np.quantile(flat, 0.9), "worst case": 8.0,
    }  # fmt: skip
    for statistic, value in expected.items():
        for metric, times in {"regret": 1.0, "distance": 1.5}.items():
            row = summary.loc[(metric, 10.0, statistic)]
            assert row["value"] == pytest.approx(times * value)
            assert row["low"] <= row["value"] <= row["high"]
            assert (row["patterns"], row["left_out"]) == (3, 0)
        assert summary.loc[("regret", 1.0, statistic), "value"] == 1
    # A pattern without one of its draws is left out as a whole.
    table.loc[table.index[-1], "regret"] = math.nan
    row = regret_summary(table, ["regret"], resamples=9).set_index(["factor", "statistic"])
    assert row.loc[(10.0, "worst case"), "value"] == 5.0
    assert (row.loc[(10.0, "worst case"), ["patterns", "left_out"]] == [2, 1]).all()


def test_tables_have_a_row_a_generator_orders_first() -> None:
    table = pd.concat(
        [
            made_up({"T": {1.0: [[1.0]], 2.0: [[3.0]]}}, "tree"),
            made_up({"O": {1.0: [[1.0]], 2.0: [[4.0]]}}),
        ]
    )
    summary = regret_summary(table, resamples=9)
    wide = regret_table(summary)
    assert wide.index.tolist() == [("order", "O"), ("tree", "T")]
    assert wide.columns.tolist() == [("2", "median"), ("2", "90 %"), ("2", "worst")]
    assert wide.to_numpy().tolist() == [[4.0] * 3, [3.0] * 3]
    means = regret_table(summary, "distance", ["geometric mean"], least=1)
    assert means.columns.tolist() == ["1", "2"]
    np.testing.assert_allclose(means.to_numpy(), [[1.5, 6.0], [1.5, 4.5]])


def test_conclusions_follow_the_numbers() -> None:
    right = [[1.0]] * 10
    tail = [[1.1]] * 8 + [[9.0]] * 2
    said = {}
    for name, last in {"calm": [[1.5]] * 10, "wild": tail}.items():
        table = made_up(
            {
                "FIXED": {1.0: right, 10.0: right},
                "X": {1.0: right, 10.0: last},
                "Y": {1.0: right, 10.0: [[1.2]] * 10},
            }
        )
        said[name] = conclusions(regret_summary(table, resamples=9))
    assert all(each.startswith("**Order plans.** ") for each in said["calm"] + said["wild"])
    assert "FIXED: the same plan whatever the numbers" in said["calm"][0]
    assert "all generators are robust" in said["calm"][1] and "1.5 (X)" in said["calm"][1]
    assert "robust are Y (1.2), and not X (9)." in said["wild"][1]
    assert "by X, costs 9 times as much" in said["wild"][1]
    # Distances: FIXED 1.5, Y 1.8, X more; nobody has the least cost, so no exact search to judge.
    assert said["wild"][2].endswith("at 10: FIXED (1.5).") and len(said["wild"]) == 3


def test_an_exact_search_is_judged_against_others_with_the_right_numbers() -> None:
    table = made_up(
        {
            "BEST": {1.0: [[1.0]], 2.0: [[1.2]], 10.0: [[4.0]]},
            "OTHER": {1.0: [[2.0]], 2.0: [[2.5]], 10.0: [[3.0]]},
        }
    )
    table["distance"] /= 1.5
    said = conclusions(regret_summary(table, resamples=9))
    assert said[-1].endswith("of, at 2: OTHER; 10: none.")
    assert "at 2: BEST (1.2); 10: OTHER (3)." in said[-2]


def test_all_generators_are_compared_over_the_patterns_that_all_have() -> None:
    nan = math.nan
    table = made_up(
        {
            "X": {1.0: [[1.0]] * 3, 5.0: [[1.5], [9.0], [1.5]]},
            "PART": {1.0: [[1.0]] * 3, 5.0: [[1.2], [nan], [1.2]]},
            "FEW": {1.0: [[1.0]] * 3, 5.0: [[1.1], [nan], [nan]]},
        }
    )
    summary = regret_summary(table, resamples=9)
    worst = summary[
        (summary["statistic"] == "worst case") & (summary["metric"] == "regret")
        & (summary["factor"] == 5)
    ].set_index("generator")  # fmt: skip
    # Without its worst pattern, which PART has no plan for, and with FEW's at none.
    assert worst["value"].round(9).to_dict() == pytest.approx(
        {"X": 1.5, "PART": 1.2, "FEW": nan}, nan_ok=True
    )
    assert worst["patterns"].tolist() == [2, 2, 0] and worst["missing"].tolist() == [0, 1, 2]
    said = conclusions(summary)
    assert said[0].endswith(
        "Over 2 of 3 patterns, those that all generators compared have plans for; plans are "
        "missing of PART 1 and FEW 2."
    )
    assert said[1].endswith("for lack of plans for most patterns: FEW.")
    assert not any("FEW" in sentence for sentence in said[2:]) and len(said) >= 4
    assert "PART (1.2) to 1.5 (X)" in "".join(said[2:]) or "1.2 (PART)" in "".join(said[2:])


def test_measured_conclusions_name_the_generator_hit_most() -> None:
    table = made_up({"X": {1.0: [[1.0]], 5.0: [[2.0]]}, "Y": {1.0: [[1.0]], 5.0: [[3.0]]}})
    table["slowdown"] = table["regret"].map({1.0: 1.0, 2.0: 1.4, 3.0: 1.25})
    table["more_partial_matches"] = table["regret"] ** 2
    metrics = ("regret", "slowdown", "more_partial_matches")
    (said,) = measured_conclusions(regret_summary(table, metrics, resamples=9))
    for text in ("1.4 times slower (X)", "9 times the partial matches (Y)", "regret of 3 (Y)"):
        assert text in said


def test_cases_are_those_of_a_finished_sweep(tmp_path: Path, stream: EventStream) -> None:
    with pytest.raises(ExperimentError, match=r"lacks statistics\.json"):
        cases_of_sweep(tmp_path)
    results_frame(
        measure_pattern(
            SPEC, stream, STATISTICS, Grid(generators=["TRIVIAL", "EFREQ"], repetitions=1)
        )
    ).to_parquet(tmp_path / "results.parquet")
    (tmp_path / "statistics.json").write_text(
        json.dumps({SPEC.pattern_id: STATISTICS.to_dict(), "other": {}})
    )
    (tmp_path / "sweep.json").write_text("{}")
    assert cases_of_sweep(tmp_path) == [CASE]
    with pytest.raises(ExperimentError, match="no pattern set 'kleene'; there are sequence"):
        cases_of_sweep(tmp_path, "kleene")
    with pytest.raises(ExperimentError, match="'sequence' in regime 'dense'; there are none"):
        cases_of_sweep(tmp_path, regime="dense")


def test_a_sample_is_spread_over_all_sizes() -> None:
    cases: list[Any] = list(range(10))
    assert spread_sample(cases, 99) == cases
    assert spread_sample(cases, 4) == [0, 3, 6, 9]
    assert spread_sample(cases, 1) == [9]
