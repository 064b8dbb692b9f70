"""GREEDY: at each step the variable that keeps the prefix smallest."""

from __future__ import annotations

import numpy as np

from cepbench.costs.problem import PlanningProblem
from cepbench.planners.registry import plan_generator


@plan_generator(
    "GREEDY",
    plans="order",
    space="all orders, one step at a time",
    source="[swami1989]_ in [kolchinsky2018]_, section 6.1",
)
def greedy(problem: PlanningProblem, rng: np.random.Generator) -> list[int]:
    """Append the variable after which fewest partial matches are expected, in O(n²).

    Of equally good variables the earlier written one is taken.
    """
    # What each variable would multiply the present prefix by. The factor for the order in time
    # depends on the prefix's length alone, so it cannot change the choice.
    growth = problem.log_filtered.copy()
    order: list[int] = []
    for _ in range(problem.n):
        chosen = int(np.argmin(growth))
        order.append(chosen)
        growth += problem.log_selectivity[chosen]
        growth[order] = np.inf
    return order
