"""The costs of E-Cube: of a query by itself, and of one from the matches of another [liu2011]_.

Equations (5) to (18) with Table I; unit costs are 1. The cost of insertion (3) is the same for all
plans and left out. Decided where the paper has misprints:

- (6), (16): a NOT keeps the share 1 − Pt·P·Pt·P over the two sides of its type.
- (8): an item that is inserted is joined with both of its neighbours; logarithms are of base 2.
- (10) is the size of a result; the cost of the check is Cct for each match.
- (16): the second factor of the last event's join is Pt·P, as in (5).
- (17) is Ccompute(qi|qj), of the more general query.

A cost is of as many events as the longest window of the workload has; those of queries with shorter
windows, which the paper leaves out, are multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cepbench.patterns.model import Variable
from cepbench.planning.costs.query_terms import QueryTerms
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.reuse import Reuse
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload

#: Table I: to check the type of an event, and to compare a time stamp with another one.
TYPE, TIME = 1.0, 1.0


@dataclass(frozen=True)
class Chain:
    """A sequence as numbers."""

    #: Events of each item in a window: the cardinality of S. Length n.
    sizes: Sequence[float]
    #: Pt·P between each two neighbours. Length n − 1.
    links: Sequence[float]
    #: The share of matches that the NOTs before each item, and behind the last one, keep. Length n+1.
    kept: Sequence[float]

    def joins(self) -> Iterator[float]:
        """The size of each join, from the first item on; the sum is (5), with NOT (6)."""
        size = self.sizes[0]
        last = len(self.links)
        for number, link in enumerate(self.links, 1):
            size *= self.sizes[number] * link * self.kept[number]
            if number == last:
                size *= self._ends
            yield size

    @property
    def cost(self) -> float:
        """Ccompute of (5) and (6)."""
        return math.fsum(self.joins())

    @property
    def results(self) -> float:
        """The number of matches in a window: the cardinality of R."""
        *_, size = (self.sizes[0] * self._ends, *self.joins())
        return size

    def missing(self, share: float, gap: int) -> float:
        """The cost of the matches that a more specific query has not, from the last item on (16).

        These are a share of all; the two queries first differ before the item number ``gap``.
        """
        size, total = self.sizes[-1], 0.0
        differs = min(max(gap - 1, 0), len(self.links) - 1)
        for number in range(len(self.links) - 1, -1, -1):
            size *= self.sizes[number] * self.links[number] * self.kept[number + 1]
            if number == differs:
                size *= share
            total += size
        return total

    @property
    def _ends(self) -> float:
        return self.kept[0] * self.kept[-1]


class _Query(QueryTerms):
    """A branch of a query with its sequences."""

    def link(self, one: str, other: str) -> float:
        """Pt·P of two variables."""
        time = self.statistics.time_selectivity(one, other) if self.in_order else 1.0
        return time * self.selectivity(one, other)

    def share(self, variables: Sequence[Variable], sides: Sequence[str]) -> float:
        """What NOTs between some neighbours keep."""
        return math.prod(
            1.0 - math.prod(self.link(variable.name, side) for side in sides)
            for variable in variables
        )

    def chain(self, places: Sequence[int], gaps: Sequence[Sequence[Variable]]) -> Chain:
        """Some of the items, and NOTs before each of them and behind the last one."""
        names = [self.names[k] for k in places]
        sides = [names[max(k - 1, 0) : k + 1] for k in range(len(names) + 1)]
        return Chain(
            [self.sizes[name] for name in names],
            [self.link(a, b) for a, b in pairwise(names)],
            [self.share(its, side) for its, side in zip(gaps, sides, strict=True)],
        )

    @property
    def whole(self) -> Chain:
        """All items."""
        return self.chain(range(len(self.names)), self.negated)

    def added(self, general: _Query, embedding: Sequence[int]) -> list[list[Variable]]:
        """The NOTs before each item that a more general query does not have in the same place."""
        found = [list(its) for its in self.negated]
        for number, theirs in enumerate(general.negated):
            place = embedding[number] if number < len(embedding) else len(self.names)
            types = {variable.type for variable in theirs}
            found[place] = [variable for variable in found[place] if variable.type not in types]
        return found


class ECube:
    """The cost model ``e-cube`` of a workload, by the statistics of every query.

    Plans and evaluator are not read, as the paper joins in written order. Pt is 1/2 where statistics have no
    ``time_selectivities``.

    A query with OR is the sum of its branches; without order, Pt is 1; a Kleene set is one event; a
    query from several sources costs what none of them has joined, as in (17). The paper has none of these.
    """

    def __init__(
        self,
        workload: Workload,
        statistics: Mapping[str, Statistics],
        plans: Mapping[str, AnyPlan],
        evaluator: str | None = None,
    ) -> None:
        self._queries = _Query.of_queries(workload, statistics)
        self._wholes = {
            query: [branch.whole for branch in branches]
            for query, branches in self._queries.items()
        }
        self._longest = max(its[0].window for its in self._queries.values())

    def scratch(self, query: str) -> float:
        """Ccompute of a query by itself (5), (6)."""
        whole = math.fsum(chain.cost for chain in self._wholes[query])
        return whole * self._per(query)

    def matches(self, query: str) -> float:
        """The expected number of matches of a query per second."""
        window = self._queries[query][0].window or math.inf
        return math.fsum(chain.results for chain in self._wholes[query]) / window

    def reused(self, way: Reuse) -> float:
        """Ccompute of a query from the matches of another one (7) to (18)."""
        if way.method == "union":
            return self._united(way)
        source, query = self._queries[way.sources[0]][0], self._queries[way.query][0]
        # Matches of the source in a window of the query.
        windows = query.window / source.window if source.window else 1.0
        found = self._wholes[way.sources[0]][0].results * windows
        priced = self._down if way.method == "down" else self._up
        return priced(way, found, source, query) * self._per(way.query)

    def _united(self, way: Reuse) -> float:
        """Of a query from several: by (17) what none of their joins has, else from the best alone."""
        if way.change != "concept":
            return min(map(self.reused, way.parts))
        joined = math.fsum(self.scratch(source) for source in way.sources)
        return max(self.scratch(way.query) - joined, 0.0)

    def _per(self, query: str) -> float:
        window = self._queries[query][0].window
        return self._longest / window if window else 1.0

    def _down(self, way: Reuse, found: float, general: _Query, specific: _Query) -> float:
        """Of a query from ``found`` matches of a more general one (7) to (14)."""
        extended, results = self._extended(found, way, general, specific)
        if not _reads(way, general, specific):
            return extended
        if way.change not in ("pattern", "both"):
            return found * TYPE * len(general.names) + extended  # (13)
        # (14): the pattern first, or the concepts.
        by_pattern = extended + results * TYPE * len(specific.names)
        fewer = specific.chain(way.embedding, general.negated).results
        by_concept = found * TYPE * len(general.names)
        by_concept += self._extended(min(found, fewer), way, general, specific)[0]
        return min(by_pattern, by_concept)

    def _extended(
        self, size: float, way: Reuse, general: _Query, specific: _Query
    ) -> tuple[float, float]:
        """The cost of adding items and NOTs to ``size`` matches, and the matches then."""
        names, places = specific.names, [-1, *sorted(way.embedding), len(specific.names)]
        added = specific.added(general, way.embedding)
        cost = 0.0
        inside = {b for a, b in pairwise(places) if b == a + 1}
        for is_first in (True, False):
            for gap, variables in enumerate(added):
                if (gap in inside) is is_first and variables:
                    cost += size * TIME * len(variables)  # (10), also for (11) and (12)
                    size *= specific.share(variables, names[max(gap - 1, 0) : gap + 1])
            if is_first:
                for left, right in pairwise(places):
                    if right > left + 1:
                        more, size = self._inserted(size, left, right, specific)
                        cost += more
        return cost, size

    def _inserted(self, size: float, left: int, right: int, query: _Query) -> tuple[float, float]:
        """The cost of joining ``size`` matches with the items between two places, and the matches."""
        run = range(left + 1, right)
        chain = query.chain(run, [()] * (len(run) + 1))
        before = 1.0 if left < 0 else query.link(query.names[left], query.names[run[0]])
        is_last = right == len(query.names)
        after = 1.0 if is_last else query.link(query.names[run[-1]], query.names[right])
        cost = size + chain.results
        if len(run) > 1:
            cost += chain.cost
            # (9): the matches of the run are in the order of its last item.
            cost += _sorting(chain.results if is_last else size)
            candidates = size * chain.results * (before if is_last else after)
            checked = TIME * candidates if left >= 0 and not is_last else 0.0
            return cost + candidates + checked, size * chain.results * before * after
        joined = size * chain.results * before * after
        return cost + joined + (0.0 if is_last else _sorting(size)), joined  # (7), (8)

    def _up(self, way: Reuse, found: float, specific: _Query, general: _Query) -> float:
        """Of a query from ``found`` matches of a more specific one (16) to (18)."""
        own = general.whole
        if way.change not in ("pattern", "both"):
            return max(own.cost - specific.whole.cost, 0.0)  # (17)
        share, gap = self._share_of_missing(way, specific, general)
        if not _reads(way, general, specific):
            return found * TYPE * len(specific.names) + own.missing(share, gap)  # (16)
        # (18): the pattern first, or the concepts.
        between = specific.chain(way.embedding, general.negated)
        by_pattern = found * TYPE * len(specific.names) + between.missing(share, gap)
        by_pattern += max(own.cost - between.cost, 0.0)
        wider = self._with_concepts(way, specific, general)
        by_concept = max(wider.cost - specific.whole.cost, 0.0)
        by_concept += max(wider.results, found) * TYPE * len(specific.names) + own.missing(
            share, gap
        )
        return min(by_pattern, by_concept)

    def _share_of_missing(self, way: Reuse, specific: _Query, general: _Query) -> tuple[float, int]:
        """The share of a query's matches that a more specific one has not (15), and where they differ."""
        names, places = specific.names, [-1, *sorted(way.embedding), len(specific.names)]
        share, gaps = 1.0, []
        for number, (left, right) in enumerate(pairwise(places)):
            if right > left + 1:
                run = names[max(left, 0) : right + 1]
                share *= math.prod(specific.link(a, b) for a, b in pairwise(run))
                gaps.append(number)
        for place, variables in enumerate(specific.added(general, way.embedding)):
            if variables and place in (0, *way.embedding, len(names)):
                share *= specific.share(variables, names[max(place - 1, 0) : place + 1])
                gaps.append(sum(its < place for its in way.embedding))
        return 1.0 - share, min(gaps, default=0)

    def _with_concepts(self, way: Reuse, specific: _Query, general: _Query) -> Chain:
        """The more specific query with the types of the more general one."""
        whole, own = specific.whole, general.whole
        sizes, links = list(whole.sizes), list(whole.links)
        for number, place in enumerate(way.embedding):
            sizes[place] = own.sizes[number]
            if number and way.embedding[number - 1] == place - 1:
                links[place - 1] = own.links[number - 1]
        return Chain(sizes, links, whole.kept)


def _reads(way: Reuse, general: _Query, specific: _Query) -> bool:
    """Whether events of the more general query's matches may not be those of the more specific one."""
    return way.change in ("condition", "nothing") or any(
        item.type != specific.items[place].type
        for item, place in zip(general.items, way.embedding, strict=True)
    )


def _sorting(size: float) -> float:
    return size * math.log2(size) if size > 1.0 else 0.0
