"""Maximum weight independent sets: the search of SHARON for candidates that exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby

#: The largest number of sets that a search looks at.
MOST_SETS = 2_000


def heaviest_independent_set(
    weights: Sequence[float],
    conflicts: Sequence[AbstractSet[int]],
    *,
    near: Sequence[AbstractSet[int]] | None = None,
    score: Callable[[Sequence[int]], float] | None = None,
    most_sets: int = MOST_SETS,
    affordable: Callable[[Iterable[tuple[int, ...]]], Iterable[tuple[int, ...]]] = iter,
) -> tuple[int, ...]:
    """The set of vertices without conflicts of the greatest score, in ascending order.

    Vertices of no weight are left out. ``near`` are the vertices that may change what one adds to the
    score, by default those in conflict. By default the score of a set is the sum of its weights; the
    greatest is found then, unless the search ends after ``most_sets`` sets, with the best one so far. It
    scores only what is ``affordable`` of sets of one size.

    Source: [poppe2018]_, reduction of the graph and breadth-first search for the plan. A vertex near
    no other one is in the set. Without it are those that cannot be in a set as heavy as the bound
    of a greedy choice [sakai2003]_, the sum of each weight over its degree plus 1. Sets of s + 1
    vertices are those of s that agree in the first s − 1, if the last two have no conflict.
    """
    near = conflicts if near is None else near
    worth = score or (lambda its: sum(weights[v] for v in its))
    left = {v for v, weight in enumerate(weights) if weight > 0}
    fixed: set[int] = set()
    while True:
        bound = sum(weights[v] / (1 + len(conflicts[v] & left)) for v in left)
        free = {v for v in left if not near[v] & left - {v}}
        beaten = {v for v in left if sum(weights[u] for u in left - conflicts[v]) < bound}
        if not free and not beaten:
            break
        fixed |= free
        left -= free | beaten
    level: list[tuple[int, ...]] = [(v,) for v in sorted(left)]
    best = _greedy(weights, conflicts, left)
    most = worth([*sorted(fixed), *best])
    seen = 0
    while level and seen < most_sets:
        seen += len(level)
        for its in affordable(level):
            its_worth = worth([*sorted(fixed), *its])
            if its_worth > most:
                best, most = its, its_worth
        level = _next(level, conflicts, most_sets - seen)
    return tuple(sorted({*fixed, *best}))


def _next(
    level: Sequence[tuple[int, ...]], conflicts: Sequence[AbstractSet[int]], most: int
) -> list[tuple[int, ...]]:
    """The sets of one more vertex."""
    found: list[tuple[int, ...]] = []
    for _, group in groupby(level, key=lambda its: its[:-1]):
        its = list(group)
        for place, one in enumerate(its):
            for other in its[place + 1 :]:
                if other[-1] not in conflicts[one[-1]]:
                    found.append((*one, other[-1]))
                    if len(found) >= most:
                        return found
    return found


def _greedy(
    weights: Sequence[float], conflicts: Sequence[AbstractSet[int]], vertices: AbstractSet[int]
) -> tuple[int, ...]:
    """A set by the greatest weight over the degree plus 1, one by one."""
    left, found = set(vertices), []
    while left:
        best = max(sorted(left), key=lambda v: weights[v] / (1 + len(conflicts[v] & left)))
        found.append(best)
        left -= conflicts[best] | {best}
    return tuple(sorted(found))
