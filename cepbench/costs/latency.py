"""Cost of a plan for latency: what is still to be looked at when the last event arrives."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.costs.model import CostModel, tree_of
from cepbench.costs.problem import PlanningProblem
from cepbench.errors import StatisticsError
from cepbench.plans.tree import Tree, leaves, post_order


class Latency(CostModel):
    """Costlat alone: of an order W·r of what comes after the last event, of a tree the siblings
    on the path from the last event to the root.

    Source: [kolchinsky2018]_, section 5.1. Filters are no part of an order's cost, as the paper
    has it; a Kleene variable counts with its sets.
    """

    name = "latency"
    form = "joins"
    order_counts_leaves = False
    source = "[kolchinsky2018]_, section 5.1"

    def check(self, problem: PlanningProblem) -> None:
        """See that it is known which event comes last."""
        if problem.last is None:
            raise StatisticsError(
                "latency depends on the variable whose event arrives last, which this pattern leaves "
                "open; give its name as last=, as OutputProfiler(pattern).add(matches).last_variable "
                "finds it; or leave latency out, by alpha=0"
            )

    def log_cost(self, problem: PlanningProblem, kind: str, plan: Any) -> float:
        """ln of a plan's latency; minus infinity if nothing waits."""
        return float(np.logaddexp.reduce(log_waiting(problem, kind, tree_of(kind, plan))))

    def log_node_costs(self, problem: PlanningProblem, kind: str, tree: Tree[int]) -> np.ndarray:
        """ln of what each node adds."""
        return log_waiting(problem, kind, tree)

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """Nothing, before there are joins."""
        return np.full(problem.n, -np.inf)

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """What waits at a join that holds the last event on one side."""
        assert problem.last is not None  # checked before
        if kind == "order":
            late = (left >> problem.last & 1).astype(bool)
            added = problem.log_cardinality[np.log2(right).astype(np.intp)]
            return np.where(late, added, -np.inf)
        sibling = np.where(left >> problem.last & 1, right, left)
        counts = ((left | right) >> problem.last & 1).astype(bool)
        return np.where(counts, problem.log_sizes(sibling), -np.inf)


def log_waiting(problem: PlanningProblem, kind: str, tree: Tree[int]) -> np.ndarray:
    """ln of what each node of a plan's tree adds to Costlat.

    Parameters
    ----------
    problem : PlanningProblem
        With ``last``.
    kind : {"order", "tree"}
        An order's tree is the left-deep one.
    tree : int or pair of trees

    Returns
    -------
    ndarray of float64, shape (2n − 1,)
        In post-order. Of an order ``ln(W·r)`` at the variables after the last event; of a tree
        ``ln PM`` at the siblings on the path up from the last event; else minus infinity.
    """
    if kind == "order":
        assert problem.last is not None  # checked before
        order = leaves(tree)
        waiting = np.full(2 * len(order) - 1, -np.inf)
        late = order.index(problem.last) + 1
        # In post-order the prefix of an order comes right after the leaf that it takes up.
        waiting[2 * late - 1 :: 2] = problem.log_cardinality[order[late:]]
        return waiting
    sizes = problem.log_node_sizes("tree", tree)
    waiting = np.full(len(sizes), -np.inf)
    open_nodes: list[tuple[bool, int]] = []  # whether ``last`` is below, and the node's number
    for number, node in enumerate(post_order(tree)):
        has = node == problem.last
        if isinstance(node, tuple):
            (right_has, right), (left_has, left) = open_nodes.pop(), open_nodes.pop()
            has = left_has or right_has
            if has:
                sibling = right if left_has else left
                waiting[sibling] = sizes[sibling]
        open_nodes.append((has, number))
    return waiting
