"""The cost models that count compared pairs: against adding them up, and against counting them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.evaluate import evaluate
from cepbench.patterns.parse import parse
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.models import COST_MODELS
from cepbench.planning.plans.model import TreePlan
from cepbench.planning.statistics.measure import measure_statistics
from tests.drawn_events import drawn_stream, uniform
from tests.naive.costs import leaves_below
from tests.naive.plans import all_trees
from tests.planning_cases import READINGS, Case, ln, random_case


def added_up(case: Case, tree) -> Fraction:
    """Every node's partial matches, and every join's pairs before its own conditions."""
    members = leaves_below(tree)
    total = case.partial_matches(members)
    if isinstance(tree, tuple):
        left, right = map(leaves_below, tree)
        conditions = math.prod(case.conditions[i][j] for i in left for j in right)
        total += case.partial_matches(members) / conditions
        total += added_up(case, tree[0]) + added_up(case, tree[1])
    return total


@pytest.mark.parametrize("reading", READINGS, ids="-".join)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 4))
def test_against_adding_up(reading: tuple[str, str], seed: int, n: int) -> None:
    case = random_case(seed, n, *reading)
    for tree in all_trees(list(range(n))):
        found = COST_MODELS["comparisons"].log_cost(case.problem, "tree", tree)
        assert found == pytest.approx(ln(added_up(case, tree)), abs=1e-9)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 5))
def test_an_order_is_a_tree(seed: int, n: int) -> None:
    problem = random_case(seed, n, "SEQ", "exact").problem
    order = np.random.default_rng(seed).permutation(n).tolist()
    tree = order[0]
    for variable in order[1:]:
        tree = (tree, variable)
    by_order = COST_MODELS["comparisons"].log_cost(problem, "order", order)
    assert by_order == COST_MODELS["comparisons"].log_cost(problem, "tree", tree)


def log_pairs(problem: CostedProblem) -> float:
    """ln of the pairs that the join of the first variable with the others compares."""
    first = np.arange(problem.n) == 0
    joins = COST_MODELS["comparisons"].log_joins(problem, "tree", first[None], ~first[None])
    found = problem.log_partial_matches(range(problem.n))
    return float(joins[0] + np.log1p(-np.exp(found - joins[0])))


@given(seed=st.integers(0, 10_000), n=st.integers(2, 5))
def test_without_conditions_all_that_is_compared_is_found(seed: int, n: int) -> None:
    problem = random_case(seed, n, "SEQ", "exact").problem
    free = CostedProblem(
        problem.names,
        problem.log_cardinality,
        np.zeros((n, n)),
        problem.log_order_factor,
        time_selectivity="exact",
    )
    assert log_pairs(free) == pytest.approx(free.log_partial_matches(range(n)))


@pytest.mark.kernel
def test_pairs_are_those_that_an_evaluator_compares() -> None:
    """Of two variables exactly: in a conjunction of two, every pair within the window."""
    stream = drawn_stream(20_000, "AB", seed=4, within=10_000_000, x=uniform)
    for operator in ("SEQ", "AND"):
        pattern = parse(f"PATTERN {operator}(A a, B b) WHERE a.x + 0.8 < b.x WITHIN 5000 units")
        statistics = measure_statistics(pattern, stream)
        problem = CostedProblem.from_pattern(pattern, statistics, "exact")
        metrics = evaluate(pattern, stream, TreePlan(("a", "b")), output="count").metrics
        # Twice as many pairs come up in a window's time as are alive.
        expected = 2 * math.exp(log_pairs(problem)) * 10_000_000 / 5000
        assert metrics.comparisons == pytest.approx(expected, rel=0.05)
        assert metrics.matches < 0.1 * metrics.comparisons
