"""GREEDY: at each step the variable with the smallest next prefix."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners import any_cost
from cepbench.planning.planners.registry import plan_generator


@plan_generator(
    "GREEDY",
    kind="order",
    costs="joins",
    space="all orders, one step at a time",
    source="[swami1989]_ in [kolchinsky2018]_, section 6.1",
)
def greedy(problem: CostedProblem, rng: np.random.Generator) -> list[int]:
    """Append the variable that adds least to the cost, in O(n²).

    Without latency this is the one with the fewest expected partial matches. Of equally good
    variables the earlier written one is taken.
    """
    return extended(problem, [])


def first_order(problem: CostedProblem, rng: np.random.Generator) -> list[int]:
    """The start of searches over orders: the order of GREEDY, or the written one.

    The latter for costs of the form ``plans``, which have no cost of a prefix.
    """
    return list(range(problem.n)) if problem.cost.form == "plans" else greedy(problem, rng)


def extended(problem: CostedProblem, prefix: list[int]) -> list[int]:
    """Complete a prefix of an order as GREEDY does."""
    if problem.form != "sets":
        return any_cost.extended(problem, prefix)
    terms = problem.terms
    # The factor of each variable on the current prefix, and the least cardinality with it.
    growth = terms.log_factor.copy()
    least = terms.log_bound
    size = 0.0
    order: list[int] = []
    for k in range(problem.n):
        after = growth + least
        if terms.last in order:
            # Latency is added, so the sizes themselves matter, not only their order.
            after = np.logaddexp(size + after + terms.log_order_factor[k + 1], terms.log_delay)
        chosen = prefix[k] if k < len(prefix) else int(np.argmin(after))
        order.append(chosen)
        size += float(growth[chosen])
        growth += terms.log_selectivity[chosen]
        growth[order] = np.inf
        least = np.minimum(least, least[chosen])
    return order
