"""The costs of [kolchinsky2018]_: expected partial matches, and α times the expected latency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.arguments import number
from cepbench.errors import StatisticsError
from cepbench.planning.costs.latency import Latency
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.kernels.terms import CostTerms
from cepbench.planning.plans.tree import Tree


@dataclass(frozen=True)
class Throughput(CostModel):
    """Costtrpt + α·Costlat: partial matches of all nodes, and α times the latency.

    Source: [kolchinsky2018]_, sections 3.1, 3.2, 5.1 and 5.2. Cost_ord is the sum over all prefixes,
    Cost_tree the sum over all nodes, including leaves and root.

    Differs from the paper: where events are consumed, it multiplies each prefix by W once more,
    which changes no comparison; and leaves include filters, which the evaluators apply on arrival
    as in Cost_ord, while the paper does not define them for Cost_tree.

    Raises StatisticsError if ``alpha`` is not a number of at least 0.
    """

    alpha: float = 0.0
    name = "throughput"
    form = "sets"
    order_counts_leaves = False
    source = "[kolchinsky2018]_, sections 3.1, 3.2, 5.1 and 5.2"

    def __post_init__(self) -> None:
        alpha = number(self.alpha, "alpha", StatisticsError, least=0.0)
        object.__setattr__(self, "alpha", alpha)

    @property
    def log_alpha(self) -> float:
        """ln α; minus infinity for 0."""
        return math.log(self.alpha) if self.alpha else -math.inf

    def check(self, problem: PlanningProblem) -> None:
        """Check that the last event is known, if latency has a weight."""
        if self.alpha:
            Latency().check(problem)

    def log_cost(self, problem: PlanningProblem, kind: str, plan: Any) -> float:
        """ln of a plan's cost, latency included."""
        cost = float(np.logaddexp.reduce(problem.log_node_sizes(kind, plan)))
        if not self.alpha:
            return cost
        latency = Latency().log_cost(problem, kind, plan)
        return float(np.logaddexp(cost, self.log_alpha + latency))

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """ln of the events that pass the variable's filter."""
        return problem.log_filtered + problem.log_order_factor[1]

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """ln of the partial matches of the join plus α times its latency."""
        sizes = problem.log_sizes(left | right)
        if not self.alpha:
            return sizes
        waiting = Latency().log_joins(problem, kind, left, right)
        return np.logaddexp(sizes, self.log_alpha + waiting)

    def log_node_costs(self, problem: PlanningProblem, kind: str, tree: Tree[int]) -> np.ndarray:
        """ln of each node's cost, latency included."""
        costs = problem.log_node_sizes("tree", tree)
        if kind == "order":
            # Leaves after the first are not part of Cost_ord.
            costs[1::2] = -np.inf
        if not self.alpha:
            return costs
        waiting = Latency().log_node_costs(problem, kind, tree)
        return np.logaddexp(costs, self.log_alpha + waiting)

    def terms(self, problem: PlanningProblem) -> CostTerms:
        """The arrays for the compiled searches."""
        return CostTerms(
            problem.log_factor,
            problem.log_bound,
            problem.log_selectivity,
            problem.log_order_factor,
            problem.log_cardinality + self.log_alpha,
            self.log_alpha,
            problem.last if self.alpha and problem.last is not None else -1,
        )

    def notes(self, problem: PlanningProblem, kind: str, plan: Any) -> dict[str, Any]:
        """The cost of a plan, with its latency if that has a weight."""
        notes = super().notes(problem, kind, plan)
        notes["cost_model"] = f"{kind}-{self.name}"
        if problem.consuming:
            notes["cost_model"] += f", {problem.strategy}"
        if self.alpha:
            notes["log_latency"] = Latency().log_cost(problem, kind, plan)
            notes["cost_model"] += f" + {self.alpha:g} {kind}-latency"
        return notes
