"""DP-LD: the best order, by dynamic programming over sets of variables."""

from __future__ import annotations

import numpy as np

from cepbench.costs.problem import PlanningProblem
from cepbench.kernels.dp_ld import cheapest_order, log_bound
from cepbench.kernels.subset_sizes import log_subset_sizes
from cepbench.planners.budget import Budget, Found
from cepbench.planners.greedy import greedy
from cepbench.planners.registry import plan_generator


@plan_generator(
    "DP-LD",
    plans="order",
    exact=True,
    space="all orders, cross products included",
    source="[selinger1979]_ in [kolchinsky2018]_, section 6.1",
    max_size=24,
    anytime=True,
)
def dp_ld(problem: PlanningProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """The order of least cost: left-deep dynamic programming, O(n·2^n) steps, 24·2^n bytes.

    Of equally good orders it takes one that keeps late written variables last: among the best
    choices for the last place the one written last, and so on downwards.

    A step of its budget is a set of variables. Ended by its budget it returns the order of GREEDY,
    and how far that can be from the best one.

    Differs from [selinger1979]_: cross products are allowed, as the paper wants it (section 3.3),
    and there are no interesting orders.
    """
    deadline = budget.deadline()
    sizes = log_subset_sizes(
        problem.log_factor, problem.log_bound, problem.log_selectivity, problem.log_order_factor
    )
    order = cheapest_order(
        sizes, problem.log_delay, problem.pivot, problem.n, budget.most_steps, deadline
    ).tolist()
    if order:
        return Found(order, steps=len(sizes))
    return Found(greedy(problem, rng), float(log_bound(sizes, problem.n)), complete=False)
