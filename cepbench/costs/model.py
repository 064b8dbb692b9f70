"""What a cost model is: the objective that a search is given, and how much of it a search can see.

Searches ask for a cost in one of three forms, from the fastest to the most general:

- ``sets``: a sum of sizes of sets of variables, as arrays that the compiled searches read;
- ``joins``: a sum over a plan's leaves and joins, each known from the sets of variables joined;
- ``plans``: a number for each whole plan, nothing else.

A cost of one form can be asked for in those below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.costs.problem import PlanningProblem
from cepbench.errors import PlanningRefusedError
from cepbench.kernels.planning.terms import CostTerms
from cepbench.plans.tree import Tree, left_deep, post_order

#: The forms of a cost, each a special case of the next one.
FORMS = ("sets", "joins", "plans")

#: So many variables fit into a bit mask.
MOST_JOINED = 62


class CostModel:
    """What plans cost.

    Attributes
    ----------
    name : str
    form : {"sets", "joins", "plans"}
        In which form it is known; see the module.
    source : str
    alpha : float
        Weight of latency; 0 for costs that have none.
    order_counts_leaves : bool
        Whether an order costs what its left-deep tree costs; else it pays for the first variable
        alone, and for what its joins cost.
    is_builtin : bool
        Whether it belongs to cepbench.
    """

    name: str
    form: str = "plans"
    source: str = ""
    alpha: float = 0.0
    order_counts_leaves: bool = True
    is_builtin: bool = True

    def check(self, problem: PlanningProblem) -> None:
        """See that the problem has all numbers that the cost needs.

        Raises
        ------
        StatisticsError
            If not.
        """

    def log_cost(self, problem: PlanningProblem, kind: str, plan: Any) -> float:
        """ln of a plan's cost.

        Parameters
        ----------
        problem : PlanningProblem
        kind : str
            Kind of the plan, ``"order"`` or ``"tree"``.
        plan : sequence of int or nested pairs of int
            Its shape over the indices 0 … n−1.
        """
        return float(np.logaddexp.reduce(self.log_node_costs(problem, kind, tree_of(kind, plan))))

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """ln of what each variable's events cost, shape (n,)."""
        raise NotImplementedError(f"the cost {self.name} is not known join by join")

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """ln of what joins of sets of variables cost.

        Parameters
        ----------
        problem : PlanningProblem
        kind : str
            An order joins each variable, on the right, with the prefix before it.
        left, right : ndarray of int64, shape (m,)
            Bit masks of the variables on both sides.

        Returns
        -------
        ndarray of float64, shape (m,)
        """
        raise NotImplementedError(f"the cost {self.name} is not known join by join")

    def log_steps(
        self, problem: PlanningProblem, before: np.ndarray, taken_up: np.ndarray
    ) -> np.ndarray:
        """ln of what it costs to take up variables behind prefixes of orders, shape (m,).

        Parameters
        ----------
        problem : PlanningProblem
        before : ndarray of int64, shape (m,)
            Bit masks.
        taken_up : ndarray of int64, shape (m,)
            Indices.
        """
        joins = self.log_joins(problem, "order", before, 1 << taken_up)
        if not self.order_counts_leaves:
            return joins
        return np.logaddexp(joins, self.log_leaves(problem, "order")[taken_up])

    def log_node_costs(self, problem: PlanningProblem, kind: str, tree: Tree[int]) -> np.ndarray:
        """ln of what each node of a plan's tree costs, in post-order, shape (2n − 1,)."""
        leaves, joins, left, right = [], [], [], []
        waiting: list[int] = []
        for number, node in enumerate(post_order(tree)):
            if isinstance(node, tuple):
                b, a = waiting.pop(), waiting.pop()
                joins.append(number)
                left.append(a)
                right.append(b)
                waiting.append(a | b)
            else:
                leaves.append((number, node))
                waiting.append(1 << node)
        costs = np.full(len(leaves) + len(joins), -np.inf)
        of_leaves = self.log_leaves(problem, kind)
        every = kind != "order" or self.order_counts_leaves
        for number, leaf in leaves if every else leaves[:1]:
            costs[number] = of_leaves[leaf]
        if joins:
            self.refuse_beyond_masks(problem)
            costs[joins] = self.log_joins(
                problem, kind, np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)
            )
        return costs

    def terms(self, problem: PlanningProblem) -> CostTerms:
        """The cost as the compiled searches read it, if its form is ``sets``."""
        raise NotImplementedError(f"the cost {self.name} is no sum of sizes of sets")

    def notes(self, problem: PlanningProblem, kind: str, plan: Any) -> dict[str, Any]:
        """What a plan costs, as the notes that a plan object keeps.

        Returns
        -------
        dict
            ``log_cost``, ``cost_model``, ``estimates`` (logarithms of the expected partial matches
            of its nodes), ``alpha`` and, if that is not 0, ``log_latency``.
        """
        return {
            "log_cost": self.log_cost(problem, kind, plan),
            "cost_model": self.name,
            "estimates": tuple(problem.log_node_sizes(kind, plan).tolist()),
            "alpha": self.alpha,
        }

    def refuse_beyond_masks(self, problem: PlanningProblem) -> None:
        """See that a problem is small enough for bit masks.

        Raises
        ------
        PlanningRefusedError
            If it is not.
        """
        if problem.n > MOST_JOINED:
            raise PlanningRefusedError(
                f"the cost {self.name} takes at most {MOST_JOINED} variables, and the pattern has "
                f'{problem.n}; choose cost="throughput"'
            )


def tree_of(kind: str, plan: Any) -> Tree[int]:
    """The tree of a plan's shape: an order takes up one variable after the other."""
    return left_deep(plan) if kind == "order" else plan
