"""The cost of a plan, node by node, against the paper's formulas in exact fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.planning.costs.latency import Latency
from cepbench.planning.costs.throughput import Throughput
from tests.budgets import examples
from tests.naive import costs
from tests.planning.costs.test_costs import random_tree
from tests.planning_cases import READINGS, Case, ln, random_case

readings = pytest.mark.parametrize(
    ("operator", "time_selectivity"), READINGS, ids=["AND", "SEQ-adjacent", "SEQ-exact"]
)


def with_latency(case: Case, rng: np.random.Generator) -> Case:
    last = case.n - 1 if case.operator == "SEQ" else int(rng.integers(case.n))
    return replace(case, alpha=Fraction(int(rng.integers(1, 8)), 3), last=last)


class Found(NamedTuple):
    sizes: np.ndarray
    throughput: np.ndarray
    #: α times the latency.
    latency: np.ndarray
    both: np.ndarray


def log_node_costs(case: Case, kind: str, tree: Any) -> Found:
    """Of each node its size, its cost without and with latency, and its latency alone."""
    problem = case.problem
    sizes = problem.log_node_sizes("tree", tree)
    latency = np.full(len(sizes), -np.inf)
    if problem.alpha:
        latency = np.log(problem.alpha) + Latency().log_node_costs(problem, kind, tree)
    throughput = Throughput().log_node_costs(problem, kind, tree)
    both = Throughput(problem.alpha).log_node_costs(problem, kind, tree)
    return Found(sizes, throughput, latency, both)


@readings
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7), latency=st.booleans())
@examples(15)
def test_nodes_of_a_tree(operator, time_selectivity, seed, n, latency) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(seed, n, operator, time_selectivity)
    case = with_latency(case, rng) if latency else case
    tree = random_tree(rng, rng.permutation(n).tolist())
    found = log_node_costs(case, "tree", tree)
    beside = [costs.leaves_below(node) for node in costs.siblings(tree, case.last)]
    for node, size, throughput, waits in zip(costs.nodes_of(tree), *found[:3], strict=True):
        members = costs.leaves_below(node)
        expected = case.partial_matches(members)
        assert size == throughput == pytest.approx(ln(expected), abs=1e-10)
        wanted = case.alpha * expected if latency and members in beside else 0
        assert np.exp(waits) == pytest.approx(float(wanted), rel=1e-10)
    assert np.logaddexp.reduce(found.both) == pytest.approx(ln(case.tree_cost(tree)), abs=1e-10)


@readings
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7), latency=st.booleans())
@examples(15)
def test_nodes_of_an_order(operator, time_selectivity, seed, n, latency) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(seed, n, operator, time_selectivity)
    case = with_latency(case, rng) if latency else case
    order = rng.permutation(n).tolist()
    tree = order[0]
    for variable in order[1:]:
        tree = (tree, variable)
    found = log_node_costs(case, "order", tree)
    late = order[order.index(case.last) + 1 :] if latency else []
    for node, size, throughput, waits in zip(costs.nodes_of(tree), *found[:3], strict=True):
        members = costs.leaves_below(node)
        assert size == pytest.approx(ln(case.partial_matches(members)), abs=1e-10)
        prefix = members == order[: len(members)]
        assert throughput == (size if prefix else -np.inf)
        buffered = isinstance(node, int) and node in late
        wanted = case.alpha * case.cardinalities[node] if buffered else 0
        assert np.exp(waits) == pytest.approx(float(wanted), rel=1e-10)
    assert np.logaddexp.reduce(found.both) == pytest.approx(ln(case.order_cost(order)), abs=1e-10)
