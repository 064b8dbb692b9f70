"""FLIPS: what a round does, and what a budget does to it."""

from __future__ import annotations

import numpy as np
import pytest

from cepbench.planning.planners.budget import Budget
from cepbench.planning.planners.flips import flips
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.zstream import improved
from tests.planning_cases import random_case


def cost(case, tree) -> float:
    return case.problem.log_tree_cost(tree)


@pytest.mark.parametrize("n", range(1, 9))
def test_more_rounds_are_never_worse(n, seeds) -> None:
    for seed in seeds(4):
        case = random_case(seed, n, "SEQ" if seed % 2 else "AND").in_floats()
        # The same seed: the search with fewer rounds is the beginning of the other.
        found = [
            flips(case.problem, np.random.default_rng(seed), Budget(steps=steps))
            for steps in (1, 5, 25, 125)
        ]
        costs = [cost(case, one.plan) for one in found]
        assert costs == sorted(costs, reverse=True)
        assert [one.steps for one in found] == ([1, 5, 25, 125] if n > 2 else [0] * 4)


def test_it_finds_the_best_tree_of_patterns_where_zstream_ord_does_not() -> None:
    behind = 0
    for seed in range(40):
        problem = random_case(seed, 8, "AND").in_floats().problem
        best = plan_problem(problem, "DP-B").log_cost
        behind += plan_problem(problem, "ZSTREAM-ORD").log_cost > best + 1e-9
        assert plan_problem(problem, "FLIPS", seed=seed).log_cost <= best + 1e-9
    assert behind >= 3


def test_a_tree_from_elsewhere_is_improved() -> None:
    problem = random_case(3, 7).in_floats().problem
    left_deep = ((((((6, 5), 4), 3), 2), 1), 0)
    tree, rounds = improved(problem, left_deep, np.random.default_rng(0), 20)
    assert rounds == 20
    assert problem.log_tree_cost(tree) <= problem.log_tree_cost(left_deep)


def test_its_seconds_end_it() -> None:
    problem = random_case(5, 12).in_floats().problem
    made = plan_problem(problem, "FLIPS", budget=0.05)
    assert not made.complete and made.gap is None
    assert "stopped by its budget" in made.describe()
