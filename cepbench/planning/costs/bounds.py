"""Lower bounds of the cost of all plans for a planning problem, without a search."""

from __future__ import annotations

import numpy as np

from cepbench.errors import PlanningRefusedError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.zstream import ZStream

#: Up to this number of variables the cheapest last join of a tree is found by trying all 2^n.
MOST_SPLIT = 10


def log_lower_bound(problem: CostedProblem, kind: str) -> float:
    """ln of a lower bound of the cost of every plan of a kind, ``"order"`` or ``"tree"``.

    Every plan has all leaves, a join of two single variables, and, over three variables or more,
    another join that is its last one. The bound is the sum of the leaves and the cheapest of either
    join. If negated variables or groups are placed by the cost ``zstream``, which may change the
    operands of any join, it is the output of the last operator, which is that of every plan.

    Raises PlanningRefusedError if the cost is a function of whole plans, of which nothing is known.
    """
    cost, n = problem.cost, problem.n
    check_bounded(cost)
    if n == 1:
        return cost.log_cost(problem, kind, [0] if kind == "order" else 0)
    singles = np.eye(n, dtype=bool)
    operators = problem.operators
    if isinstance(cost, ZStream) and operators and (operators.negations or operators.groups):
        survivors = sum(map(cost.log_survivors, operators.negations))
        return float(cost.log_base(problem, np.ones((1, n), bool))[0]) + survivors
    leaves = cost.log_leaves(problem, kind)
    if kind == "order" and not cost.order_counts_leaves:
        leaves = leaves.min(keepdims=True)
    left, right = np.nonzero(~singles)
    parts = [*leaves, cost.log_joins(problem, kind, singles[left], singles[right]).min()]
    if n > 2 and kind == "order":
        parts.append(cost.log_joins(problem, kind, ~singles, singles).min())
    elif 2 < n <= MOST_SPLIT:
        sides = (np.arange(1, (1 << n) - 1)[:, None] >> np.arange(n) & 1).astype(bool)
        parts.append(cost.log_joins(problem, kind, sides, ~sides).min())
    return float(np.logaddexp.reduce(parts))


def check_bounded(cost: CostModel) -> None:
    """Check that the plans of a cost have a lower bound; PlanningRefusedError if not."""
    if cost.form == "plans":
        raise PlanningRefusedError(
            f"the cost {cost.name} is a function of whole plans, for which there is no lower bound; "
            'choose policy="threshold", or a cost of the form "joins"'
        )
