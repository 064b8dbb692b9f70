"""Cost models, the objectives of searches.

There are three forms of cost models, from the fastest to search to the most general. A cost model
of one form can be used in the forms below it too:

- ``sets``: a sum of sizes of sets of variables, as arrays for the compiled searches;
- ``joins``: a sum over leaves and joins, each a function of the sets of variables joined;
- ``plans``: any function of a plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.kernels.terms import CostTerms
from cepbench.planning.plans.tree import Tree, left_deep, post_order, unplaced

#: The forms of a cost, each a special case of the next one.
FORMS = ("sets", "joins", "plans")


class CostModel:
    """Base class of cost models; see the module for their forms."""

    name: str
    #: {"sets", "joins", "plans"}. The most specific form.
    form: str = "plans"
    source: str = ""
    #: Weight of latency; 0 for costs without one.
    alpha: float = 0.0
    #: Whether an order costs as much as its left-deep tree; otherwise only its first leaf and its
    #: joins count.
    order_counts_leaves: bool = True
    is_builtin: bool = True

    def check(self, problem: PlanningProblem) -> None:
        """Check that the problem has all numbers that the cost needs; StatisticsError if not."""

    def log_cost(self, problem: PlanningProblem, kind: str, plan: Any) -> float:
        """ln of the cost of a plan over the indices 0 … n−1, of the kind ``"order"`` or ``"tree"``."""
        return float(np.logaddexp.reduce(self.log_node_costs(problem, kind, tree_of(kind, plan))))

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """ln of the cost of each leaf, shape (n,)."""
        raise NotImplementedError(f"the cost {self.name} is not a sum over joins")

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """ln of the cost of joins of sets of variables, bool, shape (m, n); shape (m,).

        In an order the right side is a single variable, the left one the prefix before it.
        """
        raise NotImplementedError(f"the cost {self.name} is not a sum over joins")

    def log_steps(
        self, problem: PlanningProblem, before: np.ndarray, taken_up: np.ndarray
    ) -> np.ndarray:
        """ln of the cost of appending variables to prefixes of orders, shape (m,).

        The prefixes are bool, shape (m, n), the variables ``taken_up`` int64, shape (m,).
        """
        right = np.eye(problem.n, dtype=bool)[taken_up]
        joins = self.log_joins(problem, "order", before, right)
        if not self.order_counts_leaves:
            return joins
        return np.logaddexp(joins, self.log_leaves(problem, "order")[taken_up])

    def log_node_costs(self, problem: PlanningProblem, kind: str, tree: Tree[int]) -> np.ndarray:
        """ln of the cost of each node of a plan's tree, in post-order, shape (2n − 1,)."""
        leaves, joins, left, right = [], [], [], []
        waiting: list[np.ndarray] = []
        singletons = np.eye(problem.n, dtype=bool)
        for number, node in enumerate(post_order(tree)):
            if isinstance(node, tuple):
                b, a = waiting.pop(), waiting.pop()
                joins.append(number)
                left.append(a)
                right.append(b)
                waiting.append(a | b)
            else:
                leaves.append((number, node))
                waiting.append(singletons[node])
        costs = np.full(len(leaves) + len(joins), -np.inf)
        of_leaves = self.log_leaves(problem, kind)
        every = kind != "order" or self.order_counts_leaves
        for number, leaf in leaves if every else leaves[:1]:
            costs[number] = of_leaves[leaf]
        if joins:
            costs[joins] = self.log_joins(problem, kind, np.array(left), np.array(right))
        return costs

    def terms(self, problem: PlanningProblem) -> CostTerms:
        """The arrays for the compiled searches, for a cost of the form ``sets``."""
        raise NotImplementedError(f"the cost {self.name} is not a sum of sizes of sets")

    def notes(self, problem: PlanningProblem, kind: str, plan: Any) -> dict[str, Any]:
        """The cost of a plan as annotations of a plan object.

        They are ``log_cost``, ``cost_model``, ``estimates`` (logarithms of the expected partial
        matches of its nodes), ``alpha`` and, if that is not 0, ``log_latency``.
        """
        return {
            "log_cost": self.log_cost(problem, kind, plan),
            "cost_model": self.name,
            "estimates": tuple(problem.log_node_sizes(kind, plan).tolist()),
            "alpha": self.alpha,
        }


def tree_of(kind: str, plan: Any) -> Tree[int]:
    """The tree of a plan's shape; that of an order is left-deep."""
    return left_deep(plan) if kind == "order" else unplaced(plan)
