"""Parts of queries: neighbouring items that several queries of a workload have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from cepbench.planning.costs.sharing import Cuts, SharingProblem
from cepbench.planning.plans.segments import SequenceItems


@dataclass(frozen=True)
class Part:
    """Some neighbouring items, and where they are."""

    length: int
    #: Queries, and how many items of them come before.
    places: frozenset[tuple[str, int]]

    @property
    def queries(self) -> set[str]:
        """The queries that have it."""
        return {query for query, _ in self.places}

    def without(self, queries: set[str]) -> Part:
        """The part in the other queries."""
        return Part(self.length, frozenset(its for its in self.places if its[0] not in queries))

    def overlaps(self, other: Part) -> set[str]:
        """The queries in which both have an item in common."""
        return {
            query
            for query, begin in self.places
            for its, first in other.places
            if its == query and begin < first + other.length and first < begin + self.length
        }


def common_parts(problem: SharingProblem) -> list[Part]:
    """All parts of at least one item, wherever they are; longer ones last.

    Of one part in a query, places that overlap are left out.
    """
    found: dict[tuple[int, Hashable], dict[str, list[int]]] = {}
    for query, items in problem.items.items():
        for length in range(1, len(items.names) + 1):
            for begin in range(len(items.names) - length + 1):
                signature = problem.signature(query, begin, begin + length)
                places = found.setdefault((length, signature), {}).setdefault(query, [])
                if not places or places[-1] + length <= begin:
                    places.append(begin)
    return [
        Part(length, frozenset((query, begin) for query, its in by_query.items() for begin in its))
        for (length, _), by_query in sorted(found.items(), key=lambda its: its[0][0])
    ]


def with_cuts(cuts: Cuts, places: Iterable[tuple[str, int]], problem: SharingProblem) -> Cuts:
    """Cuts, and instead of those of some queries the last of some places that is not at an end.

    Whatever comes before the last cut of a query is counted at once.
    """
    found = dict(cuts)
    for query, cut in sorted(places):
        if 0 < cut < len(problem.items[query].names):
            found[query] = (cut,)
    return found


def choices_of(items: SequenceItems) -> list[tuple[int, ...]]:
    """No cut of a query, and each single one."""
    return [(), *((cut,) for cut in range(1, len(items.names)))]
