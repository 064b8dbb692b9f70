"""``cost=``: every search against every plan, costs of one's own, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import cepbench as cep
from cepbench.errors import PlanGeneratorError, PlanningRefusedError, StatisticsError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.planners.budget import Budget
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.plans.tree import leaves, post_order, relabel
from tests.naive.plans import all_orders, all_trees
from tests.planning_cases import READINGS, random_case

PATTERN = "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 10 units"
STATISTICS = cep.Statistics(
    cardinalities={"a": 8.0, "b": 0.5, "c": 2.0}, selectivities={("a", "c"): 0.1}
)


class ByJoins(Throughput):
    """Throughput as if no compiled search knew it."""

    form = "joins"


class ByPlans(Throughput):
    form = "plans"


def costed(seed: int, n: int, cost: CostModel, reading: tuple[str, str]) -> CostedProblem:
    case = random_case(seed, n, *reading)
    return CostedProblem.from_pattern(
        case.pattern, case.statistics, case.time_selectivity, case.names[-1], cost=cost
    )


@pytest.mark.parametrize("reading", READINGS, ids="-".join)
@pytest.mark.parametrize("name", ["throughput", "latency", "comparisons"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_exact_searches_find_the_least_cost_of_all(
    name: str, n: int, reading: tuple[str, str]
) -> None:
    problem = costed(n, n, cep.COST_MODELS[name], reading)
    least = {
        "order": min(map(problem.log_order_cost, all_orders(n))),
        "tree": min(map(problem.log_tree_cost, all_trees(list(range(n))))),
    }
    for generator in ("DP-LD", "DP-B"):
        made = plan_problem(problem, generator)
        assert made.log_cost == pytest.approx(least[made.kind], abs=1e-9)
        assert made.gap == 0 or math.isinf(made.log_cost)
    for entry in PLAN_GENERATORS.values():
        if entry.is_builtin and entry.takes(problem.cost) and entry.name != "IKKBZ":
            made = plan_problem(problem, entry) if name != "throughput" else None
            assert made is None or made.log_cost >= least[entry.kind] - 1e-9


@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("reading", READINGS, ids="-".join)
def test_searches_by_joins_find_what_compiled_ones_find(
    alpha: float, reading: tuple[str, str], seeds: Callable[[int], Sequence[int]]
) -> None:
    for seed in seeds(1):
        compiled = costed(seed, 6, Throughput(alpha), reading)
        generic = costed(seed, 6, ByJoins(alpha), reading)
        costs = {}
        for name in ("GREEDY", "DP-LD", "DP-B", "ZSTREAM", "ZSTREAM-ORD", "FLIPS", "LINDP"):
            wanted, found = plan_problem(compiled, name), plan_problem(generic, name)
            assert found.log_cost == pytest.approx(wanted.log_cost, abs=1e-9), name
            costs[name] = found.log_cost
        for name in ("II-RANDOM", "II-GREEDY", "SA", "2PO"):
            found = plan_problem(generic, name)
            assert costs["DP-LD"] - 1e-9 <= found.log_cost
            assert name == "II-RANDOM" or found.log_cost <= costs["GREEDY"] + 1e-9
        assert (
            plan_problem(generic, "QUICKPICK").log_cost
            <= plan_problem(generic, "QUICKPICK", budget=Budget(steps=3)).log_cost
        )


@pytest.mark.parametrize("cost", [*cep.COST_MODELS.values(), Throughput(2.0)], ids=lambda c: c.name)
@pytest.mark.parametrize("kind", ["order", "tree"])
def test_nodes_add_up_to_plans(cost: CostModel, kind: str) -> None:
    for seed in range(5):
        problem = costed(seed, 6, cost, READINGS[seed % 3])
        plans = list(all_orders(6))[::50] if kind == "order" else list(all_trees([*range(6)]))[::50]
        for plan in plans:
            tree = plan if kind == "tree" else cep.OrderPlan([str(v) for v in plan]).tree
            nodes = cost.log_node_costs(
                problem, kind, tree if kind == "tree" else relabel(tree, int)
            )
            whole = cost.log_cost(problem, kind, plan)
            assert np.logaddexp.reduce(nodes) == pytest.approx(whole, abs=1e-9)
            by_joins = CostModel.log_node_costs(
                cost, problem, kind, tree if kind == "tree" else relabel(tree, int)
            )
            assert np.logaddexp.reduce(by_joins) == pytest.approx(whole, abs=1e-9)


def test_budgets_end_searches_by_joins() -> None:
    problem = costed(1, 9, ByJoins(), READINGS[0])
    for name in ("DP-LD", "DP-B", "SA", "II-GREEDY", "QUICKPICK"):
        made = plan_problem(problem, name, budget=Budget(steps=2))
        assert not made.complete
        made.check(problem.names)


def test_a_cost_of_whole_trees() -> None:
    @cep.cost_model("LARGEST", of="tree")
    def largest(problem, tree):
        return max(problem.partial_matches(leaves(node)) for node in post_order(tree))

    made = cep.plan(PATTERN, STATISTICS, "QUICKPICK", cost="largest")
    assert made.cost_model == "LARGEST" and made.cost == pytest.approx(8.0)
    for name in ("SA", "II-RANDOM", "2PO", "TRIVIAL"):
        made = cep.plan(PATTERN, STATISTICS, name, cost="Largest")
        assert made.cost >= 8.0 - 1e-9
    with pytest.raises(
        PlanningRefusedError, match=r"DP-B does not minimize the cost LARGEST; .*QUICK"
    ):
        cep.plan(PATTERN, STATISTICS, "DP-B", cost="LARGEST")


def test_a_cost_of_orders() -> None:
    @cep.cost_model("BY-NAME", of="order", in_logs=True)
    def by_name(problem, order):
        return float(sum(place * v for place, v in enumerate(order)))

    assert cep.plan(PATTERN, STATISTICS, "SA", cost="by_name").order == ["c", "b", "a"]
    with pytest.raises(PlanningRefusedError, match="defined for orders, not for trees"):
        cep.plan(PATTERN, STATISTICS, "QUICKPICK", cost="by_name")


def test_a_cost_of_joins() -> None:
    @cep.cost_model("PAIRS", of="join")
    def pairs(problem, left, right):
        return problem.partial_matches(left) * (problem.partial_matches(right) if right else 0.0)

    for name in ("DP-B", "DP-LD", "ZSTREAM", "ZSTREAM-ORD", "SA", "II-GREEDY", "GREEDY", "FLIPS"):
        made = cep.plan(PATTERN, STATISTICS, name, cost="pairs")
        problem = CostedProblem.from_pattern(
            cep.parse(PATTERN), STATISTICS, cost=cep.COST_MODELS["PAIRS"]
        )
        trees = [problem.log_tree_cost(tree) for tree in all_trees([0, 1, 2])]
        assert made.log_cost >= min(trees) - 1e-9
        assert name != "DP-B" or made.log_cost == pytest.approx(min(trees))


def test_costs_that_are_none() -> None:
    with pytest.raises(
        PlanGeneratorError, match=r"no cost model 'troughput'.*did you mean 'throughput'"
    ):
        cep.plan(PATTERN, STATISTICS, cost="troughput")
    with pytest.raises(StatisticsError, match="comparisons takes no such weight"):
        cep.plan(PATTERN, STATISTICS, cost="comparisons", alpha=1)
    with pytest.raises(PlanGeneratorError, match="built-in cost model"):
        cep.cost_model("Throughput")(len)
    for wrong in ({"of": "leaf"}, {"in_logs": 1}):
        with pytest.raises(PlanGeneratorError):
            cep.cost_model("MINE", **wrong)
    with pytest.raises(PlanGeneratorError, match="needs a name"):
        cep.cost_model("")
    with pytest.raises(PlanGeneratorError, match="a cost is a function"):
        cep.cost_model("MINE")(3)
    cep.cost_model("MINE")(lambda problem, tree: -1.0)
    with pytest.raises(PlanGeneratorError, match="the value of the cost MINE"):
        cep.plan(PATTERN, STATISTICS, "SA", cost="mine")
    with pytest.raises(PlanningRefusedError, match="GOO does not minimize the cost comparisons"):
        cep.plan(PATTERN, STATISTICS, "GOO", cost="comparisons")


def test_searches_by_joins_refuse_what_takes_too_long() -> None:
    for name, most in (("DP-LD", 16), ("DP-B", 14)):
        problem = CostedProblem(
            tuple(f"v{i}" for i in range(most + 1)),
            np.zeros(most + 1),
            np.zeros((most + 1, most + 1)),
            cost=ByJoins(),
        )
        with pytest.raises(PlanningRefusedError, match=f"at most {most} variables"):
            plan_problem(problem, name)


@pytest.mark.parametrize("name", ["ZSTREAM", "GREEDY", "II-RANDOM", "QUICKPICK"])
def test_costs_of_joins_have_no_limit_of_size(name: str) -> None:
    n = 65
    problem = CostedProblem(
        tuple(f"v{i}" for i in range(n)), np.ones(n), np.zeros((n, n)), cost=ByJoins()
    )
    assert len(plan_problem(problem, name, budget=Budget(steps=3)).names) == n


def test_whole_plans_are_searched_from_the_written_order() -> None:
    problem = costed(3, 6, ByPlans(), READINGS[0])
    written = problem.log_order_cost(range(6))
    for name in ("SA", "2PO", "II-GREEDY"):
        assert plan_problem(problem, name).log_cost <= written + 1e-9


def test_what_each_node_costs() -> None:
    tree = cep.TreePlan((("a", "c"), "b"))
    table = cep.plan_cost(PATTERN, tree, STATISTICS)
    assert table["variables"].tolist() == [("a",), ("c",), ("a", "c"), ("b",), ("a", "c", "b")]
    assert table["cardinality"].tolist() == pytest.approx([8, 2, 1.6, 0.5, 0.2])
    assert table["cost"].tolist() == pytest.approx([8, 2, 1.6, 0.5, 0.2])
    compared = cep.plan_cost(PATTERN, tree, STATISTICS, cost="comparisons")
    assert compared["cost"].tolist() == pytest.approx([8, 2, 1.6 + 16, 0.5, 0.2 + 0.8])
    order = cep.plan_cost(PATTERN, cep.OrderPlan(["b", "c", "a"]), STATISTICS)
    assert order["cost"].tolist() == pytest.approx([0.5, 0, 0.5, 0, 0.2])
