"""The latency cost of a plan: the work that remains when the last event arrives."""

from __future__ import annotations

import numpy as np

from cepbench.errors import StatisticsError
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.plans.tree import Tree, leaves, post_order


class Latency(CostModel):
    """Costlat: W·r of the variables after the last event in an order; in a tree, partial matches
    of the siblings along the path from the last event to the root.

    Source: [kolchinsky2018]_, section 5.1. As in the paper, filters are ignored in an order; for a
    Kleene variable, sets of events are counted.
    """

    name = "latency"
    form = "joins"
    order_counts_leaves = False
    source = "[kolchinsky2018]_, section 5.1"

    def check(self, problem: PlanningProblem) -> None:
        """Check that the last event is known."""
        if problem.last is None:
            raise StatisticsError(
                "latency depends on which variable's event arrives last, and this pattern does not "
                "determine it; give its name as last=, for example that of "
                "OutputProfiler(pattern).add(matches).last_variable, or exclude latency by alpha=0"
            )

    def log_node_costs(self, problem: PlanningProblem, kind: str, tree: Tree[int]) -> np.ndarray:
        """ln of each node's contribution, shape (2n − 1,).

        Of an order ln(W·r) at the variables after the last event, of a tree ln PM at the siblings
        on the path from the last event to the root; otherwise minus infinity.
        """
        if kind == "order":
            assert problem.last is not None  # checked before
            order = leaves(tree)
            waiting = np.full(2 * len(order) - 1, -np.inf)
            late = order.index(problem.last) + 1
            # In post-order the prefix of an order immediately follows its last leaf.
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

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """Minus infinity: leaves cost nothing."""
        return np.full(problem.n, -np.inf)

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """ln of the size of the side without the last event, if the other side has it."""
        assert problem.last is not None  # checked before
        if kind == "order":
            added = problem.log_cardinality[right.argmax(axis=1)]
            return np.where(left[:, problem.last], added, -np.inf)
        sibling = np.where(left[:, [problem.last]], right, left)
        counts = (left | right)[:, problem.last]
        return np.where(counts, problem.log_sizes(sibling), -np.inf)
