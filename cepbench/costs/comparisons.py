"""Cost of a plan for throughput with the work of its joins: pairs that are compared, and found.

The cost models of [kolchinsky2018]_, sections 3.1 and 3.2, add up what joins give. They do not see
what joins take: a condition that holds for few pairs is asked of many, and where the last join is the
one that filters, most of the work is there, in every plan equally large by what it gives. Here each
join also costs the pairs that time alone leaves to be compared,

    pairs(left, right) = PM(left ∪ right) / ∏ sel(l, r) over l in left, r in right,

to which the evaluators come by searching in rows that are sorted by time. It needs
``time_selectivity="exact"``: under ``adjacent`` the order of two neighbours is one of the conditions,
and is counted as being asked of every pair.

Differs from the paper: it adds these pairs to the partial matches. The cost of a node then depends on
its children, not on its variables alone, so no plan generator for the paper's costs minimizes it, but
any plan has such a cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cepbench.costs.problem import PlanningProblem


def log_pairs(problem: PlanningProblem, left: Sequence[int], right: Sequence[int]) -> float:
    """ln of the expected pairs that a join compares: partial matches before its conditions.

    Parameters
    ----------
    problem : PlanningProblem
    left, right : sequence of int
        Variables of the two sides, none of them on both.
    """
    conditions = problem.log_selectivity[np.ix_(left, right)].sum()
    return problem.log_partial_matches([*left, *right]) - float(conditions)


def log_tree_cost(problem: PlanningProblem, tree: Any) -> float:
    """ln of the cost of a tree: partial matches of all nodes and pairs of all joins.

    Parameters
    ----------
    problem : PlanningProblem
    tree : int or pair of trees
        Nested pairs of the indices 0 … n−1.
    """
    costs: list[float] = []

    def visit(node: Any) -> list[int]:
        if not isinstance(node, tuple | list):
            costs.append(problem.log_partial_matches([node]))
            return [node]
        left, right = visit(node[0]), visit(node[1])
        costs.append(log_pairs(problem, left, right))
        costs.append(problem.log_partial_matches(left + right))
        return left + right

    visit(tree)
    return float(np.logaddexp.reduce(costs))


def log_order_cost(problem: PlanningProblem, order: Sequence[int]) -> float:
    """ln of the cost of an order, as of the tree that takes up one variable after the other.

    Parameters
    ----------
    problem : PlanningProblem
    order : sequence of int, length n
        A permutation of 0 … n−1.
    """
    tree: Any = order[0]
    for variable in order[1:]:
        tree = (tree, variable)
    return log_tree_cost(problem, tree)
