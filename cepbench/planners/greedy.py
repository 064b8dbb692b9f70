"""GREEDY: at each step the variable that keeps the prefix smallest."""

from __future__ import annotations

import numpy as np

from cepbench.costs.problem import PlanningProblem
from cepbench.planners.registry import plan_generator


@plan_generator(
    "GREEDY",
    kind="order",
    space="all orders, one step at a time",
    source="[swami1989]_ in [kolchinsky2018]_, section 6.1",
)
def greedy(problem: PlanningProblem, rng: np.random.Generator) -> list[int]:
    """Append the variable that adds least to the cost, in O(n²).

    Without latency this is the one after which fewest partial matches are expected. Of equally
    good variables the earlier written one is taken.
    """
    return extended(problem, [])


def extended(problem: PlanningProblem, prefix: list[int]) -> list[int]:
    """Bring the first variables of an order to a whole one, step by step as GREEDY does."""
    # What each variable would multiply the present prefix by, and the least cardinality with it.
    growth = problem.log_factor
    least = problem.log_bound
    size = 0.0
    order: list[int] = []
    for k in range(problem.n):
        after = growth + least
        if problem.pivot in order:
            # Now the numbers matter, not only which is smaller.
            after = np.logaddexp(size + after + problem.log_order_factor[k + 1], problem.log_delay)
        chosen = prefix[k] if k < len(prefix) else int(np.argmin(after))
        order.append(chosen)
        size += float(growth[chosen])
        growth += problem.log_selectivity[chosen]
        growth[order] = np.inf
        least = np.minimum(least, least[chosen])
    return order
