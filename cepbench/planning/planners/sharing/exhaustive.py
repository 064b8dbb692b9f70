"""EXHAUSTIVE: the least cost over all cuts of all queries; only the last one of a query matters."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from cepbench.errors import PlanningRefusedError
from cepbench.planning.costs.sharing import Cuts, SharingProblem
from cepbench.planning.planners.sharing.parts import choices_of

#: The largest number of plans that it costs.
MOST_PLANS = 100_000


def exhaustive(problem: SharingProblem, rng: np.random.Generator) -> tuple[Cuts, bool]:
    """Cost every plan; PlanningRefusedError if there are more than :data:`MOST_PLANS` of them."""
    choices = [choices_of(items) for items in problem.items.values()]
    number = 2 * prod(map(len, choices))
    if number > MOST_PLANS:
        raise PlanningRefusedError(
            f"EXHAUSTIVE costs at most {MOST_PLANS:,} plans, and the workload has {number:,}; choose "
            "SHARON"
        )
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
