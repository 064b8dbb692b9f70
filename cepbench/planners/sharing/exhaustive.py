"""EXHAUSTIVE: the least cost over all cuts of all queries."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from cepbench.costs.sharing import Cuts, SharingProblem
from cepbench.errors import PlanningRefusedError

#: The largest number of plans that it costs.
MOST_PLANS = 100_000


def exhaustive(problem: SharingProblem, rng: np.random.Generator) -> tuple[Cuts, bool]:
    """Cost every plan.

    Raises
    ------
    PlanningRefusedError
        If there are more than :data:`MOST_PLANS` of them.
    """
    number = 2 ** (1 + sum(len(its.names) - 1 for its in problem.items.values()))
    if number > MOST_PLANS:
        raise PlanningRefusedError(
            f"EXHAUSTIVE costs at most {MOST_PLANS:,} plans, and the workload has {number:,}; choose "
            "SHARON"
        )
    choices = []
    for items in problem.items.values():
        places = range(1, len(items.names))
        choices.append([its for k in range(len(items.names)) for its in combinations(places, k)])
    best: tuple[Cuts, bool] = ({}, False)
    least = np.inf
    for its in product(*choices):
        cuts = dict(zip(problem.items, its, strict=True))
        for shares_prefixes in (False, True):
            cost = problem.cost(cuts, shares_prefixes=shares_prefixes).total
            # Rounding does not decide for more cuts or for trees.
            if cost < least * (1 - 1e-12):
                best, least = (cuts, shares_prefixes), cost
    return best
