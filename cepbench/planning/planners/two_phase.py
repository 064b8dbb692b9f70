"""2PO: two-phase optimization, iterative improvement, then annealing."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.greedy import first_order
from cepbench.planning.planners.iterative_improvement import better, descent
from cepbench.planning.planners.registry import plan_generator
from cepbench.planning.planners.simulated_annealing import annealed

#: Local minima of the first phase: ten as in [ioannidis1990]_, within a limit of steps.
_STARTS = 10
_MOST_STEPS = 1_000_000
#: First temperature of the second phase.
_LUKEWARM = 0.1


@plan_generator(
    "2PO",
    kind="order",
    space="all orders, from the best of several local minima to a local minimum",
    source="[ioannidis1990]_",
    anytime=True,
    default=False,
)
def two_phase(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """Iterative improvement from several orders, then simulated annealing from the best.

    The first phase descends from the order of GREEDY, exactly as II-GREEDY with the same seed, and
    from random ones: to ten local minima, or fewer after a million neighbours (beyond about 100
    variables). The second is SA from a temperature of 0.1 on, at which a neighbour that costs 10 %
    more is accepted with probability 1/e. It is never worse than II-GREEDY.

    A step of its budget is a neighbour tried.

    Differs from [ioannidis1990]_: there all starts are random; and see SA.
    """
    deadline = budget.deadline()
    found = descent(problem, np.array(first_order(problem, rng)), rng, budget.most_steps, deadline)
    for _ in range(_STARTS - 1):
        steps = found.steps or 0
        if not found.complete or steps >= _MOST_STEPS:
            break
        start = rng.permutation(problem.n)
        left = budget.most_steps - steps
        found = better(problem, found, descent(problem, start, rng, left, deadline))
    if not found.complete:
        return found
    steps = found.steps or 0
    start = np.array(found.plan)
    end = annealed(problem, start, _LUKEWARM, rng, budget.most_steps - steps, deadline)
    return better(problem, found, end)
