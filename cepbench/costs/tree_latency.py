"""Cost of a tree plan for latency: what waits beside the way from the last event to the root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepbench.costs import tree_throughput

if TYPE_CHECKING:
    from cepbench.costs.problem import PlanningProblem


def log_waiting(problem: PlanningProblem, tree: Any) -> np.ndarray:
    """Logarithm of what each node adds to Costlat_tree [kolchinsky2018]_, section 5.1.

    Parameters
    ----------
    problem : PlanningProblem
        With ``last``.
    tree : int or pair of trees
        Nested pairs of the indices 0 … n−1.

    Returns
    -------
    ndarray of float64, shape (2n − 1,)
        In post-order: ``ln PM`` of the siblings of the nodes on the path from ``problem.last`` to
        the root, else minus infinity.
    """
    sizes = tree_throughput.log_node_sizes(problem, tree)
    waiting = np.full(len(sizes), -np.inf)
    visited = 0

    def visit(node: Any) -> tuple[bool, int]:
        """Whether ``last`` is below, and the number of the node."""
        nonlocal visited
        has = node == problem.last
        if isinstance(node, tuple | list):
            (left_has, left), (right_has, right) = visit(node[0]), visit(node[1])
            has = left_has or right_has
            if has:
                sibling = right if left_has else left
                waiting[sibling] = sizes[sibling]
        visited += 1
        return has, visited - 1

    visit(tree)
    return waiting


def log_cost(problem: PlanningProblem, tree: Any) -> float:
    """Logarithm of Costlat_tree: PM of the siblings on the path from ``problem.last`` to the root.

    Source: [kolchinsky2018]_, section 5.1.

    Parameters
    ----------
    problem : PlanningProblem
        With ``last``.
    tree : int or pair of trees
        Nested pairs of the indices 0 … n−1.

    Returns
    -------
    float
        Minus infinity if the tree is a leaf.
    """
    return float(np.logaddexp.reduce(log_waiting(problem, tree)))
