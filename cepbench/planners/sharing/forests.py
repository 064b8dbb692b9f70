"""FORESTS: sources, virtual queries, unions and join orders together."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np

from cepbench.costs.reuse import ReuseProblem, Sources
from cepbench.planners.sharing.chase import least_sources
from cepbench.planners.sharing.steiner import LESS, Forest, circle_in, without_unused
from cepbench.plans.reuse import Reuse, Source

#: Queries up to which all plans are searched; beyond, random changes that are tried.
MOST_QUERIES, BUDGET = 8, 200


def forests(problem: ReuseProblem, rng: np.random.Generator) -> Sources:
    """The sources of all queries at the least cost, each way with its cheapest join order.

    Up to :data:`MOST_QUERIES` queries the plan is optimal, by branch and bound: a plan may use any
    virtual query that is not decided yet at an equal share of its least cost, and any union as if
    its sources were always there; a least arborescence is the bound then. A virtual query that it uses is
    taken or left out; of a circle through unions each way is left out. Beyond, STEINER's plan is changed at random, a
    virtual query or a union more or less, :data:`BUDGET` times, and changes that make it cheaper stay.

    That an order is the cheapest of a way depends on nothing else, so that it is chosen before. Orders
    of patterns that would have more in common with each other are not searched: doing so by iterative
    search is patented (US 11,875,199).
    """
    forest = Forest(problem)
    forest.improve()
    if len(problem.scratch) - len(problem.virtual) <= MOST_QUERIES:
        return _optimal(problem, forest)
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


def _optimal(problem: ReuseProblem, forest: Forest) -> Sources:
    """The plan of least cost; ``forest`` has one to begin with."""
    best, cost = forest.sources, forest.cost
    number = count()
    start = _Bound(problem, frozenset(), frozenset(), frozenset())
    waiting = [(start.cost, next(number), start)]
    while waiting and waiting[0][0] < cost * LESS:
        _, _, bound = heapq.heappop(waiting)
        if not bound.undecided and not bound.circle:
            found = without_unused(bound.sources, problem.virtual)
            if problem.cost(found) < cost:
                best, cost = found, problem.cost(found)
            continue
        for each in bound.branches():
            if each.cost < cost * LESS:
                heapq.heappush(waiting, (each.cost, next(number), each))
    return best


@dataclass(frozen=True)
class _Bound:
    """The plans that have some virtual queries, and not others, nor some ways.

    Attributes
    ----------
    problem : ReuseProblem
    taken, left_out : frozenset of str
        Virtual queries.
    forbidden : frozenset of (query, source)
        Ways.
    """

    problem: ReuseProblem
    taken: frozenset[str]
    left_out: frozenset[str]
    forbidden: frozenset[tuple[str, Source]]

    @cached_property
    def _free(self) -> dict[str, float]:
        """The virtual queries that are not decided → the share of its cost that each use pays."""
        enters, uses = {}, dict.fromkeys(self.problem.scratch, 0)
        for name in self.problem.virtual - self.taken - self.left_out:
            enters[name] = self.problem.scratch[name]
        for edge in self.problem.edges:
            source = edge.sources[0]
            if edge.query not in self.left_out and source not in self.left_out:
                uses[source] += 1
                if edge.query in enters:
                    enters[edge.query] = min(enters[edge.query], edge.cost)
        return {name: its / max(uses[name], 1) for name, its in enters.items()}

    @cached_property
    def _least(self) -> tuple[dict[str, Source], float]:
        problem, free = self.problem, self._free
        scratch = {
            query: 0.0 if query in free else its
            for query, its in problem.scratch.items()
            if query not in self.left_out
        }
        united: dict[str, Reuse] = {}
        for union in problem.unions:
            is_allowed = (union.query, union.source) not in self.forbidden
            if is_allowed and union.cost < scratch[union.query]:
                scratch[union.query] = union.cost
                united[union.query] = union
        edges, costs = [], {}
        for edge in problem.edges:
            source = edge.sources[0]
            if (
                {source, edge.query} <= scratch.keys()
                and edge.query not in free
                and (edge.query, source) not in self.forbidden
            ):
                its = Reuse(edge.query, source, cost=edge.cost + free.get(source, 0.0))
                edges.append(its)
                costs[source, edge.query] = its.cost
        sources: dict[str, Source] = {}
        cost = 0.0
        for query, source in least_sources(scratch, edges).items():
            cost += scratch[query] if source is None else costs[source, query]
            is_union = source is None and query in united
            sources[query] = united[query].source if is_union else source
        return sources, cost

    @property
    def sources(self) -> dict[str, Source]:
        """The plan of the bound, which may have circles."""
        return self._least[0]

    @property
    def cost(self) -> float:
        """A lower bound of all these plans."""
        return self._least[1]

    @cached_property
    def undecided(self) -> list[str]:
        """The virtual queries that it uses and that are not decided."""
        used = {*self.sources.values()}
        return [name for name in self.problem.scratch if name in self._free and name in used]

    @cached_property
    def circle(self) -> list[str]:
        """Queries that are computed from each other."""
        return circle_in(self.sources)

    def branches(self) -> Iterator[_Bound]:
        """Together all these plans, but none that has the circle."""
        if self.circle:
            for query in self.circle:
                way = (query, self.sources[query])
                yield _Bound(self.problem, self.taken, self.left_out, self.forbidden | {way})
            return
        name = max(self.undecided, key=self._free.__getitem__)
        yield _Bound(self.problem, self.taken | {name}, self.left_out, self.forbidden)
        yield _Bound(self.problem, self.taken, self.left_out | {name}, self.forbidden)
