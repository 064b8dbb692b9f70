"""SHARON: the parts to share as a maximum weight independent set of a graph of conflicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cepbench.planning.costs.sharing import Cuts, SharingProblem
from cepbench.planning.planners.sharing.chop_connect import chopped
from cepbench.planning.planners.sharing.independent_set import heaviest_independent_set
from cepbench.planning.planners.sharing.parts import Part, choices_of, common_parts, with_cuts

#: The largest number of candidates with options.
MOST_CANDIDATES = 64


def sharon(problem: SharingProblem, rng: np.random.Generator) -> tuple[Cuts, bool]:
    """Choose parts to share that save most together [poppe2018]_.

    A candidate is a part and the queries that share it, weighted by what that saves. Two are in
    conflict where they overlap in a query; an option of a candidate leaves out the queries of a
    conflict. The independent set that saves most is compared with the cuts of CHOP-CONNECT and with no
    cuts, and the best of them is improved by changing the cut of a query.

    Differs from the paper: queries are chopped in front of a part only, because behind it the trees
    of prefixes have a branch for each query; a part may be that of a single query, chopped at a
    rare event; a set is scored by its own cost, because savings are not independent; and the last
    improvement is not in the paper. Of a stream of known length it ends where it would take longer than
    it may still save.
    """
    unshared = problem.cost({}, shares_prefixes=True).total

    def saving(parts: Sequence[Part]) -> float:
        cuts = with_cuts({}, {at for part in parts for at in part.places}, problem)
        return unshared - problem.cost(cuts, shares_prefixes=True).total

    common = common_parts(problem)
    cut = chopped(common, problem)
    longest = {part.places: part for part in common}
    candidates: dict[Part, float] = {}
    for part in problem.affordable(longest.values()):
        for single in (Part(part.length, frozenset({at})) for at in part.places):
            candidates.setdefault(single, saving([single]))
        its = _beneficial(part, saving)
        candidates[its] = saving([its])
    candidates = {part: its for part, its in candidates.items() if its > 0}
    _add_options(candidates, saving, problem)
    parts = sorted(candidates, key=lambda part: -candidates[part])[:MOST_CANDIDATES]
    conflicts = [
        {k for k, other in enumerate(parts) if other is not part and part.overlaps(other)}
        for part in parts
    ]
    near = [{k for k, o in enumerate(parts) if o is not p and p.queries & o.queries} for p in parts]
    chosen = heaviest_independent_set(
        [candidates[part] for part in parts],
        conflicts,
        near=near,
        score=lambda its: saving([parts[k] for k in its]),
        affordable=problem.affordable,
    )
    cuts = with_cuts({}, {at for k in chosen for at in parts[k].places}, problem)
    starts = [cuts, cut, {}]
    # Rows of a tree stay for its longest window, so that trees are not always better.
    plans = [(_improved(starts, problem, shares), shares) for shares in (False, True)]
    return min(plans, key=lambda its: problem.cost(its[0], shares_prefixes=its[1]).total)


def _beneficial(part: Part, saving: Callable[[Sequence[Part]], float]) -> Part:
    """The part in the queries in which it saves anything."""
    kept = part
    for query in sorted(part.queries):
        tried = kept.without({query})
        if tried.places and saving([tried]) > saving([kept]):
            kept = tried
    return kept


def _add_options(
    candidates: dict[Part, float],
    saving: Callable[[Sequence[Part]], float],
    problem: SharingProblem,
) -> None:
    """Add candidates without the queries of a conflict."""
    pending = list(candidates)
    while pending and len(candidates) < MOST_CANDIDATES:
        part = pending.pop(0)
        for other in problem.affordable(list(candidates)):
            option = part.without(part.overlaps(other)) if other is not part else part
            if option.places and option not in candidates:
                its = saving([option])
                if its > 0:
                    candidates[option] = its
                    pending.append(option)


def _improved(starts: Sequence[Cuts], problem: SharingProblem, shares_prefixes: bool) -> Cuts:
    """The best of some cuts, with the cut of a query moved, added or dropped as long as that saves."""

    def cost(cuts: Cuts) -> float:
        return problem.cost(cuts, shares_prefixes=shares_prefixes).total

    changes = [(query, its) for query, items in problem.items.items() for its in choices_of(items)]
    best = min(starts, key=cost)
    while True:
        changed = ({**best, query: its} for query, its in problem.affordable(changes))
        found = min(changed, key=cost, default=best)
        if not cost(found) < cost(best):
            return best
        best = found
