"""Cost of a tree plan for throughput: the expected partial matches of all its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cepbench.costs.problem import PlanningProblem


def log_node_sizes(problem: PlanningProblem, tree: Any) -> np.ndarray:
    """Logarithm of the expected number of partial matches of every node of a tree.

    PM(leaf) = W·r and PM(node) = PM(left) · PM(right) · SEL(left, right) [kolchinsky2018]_,
    section 3.2. Where events are used up, a node has the smallest W·r below it in place of their
    product, as the prefixes of section 5.2 have.

    Differs from the paper: a leaf's filter is part of PM(leaf), as the evaluators apply it on
    arrival and as Cost_ord has it; the paper names no place for it.

    Parameters
    ----------
    problem : PlanningProblem
    tree : int or pair of trees
        Nested pairs of the indices 0 … n−1.

    Returns
    -------
    ndarray of float64, shape (2n − 1,)
        In post-order: left, right, node.
    """
    factor, bound = problem.log_factor.tolist(), problem.log_bound.tolist()
    order_factor = problem.log_order_factor.tolist()
    index = np.array(_leaves(tree), dtype=np.intp)
    # With the leaves side by side a node is an interval, and what joins its halves a block.
    selectivity = problem.log_selectivity[np.ix_(index, index)]
    sizes: list[float] = []

    def visit(node: Any, first: int) -> tuple[int, float, float]:
        """The end of the leaves that are below and begin with ``first``, the size, the bound."""
        if isinstance(node, tuple | list):
            cut, left_size, left_least = visit(node[0], first)
            end, right_size, right_least = visit(node[1], cut)
            joined = np.add.reduce(selectivity[first:cut, cut:end], axis=None)
            size = left_size + right_size + float(joined)
            least = min(left_least, right_least)
        else:
            end, size, least = first + 1, factor[node], bound[node]
        # Kept out of `size`, for these two of a node are not a product of its children's.
        sizes.append(size + least + order_factor[end - first])
        return end, size, least

    visit(tree, 0)
    return np.array(sizes)


def log_cost(problem: PlanningProblem, tree: Any) -> float:
    """Logarithm of Cost_tree: the sum over all nodes, leaves and root among them.

    Source: [kolchinsky2018]_, sections 3.2 and 5.2; see :func:`log_node_sizes` for the filters.

    Parameters
    ----------
    problem : PlanningProblem
    tree : int or pair of trees

    Returns
    -------
    float
    """
    return float(np.logaddexp.reduce(log_node_sizes(problem, tree)))


def _leaves(tree: Any) -> list[int]:
    """Left to right."""
    found: list[int] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple | list):
            waiting += (node[1], node[0])
        else:
            found.append(node)
    return found
