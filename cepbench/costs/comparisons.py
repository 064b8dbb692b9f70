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
its children, not on its variables alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cepbench.costs.model import CostModel, tree_of
from cepbench.costs.problem import PlanningProblem
from cepbench.plans.tree import leaves, post_order


class Comparisons(CostModel):
    """Partial matches of all nodes and pairs of all joins; an order costs what its tree costs."""

    name = "comparisons"
    form = "joins"
    source = "of the quantities of [kolchinsky2018]_, sections 3.1 and 3.2, with the pairs compared"

    def log_cost(self, problem: PlanningProblem, kind: str, plan: Any) -> float:
        """ln of the cost of a plan, of any number of variables."""
        costs: list[float] = []
        for node in post_order(tree_of(kind, plan)):
            if isinstance(node, tuple):
                left, right = leaves(node[0]), leaves(node[1])
                costs.append(log_pairs(problem, left, right))
                costs.append(problem.log_partial_matches(left + right))
            else:
                costs.append(problem.log_partial_matches([node]))
        return float(np.logaddexp.reduce(costs))

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """Each variable's events that pass its filter."""
        return problem.log_filtered + problem.log_order_factor[1]

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """Partial matches, and the pairs that they are found among."""
        sizes = problem.log_sizes(left | right)
        return np.logaddexp(sizes, sizes - problem.log_conditions(left, right))


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
