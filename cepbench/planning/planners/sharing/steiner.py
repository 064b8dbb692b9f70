"""STEINER: virtual queries and unions, where they make a plan cheaper, one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from cepbench.planning.costs.reuse import ReuseProblem, Sources
from cepbench.planning.planners.sharing.chase import least_sources
from cepbench.planning.plans.reuse import Reuse, Source, circle_in, sources_in

#: By what share a plan has to be cheaper, so that rounding does not decide.
LESS = 1.0 - 1e-9


def steiner(problem: ReuseProblem, rng: np.random.Generator) -> Sources:
    """Add virtual queries to the plan of CHASE as long as each makes it cheaper.

    The plan of least cost is a directed Steiner tree, whose terminals are the queries, the root is
    the ground of CHASE, and the other vertices are virtual queries [zhang2017]_. As this is
    NP-hard, the virtual query is added that saves most if all others stay, then the least arborescence
    over all that are chosen decides; at the end those are dropped without which it is cheaper. So are
    unions of several sources chosen, each as an edge from the ground. The cost is never above that of
    CHASE.
    """
    forest = Forest(problem)
    forest.improve()
    return forest.sources


class Forest:
    """A plan of least cost for chosen virtual queries and unions."""

    def __init__(self, problem: ReuseProblem) -> None:
        self.problem = problem
        self.virtual: frozenset[str] = frozenset()
        #: Query → the union chosen for it.
        self.unions: Mapping[str, Reuse] = {}
        self.sources: dict[str, Source] = {}
        self.cost = np.inf
        self._from: dict[str, list[Reuse]] = {}
        self._into: dict[str, list[Reuse]] = {}
        for edge in problem.edges:
            self._from.setdefault(edge.sources[0], []).append(edge)
            self._into.setdefault(edge.query, []).append(edge)
        self.try_(self.virtual, self.unions)

    def try_(self, virtual: frozenset[str], unions: Mapping[str, Reuse]) -> bool:
        """Choose these if the plan is cheaper then; whether it is."""
        sources = self._least(virtual, unions)
        if sources is None:
            return False
        cost = self.problem.cost(sources)
        if cost >= self.cost * LESS:
            return False
        used = {source for its in sources.values() for source in sources_in(its)}
        self.virtual, self.unions = virtual & used, unions
        self.sources, self.cost = sources, cost
        return True

    def _least(
        self, virtual: frozenset[str], unions: Mapping[str, Reuse]
    ) -> dict[str, Source] | None:
        """The cheapest plan without virtual queries that nobody uses; None if it has a circle."""
        left_out = self.problem.virtual - virtual
        scratch = {q: its for q, its in self.problem.scratch.items() if q not in left_out}
        scratch |= {query: its.cost for query, its in unions.items()}
        edges = [
            edge
            for edge in self.problem.edges
            if edge.query in scratch
            and edge.query not in unions
            and edge.sources[0] in scratch
            and not (edge.sources[0] in unions and edge.query in unions[edge.sources[0]].sources)
        ]
        found: dict[str, Source] = {**least_sources(scratch, edges)}
        found |= {query: its.source for query, its in unions.items()}
        if circle_in(found):
            return None
        return without_unused(found, self.problem.virtual)

    def improve(self) -> None:
        """Add virtual queries and unions that make the plan cheaper, and drop others."""
        is_better = True
        while is_better:
            is_better = False
            gains = {name: self._gain(name) for name in self._others()}
            for name in sorted(gains, key=gains.__getitem__, reverse=True):
                if self._gain(name) > 0.0 and self.try_(self.virtual | {name}, self.unions):
                    is_better = True
        for name in sorted(self.virtual):
            self.try_(self.virtual - {name}, self.unions)
        for union in sorted(self.problem.unions, key=self._saved_by, reverse=True):
            if self._saved_by(union) > 0:
                self.try_(self.virtual, {**self.unions, union.query: union})

    def _others(self) -> Iterator[str]:
        left = self.problem.virtual - self.virtual
        return (name for name in self.problem.scratch if name in left)

    def _gain(self, name: str) -> float:
        """What another virtual query saves if all sources stay but those that it improves."""
        enters = min(
            [self.problem.scratch[name]]
            + [way.cost for way in self._into.get(name, ()) if way.sources[0] in self.sources]
        )
        saved = (
            max(0.0, self._cost_of(way.query) - way.cost)
            for way in self._from.get(name, ())
            if way.query in self.sources
        )
        return sum(saved) - enters

    def _cost_of(self, query: str) -> float:
        source = self.sources[query]
        edge = None if source is None else self.problem.edge(source, query)
        return self.problem.scratch[query] if edge is None else edge.cost

    def _saved_by(self, union: Reuse) -> float:
        return self._cost_of(union.query) - union.cost


def without_unused(sources: Sources, virtual: Collection[str]) -> dict[str, Source]:
    """The plan without virtual queries that are the source of none."""
    found = dict(sources)
    while True:
        used = {source for its in found.values() for source in sources_in(its)}
        unused = [query for query in found if query in virtual and query not in used]
        if not unused:
            return found
        for query in unused:
            del found[query]
