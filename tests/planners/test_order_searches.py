"""Searches over orders under a budget: they keep to it and return the best that they came to."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cepbench.planners.budget import Budget
from cepbench.planners.generate import plan_problem
from cepbench.planners.iterative_improvement import ii_greedy, ii_random
from tests.planning_cases import random_case

pytestmark = pytest.mark.kernel


def rng_of(seed: int = 3):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("search", [ii_random, ii_greedy])
def test_a_descent_takes_no_more_steps_than_it_may(search) -> None:
    problem = random_case(2, 12, "SEQ").problem
    costs = []
    whole = search(problem, rng_of(), Budget())
    assert whole.complete and whole.steps > 500
    for steps in (1, 40, 200, whole.steps - 1):
        found = search(problem, rng_of(), Budget(steps=steps))
        assert found.steps == steps and not found.complete
        assert sorted(found.plan) == list(range(12))
        costs.append(problem.log_order_cost(found.plan))
    # The same moves as without a budget, so each goes on where the shorter one ended.
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] >= problem.log_order_cost(whole.plan) - 1e-9


def test_ii_random_starts_again_while_steps_are_left() -> None:
    problem = random_case(4, 10, powers=(-1, 1)).problem
    once = ii_random(problem, rng_of(), Budget())
    more = ii_random(problem, rng_of(), Budget(steps=20 * once.steps))
    assert more.steps == 20 * once.steps and not more.complete
    # Its first descent is the one without a budget.
    assert problem.log_order_cost(more.plan) <= problem.log_order_cost(once.plan)
    best = plan_problem(problem, "DP-LD").log_cost
    assert problem.log_order_cost(more.plan) == pytest.approx(best, abs=1e-9)


def test_ii_greedy_has_one_start() -> None:
    problem = random_case(4, 10).problem
    once, more = (ii_greedy(problem, rng_of(), Budget(steps=s)) for s in (10**6, 10**7))
    assert once == more and once.complete


def test_one_variable_takes_no_time() -> None:
    problem = random_case(4, 1).problem
    assert plan_problem(problem, "II-RANDOM", budget=60).order == ["v0"]


@pytest.mark.parametrize("n", [2, 40])
def test_seconds_are_kept(n) -> None:
    problem = random_case(4, n).problem
    plan_problem(problem, "II-RANDOM")
    before = time.perf_counter()
    made = plan_problem(problem, "II-RANDOM", budget=0.2)
    assert 0.2 <= time.perf_counter() - before < 2
    assert not made.complete
    assert made.log_cost <= plan_problem(problem, "II-RANDOM").log_cost + 1e-12
