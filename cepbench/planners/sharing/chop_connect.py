"""CHOP-CONNECT: queries are chopped around the parts that they have in common, greedily."""

from __future__ import annotations

import numpy as np

from cepbench.costs.sharing import Cuts, SharingProblem
from cepbench.planners.sharing.parts import Part, common_parts, with_cuts


def chop_connect(problem: SharingProblem, rng: np.random.Generator) -> tuple[Cuts, bool]:
    """Choose the part that saves most, until none saves anything [qi2014]_, section 4.2.

    A part is chopped out of its queries, and counted once for those in which it is behind a cut. It
    is left in the queries in which that saves nothing.

    Differs from the paper, which takes its plans from an optimizer that it leaves open.
    """
    cuts: Cuts = {}
    cost = problem.cost(cuts, shares_prefixes=False).total
    parts = [
        Part(p.length, frozenset(at for at in p.places if at[1])) for p in common_parts(problem)
    ]
    while True:
        best, least = cuts, cost
        for part in parts:
            if len(part.places) > 1:
                found, its = _chopped_out(part, cuts, problem)
                if its < least:
                    best, least = found, its
        if best is cuts:
            return cuts, False
        cuts, cost = best, least


def _chopped_out(part: Part, cuts: Cuts, problem: SharingProblem) -> tuple[Cuts, float]:
    """The cuts with those around a part, in the queries in which they save anything."""
    best, least = cuts, np.inf
    kept = part
    for query in ("", *sorted(part.queries)):
        tried = kept.without({query})
        ends = {(q, at) for q, begin in tried.places for at in (begin, begin + part.length)}
        found = with_cuts(cuts, ends, problem)
        cost = problem.cost(found, shares_prefixes=False).total
        if cost < least:
            kept, best, least = tried, found, cost
    return best, least
