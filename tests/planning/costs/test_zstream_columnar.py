"""The cost of plans in ``zstream``: against adding it up node by node, and against what the engine does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cepbench as cep
from cepbench.planning.costs import zstream_columnar as weights
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.plans.tree import leaves
from tests.drawn_events import drawn_events, uniform
from tests.naive.plans import all_trees
from tests.planning_cases import random_case

LISTED, COUNTED = "zstream-columnar", "zstream-columnar-count"

#: Query 6 of [mei2009]_: all conditions mention c.
QUERY_6 = "PATTERN SEQ(A a, B b, C c, D d) WHERE c.x > b.x AND c.x > d.x WITHIN 10 units"


def records(problem: CostedProblem, tree: Any) -> float:
    """The records of a node as a window passes, by the cost zstream-repaired."""
    sets = np.isin(np.arange(problem.n), list(leaves(tree)))[None]
    cost = cep.COST_MODELS["zstream-repaired"]
    return float(sets.sum() * np.exp(cost.log_cards(problem, sets)[0]))  # type: ignore[attr-defined]


def listed(problem: CostedProblem, tree: Any, *, is_root: bool = True) -> float:
    """The cost of a plan whose matches are listed, node by node."""
    if not isinstance(tree, tuple):
        return math.exp(problem.log_filtered[tree])
    total = sum(listed(problem, child, is_root=False) for child in tree)
    composite = [child for child in tree if isinstance(child, tuple)]
    pairs = [child for child in composite if not any(isinstance(part, tuple) for part in child)]
    if not is_root:
        return total + weights.MADE * sum(records(problem, child) for child in composite)
    total += weights.WRITTEN * records(problem, tree)
    if len(composite) < 2:
        return total + weights.VISITED * sum(records(problem, child) for child in composite)
    if not pairs:
        return total + weights.MADE * sum(records(problem, child) for child in composite)
    return total + max(
        weights.BIT * records(problem, pair)
        + weights.MADE * records(problem, other)
        + weights.VISITED * min(records(problem, (other, one)) for one in pair)
        for pair in pairs
        for other in composite
        if other is not pair
    )


@pytest.mark.parametrize("operator", ["SEQ", "AND"])
def test_listing_adds_up_nodes_by_their_place(operator: str) -> None:
    for seed in range(8):
        n = 2 + seed % 4
        case = random_case(seed, n, operator)
        (problem,) = branch_problems(case.pattern, case.statistics, cost=LISTED)
        trees = list(all_trees([*range(n)]))
        costs = [listed(problem, tree) for tree in trees]
        found = [problem.tree_cost(tree) for tree in trees]
        assert found == pytest.approx(costs)
        best = cep.plan(case.pattern, case.statistics, "DP-B", cost=LISTED)
        assert best.cost == pytest.approx(min(costs))


def statistics(**rates: float) -> cep.Statistics:
    given = {"a": 5.0, "b": 5.0, "c": 5.0, "d": 5.0} | rates
    selectivities = {("b", "c"): 0.1, ("c", "d"): 0.9, ("a", "c"): 0.5}
    return cep.Statistics(cardinalities=given, selectivities=selectivities)


def test_counting_by_stars_depends_on_nodes_alone() -> None:
    """By the definition of a star, and so that orders of the same sets cost the same."""
    (problem,) = branch_problems(cep.parse(QUERY_6), statistics(), cost=COUNTED)
    pair = 5 * (weights.CENTRE + weights.BIT * 5)
    three = 5 * (2 * weights.CENTRE + weights.SPOKE * 5)
    whole = 5 * (3 * weights.CENTRE + weights.SPOKE * 5)
    of_nodes = {
        ((0, 1), (2, 3)): 2 * pair + whole,
        (((0, 1), 2), 3): pair + three + whole,  # b or c is the centre, c is an end
        (0, ((1, 2), 3)): pair + 2 * three + whole,  # c is not: times to either end
        (0, (1, (2, 3))): pair + 2 * three + whole,
    }
    for tree, cost in of_nodes.items():
        assert problem.tree_cost(tree) == pytest.approx(20 + cost)
    best = cep.plan(cep.parse(QUERY_6), statistics(), "ZSTREAM", cost=COUNTED)
    assert best.text == "((a, b), (c, d))"


@pytest.mark.parametrize(
    "where", ["a.x < b.x AND c.x < d.x", "a.x = c.x AND c.x < d.x", "a.x < c.x AND b.x < d.x"]
)
def test_other_patterns_are_counted_by_records(where: str) -> None:
    """The last join adds up ranges, or weighs each record where it has a condition."""
    pattern = cep.parse(f"PATTERN SEQ(A a, B b, C c, D d) WHERE {where} WITHIN 10 units")
    (problem,) = branch_problems(pattern, statistics(), cost=COUNTED)
    left = (((0, 1), 2), 3)
    pair, three = records(problem, (0, 1)), records(problem, ((0, 1), 2))
    ranged = weights.RANGED * max(pair, 5.0)
    tested = weights.WEIGHED * three if "d.x" in where else 0.0
    expected = 20 + weights.MADE * pair + ranged + tested
    assert problem.tree_cost(left) == pytest.approx(expected)


def test_plans_of_query_6_are_in_the_order_of_what_the_engine_makes() -> None:
    """Listing matches: the plan of least cost makes and visits fewest records, by its own count."""
    frame = drawn_events(4000, "ABCD", seed=3, x=uniform)
    for rare in "bd":
        events = frame.assign(x=frame["x"] + 0.9 * (frame["type"] == rare.upper()))
        stream = cep.EventStream.from_pandas(events, type="type", time="time")
        pattern = cep.parse(QUERY_6.replace("10 units", "60 units"))
        measured = cep.measure_statistics(pattern, stream)
        plan = cep.plan(pattern, measured, "ZSTREAM", cost=LISTED)
        made = {}
        for tree in ((("a", "b"), "c"), "d"), ("a", ("b", ("c", "d"))), ("a", (("b", "c"), "d")):
            given = cep.TreePlan(tree)
            found = cep.evaluate(pattern, stream, given, evaluator="zstream", output="arrow")
            made[given.text] = found.metrics.partial_matches_created
        found = cep.evaluate(pattern, stream, plan, evaluator="zstream", output="arrow")
        assert found.metrics.partial_matches_created <= 1.1 * min(made.values())
        assert max(made.values()) > 2 * min(made.values())
