"""DP-B: the best tree, by dynamic programming over all splits of all sets of variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cepbench.costs.problem import PlanningProblem
from cepbench.kernels.dp_b import cheapest_tree
from cepbench.kernels.subset_sizes import log_subset_sizes
from cepbench.planners.budget import Budget, Found
from cepbench.planners.greedy import greedy
from cepbench.planners.registry import plan_generator
from cepbench.planners.zstream import tree_over


@plan_generator(
    "DP-B",
    plans="tree",
    exact=True,
    space="all bushy trees, cross products included",
    source="[selinger1979]_ in [kolchinsky2018]_, section 6.1",
    max_size=24,
    anytime=True,
)
def dp_b(problem: PlanningProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """The tree of least cost: bushy dynamic programming, bounded by a tree found beforehand.

    The left child of a node holds the earliest written variable below the node. Of equally good
    splits the one whose left child has the smallest set is taken, sets being compared as binary
    numbers in which the first written variable is the lowest digit.

    A step of its budget is a split that is tried. Ended by its budget it returns the tree that it
    started with, and how far that can be from the best one.

    Notes
    -----
    Worst case: O(3^n) splits and 4·(n + 8)·2^n bytes, where all sets cost alike and none can be
    left out. Sets that are dearer than a known tree, by themselves or with what must come outside
    them, are left out with all their splits, see :mod:`cepbench.kernels.dp_b`; where rates and
    selectivities differ as measured ones do, more than 99 of 100 splits are never tried.

    Differs from [kolchinsky2018]_: the paper tries all splits, and took more than 50 hours for 22
    events (section 6.3). The plan is the same.
    """
    n = problem.n
    if n == 1:
        return Found(0)
    known = min(_starts(problem), key=problem.log_tree_cost)
    sizes = log_subset_sizes(
        problem.log_factor, problem.log_bound, problem.log_selectivity, problem.log_order_factor
    )
    nodes, log_bound, complete, steps = cheapest_tree(
        sizes,
        problem.log_alpha,
        problem.pivot,
        _as_nodes(known, n),
        budget.most_steps,
        budget.deadline(),
    )
    if complete:
        return Found(_as_tree(nodes, n), steps=steps)
    shared = np.logaddexp.reduce([*sizes[1 << np.arange(n)], sizes[-1]])
    return Found(known, float(np.logaddexp(shared, log_bound)), complete=False, steps=steps)


def _starts(problem: PlanningProblem) -> Iterable[Any]:
    """Trees that are cheap and found fast."""
    yield tree_over(problem, range(problem.n))
    yield tree_over(problem, greedy(problem, np.random.default_rng(0)))


def _as_nodes(tree: Any, n: int) -> np.ndarray:
    """Nested pairs as bit masks of inner nodes and of their left children, parents first."""
    nodes: list[tuple[int, int]] = []

    def visit(node: Any) -> int:
        if not isinstance(node, tuple):
            return 1 << int(node)
        left, right = visit(node[0]), visit(node[1])
        nodes.append((left | right, left))
        return left | right

    visit(tree)
    return np.array(nodes[::-1], dtype=np.int64).reshape(n - 1, 2)


def _as_tree(nodes: np.ndarray, n: int) -> Any:
    left_of = dict(nodes.tolist())

    def build(mask: int) -> Any:
        if mask not in left_of:
            return mask.bit_length() - 1
        left = left_of[mask]
        return (build(left), build(mask ^ left))

    return build((1 << n) - 1)
