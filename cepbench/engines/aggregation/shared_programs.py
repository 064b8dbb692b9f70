"""Workloads as programs of the kernel that counts their matches with counters in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from cepbench.engines.aggregation.kernels.shared_counts import tables
from cepbench.engines.aggregation.semirings import Total
from cepbench.engines.aggregation.sequences import CountedSequence
from cepbench.engines.sequence_counts.kernels.tables import spans_of, table_of
from cepbench.patterns.model import Clause
from cepbench.planning.plans.segments import Segment, Step

#: Numbers up to here can be added without overflow.
_LIMIT = float(2**62)


class Symbol(NamedTuple):
    """Events of a type that satisfy conditions on the event alone."""

    type: str | None  #: None for any
    clauses: tuple[Clause, ...]


class Weight(NamedTuple):
    """What an event adds to a match: its value, or 1 if it has one."""

    kind: str  #: COUNT, SUM, AVG, MIN or MAX
    attribute: str


class _Pick(NamedTuple):
    """The item of a segment of which a total picks an event, and the weight of the event."""

    item: int
    weight: Weight | None


class _Use(Enum):
    """Which histories a column has, and what reads it."""

    CONTINUED = auto()  #: those before the current timestamp, which later events go on from
    SUMMED = auto()  #: all so far, of which a value is the sum
    COMPLETED = auto()  #: those that the current event completes, likewise


class _Column(NamedTuple):
    """What a column counts: histories of some items."""

    steps: tuple[Step, ...]
    pick: _Pick | None
    use: _Use


class _Link(NamedTuple):
    left: int
    column: _Column
    right: int


class _Operation(NamedTuple):
    symbol: int
    table: int
    target: _Column
    source: _Column | None
    weight: Weight | None
    order: int


@dataclass(frozen=True)
class CountedQuery:
    """A query whose matches are counted with counters in common."""

    sequence: CountedSequence
    segments: tuple[Segment, ...]

    @property
    def window(self) -> int:
        """The length of its window, in ticks."""
        return self.sequence.pattern.window.length

    @property
    def places(self) -> list[int]:
        """How many items come before each segment."""
        return [*accumulate((len(its.steps) for its in self.segments[:-1]), initial=0)]

    @property
    def before(self) -> tuple[tuple[Step, ...], tuple[str, ...]]:
        """Steps and names of all segments before the last one."""
        listed = self.segments[:-1]
        return (
            tuple(step for its in listed for step in its.steps),
            tuple(name for its in listed for name in its.names),
        )

    def symbols(self, flags: int) -> list[Symbol]:
        """The events that have some flags."""
        passing = self.sequence.layout.of_events.passing
        return [Symbol(its.type, its.clauses) for its in passing if its.flag & flags]


class SharedProgram:
    """The counters of several totals of the queries of a workload, in the same semiring."""

    def __init__(
        self,
        demands: Sequence[tuple[CountedQuery, Total]],
        *,
        shares_prefixes: bool,
        scope: str,
        is_float: bool,
    ) -> None:
        self._shares_prefixes = shares_prefixes
        self._symbols: dict[object, int] = {}
        self.symbols: list[Symbol] = []
        self._weights: dict[Weight, int] = {}
        self._steps: dict[Step, tuple[list[int], list[int], list[int]]] = {}
        self._tables: dict[object, int] = {}
        self._windows: list[int] = []
        self._begins: list[list[int]] = []
        #: Of tables, and of lefts by their bitwise negations.
        self._columns: dict[int, dict[_Column, None]] = {}
        #: Their numbers by the table and window of their starts.
        self._lefts: dict[tuple[int, int], int] = {}
        self._operations: list[_Operation] = []
        self._links: dict[_Link, int] = {}
        self._levels = max(
            max(*(len(s.steps) for s in query.segments), len(query.before[0]))
            for query, _ in demands
        )
        self.is_maximum = demands[0][1].is_maximum
        self.dtype = demands[0][1].dtype(is_float=is_float)
        self._final = _Use.SUMMED if scope == "window" else _Use.COMPLETED
        self._zero, self._one = demands[0][1].units(is_float=is_float)
        chains = [self._chain(query, total) for query, total in demands]
        #: By demand: the symbols of the first item, and of the last one.
        self.ends = [
            (
                self._steps[q.segments[0].steps[0]][0],
                [*chain.from_iterable(self._steps[q.segments[-1].steps[-1]][:2])],
            )
            for q, _ in demands
        ]
        windows = [query.window for query, _ in demands]
        self.program = self._program(chains, windows, clears=scope != "window")

    @property
    def weights(self) -> list[Weight]:
        """The rows of ``Events.weights``."""
        return [*self._weights]

    @property
    def links(self) -> list[_Link]:
        """Those that rows keep snapshots for, in the order of the program."""
        return sorted(self._links, key=lambda link: link.right)

    # -- counters -------------------------------------------------------------------------------

    def _chain(self, query: CountedQuery, total: Total) -> tuple[int, _Column, int, int]:
        """The table, column and link of a total, and the table of its starts."""
        for segment, place in zip(query.segments, query.places, strict=True):
            self._read_steps(query, segment, place)
        last, start, link = query.segments[-1], self._table(query, query.segments[0]), -1
        table = self._table(query, last)
        column = self._column(
            table, _Column(last.steps, self._pick(total, last.names), self._final)
        )
        if len(query.segments) > 1:
            left = self._lefts.setdefault((start, query.window), len(self._lefts))
            self._columns.setdefault(~left, {})
            steps, names = query.before
            before = _Column(steps, self._pick(total, names), _Use.CONTINUED)
            its = _Link(left, self._column(~left, before), table)
            link = self._links.setdefault(its, len(self._links))
        return table, column, link, start

    def _pick(self, total: Total, names: Sequence[str]) -> _Pick | None:
        if total.variable not in names:
            return None
        weight = None if total.attribute is None else Weight(total.kind, total.attribute)
        return _Pick(names.index(total.variable), weight)

    def _read_steps(self, query: CountedQuery, segment: Segment, place: int) -> None:
        """The symbols of a segment's steps: of begins, further elements, and forbidden events."""
        sequence = query.sequence.layout.items
        prevents = [*sequence.prevents.tolist(), 0]
        for item, step in enumerate(segment.steps, place):
            begins, takes, behind = (
                [self._symbol(its) for its in query.symbols(flags)]
                for flags in (
                    int(sequence.begins[item]),
                    int(sequence.takes[item]),
                    prevents[item + 1],
                )
            )
            self._steps[step] = begins, takes, behind
            self._steps[_bare(step)] = begins, takes, []

    def _symbol(self, symbol: Symbol) -> int:
        clauses = frozenset(
            frozenset(
                str(c)
                for c in clause.with_terms(
                    lambda term: replace(term, variable="_", element="each")  # type: ignore[arg-type]
                ).comparisons
            )
            for clause in symbol.clauses
        )
        number = self._symbols.setdefault((symbol.type, clauses), len(self.symbols))
        if number == len(self.symbols):
            self.symbols.append(symbol)
        return number

    def _table(self, query: CountedQuery, segment: Segment) -> int:
        # Without common prefixes, first segments are apart and others have to be equal.
        scope: object = None
        if not self._shares_prefixes:
            scope = segment.query if segment.number == 0 else segment.steps
        table = self._tables.setdefault((segment.start, scope), len(self._tables))
        if table not in self._columns:
            self._columns[table] = {}
            self._begins.append(self._steps[segment.steps[0]][0])
            self._windows.append(0)
        self._windows[table] = max(self._windows[table], query.window)
        return table

    def _column(self, table: int, column: _Column) -> _Column:
        """A column, with the operations that change it and the columns that they read."""
        if column in self._columns[table]:
            return column
        self._columns[table][column] = None
        steps, pick, use = column
        level = len(steps) - 1
        begins, takes, behind = self._steps[steps[-1]]
        # In these orders, no operation reads what one before it has changed.
        is_now = use is not _Use.CONTINUED
        order = 0 if is_now else 4 * (self._levels - 1 - level) + 2
        own = pick is not None and pick.item == level
        weight = pick.weight if own and pick is not None else None
        of_set = _Column((*steps[:-1], _bare(steps[-1])), pick, _Use.SUMMED if is_now else use)
        if takes:
            for symbol in takes:
                self._operate(symbol, table, column, self._column(table, of_set), None, order)
                if own:
                    counted = self._column(table, of_set._replace(pick=None))
                    self._operate(symbol, table, column, counted, weight, order)
        if level:
            source = _Column(steps[:-1], None if own else pick, _Use.CONTINUED)
            for symbol in begins:
                self._operate(symbol, table, column, self._column(table, source), weight, order + 1)
        for symbol in () if is_now else behind:
            self._operate(symbol, table, column, None, None, order - 2)
        return column

    def _operate(
        self, symbol: int, table: int, target: _Column, source: _Column | None,
        weight: Weight | None, order: int,
    ) -> None:  # fmt: skip
        if weight is not None:
            self._weights.setdefault(weight, len(self._weights))
        operation = _Operation(symbol, table, target, source, weight, order)
        self._operations.append(operation)

    # -- arrays ---------------------------------------------------------------------------------

    def _program(
        self, chains: list[tuple[int, _Column, int, int]], windows: list[int], *, clears: bool
    ) -> tables.Program:
        numbers: dict[tuple[int, _Column], int] = {}
        inits: tuple[list[int], list[int]] = ([], [])
        for owner, columns in self._columns.items():
            its = inits[owner < 0]
            for column in columns:
                numbers[owner, column] = len(its)
                its.append(self._init(column))
        tables_, lefts = range(len(self._tables)), range(len(self._lefts))
        placed = {link: place for place, link in enumerate(self.links)}
        order = [placed[link] for link in self._links]
        horizons = dict.fromkeys(
            (table, window) for (_, _, _, table), window in zip(chains, windows, strict=True)
        )
        own = [*enumerate(self._windows)]
        listed = [*own, *(horizon for horizon in horizons if horizon not in own)]
        now, later = (
            self._by_symbol(
                numbers,
                [o for o in self._operations if (o.target.use is _Use.CONTINUED) == is_later],
            )
            for is_later in (False, True)
        )
        starts = [table for table, _ in self._lefts]
        begun = [[left for left in lefts if starts[left] == table] for table in tables_]
        creates = [
            [table for table, begins in enumerate(self._begins) if symbol in begins]
            for symbol in range(len(self.symbols))
        ]
        rights = [link.right for link in self.links]
        return tables.Program(
            columns=spans_of(self._columns[table] for table in tables_),
            inits=np.array(inits[False], np.int64),
            horizons=np.array(listed, np.int64),
            create_spans=spans_of(creates),
            creates=np.array([*chain.from_iterable(creates)], np.int64),
            now_spans=now[0],
            now=now[1],
            later_spans=later[0],
            later=later[1],
            orders=4 * self._levels,
            link_spans=np.searchsorted(rights, np.arange(len(tables_) + 1)),
            links=table_of(
                [(its.left, numbers[~its.left, its.column]) for its in self.links],
                tables.LINK_COLUMNS,
            ),
            lefts=np.array([listed.index(its) for its in self._lefts], np.int64),
            left_columns=spans_of(self._columns[~left] for left in lefts),
            left_inits=np.array(inits[True], np.int64),
            begun_spans=spans_of(begun),
            begun=np.array([*chain.from_iterable(begun)], np.int64),
            demands=table_of(
                [
                    (
                        table, numbers[table, column], -1 if link < 0 else order[link],
                        listed.index((start, window)),
                    )
                    for (table, column, link, start), window in zip(chains, windows, strict=True)
                ],
                tables.DEMAND_COLUMNS,
            ),
            clears=clears,
            is_maximum=self.is_maximum,
            limit=_LIMIT if self.dtype is np.int64 and not self.is_maximum else np.inf,
            zero=self._zero,
            one=self._one,
        )  # fmt: skip

    def _init(self, column: _Column) -> int:
        if len(column.steps) > 1:
            return tables.ZERO
        if column.pick is None or column.pick.weight is None:
            return tables.ONE
        return self._weights.setdefault(column.pick.weight, len(self._weights))

    def _by_symbol(
        self, numbers: Mapping[tuple[int, _Column], int], operations: list[_Operation]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Operations by symbol, in an order in which none reads what one before it has changed."""

        def place(operation: _Operation) -> tuple[int, ...]:
            target = operation.target
            # Sums over a set read its number, and what is cleared reads what is not.
            is_cleared = bool(target.steps[-1].negations) or target.use is _Use.COMPLETED
            return operation.order, not is_cleared, target.pick is None

        found: list[list[tuple[int, ...]]] = [[] for _ in self.symbols]
        for its in sorted(operations, key=place):
            found[its.symbol].append(
                (
                    its.table,
                    numbers[its.table, its.target],
                    -1 if its.source is None else numbers[its.table, its.source],
                    -1 if its.weight is None else self._weights[its.weight],
                    its.order,
                )
            )
        rows = [row for each in found for row in each]
        return spans_of(found), table_of(rows, tables.OPERATION_COLUMNS)


def _bare(step: Step) -> Step:
    """A step without the NOTs behind it."""
    return replace(step, negations=frozenset())
