"""The cost of plans of workloads: what A-Seq does per second, by the rates of the events.

An event of some item is added, in the table of each segment with this item, to the column before
it, for all rows: an *update* for each START in the window [qi2014]_, section 3.2. In a chopped query,
each START of a segment behind a cut takes a *snapshot* of the counts before it, one for each START of
the query, and each trigger takes a *product* for each START of the last segment (section 4.2). Behind
the second cut the counts before are themselves products, of every START of the segment before
with every START of the query: the k² of a segment in the middle.

Differs from the paper, whose cost analysis (section 4.2) has snapshots only.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from cepbench.errors import PlanError
from cepbench.patterns.model import Pattern
from cepbench.plans.segments import Segment, SequenceItems, table_key
from cepbench.plans.workload import WorkloadPlan
from cepbench.statistics.given import workload_statistics
from cepbench.statistics.model import Statistics
from cepbench.workloads.model import Workload

#: Query → after how many items it is chopped; other queries are not.
Cuts = Mapping[str, tuple[int, ...]]

#: A total over all matches: COUNT, SUM, MIN or MAX, of a variable, of an attribute.
Counter = tuple[str, str | None, str | None]

#: The same over some items of a query, with a place for the variable.
_Local = tuple[str, int | None, str | None]

_MATCHES: Counter = ("COUNT", None, None)

#: Times in units of that of an update, which is about 0.3 ns, as measured for the kernels of shared
#: counts with 10 to 300 active STARTs: only updates and sums are vectorized.
SNAPSHOT, PRODUCT, INNER_PRODUCT, SUM, EVENT, CONNECTION = 12.0, 8.0, 4.0, 1.0, 200.0, 500.0


@dataclass(frozen=True)
class SharingCost:
    """What a plan of a workload does per second.

    Attributes
    ----------
    updates : float
        Additions of a counter to the next one, for one START each.
    snapshots : float
        Counters written to snapshots.
    products : float
        Products of counters with those of snapshots, at triggers.
    inner_products : float
        The same for the snapshots of a segment behind the second cut.
    sums : float
        Counters that triggers of uncut queries add up.
    events : float
        Events that change a column, once for each.
    connections : float
        Snapshots, and triggers of chopped queries, once for each counter.
    """

    updates: float = 0.0
    snapshots: float = 0.0
    products: float = 0.0
    inner_products: float = 0.0
    sums: float = 0.0
    events: float = 0.0
    connections: float = 0.0

    @property
    def total(self) -> float:
        """In units of an update."""
        return (
            self.updates + SNAPSHOT * self.snapshots + PRODUCT * self.products
            + INNER_PRODUCT * self.inner_products + SUM * self.sums + EVENT * self.events
            + CONNECTION * self.connections
        )  # fmt: skip


class _Column(NamedTuple):
    """A column of a segment: events of its item per second, and the additions of each, by counter."""

    key: int
    rate: float
    additions: Mapping[_Local, int]


class _Piece(NamedTuple):
    """A segment of a query; ``keys`` are those of its table without and with shared prefixes."""

    keys: tuple[int, int]
    window: float
    columns: tuple[_Column, ...]


class SharingProblem:
    """A workload and its statistics as numbers, from which plans are costed.

    Parameters
    ----------
    workload : Workload
    statistics : mapping of str to Statistics
        Of every query, as :func:`cepbench.measure_statistics` gives them.

    Attributes
    ----------
    items : dict of str to SequenceItems
        Of the queries that are counted by segments; the cost of others depends on no plan.

    Raises
    ------
    StatisticsError
        If the statistics of a query are missing or insufficient.
    """

    def __init__(self, workload: Workload, statistics: Mapping[str, Statistics]) -> None:
        known = workload_statistics(workload, statistics)
        self.workload = workload
        self.items: dict[str, SequenceItems] = {}
        self._rates: dict[str, list[float]] = {}
        self._counters: dict[str, set[Counter]] = {}
        self._share: dict[str, float] = {}
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
        """That of a segment, see :class:`~cepbench.plans.segments.Segment`."""
        return self._segment(query, begin, end).signature

    def cost(self, cuts: Cuts, *, shares_prefixes: bool) -> SharingCost:
        """The cost of a plan with these cuts.

        Parameters
        ----------
        cuts : mapping of str to tuple of int
        shares_prefixes : bool
        """
        chains: dict[str, list[_Piece]] = {}
        windows: dict[int, float] = {}
        columns: dict[tuple[int, int], tuple[float, dict[_Local, int], str]] = {}
        for query, items in self.items.items():
            chain = chains[query] = []
            for begin, end in pairwise((0, *cuts.get(query, ()), len(items.names))):
                piece = self._piece(query, begin, end)
                chain.append(piece)
                table = piece.keys[shares_prefixes]
                # Rows stay for the longest window.
                windows[table] = max(windows.get(table, 0.0), piece.window)
                for column in piece.columns:
                    known = columns.setdefault((table, column.key), (column.rate, {}, query))
                    known[1].update(column.additions)
        updates = events = 0.0
        rows = {}
        for (table, _), (rate, additions, query) in columns.items():
            # The first column of a table comes first.
            if table not in rows:
                rows[table] = rate * windows[table] * self._share[query]
            updates += rate * sum(additions.values()) * rows[table]
            events += rate * len(additions)
        products = sums = triggers = 0.0
        numbers: dict[tuple[int, ...], int] = {}
        links: dict[int, tuple[float, float, float, set[_Local]]] = {}
        for query, chain in chains.items():
            names, end, link = self.items[query].names, 0, -1
            first = chain[0].keys[shares_prefixes]
            for left, right in pairwise(chain):
                table, its_rate = left.keys[shares_prefixes], right.columns[0].rate
                key = (link, table, left.columns[-1].key, right.keys[shares_prefixes])
                active = 0.0
                if link >= 0:
                    # Rows of some age, with the STARTs from before them that have not expired.
                    whole, shorter = windows[first], min(windows[first], windows[table])
                    share = shorter * (whole - shorter / 2) / (whole * windows[table])
                    active = rows[table] * rows[first] * share
                link = numbers.setdefault(key, len(numbers))
                end += len(left.columns)
                *_, counted = links.setdefault(link, (its_rate, rows[first], active, set()))
                counted.update(_local(c, names[:end]) for c in self._counters[query])
            asked = chain[-1].columns[-1].rate * len(self._counters[query])
            its_rows = chain[-1].columns[0].rate * chain[-1].window * self._share[query]
            if link < 0:
                sums += asked * its_rows
            else:
                products += asked * its_rows
                triggers += asked
        written = [
            (rate * len(its), starts, active) for rate, starts, active, its in links.values()
        ]
        return SharingCost(
            updates=updates,
            snapshots=sum(rate * starts for rate, starts, _ in written),
            products=products,
            inner_products=sum(rate * active for rate, _, active in written),
            sums=sums,
            events=events,
            connections=triggers + sum(rate for rate, *_ in written),
        )

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _segment(self, query: str, begin: int, end: int) -> Segment:
        items = self.items[query]
        cuts = [cut for cut in (begin, end) if 0 < cut < len(items.names)]
        return items.segments(cuts)[begin > 0]

    def _piece(self, query: str, begin: int, end: int) -> _Piece:
        at = (query, begin, end)
        if at not in self._pieces:
            self._pieces[at] = self._made(*at)
        return self._pieces[at]

    def _made(self, query: str, begin: int, end: int) -> _Piece:
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
            columns.append(_Column(key, self._rates[query][begin + place], additions))
        keys = [self._number((k, table_key(segment, shares_prefixes=k))) for k in (False, True)]
        return _Piece((keys[0], keys[1]), items.pattern.window.seconds, tuple(columns))


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


def sharing_cost(plan: WorkloadPlan, statistics: Mapping[str, Statistics]) -> SharingCost:
    """The cost of a plan.

    Parameters
    ----------
    plan : WorkloadPlan
    statistics : mapping of str to Statistics
        Of every query.

    Raises
    ------
    StatisticsError
        If the statistics of a query are missing or insufficient.
    """
    problem = SharingProblem(plan.workload, statistics)
    cuts = {query: tuple(its) for query, its in plan.cuts.items()}
    return problem.cost(cuts, shares_prefixes=plan.shares_prefixes)
