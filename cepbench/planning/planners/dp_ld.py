"""DP-LD: the best order, by dynamic programming over sets of variables."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.kernels.dp_ld import cheapest_order
from cepbench.planning.kernels.log_sums import PLAIN_RANGE
from cepbench.planning.planners import any_cost
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.greedy import greedy
from cepbench.planning.planners.registry import plan_generator


@plan_generator(
    "DP-LD",
    kind="order",
    exact=True,
    costs="joins",
    space="all orders, cross products included",
    source="[selinger1979]_ in [kolchinsky2018]_, section 6.1",
    max_size=24,
    anytime=True,
)
def dp_ld(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """The order of least cost: left-deep dynamic programming, O(n·2^n) steps, 24·2^n bytes.

    Ties: of the best choices for the last place it takes the variable written last, and so on
    towards the first place.

    A step of its budget is a set of variables. When its budget ends, it returns the order of GREEDY
    and a lower bound: each prefix costs at least as much as the cheapest set of its size.

    Differs from [selinger1979]_: cross products are allowed, as in [kolchinsky2018]_, section 3.3,
    and there are no interesting orders.
    """
    deadline = budget.deadline()
    if problem.cost.form != "sets":
        return any_cost.cheapest_order(problem, budget)
    terms = problem.terms
    sizes = problem.log_subset_sizes()
    # The number of sets is known, so a search that would exceed the budget is not started.
    if budget.most_steps >= len(sizes) - 1:
        costs, delay, in_logs = _scaled(sizes, terms.log_delay, terms.last)
        order = cheapest_order(costs, delay, terms.last, in_logs, deadline)
        if len(order):
            return Found(order.tolist(), steps=len(sizes) - 1)
    members = np.bitwise_count(np.arange(1, len(sizes)))
    least = [sizes[1:][members == k].min() for k in range(1, problem.n + 1)]
    return Found(greedy(problem, rng), float(np.logaddexp.reduce(least)), complete=False)


def _scaled(
    sizes: np.ndarray, log_delay: np.ndarray, last: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Costs as scaled numbers (False), or if their range is too large, as logarithms (True)."""
    # Numbers are many times faster, and a common factor changes no comparison.
    numbers = [sizes[1:], log_delay] if last >= 0 else [sizes[1:]]
    lowest = min(float(some.min()) for some in numbers)
    highest = max(float(some.max()) for some in numbers)
    if highest - lowest >= PLAIN_RANGE:
        return sizes, log_delay, True
    middle = (lowest + highest) / 2
    costs = sizes - middle
    costs[0] = 0.0  # of the empty set: not read, and possibly out of range
    delay = np.exp(log_delay - middle) if last >= 0 else log_delay
    return np.exp(costs, out=costs), delay, False
