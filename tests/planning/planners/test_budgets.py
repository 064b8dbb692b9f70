"""Budgets of searches: what users may give, who gets them, and what a plan says afterwards."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cepbench.errors import PlanGeneratorError
from cepbench.patterns.parse import parse
from cepbench.planning.planners.budget import UNLIMITED, Budget, Found, budget_from
from cepbench.planning.planners.generate import plan, plan_problem
from cepbench.planning.planners.registry import plan_generator
from cepbench.planning.statistics.model import Statistics
from tests.planning_cases import random_case

PROBLEM = random_case(2, 4).problem


@pytest.mark.parametrize("seconds", [0, -1, math.nan, "2", True, None])
def test_seconds_are_more_than_none(seconds) -> None:
    with pytest.raises(PlanGeneratorError, match="a budget's seconds must be"):
        Budget(seconds=seconds)


@pytest.mark.parametrize("steps", [0, -3, 1.5, math.nan, "2", False, None])
def test_steps_are_whole_and_more_than_none(steps) -> None:
    with pytest.raises(PlanGeneratorError, match="a budget's steps must"):
        Budget(steps=steps)


def test_a_budget_in_numbers_that_kernels_take() -> None:
    assert Budget().most_steps == Budget().deadline() == UNLIMITED
    assert not Budget().is_limited
    assert Budget(steps=np.int64(7)).most_steps == 7 and Budget(steps=7.0).is_limited
    first, later = Budget(seconds=1).deadline(), Budget(seconds=100).deadline()
    assert 98e9 < later - first < 100e9
    assert Budget(seconds=np.float32(3), steps=5).share(3) == Budget(1.0, 5)
    assert budget_from(2) == Budget(seconds=2) and budget_from(None) == Budget()
    assert budget_from(Budget(steps=3)) == Budget(steps=3)
    with pytest.raises(PlanGeneratorError):
        plan_problem(PROBLEM, "TRIVIAL", budget="soon")


def test_a_users_search_gets_its_budget_and_says_what_it_knows() -> None:
    @plan_generator("MINE", kind="order", anytime=True)
    def mine(problem, rng, budget):
        given.append(budget)
        return Found(range(problem.n), log_bound=bound, complete=False)

    given: list[Budget] = []
    bound = PROBLEM.log_order_cost(range(4)) - math.log(1.25)
    made = plan_problem(PROBLEM, "MINE", budget=Budget(steps=9))
    assert given == [Budget(steps=9)]
    assert made.gap == pytest.approx(0.25) and not made.complete
    assert "stopped by its budget, at most 25 % above the least" in made.describe()
    # A bound that rounding put above the cost itself.
    bound = made.log_cost + 1e-12
    assert plan_problem(PROBLEM, "MINE").gap == 0


def test_others_take_no_notice() -> None:
    with_budget = plan_problem(PROBLEM, "GREEDY", budget=Budget(steps=1))
    assert with_budget == plan_problem(PROBLEM, "GREEDY")
    assert with_budget.complete and with_budget.gap is None and with_budget.log_bound is None
    assert plan_problem(PROBLEM, "ZSTREAM").gap == 0


def test_branches_share_seconds_and_their_gaps_add_up() -> None:
    @plan_generator("MINE", kind="order", anytime=True)
    def mine(problem, rng, budget):
        given.append(budget)
        cost = problem.log_order_cost(range(problem.n))
        return Found(range(problem.n), log_bound=cost - math.log(2), complete=len(given) > 1)

    given: list[Budget] = []
    pattern = parse("PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WITHIN 5 minutes")
    statistics = Statistics(cardinalities=dict.fromkeys("abcd", 6.0))
    made = plan(pattern, statistics, "MINE", budget=3)
    assert given == [Budget(seconds=1.5)] * 2
    assert made.gap == pytest.approx(1.0) and not made.complete
    assert "at most 100 % above" in made.describe()
    unknown = plan(pattern, statistics, "GREEDY")
    assert unknown.gap is None and unknown.complete
