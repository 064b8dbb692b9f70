"""Queries of a workload that are counted with counters in common [qi2014]_, section 4."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from cepbench.engines.aggregation.counting import CountingRun
from cepbench.engines.aggregation.kernels.shared_counts import tables
from cepbench.engines.aggregation.partitions import numbered
from cepbench.engines.aggregation.protocol import AggregateMetrics, AggregationTask, Key
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.semirings import Total, narrowed
from cepbench.engines.aggregation.sequences import CountedSequence
from cepbench.engines.aggregation.shared_counters import SharedCounters
from cepbench.engines.aggregation.shared_programs import CountedQuery, SharedProgram
from cepbench.engines.aggregation.triggers import rows_with
from cepbench.engines.aggregation.valuation import Changes
from cepbench.engines.plan_runs.engine import rows_of_types
from cepbench.patterns.parse import parse
from cepbench.planning.plans.segments import Segment
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: Partitions without events that are not dropped yet.
_IDLE = 16


class SharedQuery(CountingRun):
    """Makes rows of values of one query from totals that are counted for several."""

    def __init__(self, task: AggregationTask, segments: tuple[Segment, ...]) -> None:
        super().__init__(task, "a-seq", by_start=True)
        assert isinstance(self._sequence, CountedSequence)
        self.query = CountedQuery(self._sequence, segments)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those whose values all events of a match share."""
        return self._sequence.pattern.equivalences

    def totals(self, batch: EventStream) -> list[tuple[Total, bool]]:
        """What is counted, and whether in floats."""
        self._check_kinds(batch)
        return [*zip(self.valuation.totals, self._kinds, strict=True)]

    def partitions_of(self, batch: EventStream, rows: np.ndarray) -> dict[Key, np.ndarray]:
        """The events of each partition, without those that miss a value."""
        numbers, keys = numbered(batch, self.attributes, rows)
        return (
            {key: rows[numbers == number] for number, key in enumerate(keys)} if len(rows) else {}
        )

    def part(self, key: Key, attributes: Sequence[str]) -> int:
        """The number of a partition, given by the values of attributes."""
        number = self._parts.get(key)
        if number is None:
            of = dict(zip(attributes, key, strict=True))
            group = tuple(of[str(each.attribute)] for each in self._task.pattern.group_by)
            number = self._parts[key] = len(self._parts)
            self._groups = np.append(self._groups, self.valuation.groups([group]))
        return number

    def rows(self, batch: EventStream, given: Sequence[Changes]) -> Rows:
        """The rows to report, from the totals of partitions after some events."""
        its = _joined([self._nothing, *given])
        if len(given) > 1:
            order = np.lexsort((its.parts, its.rows))
            totals = [column[order] for column in its.totals]
            its = Changes(its.rows[order], its.parts[order], totals)
        return self.valuation.push(batch, its, self._groups)

    def rows_at(self, time: int, given: Sequence[Changes]) -> Rows:
        """The value of each group at a time, from the totals of partitions."""
        its = _joined([self._nothing, *given])
        return self.valuation.at(time, its.totals, self._groups[its.parts])

    @property
    def _nothing(self) -> Changes:
        none = np.zeros(0, np.int64)
        kinds = zip(self.valuation.totals, self._kinds, strict=True)
        return Changes(
            none, none, [np.zeros(0, its.dtype(is_float=is_float)) for its, is_float in kinds]
        )

    def drop(self, keys: Collection[Key]) -> None:
        """Drop the numbers of all partitions but some, once they are many."""
        if len(self._parts) > 2 * len(keys) + _IDLE:
            kept = [part for key, part in self._parts.items() if key in keys]
            self.valuation.keep(np.array(kept, np.int64))
            self._groups = self._groups[np.array(kept, np.int64)]
            names = [key for key in self._parts if key in keys]
            self._parts = {key: number for number, key in enumerate(names)}


def _joined(given: Sequence[Changes]) -> Changes:
    """The totals of several partitions, one after the other."""
    rows, parts, totals = zip(*given, strict=True)
    columns = map(np.concatenate, zip(*totals, strict=True))
    return Changes(np.concatenate(rows), np.concatenate(parts), [*map(narrowed, columns)])


@dataclass(eq=False)
class _Partition(Stateful):
    """The events that share all values of ``[attribute]``."""

    SAVED = ("starts", "held", "counters")

    #: Of each program.
    counters: list[SharedCounters]
    #: By query: times of first events whose expiry has not been seen.
    starts: list[np.ndarray]
    #: By program: times, numbers of symbols, symbols and weights of the events at the last timestamp.
    held: list[tuple[np.ndarray, ...]]


class SharedRun(Stateful):
    """Several queries over the same partitions."""

    SAVED = (
        "reader", "_queries", "_known_kinds", "_updates", "_peak_rows", "_peak_counters",
        "_peak_bytes", "_keys", "_partitions",
    )  # fmt: skip

    def __init__(
        self, queries: Mapping[str, SharedQuery], *, shares_prefixes: bool, scope: str
    ) -> None:
        self._queries = queries
        self._shares_prefixes = shares_prefixes
        self._scope = scope
        self._first = next(iter(queries.values()))
        self.reader = NumericReader()
        self._programs: list[SharedProgram] = []
        #: By query and total: its program, and its place among the demands of this.
        self._demands: list[list[tuple[int, int]]] = []
        self._kinds: list[list[bool]] = []
        self._totals: dict[tuple[str, str], tuple[SharedQuery, Total]] = {}
        self._partitions: dict[Key, _Partition] = {}
        #: Updates of partitions that were dropped; most rows, counters and bytes.
        self._updates = self._peak_rows = self._peak_counters = self._peak_bytes = 0

    def push(self, batch: EventStream) -> dict[str, Rows]:
        """Process the next events; returns the rows of each query."""
        listed = [query.totals(batch) for query in self._queries.values()]
        if not self._programs:
            self._compile([[is_float for _, is_float in its] for its in listed])
        given = self._changes(batch)
        found = {
            name: query.rows(batch, its)
            for (name, query), its in zip(self._queries.items(), given, strict=True)
        }
        for query in self._queries.values():
            query.drop(self._partitions)
        return found

    def value(self, time: int) -> dict[str, Rows]:
        """The values of each query at a time."""
        found: list[list[Changes]] = [[] for _ in self._queries]
        row = np.zeros(1, np.int64)
        for key, partition in self._partitions.items() if self._scope == "window" else ():
            values = [counters.values_at(time) for counters in partition.counters]
            for place, query in enumerate(self._queries.values()):
                part = query.part(key, self._first.attributes)
                totals = [values[p][k : k + 1] for p, k in self._demands[place]]
                found[place].append(Changes(row, np.array([part]), totals))
        return {
            name: query.rows_at(time, its)
            for (name, query), its in zip(self._queries.items(), found, strict=True)
        }

    # -- events ---------------------------------------------------------------------------------

    def _compile(self, kinds: list[list[bool]]) -> None:
        """Make the programs, one for each semiring and kind of numbers."""
        self._kinds = kinds
        demands: dict[object, list[tuple[CountedQuery, Total]]] = {}
        placed: list[list[tuple[object, int]]] = []
        for query, its in zip(self._queries.values(), kinds, strict=True):
            placed.append([])
            for total, is_float in zip(query.valuation.totals, its, strict=True):
                semiring = total.is_maximum, total.dtype(is_float=is_float)
                listed = demands.setdefault(semiring, [])
                placed[-1].append((semiring, len(listed)))
                listed.append((query.query, total))
                if total.attribute is not None:
                    self._totals.setdefault((total.kind, total.attribute), (query, total))
        order = {semiring: place for place, semiring in enumerate(demands)}
        self._demands = [[(order[semiring], k) for semiring, k in its] for its in placed]
        self._programs = [
            SharedProgram(
                listed, shares_prefixes=self._shares_prefixes, scope=self._scope,
                is_float=semiring[1] is np.float64,  # type: ignore[index]
            )
            for semiring, listed in demands.items()
        ]  # fmt: skip

    def _changes(self, batch: EventStream) -> list[list[Changes]]:
        """By query: the totals of partitions after events of the batch."""
        entries = [_Entries(self, program, batch) for program in self._programs]
        # Of each query, the events that begin matches, and those that may complete one.
        ends = [entries[its[0][0]].ends(its[0][1], len(batch)) for its in self._demands]
        found: list[list[Changes]] = [[] for _ in self._queries]
        attributes, until = self._first.attributes, int(batch.timestamps[-1])
        one = entries[0].rows
        own = {(): one if len(entries) == 1 else _union([e.rows for e in entries], len(batch))}
        if attributes:
            own = self._first.partitions_of(batch, own[()])
            for key, partition in self._partitions.items():
                if self._expires(partition, until):
                    own.setdefault(key, np.zeros(0, np.int64))
        for key, rows in own.items():
            partition = self._partition(key)
            samples = [
                self._samples(partition, place, rows, batch, *its) for place, its in enumerate(ends)
            ]
            values = []
            for number, its in enumerate(entries):
                asked = [
                    samples[place]
                    for place, demands in enumerate(self._demands)
                    for program, _ in demands
                    if program == number
                ]
                values.append(self._advance(partition, number, its, rows, asked, batch))
            for place, query in enumerate(self._queries.values()):
                totals = [values[p][k] for p, k in self._demands[place]]
                parts = np.full(len(samples[place]), query.part(key, attributes))
                found[place].append(Changes(samples[place], parts, totals))
        self._measure()
        for key in [*own] if attributes else ():
            partition = self._partitions[key]
            if not any(map(len, partition.starts)) and not any(len(h[0]) for h in partition.held):
                self._drop(key)
        return found

    def _samples(
        self, partition: _Partition, place: int, rows: np.ndarray, batch: EventStream,
        begins: np.ndarray, completes: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """The events of a partition after which a query's totals may have changed."""
        query = [*self._queries.values()][place]
        sampled = rows[completes[rows]]
        if not query.valuation.follows_expiry and not query.attributes:
            return sampled
        times, until, window = batch.timestamps, int(batch.timestamps[-1]), query.query.window
        starts = np.unique(np.append(partition.starts[place], times[rows[begins[rows]]]))
        expired = starts < until - window
        partition.starts[place] = starts[~expired]
        if query.valuation.follows_expiry:
            ends = np.searchsorted(times, starts[expired] + window, side="right")
            sampled = np.union1d(sampled, ends)
        return sampled

    def _expires(self, partition: _Partition, until: int) -> bool:
        windows = [query.query.window for query in self._queries.values()]
        return any(
            len(starts) and starts[0] + window < until
            for starts, window in zip(partition.starts, windows, strict=True)
        )

    def _advance(
        self, partition: _Partition, number: int, entries: _Entries, own: np.ndarray,
        asked: list[np.ndarray], batch: EventStream,
    ) -> list[np.ndarray]:  # fmt: skip
        """Process the events of a partition by a program; returns values by demand."""
        until = int(batch.timestamps[-1])
        # Another program may have further events of the partition, and this one some of others.
        if np.array_equal(own, entries.rows) and not any(
            query.valuation.follows_expiry for query in self._queries.values()
        ):
            # All asked for are among them.
            rows, sizes, symbols = own, np.diff(entries.spans)[own], entries.symbols
        else:
            rows = _union([own, *asked], len(batch))
            sizes = np.where(np.isin(rows, own), entries.spans[rows + 1] - entries.spans[rows], 0)
            symbols = entries.symbols[_ranges(entries.spans[rows], sizes)]
        times, weights = batch.timestamps[rows], entries.weights[:, rows]
        held_times, held_sizes, held_symbols, held_weights = partition.held[number]
        counted = len(held_times)
        now = times == until
        behind = len(symbols) - int(sizes[now].sum())
        is_same = counted > 0 and held_times[0] == until
        kept = slice(None if is_same else counted, None)
        partition.held[number] = (
            np.append(held_times[kept], times[now]),
            np.append(held_sizes[kept], sizes[now]),
            np.append(held_symbols[: len(held_symbols) * is_same], symbols[behind:]),
            np.concatenate((held_weights[:, kept], weights[:, now]), axis=1),
        )
        ask_rows = np.concatenate(asked)
        demands = np.repeat(np.arange(len(asked)), [len(its) for its in asked])
        order = np.argsort(ask_rows, kind="stable")
        out = partition.counters[number].push(
            tables.Events(
                times=np.append(held_times, times),
                spans=np.cumsum(np.concatenate(([0], held_sizes, sizes))),
                symbols=np.append(held_symbols, symbols),
                weights=np.ascontiguousarray(np.concatenate((held_weights, weights), axis=1)),
                ask_spans=np.append(
                    np.zeros(counted + 1, np.int64),
                    np.cumsum(np.bincount(ask_rows, minlength=len(batch))[rows]),
                ),
                asks=demands[order],
                counted=counted,
                until=until,
            )
        )
        values = np.empty_like(out)
        values[order] = out
        return np.split(values, np.cumsum([len(its) for its in asked])[:-1])

    # -- partitions -----------------------------------------------------------------------------

    def _partition(self, key: Key) -> _Partition:
        partition = self._partitions.get(key)
        if partition is None:
            none = np.zeros(0, np.int64)
            partition = _Partition(
                [SharedCounters(program) for program in self._programs],
                [none for _ in self._queries],
                [
                    (none, none, none, np.zeros((len(p.weights), 0), p.dtype))
                    for p in self._programs
                ],
            )
            self._partitions[key] = partition
        return partition

    def _drop(self, key: Key) -> None:
        partition = self._partitions.pop(key)
        self._updates += sum(int(c.progress[tables.UPDATES]) for c in partition.counters)

    def _measure(self) -> None:
        listed = [c for partition in self._partitions.values() for c in partition.counters]
        for name, column in (
            ("_peak_rows", tables.PEAK_ROWS),
            ("_peak_counters", tables.PEAK_COUNTERS),
        ):
            peak = sum(int(counters.progress[column]) for counters in listed)
            setattr(self, name, max(getattr(self, name), peak))
        self._peak_bytes = max(self._peak_bytes, sum(counters.bytes for counters in listed))

    def metrics(self) -> AggregateMetrics:
        """Metrics so far."""
        listed = [c for partition in self._partitions.values() for c in partition.counters]
        return AggregateMetrics(
            updates=self._updates + sum(int(c.progress[tables.UPDATES]) for c in listed),
            peak_counters=self._peak_counters,
            peak_objects=self._peak_rows,
            peak_bytes=self._peak_bytes,
        )

    def weights(self, program: SharedProgram, batch: EventStream, rows: np.ndarray) -> np.ndarray:
        """What events add to matches, by weight of a program."""
        found: np.ndarray = np.zeros((len(program.weights), len(batch)), program.dtype)
        for place, weight in enumerate(program.weights):
            query, total = self._totals[weight]
            found[place] = query.weights(total, batch, rows)
        return found

    # -- snapshots ------------------------------------------------------------------------------

    @property
    def _known_kinds(self) -> list[list[bool]]:
        return self._kinds

    @_known_kinds.setter
    def _known_kinds(self, kinds: list[list[bool]]) -> None:
        if kinds:
            self._compile(kinds)

    @property
    def _keys(self) -> list[Key]:
        return [*self._partitions]

    @_keys.setter
    def _keys(self, keys: list[Key]) -> None:
        for key in keys:
            self._partition(key)


class _Entries:
    """What the events of a batch are in a program."""

    def __init__(self, run: SharedRun, program: SharedProgram, batch: EventStream) -> None:
        of_type = rows_of_types(batch, {symbol.type for symbol in program.symbols})
        listed = [
            rows_with(symbol.clauses, run.reader, batch, of_type[symbol.type])
            for symbol in program.symbols
        ]
        rows = np.concatenate(listed)
        symbols = np.repeat(np.arange(len(listed)), [len(its) for its in listed])
        self.program, self.by_symbol = program, listed
        sizes = np.bincount(rows, minlength=len(batch))
        #: Of symbols, by event of the batch.
        self.spans = np.append(0, np.cumsum(sizes))
        #: The events that concern the program.
        self.rows = np.flatnonzero(sizes)
        if len(self.rows) == len(rows):
            # Each event is one symbol: without sorting.
            of_events = np.zeros(len(batch), np.int64)
            of_events[rows] = symbols
            self.symbols = of_events[self.rows]
        else:
            self.symbols = symbols[np.argsort(rows, kind="stable")]
        #: By weight of the program, and event.
        self.weights = run.weights(program, batch, self.rows)

    def ends(self, demand: int, number: int) -> np.ndarray:
        """Which of so many events begin matches of a demand, and which may complete one."""
        found = np.zeros((2, number), bool)
        for its, symbols in zip(found, self.program.ends[demand], strict=True):
            for symbol in symbols:
                its[self.by_symbol[symbol]] = True
        return found


def _union(rows: Sequence[np.ndarray], number: int) -> np.ndarray:
    """Rows of a batch of so many events that are in any of several arrays, ascending."""
    listed = np.concatenate(rows)
    if 16 * len(listed) < number:
        return np.unique(listed)
    # Without sorting.
    is_one = np.zeros(number, bool)
    is_one[listed] = True
    return np.flatnonzero(is_one)


def _ranges(begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers from each begin on, so many each."""
    ends = np.cumsum(sizes)
    return np.repeat(begins - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


@cache
def warm_up() -> None:
    """Compile the kernels of integers and floats, or load them from the disk cache."""
    pattern = parse("PATTERN SEQ(A a, B b) AGG SUM(a.x) WITHIN 9 units")
    plan = WorkloadPlan(Workload({"Q": pattern}), {"Q": (1,)})
    query = SharedQuery(AggregationTask(pattern, "trigger", "window"), plan.segments("Q"))
    run = SharedRun({"Q": query}, shares_prefixes=False, scope="window")
    events = pd.DataFrame({"type": list("AB"), "time": range(2), "x": 0.5})
    run.push(EventStream.from_pandas(events, type="type", time="time"))
    run.value(2)
