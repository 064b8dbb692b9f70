"""Lower bounds of costs are below the cost of every plan, and near it where that is easy."""

from __future__ import annotations

import math

import pytest

import cepbench as cep
from cepbench.errors import PlanningRefusedError
from cepbench.patterns.parse import parse
from cepbench.planning.costs.bounds import log_lower_bound
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.models import COST_MODELS, cost_model
from tests.naive.plans import all_orders, all_trees
from tests.planning_cases import random_case

#: Costs that are sums over joins.
JOINS = [name for name, cost in COST_MODELS.items() if cost.form != "plans" and name != "latency"]


@pytest.mark.parametrize("cost", JOINS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_no_plan_costs_less(cost: str, n: int) -> None:
    for operator in ("SEQ", "AND"):
        for seed in range(10):
            case = random_case(seed, n, operator)
            (problem,) = branch_problems(case.pattern, case.statistics, cost=cost)
            for kind, plans in (("order", all_orders(n)), ("tree", all_trees([*range(n)]))):
                costs = [problem.cost.log_cost(problem, kind, plan) for plan in plans]
                bound = log_lower_bound(problem, kind)
                assert bound <= min(costs) + 1e-9
                if n < 3:  # all there is
                    assert bound == pytest.approx(min(costs))


def test_a_rare_pair_is_all_that_counts() -> None:
    """Two variables that hardly ever come: everything but leaves and the common ones is free."""
    pattern = parse("PATTERN AND(A a, B b, C c) WITHIN 10 units")
    statistics = cep.Statistics(cardinalities={"a": 1e-3, "b": 1e-3, "c": 100.0})
    (problem,) = branch_problems(pattern, statistics)
    best = cep.plan(pattern, statistics, "DP-B").log_cost
    assert math.expm1(best - log_lower_bound(problem, "tree")) < 1e-3


def test_costs_of_whole_plans_have_no_bound() -> None:
    with COST_MODELS.restored():

        @cost_model("MINE", of="tree")
        def mine(problem, tree):
            return 1.0

        pattern = parse("PATTERN AND(A a, B b) WITHIN 10 units")
        (problem,) = branch_problems(
            pattern, cep.Statistics(cardinalities={"a": 1.0, "b": 1.0}), cost="MINE"
        )
        assert isinstance(problem, CostedProblem)
        with pytest.raises(PlanningRefusedError, match="function of whole plans"):
            log_lower_bound(problem, "tree")
        with pytest.raises(PlanningRefusedError, match='choose policy="threshold"'):
            cep.AdaptiveDetector(pattern, cost="MINE", generator="SA", policy="bound")
