"""CHOP-CONNECT: queries are chopped in front of the parts that they have in common, greedily."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cepbench.planning.costs.sharing import Cuts, SharingProblem
from cepbench.planning.planners.sharing.parts import Part, common_parts, with_cuts


def chop_connect(problem: SharingProblem, rng: np.random.Generator) -> tuple[Cuts, bool]:
    """Choose the part that saves most, until none saves anything [qi2014]_, section 4.2.

    Queries are chopped in front of a part, except those in which that saves nothing. With what comes
    behind it, it is counted once for the queries in which this is the same.

    Differs from the paper, which takes its plans from an optimizer that it leaves open. Of a stream of
    known length it ends where it would take longer than it may still save.
    """
    return chopped(common_parts(problem), problem), False


def chopped(common: Iterable[Part], problem: SharingProblem) -> Cuts:
    """The cuts that CHOP-CONNECT chooses in front of common parts."""
    cuts: Cuts = {}
    cost = problem.unshared
    parts = [Part(p.length, frozenset(at for at in p.places if at[1])) for p in common]
    while True:
        best, least = cuts, cost
        for part in problem.affordable(parts):
            if len(part.places) > 1:
                found, its = _chopped_at(part, cuts, problem)
                if its < least:
                    best, least = found, its
        if best is cuts:
            return cuts
        cuts, cost = best, least


def _chopped_at(part: Part, cuts: Cuts, problem: SharingProblem) -> tuple[Cuts, float]:
    """The cuts with those in front of a part, in the queries in which they save anything."""
    best, least = cuts, np.inf
    kept = part
    for query in ("", *sorted(part.queries)):
        tried = kept.without({query})
        found = with_cuts(cuts, tried.places, problem)
        cost = problem.cost(found, shares_prefixes=False).total
        if cost < least:
            kept, best, least = tried, found, cost
    return best, least
