"""Cost of a tree plan for latency: what waits beside the way from the last event to the root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepbench.costs import tree_throughput

if TYPE_CHECKING:
    from cepbench.costs.problem import PlanningProblem


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
    sizes = iter(tree_throughput.log_node_sizes(problem, tree))
    siblings: list[float] = []

    def visit(node: Any) -> tuple[bool, float]:
        """Whether ``last`` is below, and the size of the node."""
        if not isinstance(node, tuple | list):
            return node == problem.last, next(sizes)
        (left_has, left_size), (right_has, right_size) = visit(node[0]), visit(node[1])
        if left_has or right_has:
            siblings.append(right_size if left_has else left_size)
        return left_has or right_has, next(sizes)

    visit(tree)
    return float(np.logaddexp.reduce(np.array(siblings)))
