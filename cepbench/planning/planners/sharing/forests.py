"""FORESTS: sources, virtual queries, unions and join orders together."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from cepbench.planning.costs.reuse import ReuseProblem, Sources
from cepbench.planning.planners.sharing.steiner import Forest
from cepbench.planning.planners.sharing.steiner_tree import steiner_tree
from cepbench.planning.plans.reuse import Reuse, Source, circle_in, sources_in

#: Queries up to which all plans are searched; beyond, random changes that are tried.
MOST_QUERIES, BUDGET = 8, 200


def forests(problem: ReuseProblem, rng: np.random.Generator) -> Sources:
    """The sources of all queries at the least cost, each way with its cheapest join order.

    Up to :data:`MOST_QUERIES` queries the plan is optimal: a directed Steiner tree of least weight, see
    :func:`~cepbench.planning.planners.sharing.steiner_tree.steiner_tree`, with unions as edges from the ground.
    Where a source of a union is computed from the query of the union, plans with it, in which the source is
    not, and plans without it are searched, by branch and bound. Beyond, STEINER's plan is changed at random, a virtual query or a union more or less,
    :data:`BUDGET` times, and changes that make it cheaper stay.

    That an order is the cheapest of a way depends on nothing else, so that it is chosen before. Orders
    of patterns that would have more in common with each other are not searched: doing so by iterative
    search is patented (US 11,875,199).
    """
    if len(problem.scratch) - len(problem.virtual) <= MOST_QUERIES:
        return _optimal(problem)
    forest = Forest(problem)
    forest.improve()
    names = [name for name in problem.scratch if name in problem.virtual]
    changes = [*names, *problem.unions]
    for _ in range(BUDGET if changes else 0):
        virtual, unions = set(forest.virtual), dict(forest.unions)
        for place in rng.integers(len(changes), size=int(rng.integers(1, 4))):
            change = changes[place]
            if not isinstance(change, Reuse):
                virtual ^= {change}
            elif unions.get(change.query) == change:
                del unions[change.query]
            else:
                unions[change.query] = change
        forest.try_(frozenset(virtual), unions)
    return forest.sources


def _optimal(problem: ReuseProblem) -> Sources:
    """The plan of least cost."""
    number = count()
    start = _Choice({}, frozenset())
    waiting = [(0.0, next(number), start, start.least(problem))]
    while True:
        _, _, choice, sources = heapq.heappop(waiting)
        circle = circle_in(sources)
        if not circle:
            return sources
        for fewer in choice.without(circle, sources):
            found = fewer.least(problem)
            heapq.heappush(waiting, (problem.cost(found), next(number), fewer, found))


@dataclass(frozen=True)
class _Choice:
    """What is decided of a plan."""

    #: Queries that are computed as these unions; no source of one is computed from its query.
    unions: Mapping[str, Source]
    #: Queries, and sources from which they are not computed.
    forbidden: frozenset[tuple[str, Source]]

    def without(self, circle: Sequence[str], sources: Sources) -> Iterator[_Choice]:
        """Choices that have together all plans of this one, and none with the circle."""
        for query in circle:
            if isinstance(sources[query], tuple) and query not in self.unions:
                yield _Choice({**self.unions, query: sources[query]}, self.forbidden)
                yield _Choice(self.unions, self.forbidden | {(query, sources[query])})
                return
        for query in circle:
            if query not in self.unions:
                yield _Choice(self.unions, self.forbidden | {(query, sources[query])})

    def least(self, problem: ReuseProblem) -> dict[str, Source]:
        """The sources of least cost; circles through other unions are no matter."""
        names = [None, *problem.scratch]
        place = {name: number for number, name in enumerate(names)}
        weights = np.full((len(names), len(names)), np.inf)
        weights[0, 1:] = [
            np.inf if query in self.unions else its for query, its in problem.scratch.items()
        ]
        united: dict[str | None, Source] = {}
        for way in (*problem.unions, *problem.edges):
            if (way.query, way.source) in self.forbidden:
                continue
            if self.unions.get(way.query, way.source) != way.source:
                continue
            before = 0 if way.method == "union" else place[way.sources[0]]
            if way.cost < weights[before, place[way.query]]:
                weights[before, place[way.query]] = way.cost
                if before == 0:
                    united[way.query] = way.source
        asked = [place[query] for query in problem.scratch if query not in problem.virtual]
        apart = {
            place[query]: [place[its] for its in sources_in(union)]
            for query, union in self.unions.items()
        }
        tree = steiner_tree(weights, 0, asked, apart)
        return {
            query: names[tree[place[query]]] or united.get(query)
            for query in problem.scratch
            if place[query] in tree
        }
