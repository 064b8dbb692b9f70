"""Queries of a workload that are counted with counters in common [qi2014]_, section 4."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import compress, pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from cepbench.engines.aggregation.counting import CountingRun
from cepbench.engines.aggregation.kernels.shared_counts import tables
from cepbench.engines.aggregation.protocol import AggregateMetrics, AggregationTask, Key
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.semirings import Total
from cepbench.engines.aggregation.sequences import CountedSequence
from cepbench.engines.aggregation.shared_counters import SharedCounters
from cepbench.engines.aggregation.shared_programs import CountedQuery, SharedProgram
from cepbench.engines.aggregation.triggers import rows_with
from cepbench.engines.aggregation.valuation import Changes
from cepbench.engines.plan_runs.by_type import TypeRows
from cepbench.engines.runs.matches import ranges_of
from cepbench.engines.runs.work import Work
from cepbench.engines.sequence_counts.integers import narrowed
from cepbench.patterns.parse import parse
from cepbench.planning.plans.segments import Segment
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


class SharedQuery(CountingRun):
    """Makes rows of values of one query from totals that are counted for several."""

    def __init__(self, task: AggregationTask, segments: tuple[Segment, ...]) -> None:
        super().__init__(task, "a-seq", by_start=True)
        assert isinstance(self._sequence, CountedSequence)
        self.query = CountedQuery(self._sequence, segments)

    def kinds(self, batch: EventStream) -> list[bool]:
        """Whether each total is counted in floats."""
        self._check_kinds(batch)
        return self._kinds

    def add(self, keys: Sequence[Key], attributes: Sequence[str]) -> None:
        """Add the partitions, given by the values of attributes, that the query does not have yet."""
        named = (dict(zip(attributes, key, strict=True)) for key in keys[len(self.groups) :])
        by = [str(each.attribute) for each in self._task.pattern.group_by]
        self._add([tuple(of[name] for name in by) for of in named])

    def _begin(self, floats: list[bool]) -> None:
        # The counters are those of all queries.
        self._floats = floats
        self.valuation.begin(floats)


class _Events(NamedTuple):
    """Some events of partitions, as a program has them."""

    parts: np.ndarray
    times: np.ndarray
    sizes: np.ndarray  #: how many symbols each is
    symbols: np.ndarray
    weights: np.ndarray  #: by weight of the program, and event

    def chosen(self, which: np.ndarray) -> _Events:
        """Some of the events."""
        return self if which.all() else self.at(np.flatnonzero(which))

    def at(self, which: np.ndarray) -> _Events:
        """The events at some places, in their order."""
        places = ranges_of((np.cumsum(self.sizes) - self.sizes)[which], self.sizes[which])
        return _Events(
            self.parts[which],
            self.times[which],
            self.sizes[which],
            self.symbols[places],
            self.weights[:, which],
        )

    def joined(self, other: _Events) -> _Events:
        """These events, and then others."""
        return _Events(*(np.concatenate(its, axis=-1) for its in zip(self, other, strict=True)))


class SharedRun(Stateful):
    """Several queries over the same partitions, which have the numbers that the first query gives them."""

    SAVED = (
        "reader", "_known_kinds", "_queries", "_number", "_counters", "_starts", "_held", "_dropped",
        "_peak_rows", "_peak_counters", "_peak_bytes",
    )  # fmt: skip

    def __init__(self, plan: WorkloadPlan, names: Sequence[str], *tasks: AggregationTask) -> None:
        self._shares_prefixes = plan.shares_prefixes
        self._scope = tasks[0].scope
        self._queries = {
            name: SharedQuery(task, plan.segments(name))
            for name, task in zip(names, tasks, strict=True)
        }
        self._first = self._queries[names[0]]
        self._attributes = self._first.query.sequence.pattern.equivalences
        self._window = max(query.query.window for query in self._queries.values())
        self.reader = NumericReader(2 * self._window)
        self._programs: list[SharedProgram] = []
        #: By query and total: its program, and its place among the demands of this.
        self._demands: list[list[tuple[int, int]]] = []
        self._totals: dict[tuple[str, str], tuple[SharedQuery, Total]] = {}
        #: By query: times and partitions of first events whose expiry has not been seen.
        self._starts = [np.zeros((2, 0), np.int64) for _ in names]
        #: By program: the events at the last timestamp, and the counters of each partition.
        self._held: list[_Events] = []
        self._counters: list[list[SharedCounters]] = []
        self._peak_rows = self._peak_counters = self._peak_bytes = 0
        #: What partitions did that are no more, in the columns of their progress.
        self._dropped = np.zeros(tables.PROGRESS, np.int64)

    def push(self, batch: EventStream) -> dict[str, Rows]:
        """Process the next events; returns the rows of each query."""
        kinds = [query.kinds(batch) for query in self._queries.values()]
        if not self._programs:
            self._known_kinds = kinds
        changes = self._changes(batch)
        found = {
            name: query.valuation.push(batch, its, query.groups)
            for (name, query), its in zip(self._queries.items(), changes, strict=True)
        }
        self._measure()
        self._drop()
        return found

    def value(self, time: int) -> dict[str, Rows]:
        """The values of each query at a time."""
        totals = [[np.zeros(0, np.int64)] * len(q.valuation.totals) for q in self._queries.values()]
        if self._scope == "window" and self._number:
            # By program, demand and partition.
            values = [
                np.stack([its.values_at(time) for its in listed], axis=1)
                for listed in self._counters
            ]
            totals = [[narrowed(values[p][k]) for p, k in demands] for demands in self._demands]
        return {
            name: query.valuation.at(time, its, query.groups)
            for (name, query), its in zip(self._queries.items(), totals, strict=True)
        }

    # -- events ---------------------------------------------------------------------------------

    @property
    def _known_kinds(self) -> list[list[bool]]:
        return [query._kinds for query in self._queries.values()] if self._programs else []

    @_known_kinds.setter
    def _known_kinds(self, kinds: list[list[bool]]) -> None:
        """Make the programs, one for each semiring and kind of numbers."""
        demands: dict[tuple[bool, type], list[tuple[CountedQuery, Total]]] = {}
        placed: list[list[tuple[tuple[bool, type], int]]] = []
        for query, its in zip(self._queries.values(), kinds, strict=False):
            placed.append([])
            for total, is_float in zip(query.valuation.totals, its, strict=True):
                semiring = total.is_maximum, total.dtype(is_float=is_float)
                listed = demands.setdefault(semiring, [])
                placed[-1].append((semiring, len(listed)))
                listed.append((query.query, total))
                if total.attribute is not None:
                    self._totals.setdefault((total.kind, total.attribute), (query, total))
        order = [*demands]
        self._demands = [[(order.index(semiring), k) for semiring, k in its] for its in placed]
        none = np.zeros(0, np.int64)
        for (_, dtype), given in demands.items():
            program = SharedProgram(
                given, shares_prefixes=self._shares_prefixes, scope=self._scope,
                is_float=dtype is np.float64,
            )  # fmt: skip
            self._programs.append(program)
            weights: np.ndarray = np.zeros((len(program.weights), 0), program.dtype)
            self._held.append(_Events(none, none, none, none, weights))
            self._counters.append([])

    def _changes(self, batch: EventStream) -> list[Changes]:
        """By query: the totals of partitions after events of the batch."""
        size, times, until = len(batch), batch.timestamps, int(batch.timestamps[-1])
        entries = [_Entries(self, program, batch) for program in self._programs]
        rows = entries[0].rows
        if len(entries) > 1:
            rows = _union([its.rows for its in entries], size)
        rows, parts = self._first.parts_of(batch, rows)
        self._number = len(self._first.groups)
        # An event of a partition is one number, in the order of partitions, then of positions.
        codes, samples = parts * size + rows, []
        if self._attributes:
            codes = np.sort(codes)
            parts, rows = np.divmod(codes, size)
        follow = any(query.valuation.follows_expiry for query in self._queries.values())
        for place, (query, demands) in enumerate(
            zip(self._queries.values(), self._demands, strict=True)
        ):
            program, demand = demands[0]
            begins, completes = entries[program].ends(demand, size)
            sampled = codes[completes[rows]]
            if query.valuation.follows_expiry or self._attributes:
                begun, window = begins[rows], query.query.window
                new = times[rows[begun]], parts[begun]
                starts = np.concatenate((self._starts[place], new), axis=1)
                are_expired = starts[0] < until - window
                self._starts[place] = starts[:, ~are_expired]
                if query.valuation.follows_expiry:
                    expired, its = starts[:, are_expired]
                    ends = np.searchsorted(times, expired + window, side="right")
                    sampled = np.union1d(sampled, its * size + ends)
            samples.append(sampled)
        values = []
        for number, its in enumerate(entries):
            asked = [
                samples[place]
                for place, demands in enumerate(self._demands)
                for program, _ in demands
                if program == number
            ]
            own = codes
            if len(entries) > 1:
                own = codes[its.sizes[rows] > 0]
            events = _union([own, *asked], self._number * size) if follow else own
            values.append(self._advance(number, its, own, events, asked, batch))
        found = []
        for sampled, demands in zip(samples, self._demands, strict=True):
            changed, at = self._apart(sampled, size)
            totals = [values[p][k] for p, k in demands]
            if self._attributes:
                order = np.argsort(at, kind="stable")
                changed, at, totals = changed[order], at[order], [its[order] for its in totals]
            found.append(Changes(at, changed, [narrowed(its) for its in totals]))
        return found

    def _advance(
        self, number: int, entries: _Entries, own: np.ndarray, events: np.ndarray,
        asked: list[np.ndarray], batch: EventStream,
    ) -> list[np.ndarray]:  # fmt: skip
        """Process events by a program, some of which (``own``) it has; returns values by demand."""
        if not len(events):
            return [np.zeros(0, self._programs[number].dtype)] * len(asked)
        until, held = int(batch.timestamps[-1]), self._held[number]
        parts, rows = self._apart(events, len(batch))
        sizes, symbols = entries.sizes[rows], entries.symbols
        if len(events) > len(own):
            sizes[~np.isin(events, own, assume_unique=True)] = 0
        if self._attributes:
            symbols = symbols[ranges_of(entries.spans[rows], sizes)]
        new = _Events(parts, batch.timestamps[rows], sizes, symbols, entries.weights[:, rows])
        now = new.chosen(new.times == until)
        stays, due = held.times == until, held
        if self._attributes:
            is_due = np.bincount(parts, minlength=self._number)[held.parts] > 0
            is_due |= held.times < until - self._window
            stays, due = stays | ~is_due, held.chosen(is_due)
        self._held[number] = held.chosen(stays).joined(now) if stays.any() else now
        codes = np.concatenate(asked)
        order = np.argsort(codes, kind="stable")
        asks = np.repeat(np.arange(len(asked)), [len(its) for its in asked])[order]
        if self._attributes:
            asks_of = np.bincount(np.searchsorted(events, codes), minlength=len(events))
        else:
            asks_of = np.bincount(codes, minlength=len(batch))[rows]
        asks_of = np.append(np.zeros(len(due.times), np.int64), asks_of)
        given, spans = due.joined(new), np.array([0, len(asks_of)])
        if self._attributes:
            by_part = np.argsort(given.parts, kind="stable")
            given, asks_of = given.at(by_part), asks_of[by_part]
            spans = np.searchsorted(given.parts, np.arange(self._number + 1))
        counted = np.bincount(due.parts, minlength=self._number)
        symbol_spans, ask_spans = (np.append(0, np.cumsum(its)) for its in (given.sizes, asks_of))
        out = []
        for part, (first, behind) in enumerate(pairwise(spans.tolist())):
            if first == behind:
                continue
            counters = self._counters[number][part]
            its = slice(first, behind + 1)
            out.append(
                counters.push(
                    tables.Events(
                        times=given.times[first:behind],
                        spans=symbol_spans[its] - symbol_spans[first],
                        symbols=given.symbols[symbol_spans[first] : symbol_spans[behind]],
                        weights=np.ascontiguousarray(given.weights[:, first:behind]),
                        ask_spans=ask_spans[its] - ask_spans[first],
                        asks=asks[ask_spans[first] : ask_spans[behind]],
                        counted=int(counted[part]),
                        until=until,
                    )
                )
            )
        found = np.concatenate(out)
        values = np.empty_like(found)
        values[order] = found
        return np.split(values, np.cumsum([len(its) for its in asked])[:-1])

    def _apart(self, codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The partitions and rows of events that are a number each."""
        if not self._attributes:
            return np.zeros(len(codes), np.int64), codes
        return np.divmod(codes, size)

    # -- partitions -----------------------------------------------------------------------------

    @property
    def _number(self) -> int:
        """How many partitions there are."""
        return len(self._counters[0]) if self._counters else 0

    @_number.setter
    def _number(self, number: int) -> None:
        for query in self._queries.values():
            query.add([*self._first.parts], self._attributes)
        for program, its in zip(self._programs, self._counters, strict=True):
            its += [SharedCounters(program) for _ in range(number - len(its))]

    def _drop(self) -> None:
        """Drop the partitions without active first events."""
        if not self._attributes:
            return
        active = np.zeros(self._number, bool)
        for parts in [*(its.parts for its in self._held), *(its[1] for its in self._starts)]:
            active[parts] = True
        if active.all():
            return
        before, numbers = self._done(), np.cumsum(active) - 1
        self._held = [its._replace(parts=numbers[its.parts]) for its in self._held]
        self._starts = [np.stack((times, numbers[parts])) for times, parts in self._starts]
        self._counters = [[*compress(its, active)] for its in self._counters]
        self._dropped = self._dropped + before - self._done()
        for query in self._queries.values():
            query.keep(active)

    def _measure(self) -> None:
        present = self._done() - self._dropped
        self._peak_rows = max(self._peak_rows, int(present[tables.PEAK_ROWS]))
        self._peak_counters = max(self._peak_counters, int(present[tables.PEAK_COUNTERS]))
        size = sum(its.bytes for listed in self._counters for its in listed)
        self._peak_bytes = max(self._peak_bytes, size)

    def _done(self) -> np.ndarray:
        """The progress of the counters of all partitions together, int64 (PROGRESS,)."""
        listed = [its.progress for listed in self._counters for its in listed]
        return np.sum([self._dropped, *listed], axis=0)

    def metrics(self) -> AggregateMetrics:
        """Metrics so far."""
        done = self._done()
        created, read, products = done[[tables.CREATED, tables.READ, tables.PRODUCTS]].tolist()
        counters = int(done[tables.UPDATES])
        return AggregateMetrics(
            updates=counters + products,
            peak_counters=self._peak_counters,
            peak_objects=self._peak_rows,
            peak_bytes=self._peak_bytes,
            work=Work(
                {
                    "counters_updated": counters,
                    "rows_created": created,
                    "rows_read": read,
                    "products": products,
                }
            ),
        )

    def weights(self, program: SharedProgram, batch: EventStream, rows: np.ndarray) -> np.ndarray:
        """What events add to matches, by weight of a program."""
        found: np.ndarray = np.zeros((len(program.weights), len(batch)), program.dtype)
        for place, weight in enumerate(program.weights):
            query, total = self._totals[weight]
            found[place] = query.weights(total, batch, rows)
        return found


class _Entries:
    """What the events of a batch are in a program."""

    def __init__(self, run: SharedRun, program: SharedProgram, batch: EventStream) -> None:
        of_type = TypeRows({its.type for its in program.symbols}).by_type(batch)
        listed = [
            rows_with(symbol.clauses, run.reader, batch, of_type[symbol.type])
            for symbol in program.symbols
        ]
        rows = np.concatenate(listed)
        symbols = np.repeat(np.arange(len(listed)), [len(its) for its in listed])
        self.program, self.by_symbol = program, listed
        #: By event of the batch: how many symbols it is, and behind how many.
        self.sizes = np.bincount(rows, minlength=len(batch))
        self.spans = np.cumsum(self.sizes) - self.sizes
        #: The events that concern the program.
        self.rows = np.flatnonzero(self.sizes)
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


@cache
def warm_up() -> None:
    """Compile the kernels of integers and floats, or load them from the disk cache."""
    pattern = parse("PATTERN SEQ(A a, B b) AGG SUM(a.x) WITHIN 9 units")
    plan = WorkloadPlan(Workload({"Q": pattern}), {"Q": (1,)})
    run = SharedRun(plan, ["Q"], AggregationTask(pattern, "trigger", "window"))
    events = pd.DataFrame({"type": list("AB"), "time": range(2), "x": 0.5})
    run.push(EventStream.from_pandas(events, type="type", time="time"))
    run.value(2)
