"""Figure 7: problems as measured, costs relative to EFREQ, budgets and refusals."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.studies.kolchinsky2018.planning import (
    DENSE,
    FREQUENT,
    TIME_BUDGET,
    large_patterns,
    measured_statistics,
    plan_costs,
    planning_summary,
    rate_regimes,
    workloads,
)
from cepbench.experiments.sweeps.cells import ERROR, OK, REFUSED
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import default_generators, plan_generator
from cepbench.planning.statistics.model import Statistics

CARDINALITIES = {f"S{k:02d}": 1.0 + 44 * (k / 39) ** 2 for k in range(40)}
SELECTIVITIES = [0.1, 0.25, 0.5, 0.9]


def test_large_patterns_have_the_statistics_of_the_data() -> None:
    cases = large_patterns(CARDINALITIES, SELECTIVITIES, sizes=[3, 12, 22], patterns=20, seed=2)
    assert [case.spec.size for case in cases] == [3] * 20 + [12] * 20 + [22] * 20
    drawn = []
    for case in cases:
        pattern = case.spec.pattern
        for variable in pattern.variables:
            expected = CARDINALITIES[variable.type]
            assert case.statistics.cardinality(variable.name, 1200.0) == expected
        values = [case.statistics.selectivity(*clause.variables) for clause in pattern.conditions]
        assert len(values) == case.spec.size // 2
        drawn += values
    shares = [drawn.count(value) / len(drawn) for value in SELECTIVITIES]
    assert min(shares) > 0.17 and sum(shares) == pytest.approx(1.0)
    # Fewer patterns or sizes are a part of more.
    assert large_patterns(CARDINALITIES, SELECTIVITIES, sizes=[12], patterns=2, seed=2) == [
        *cases[20:22]
    ]
    with pytest.raises(ExperimentError, match="no selectivities"):
        large_patterns(CARDINALITIES, [])


def test_regimes_differ_in_rates() -> None:
    regimes = rate_regimes(CARDINALITIES, seed=1)
    assert regimes["sparse"] == CARDINALITIES
    assert regimes["dense"] == {k: v for k, v in CARDINALITIES.items() if v >= DENSE}
    frequent = regimes["frequent"]
    assert set(frequent) == set(CARDINALITIES) and len(set(frequent.values())) == 40
    assert FREQUENT[0] <= min(frequent.values()) and max(frequent.values()) <= FREQUENT[1]
    assert rate_regimes(CARDINALITIES, seed=1) == regimes != rate_regimes(CARDINALITIES, seed=2)


def test_a_workload_has_its_rates_predicates_and_selectivities() -> None:
    found = workloads(CARDINALITIES, patterns={4: 3, 30: 1}, sizes=[3, 4, 9, 25, 31], seed=5)
    assert list(found) == [
        (regime, predicates)
        for regime in ("sparse", "dense", "frequent")
        for predicates in ("n/2", "n")
    ]
    every = [case for cases in found.values() for case in cases]
    assert len({case.spec.pattern_id for case in every}) == len(every)
    regimes = rate_regimes(CARDINALITIES, seed=5)
    drawn = []
    for (regime, predicates), cases in found.items():
        # Too few identifiers have the rates of the dense regime; none is asked for 31 events.
        largest = [25] if len(regimes[regime]) >= 25 else []
        assert [case.spec.size for case in cases] == [3] * 3 + [4] * 3 + [9, *largest]
        for case in cases:
            assert (case.spec.regime, case.predicates) == (regime, predicates)
            conditions = case.spec.pattern.conditions
            n = case.spec.size
            assert len(conditions) == (n if predicates == "n" else n // 2)
            for variable in case.spec.pattern.variables:
                events = case.statistics.cardinality(variable.name, 1200.0)
                assert events == regimes[regime][variable.type]
            drawn += [case.statistics.selectivity(*clause.variables) for clause in conditions]
    assert 0.002 <= min(drawn) < 0.01 and 0.5 < max(drawn) <= 0.88
    assert np.median(drawn) == pytest.approx(math.sqrt(0.002 * 0.88), rel=0.5)
    # A regime without enough identifiers has no workload.
    few = {"A": 1.0, "B": 2.0, "C": 20.0}
    assert {regime for regime, _ in workloads(few, patterns=1, sizes=[3])} == {"sparse", "frequent"}


def test_orders_and_trees_are_costed_on_one_scale() -> None:
    (case,) = large_patterns(
        CARDINALITIES, SELECTIVITIES, sizes=[5], patterns=1, predicates="n", regime="dense"
    )
    costs = plan_costs([case]).set_index("generator")
    assert costs["regime"].unique().tolist() == ["dense"]
    assert costs["predicates"].unique().tolist() == ["n"]
    names = [variable.name for variable in case.spec.pattern.variables]
    events = [CARDINALITIES[variable.type] for variable in case.spec.pattern.variables]
    for name, row in costs.iterrows():
        if row["plan_kind"] == "tree":
            assert row["tree_log_cost"] == row["plan_log_cost"]
            continue
        # Inner nodes of a left-deep tree are the prefixes of the order, its first leaf the first.
        order = plan(case.spec.pattern, case.statistics, str(name)).order
        leaves = sum(events[names.index(one)] for one in order[1:])
        expected = math.log(math.exp(row["plan_log_cost"]) + leaves)
        assert row["tree_log_cost"] == pytest.approx(expected)
    difference = costs.loc["EFREQ", "tree_log_cost"] - costs["tree_log_cost"]
    np.testing.assert_allclose(costs["log_normalized"], difference.astype(float))
    # A left-deep tree is one of the trees.
    assert costs.loc["DP-B", "tree_log_cost"] <= costs["tree_log_cost"].min() + 1e-9


def test_statistics_come_from_the_folder_of_a_sweep(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"lacks cardinalities\.json"):
        measured_statistics(tmp_path)
    found = {
        "one": Statistics(rates={"a": 1.0, "b": 2.0}, selectivities={("a", "b"): 0.25}),
        "two": Statistics(
            rates={"a": 1.0, "b": 2.0}, selectivities={("a", "b"): 0.5, ("a", "a"): 0.125}
        ),
    }
    (tmp_path / "cardinalities.json").write_text(json.dumps(CARDINALITIES))
    (tmp_path / "statistics.json").write_text(
        json.dumps({name: statistics.to_dict() for name, statistics in found.items()})
    )
    cardinalities, pool = measured_statistics(tmp_path)
    assert cardinalities == CARDINALITIES
    assert sorted(pool) == [0.25, 0.5]
    assert not len(measured_statistics(tmp_path, "dense")[1])
    in_regimes = {f"dense-{name}": each.to_dict() for name, each in found.items() if name == "one"}
    (tmp_path / "statistics.json").write_text(json.dumps(in_regimes | {"two": {}}))
    assert [*measured_statistics(tmp_path, "dense")[1]] == [0.25]


def test_costs_are_relative_to_the_baseline() -> None:
    cases = large_patterns(CARDINALITIES, SELECTIVITIES, sizes=[3, 6, 9], patterns=6)
    costs = plan_costs(cases)
    assert len(costs) == 18 * len(default_generators(user_defined=False))
    assert (costs["status"] == OK).all() and (costs["plan_seconds"] > 0).all()
    by_name = costs.pivot(index="pattern_id", columns="generator", values="log_normalized")
    np.testing.assert_allclose(by_name["EFREQ"], 0)
    assert (
        by_name["DP-LD"] >= by_name[["TRIVIAL", "GREEDY", "II-GREEDY"]].max(axis=1) - 1e-9
    ).all()
    assert (by_name["DP-B"] >= by_name[["ZSTREAM", "ZSTREAM-ORD"]].max(axis=1) - 1e-9).all()
    np.testing.assert_allclose(np.log(costs["normalized"]), costs["log_normalized"], atol=1e-12)
    # The baseline is planned even if nobody asks to see it.
    some = plan_costs(cases, ["GREEDY"])
    assert set(some["generator"]) == {"GREEDY"}
    np.testing.assert_allclose(some["log_normalized"], by_name["GREEDY"].loc[some["pattern_id"]])


def test_a_generator_that_takes_too_long_is_not_asked_again() -> None:
    asked: list[int] = []

    @plan_generator("SLOW", kind="order")
    def slow(problem: Any, rng: Any) -> Any:
        asked.append(problem.n)
        time.sleep(0.002 * 4 ** (problem.n - 3))
        return range(problem.n)

    cases = large_patterns(CARDINALITIES, SELECTIVITIES, sizes=range(3, 10), patterns=3)
    costs = plan_costs(cases, ["SLOW", "GREEDY"], budget_seconds=0.6)
    slow_rows = costs[costs["generator"] == "SLOW"]
    # 6, 24, 96 and 384 ms for sizes 3 to 6; size 7 would take 1.5 s more.
    by_size = slow_rows.groupby("size")["status"].unique().map(list)
    assert by_size.loc[3:5].tolist() == [[OK]] * 3
    assert by_size.loc[7:].tolist() == [[TIME_BUDGET]] * 3
    assert max(asked) <= 6
    assert slow_rows[slow_rows["status"] == TIME_BUDGET]["reason"].str.contains(r"0\.6 s").all()
    assert (costs[costs["generator"] == "GREEDY"]["status"] == OK).all()
    assert costs.attrs["budget_seconds"] == 0.6


def test_refusals_and_failures_are_rows() -> None:
    @plan_generator("SMALL-ONLY", kind="tree", max_size=4)
    def small_only(problem: Any, rng: Any) -> Any:
        tree: Any = 0
        for k in range(1, problem.n):
            tree = (tree, k)
        return tree

    @plan_generator("BROKEN", kind="order")
    def broken(problem: Any, rng: Any) -> Any:
        return [0]

    cases = large_patterns(CARDINALITIES, SELECTIVITIES, sizes=[4, 5], patterns=3)
    costs = plan_costs(cases, ["SMALL-ONLY", "BROKEN"])
    by_size = costs.groupby(["generator", "size"])["status"].unique().map(list)
    assert by_size["SMALL-ONLY"].tolist() == [[OK], [REFUSED]]
    assert by_size["BROKEN"].tolist() == [[ERROR], [ERROR]]
    assert costs["reason"].str.contains("at most 4 variables").any()
    summary = planning_summary(costs)
    refused = summary[(summary["generator"] == "SMALL-ONLY") & (summary["size"] == 5)]
    assert refused["value"].isna().all() and (refused["left_out"] == 3).all()


def test_averages_are_over_the_patterns_that_all_planned() -> None:
    cases = large_patterns(CARDINALITIES, SELECTIVITIES, sizes=[5], patterns=5)
    costs = plan_costs(cases, ["EFREQ", "GREEDY"])
    gone = (costs["generator"] == "GREEDY") & (costs["pattern_id"] == cases[0].spec.pattern_id)
    costs.loc[gone, "status"] = ERROR
    costs.loc[costs["generator"] == "EFREQ", "plan_seconds"] = [1000.0, 1.0, 2.0, 3.0, 4.0]
    summary = planning_summary(costs)
    row = summary[
        (summary["generator"] == "EFREQ") & (summary["metric"] == "plan_seconds")
        & (summary["statistic"] == "mean")
    ].iloc[0]  # fmt: skip
    assert row["value"] == 2.5
    assert (row["patterns"], row["left_out"], row["missing"]) == (4, 1, 0)


def test_averages_over_the_patterns_of_a_size() -> None:
    cases = large_patterns(CARDINALITIES, SELECTIVITIES, sizes=[5, 8], patterns=9)
    costs = plan_costs(cases, ["GREEDY", "DP-B"])
    summary = planning_summary(costs)
    assert len(summary) == 2 * 2 * 2 * 3
    apart = planning_summary(costs, ["regime", "predicates"], ["normalized"])
    assert len(apart) == 2 * 2 * 3
    pd.testing.assert_series_equal(
        apart["value"],
        summary.loc[summary["metric"] == "normalized", "value"],
        check_index=False,
    )
    for row in summary.to_dict("records"):
        part = costs[(costs["generator"] == row["generator"]) & (costs["size"] == row["size"])]
        values = part[row["metric"]].to_numpy(float)
        expected = {
            "mean": values.mean(),
            "median": np.median(values),
            "geometric mean": math.prod(values) ** (1 / 9),
        }[row["statistic"]]
        assert row["value"] == pytest.approx(expected)
        assert row["low"] <= row["value"] <= row["high"]
        assert (row["patterns"], row["left_out"]) == (9, 0)
