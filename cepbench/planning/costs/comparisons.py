"""The cost ``comparisons``: partial matches plus the pairs that joins compare.

The cost models of [kolchinsky2018]_, sections 3.1 and 3.2, count the outputs of joins only. A join
with a selective condition compares many more pairs than it outputs; if the last join is selective,
it does most of the work, although its output is the same for all plans. Here a join also costs the
pairs of operands that are within the window and in order,

    pairs(left, right) = PM(left ∪ right) / ∏ sel(l, r) over l in left, r in right,

which the evaluators find by binary search in rows sorted by time. It needs
``time_selectivity="exact"``: under ``adjacent`` the order of two neighbours is one of the conditions,
so it counts as evaluated for every pair.

Differs from the paper: the pairs are added to the partial matches, so the cost of a node depends on
its children, not on its variables alone.
"""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.problem import PlanningProblem


class Comparisons(CostModel):
    """Partial matches of all nodes and pairs of all joins; an order costs as much as its tree."""

    name = "comparisons"
    form = "joins"
    source = "[kolchinsky2018]_, sections 3.1 and 3.2, extended by the pairs compared"

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """ln of the events that pass the variable's filter."""
        return problem.log_filtered + problem.log_order_factor[1]

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """ln of the sum of partial matches and pairs compared."""
        sizes = problem.log_sizes(left | right)
        return np.logaddexp(sizes, sizes - problem.log_conditions(left, right))
