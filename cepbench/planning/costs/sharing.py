"""The cost of plans of workloads: what A-Seq does per second, by the rates of the events.

Queries that share nothing may run by the window's product instead, and of a stream of known length
what is opened costs, too; how long a planner may look for a better plan then follows from that.

An event of some item is added, in the table of each segment with this item, to the column before
it, for all rows: an *update* for each START in the window [qi2014]_, section 3.2. In a chopped query,
what comes before the last segment is an entry of a log, and so is each START of this segment. Lanes
follow the log when a value is asked for, and again from the first active START on when all of
theirs have expired. Each trigger takes a *product* for each START of the last segment (section 4.2).

Differs from the paper, whose cost analysis (section 4.2) has a snapshot of all active STARTs instead,
and no products.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeVar

from cepbench.errors import PlanError
from cepbench.kernels.counts import LANES
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.segments import Segment, SequenceItems, table_key
from cepbench.planning.statistics.given import workload_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload

_T = TypeVar("_T")

#: Query → after how many items it is chopped; other queries are not.
Cuts = Mapping[str, tuple[int, ...]]

#: A total over all matches: COUNT, SUM, MIN or MAX, of a variable, of an attribute.
Counter = tuple[str, str | None, str | None]

#: The same over some items of a query, with a place for the variable.
_Local = tuple[str, int | None, str | None]

_MATCHES: Counter = ("COUNT", None, None)

#: Seconds of an update.
UPDATE = 0.25e-9


class Units(NamedTuple):
    """Times of terms of costs, in units of that of an update."""

    followed: float
    product: float
    sum: float
    event: float
    alone: float
    connection: float


#: Where A-Seq counts all queries, what a call takes is in the terms of its events; else it has terms of its own. Both are as
#: ``benchmarks/bench_sharing.py`` fits them.
BY_A_SEQ = Units(160.0, 1.0, 3.0, 720.0, 1290.0, 3000.0)
BESIDE_OTHERS = Units(140.0, 1.0, 1.0, 380.0, 570.0, 800.0)
WINDOWED, SCANNED, TOGETHER, OPENED, JOINED = 730.0, 4.4, 180.0, 9.5e6, 1.13e7

#: Seconds that it takes to sample the statistics of a query and find what it has in common with others, and
#: to cost a plan, for each query.
PREPARING, COSTING = 2e-3, 1.5e-5

#: The share of the time without a plan that planning may take, and that of the time that the best plan so far
#: saves.
SHARE, SAVED = 0.02, 0.25


@dataclass(frozen=True)
class SharingCost:
    """What a plan of a workload does per second."""

    #: Additions of a counter to the next one, for one START each.
    updates: float = 0.0
    #: Entries of logs that lanes follow, each of which changes
    #: :data:`~cepbench.kernels.counts.LANES` counters.
    followed: float = 0.0
    #: Products of counters with those of lanes, at triggers.
    products: float = 0.0
    #: Counters that triggers of uncut queries add up.
    sums: float = 0.0
    #: Events that change a column of a table that is shared or behind a cut, once for each.
    events: float = 0.0
    #: The same of queries that share nothing, and run by themselves.
    alone: float = 0.0
    #: Triggers of chopped queries, once for each counter.
    connections: float = 0.0
    #: Events of queries that share nothing and are counted by the window's product, once for each
    #: counter.
    windowed: float = 0.0
    #: Events of the stream, once for each query that shares nothing, and once for all others together.
    scanned: float = 0.0
    together: float = 0.0
    #: Queries that share nothing, and others, of a stream of known length.
    opened: float = 0.0
    joined: float = 0.0

    #: Whether queries that share nothing may run by another method.
    is_beside_others: bool = False

    @property
    def total(self) -> float:
        """In units of an update."""
        units = BESIDE_OTHERS if self.is_beside_others else BY_A_SEQ
        return (
            self.updates + units.followed * self.followed + units.product * self.products
            + units.sum * self.sums + units.event * self.events + units.alone * self.alone
            + units.connection * self.connections + WINDOWED * self.windowed + SCANNED * self.scanned
            + TOGETHER * self.together + OPENED * self.opened + JOINED * self.joined
        )  # fmt: skip


class _Column(NamedTuple):
    """A column of a segment: events of its item per second, and the additions of each, by counter."""

    key: int
    rate: float
    additions: Mapping[_Local, int]
    queries: tuple[str, ...]  #: that have it, in the order of the workload

    def shared_with(self, other: _Column) -> _Column:
        """The column of both, of a later query too."""
        additions = {**self.additions, **other.additions}
        return self._replace(additions=additions, queries=self.queries + other.queries)


class _Left(NamedTuple):
    """What comes before last segments: active STARTs, triggers in the window, entries per second."""

    active: float
    triggers: list[float]
    entries: dict[Hashable, float]


class _Piece(NamedTuple):
    """A segment of a query; ``keys`` are those of its table without and with shared prefixes."""

    keys: tuple[int, int]
    window: float
    columns: tuple[_Column, ...]


class SharingProblem:
    """A workload and its statistics as numbers, from which plans are costed.

    ``windowed``: queries that share nothing run by the window's product. ``length``: that of the stream in
    seconds (or ticks), from which it follows how many plans may be costed.

    Raises StatisticsError if the statistics of a query are missing or insufficient.
    """

    def __init__(
        self,
        workload: Workload,
        statistics: Mapping[str, Statistics],
        *,
        windowed: bool = False,
        length: float | None = None,
    ) -> None:
        self._windowed, self._length = windowed, length or math.inf
        #: Plans costed so far, and the least cost among them.
        self.costed, self._least = 0, math.inf
        known = workload_statistics(workload, statistics)
        self.workload = workload
        #: Of the queries that are counted by segments; the cost of others depends on no plan.
        self.items: dict[str, SequenceItems] = {}
        self._rates: dict[str, list[float]] = {}
        self._counters: dict[str, set[Counter]] = {}
        self._share: dict[str, float] = {}
        self._stream_rate = max((its.stream_rate or 0.0 for its in known.values()), default=0.0)
        for query, pattern in workload.patterns.items():
            try:
                self.items[query] = SequenceItems(query, pattern)
            except PlanError:
                continue
            self._measure(query, pattern, known[query])
        self._numbers: dict[Hashable, int] = {}
        self._pieces: dict[tuple[str, int, int], _Piece] = {}

    def _measure(self, query: str, pattern: Pattern, statistics: Statistics) -> None:
        names, seconds = self.items[query].names, pattern.window.seconds
        self._rates[query] = [
            statistics.cardinality(name, seconds) / seconds * statistics.selectivity(name, name)
            if seconds
            else 0.0
            for name in names
        ]
        self._counters[query] = counters_of(pattern)
        self._share[query] = 1.0
        if self.items[query].pattern.equivalences:
            # Other conditions on the two items make this less.
            pairs = [statistics.selectivity(a, b) for a, b in pairwise(names)]
            self._share[query] = max(pairs, default=1.0)

    def signature(self, query: str, begin: int, end: int) -> Hashable:
        """That of a segment, see :class:`~cepbench.planning.plans.segments.Segment`."""
        return self._segment(query, begin, end).signature

    @cached_property
    def unshared(self) -> float:
        """The total cost of the plan that shares nothing."""
        return self.cost({}, shares_prefixes=False).total

    def affordable(self, plans: Iterable[_T]) -> Iterator[_T]:
        """What plans are made of, as long as costing them takes no longer than may be gained."""
        for its in plans:
            worth = SHARE * self.unshared + SAVED * (self.unshared - self._least)
            if self.costed * COSTING * len(self.items) > worth * UPDATE * self._length:
                return
            yield its

    def cost(self, cuts: Cuts, *, shares_prefixes: bool) -> SharingCost:
        """The cost of a plan with these cuts."""
        found = self._cost(cuts, shares_prefixes=shares_prefixes)
        self.costed += 1
        self._least = min(self._least, found.total)
        return found

    def _cost(self, cuts: Cuts, *, shares_prefixes: bool) -> SharingCost:
        last: dict[str, _Piece] = {}
        lefts: dict[Hashable, _Left] = {}
        windows: dict[int, float] = {}
        columns: dict[tuple[int, int], _Column] = {}
        asked_of: dict[str, float] = {}
        products = connections = followed = 0.0
        for query, items in self.items.items():
            cut = max(cuts.get(query, ()), default=0)
            piece = last[query] = self._piece(query, cut, len(items.names))
            table = piece.keys[shares_prefixes]
            windows[table] = max(windows.get(table, 0.0), piece.window)
            for column in piece.columns:
                its = columns.setdefault((table, column.key), column)
                if its is not column:
                    columns[table, column.key] = its.shared_with(column)
            counters = self._counters[query]
            triggers, begun = piece.columns[-1].rate, piece.columns[0].rate
            asked = triggers * len(counters) * begun * piece.window * self._share[query]
            if not cut:
                asked_of[query] = asked
                continue
            products += asked
            connections += triggers * len(counters)
            before = self._piece(query, 0, cut)
            start = before.keys[shares_prefixes]
            # Rows stay for the longest window.
            windows[start] = max(windows.get(start, 0.0), before.window)
            active = before.columns[0].rate * before.window * self._share[query]
            left = lefts.setdefault((start, before.window), _Left(active, [], {}))
            left.triggers.append(triggers * before.window)
            for place, column in enumerate(before.columns):
                for its_counter, number in column.additions.items():
                    # An event that begins a match has an entry, too.
                    key = column.key, its_counter
                    left.entries[key] = column.rate * (number + (place == 0))
            for counter in counters:
                local = _local(counter, items.names[:cut])
                left.entries[table, before.columns[-1].key, local] = begun
        for left in lefts.values():
            passes = min(1 + left.active / LANES, sum(left.triggers))
            followed += passes * sum(left.entries.values())
        updates = events = alone = sums = windowed = 0.0
        opened = 0
        for query, piece in last.items():
            table = piece.keys[shares_prefixes]
            its_columns = [columns[table, column.key] for column in piece.columns]
            runs_alone = not cuts.get(query) and all(len(c.queries) == 1 for c in its_columns)
            opened += runs_alone
            if runs_alone and self._windowed:
                windowed += sum(c.rate for c in its_columns) * len(self._counters[query])
                continue
            sums += asked_of.get(query, 0.0)
            window = piece.window if runs_alone else windows[table]
            rows = piece.columns[0].rate * window * self._share[query]
            for shared in its_columns:
                if runs_alone:
                    # Each total has counters of its own.
                    total = shared.rate * len(self._counters[query])
                    updates += total * min(shared.additions.values()) * rows
                    alone += total
                elif shared.queries[0] == query:
                    # What several queries share is of the first one.
                    updates += shared.rate * sum(shared.additions.values()) * rows
                    events += shared.rate * len(shared.additions)
        found = SharingCost(updates, followed, products, sums, events, alone, connections)
        if not self._windowed:
            return found
        joined = len(last) - opened
        return replace(
            found,
            windowed=windowed,
            scanned=self._stream_rate * opened,
            together=self._stream_rate * (joined > 0),
            opened=opened / self._length,
            joined=joined / self._length,
            is_beside_others=True,
        )

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _segment(self, query: str, begin: int, end: int) -> Segment:
        items = self.items[query]
        cuts = [cut for cut in (begin, end) if 0 < cut < len(items.names)]
        return items.segments(cuts)[begin > 0]

    def _piece(self, query: str, begin: int, end: int) -> _Piece:
        at = (query, begin, end)
        if at in self._pieces:
            return self._pieces[at]
        items, segment = self.items[query], self._segment(query, begin, end)
        columns = []
        for place, prefix in enumerate(segment.prefixes()):
            # The matches that end with the events of a last item are counted apart.
            is_total = begin + place + 1 == len(items.names)
            own = {_local(c, segment.names[: place + 1]) for c in self._counters[query]}
            additions = {
                # An element of a set adds to what it continues, and its value to what that counts.
                its: (place > 0) + prefix[-1].is_set * (1 + (its[1] == place))
                for its in own
            }
            key = self._number((segment.start, prefix, is_total))
            rate = self._rates[query][begin + place]
            columns.append(_Column(key, rate, additions, (query,)))
        keys = [self._number((k, table_key(segment, shares_prefixes=k))) for k in (False, True)]
        piece = _Piece((keys[0], keys[1]), items.pattern.window.seconds, tuple(columns))
        return self._pieces.setdefault(at, piece)


def counters_of(pattern: Pattern) -> set[Counter]:
    """What is counted for the aggregates of a query, the matches among it.

    SUM and AVG are of the sum and the number of values.
    """
    plain = {variable.name for variable in pattern.positive if not variable.is_set}
    found: set[Counter] = {_MATCHES}
    for its in pattern.aggregates:
        function, variable, attribute = its.function, its.variable, its.attribute
        if function in ("COUNT", "SUM", "AVG") and (attribute or variable not in (None, *plain)):
            found.add(("COUNT", variable, attribute))
        if function != "COUNT":
            found.add(("SUM" if function == "AVG" else function, variable, attribute))
    return found


def _local(counter: Counter, names: Sequence[str]) -> _Local:
    """A counter over some items: with a place for the variable, or the number of their matches."""
    kind, variable, attribute = counter
    if variable in names:
        return kind, names.index(variable), attribute
    return "MAX" if kind in ("MIN", "MAX") else "COUNT", None, None
