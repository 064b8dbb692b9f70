"""GOO, QUICKPICK and LINDP, beyond what all generators are tested for."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.planners.budget import Budget
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.goo import smallest_joins
from cepbench.planning.planners.predicate_graph import adjacency
from tests.naive import plans as naive
from tests.planning_cases import random_case

pytestmark = pytest.mark.kernel


def problem_of(cardinalities, conditions: dict[tuple[int, int], float]) -> CostedProblem:
    n = len(cardinalities)
    selectivity = np.zeros((n, n))
    for (i, j), value in conditions.items():
        selectivity[i, j] = selectivity[j, i] = np.log(value)
    names = tuple(f"v{i}" for i in range(n))
    return CostedProblem(names, np.log(np.array(cardinalities, dtype=float)), selectivity)


def test_goo_joins_pairs_before_it_joins_their_trees() -> None:
    halves = (("v0", "v1"), ("v2", "v3")), (("v4", "v5"), ("v6", "v7"))
    assert plan_problem(problem_of([4] * 8, {}), "GOO").tree == halves
    # A tree of one is the smallest partner.
    odd = (("v0", "v1"), "v4"), ("v2", "v3")
    assert plan_problem(problem_of([4] * 5, {}), "GOO").tree == odd


def test_goo_takes_a_small_cross_product_before_a_large_join() -> None:
    problem = problem_of([1, 100, 2, 100], {(0, 1): 0.5, (2, 3): 0.5})
    assert plan_problem(problem, "GOO").tree == ((("v0", "v2"), "v1"), "v3")


def test_joins_of_neighbours_alone(seeds) -> None:
    for seed in seeds(10):
        problem = random_case(seed, 8, "SEQ").problem
        adjacent = adjacency(problem)
        tree = smallest_joins(problem, adjacent)
        assert tree in naive.trees_over(naive.leaves_of(tree))
        assert sorted(naive.leaves_of(tree)) == list(range(8))

        def check(node, adjacent=adjacent) -> None:
            if isinstance(node, tuple):
                left, right = map(naive.leaves_of, node)
                assert adjacent[np.ix_(left, right)].any() and min(left) < min(right)
                check(node[0])
                check(node[1])

        check(tree)


def test_goo_waits_for_the_last_event_where_that_is_dear() -> None:
    # The first two are the smallest join, but the third tree would wait beside the last event.
    case = dataclasses.replace(random_case(0, 3), alpha=Fraction(10**6), last=0)
    problem = dataclasses.replace(
        case.problem, log_cardinality=np.log([2.0, 3.0, 4.0]), log_selectivity=np.zeros((3, 3))
    )
    assert plan_problem(problem, "GOO").tree == ("v0", ("v1", "v2"))
    assert plan_problem(dataclasses.replace(problem, cost=Throughput()), "GOO").tree == (
        ("v0", "v1"),
        "v2",
    )


def test_more_random_trees_are_never_worse() -> None:
    problem = random_case(1, 12).problem
    found = [plan_problem(problem, "QUICKPICK", budget=Budget(steps=k)) for k in (1, 5, 50, 1199)]
    found.append(plan_problem(problem, "QUICKPICK"))
    assert [made.complete for made in found] == [False, False, False, False, True]
    costs = [made.log_cost for made in found]
    assert costs == sorted(costs, reverse=True) and costs[-1] < costs[0]
    assert plan_problem(problem, "QUICKPICK", budget=Budget(steps=5000)) == found[-1]
    assert costs[-1] >= plan_problem(problem, "DP-B").log_cost - 1e-9


def test_there_is_time_for_a_few_random_trees() -> None:
    # So many are made between two looks at the clock.
    problem = random_case(1, 12).problem
    made = plan_problem(problem, "QUICKPICK", budget=1e-9)
    assert made == plan_problem(problem, "QUICKPICK", budget=Budget(steps=64))
    assert not made.complete


def test_random_trees_differ() -> None:
    conditions = {(i, i + 1): 0.5 for i in range(3)}
    problem = problem_of([4] * 4, conditions)
    one = Budget(steps=1)
    trees = {plan_problem(problem, "QUICKPICK", seed=s, budget=one).tree for s in range(200)}
    # All five trees of a chain of four.
    names = [f"v{i}" for i in range(4)]
    assert trees == set(naive.trees_over(names))
    free = problem_of([4] * 4, {})
    trees = {plan_problem(free, "QUICKPICK", seed=s, budget=one).tree for s in range(300)}
    assert trees == set(naive.all_trees(names))


@pytest.mark.parametrize("n", range(2, 9))
def test_lindp_keeps_the_order_of_ikkbz_where_conditions_form_a_tree(n, seeds) -> None:
    for seed in seeds(5):
        rng = np.random.default_rng([n, seed])
        pairs = {(int(rng.integers(j)), j): rng.uniform(0.01, 0.9) for j in range(1, n)}
        problem = problem_of(rng.uniform(0.1, 50, size=n), pairs)
        order = plan_problem(problem, "IKKBZ").order
        assert naive.leaves_of(plan_problem(problem, "LINDP").tree) == order


def test_lindp_orders_parts_by_their_size() -> None:
    problem = problem_of([8, 5, 1, 1, 9, 1], {(0, 3): 0.9, (1, 2): 0.9, (4, 5): 0.1})
    leaves = naive.leaves_of(plan_problem(problem, "LINDP").tree)
    # 0.9, 4.5 and 7.2 partial matches.
    assert leaves == ["v5", "v4", "v2", "v1", "v3", "v0"]


@pytest.mark.parametrize("name", ["GOO", "LINDP", "QUICKPICK"])
@pytest.mark.parametrize("density", [0.0, 0.01, 1.0])
def test_a_hundred_events(name, density) -> None:
    n = 100
    rng = np.random.default_rng(7)
    pairs = {
        (i, j): rng.uniform(0.1, 1) for j in range(n) for i in range(j) if rng.random() < density
    }
    problem = problem_of(rng.uniform(0.1, 10, size=n), pairs)
    made = plan_problem(problem, name, budget=Budget(steps=2))
    made.check(problem.names)
    assert np.isfinite(made.log_cost)
