"""Figure 7 extended: patterns of any size, distances from the optimum, plans that are missing."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.studies.kolchinsky2018.distances import (
    distance_summary,
    distance_table,
    extended_patterns,
    repeated_types,
    with_distances,
)
from cepbench.experiments.studies.kolchinsky2018.planning import (
    TIME_BUDGET,
    PlanningCase,
    large_patterns,
    left_out_table,
    plan_costs,
)
from cepbench.experiments.sweeps.cells import OK, REFUSED
from cepbench.planning.costs.costed import CostedProblem
from tests.naive.plans import all_orders, all_trees

CARDINALITIES = {f"S{k:02d}": 1.0 + 44 * (k / 11) ** 2 for k in range(12)}
SELECTIVITIES = [0.1, 0.25, 0.5, 0.9]
GENERATORS = ["TRIVIAL", "EFREQ", "GREEDY", "DP-LD", "ZSTREAM", "DP-B"]


def cases_of(shape: str, *sizes: int, patterns: int = 2, seed: int = 0) -> list[PlanningCase]:
    return extended_patterns(
        CARDINALITIES, SELECTIVITIES, shape=shape, sizes=sizes, patterns=patterns, seed=seed
    )


def test_sequences_are_those_of_figure_7_as_long_as_identifiers_last() -> None:
    assert cases_of("sequence", 3, 12, seed=4) == large_patterns(
        CARDINALITIES, SELECTIVITIES, sizes=[3, 12], patterns=2, seed=4
    )
    assert repeated_types(cases_of("sequence", 3, 12)) == 0


@pytest.mark.parametrize("shape", ["sequence", "acyclic"])
def test_beyond_the_identifiers_each_is_taken_once_before_any_again(shape: str) -> None:
    cases = cases_of(shape, 13, 31)
    assert repeated_types(cases) == len(cases) == 4
    for case in cases:
        pattern = case.spec.pattern
        assert len(pattern.variables) == case.spec.size
        counts = Counter(variable.type for variable in pattern.variables)
        assert len(counts) == 12 and max(counts.values()) - min(counts.values()) <= 1
        for variable in pattern.variables:
            expected = CARDINALITIES[variable.type]
            assert case.statistics.cardinality(variable.name, 1200.0) == expected
        for clause in pattern.conditions:
            assert case.statistics.selectivity(*clause.variables) in SELECTIVITIES
    assert cases == cases_of(shape, 13, 31)
    assert cases != cases_of(shape, 13, 31, seed=1)
    assert len({case.spec.text for case in cases}) == 4


def test_the_predicates_of_acyclic_conjunctions_form_a_tree() -> None:
    for case in cases_of("acyclic", 2, 5, 12, 20, patterns=5):
        pattern, n = case.spec.pattern, case.spec.size
        assert str(pattern.operator) == "AND"
        assert len(pattern.conditions) == n - 1
        groups = {variable.name: {variable.name} for variable in pattern.variables}
        for clause in pattern.conditions:
            first, second = (groups[name] for name in clause.variables)
            assert first is not second  # else this edge would close a cycle
            first |= second
            for name in second:
                groups[name] = first
        assert len(next(iter(groups.values()))) == n
        problem = CostedProblem.from_pattern(pattern, case.statistics)
        assert np.count_nonzero(np.triu(problem.log_selectivity, 1)) == n - 1


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(ExperimentError, match="shape is one of sequence, acyclic, not 'star'"):
        cases_of("star", 3)
    with pytest.raises(ExperimentError, match="no measured selectivities"):
        extended_patterns(CARDINALITIES, [])
    with pytest.raises(ExperimentError, match="at least 2 events"):
        cases_of("acyclic", 1)


@pytest.mark.parametrize("shape", ["sequence", "acyclic"])
def test_distances_are_from_the_best_of_all_plans(shape: str) -> None:
    cases = cases_of(shape, 3, 5, patterns=3)
    costs = with_distances(plan_costs(cases, GENERATORS))
    for case in cases:
        problem = CostedProblem.from_pattern(case.spec.pattern, case.statistics)
        n = problem.n
        least = {
            "order": min(map(problem.order_cost, all_orders(n))),
            "tree": min(map(problem.tree_cost, all_trees(list(range(n))))),
        }
        for row in costs[costs["pattern_id"] == case.spec.pattern_id].to_dict("records"):
            expected = row["plan_cost"] / least[row["plan_kind"]]
            assert row["distance"] == pytest.approx(expected, rel=1e-9)
            assert row["distance"] >= 1 - 1e-9
            assert row["is_optimal"] == (expected <= 1 + 1e-9)


def made_up(rows: list[tuple[int, str, str, str, float]]) -> pd.DataFrame:
    """Costs of one pattern a size: size, generator, kind of plan, status, cost."""
    return pd.DataFrame(
        [
            {
                "pattern_set": "sequence", "size": size, "pattern_id": f"p{size}",
                "generator": name, "plan_kind": kind, "status": status, "reason": f"why {size}",
                "plan_log_cost": math.log(cost), "normalized": 8 / cost, "search_seconds": 0.25,
            }
            for size, name, kind, status, cost in rows
        ]
    )  # fmt: skip


def test_where_the_optimum_is_not_known_there_is_no_distance() -> None:
    nan = float("nan")
    costs = with_distances(
        made_up(
            [
                (3, "GREEDY", "order", OK, 6.0), (3, "DP-LD", "order", OK, 2.0),
                (4, "GREEDY", "order", OK, 2.0), (4, "DP-LD", "order", OK, 2.0),
                (9, "GREEDY", "order", OK, 5.0), (9, "DP-LD", "order", TIME_BUDGET, nan),
                (3, "GOO", "tree", OK, 5.0),
                (3, "DP-B", "tree", REFUSED, nan), (9, "DP-B", "tree", REFUSED, nan),
            ]
        )
    )  # fmt: skip
    assert costs["distance"].round(9).tolist()[:4] == [3.0, 1.0, 1.0, 1.0]
    assert costs["distance"][4:].isna().all() and costs["is_optimal"][4:].isna().all()
    assert costs["is_optimal"][:4].tolist() == [False, True, True, True]
    table = distance_table(costs).set_index("generator")
    greedy = table.loc["GREEDY"]
    assert greedy["geometric_mean"] == pytest.approx(math.sqrt(3))
    assert greedy["worst_case"] == pytest.approx(3)
    assert (greedy["optimal"], greedy["plans_made"], greedy["least_known"]) == (0.5, 2, 2)
    assert greedy["largest"] == 9 and table.loc["DP-LD", "largest"] == 4
    assert math.isnan(table.loc["GOO", "worst_case"]) and table.loc["GOO", "least_known"] == 0
    assert pd.isna(table.loc["DP-B", "largest"])
    assert list(table.index[:2]) == ["DP-LD", "GREEDY"]
    left_out = left_out_table(costs)
    assert left_out[["generator", "status", "patterns", "sizes"]].to_numpy().tolist() == [
        ["DP-LD", "time budget", 1, "9"],
        ["DP-B", "refused", 2, "3, 9"],
    ]
    assert left_out["reason"].tolist() == ["why 9", "why 3"]


def test_means_of_one_kind_are_over_the_same_patterns() -> None:
    nan = float("nan")
    cost = {
        "DP-LD": [1.0] * 4, "GREEDY": [2.0, 2.0, 2.0, 50.0], "SOME": [4.0, 4.0, 4.0, nan],
        "FEW": [1.0, nan, nan, nan],
    }  # fmt: skip
    rows = [
        (size, name, "order", REFUSED if math.isnan(value) else OK, value)
        for name, values in cost.items()
        for size, value in zip((3, 4, 5, 6), values, strict=True)
    ]
    costs = with_distances(made_up(rows))
    table = distance_table(costs).set_index("generator")
    # SOME would look better than GREEDY, had GREEDY to count the pattern that SOME has no plan for.
    assert table["geometric_mean"].to_dict() == pytest.approx(
        {"DP-LD": 1.0, "GREEDY": 2.0, "SOME": 4.0, "FEW": nan}, nan_ok=True
    )
    assert table["worst_case"].dropna().to_dict() == pytest.approx(
        {"DP-LD": 1.0, "GREEDY": 2.0, "SOME": 4.0}
    )
    assert table["patterns"].to_dict() == {"DP-LD": 3, "GREEDY": 3, "SOME": 3, "FEW": 0}
    assert table["plans_made"].to_dict() == {"DP-LD": 4, "GREEDY": 4, "SOME": 3, "FEW": 1}
    # Of one size, with an index that repeats: what some lack is left out for all.
    same = pd.concat([costs.assign(size=3)] * 1 + [costs.assign(pattern_set="other", size=3)])
    summary = distance_summary(same, resamples=20)
    part = summary[
        (summary["pattern_set"] == "other") & (summary["metric"] == "normalized")
    ].set_index("generator")
    assert part["value"].to_dict() == pytest.approx(
        {"DP-LD": 8.0, "GREEDY": 4.0, "SOME": 2.0, "FEW": nan}, nan_ok=True
    )
    assert part[["patterns", "left_out", "missing"]].to_numpy().tolist() == [
        [3, 1, 0], [3, 1, 0], [3, 1, 1], [0, 4, 3],
    ]  # fmt: skip


def test_runs_of_sizes_are_joined() -> None:
    sizes = [3, 4, 5, 6, 50, 100]
    rows = [
        (size, name, "order", OK if size in done else REFUSED, 2.0)
        for (name, done), size in itertools.product({"A": {3, 6}, "B": set(sizes)}.items(), sizes)
    ]
    left_out = left_out_table(made_up(rows))
    assert left_out["sizes"].tolist() == ["4–5, 50–100"]


def test_averages_over_the_patterns_of_a_size() -> None:
    costs = with_distances(plan_costs(cases_of("acyclic", 4, 6, patterns=5), GENERATORS))
    summary = distance_summary(costs, resamples=200)
    assert len(summary) == 2 * len(GENERATORS) * 4
    for row in summary.to_dict("records"):
        part = costs[(costs["generator"] == row["generator"]) & (costs["size"] == row["size"])]
        values = part[row["metric"]].to_numpy(float)
        expected = {
            "geometric mean": math.prod(values) ** (1 / 5),
            "median": np.median(values),
            "worst case": max(values),
        }[row["statistic"]]
        assert row["value"] == pytest.approx(expected)
        assert row["low"] <= row["value"] * (1 + 1e-9) and row["value"] <= row["high"] * (1 + 1e-9)
        assert (row["pattern_set"], row["patterns"], row["left_out"]) == ("acyclic", 5, 0)


def test_time_of_the_search_is_a_part_of_the_planning_time() -> None:
    costs = plan_costs(cases_of("sequence", 9), ["GREEDY", "DP-B"])
    assert (costs["search_seconds"] > 0).all()
    assert (costs["search_seconds"] < costs["plan_seconds"]).all()


def test_searches_that_are_not_exact_go_on_beyond_their_budget() -> None:
    cases = cases_of("sequence", 10, 11, 12, patterns=1)
    names = ["DP-LD", "II-RANDOM", "GREEDY"]
    for plan_seconds, status in {1e-6: OK, math.inf: TIME_BUDGET}.items():
        costs = plan_costs(cases, names, budget_seconds=1e-9, plan_seconds=plan_seconds)
        last = costs[costs["size"] == 12].set_index("generator")
        assert last["status"].to_dict() == {
            "DP-LD": TIME_BUDGET, "II-RANDOM": status, "GREEDY": TIME_BUDGET,
        }  # fmt: skip
    # The first size is planned by all, to the natural end.
    assert costs[costs["size"] == 10]["complete"].tolist() == [True] * 3
    cut_off = plan_costs(cases, ["II-RANDOM"], budget_seconds=1e-9, plan_seconds=1e-6)
    assert cut_off["complete"].tolist() == [True, False, False]
