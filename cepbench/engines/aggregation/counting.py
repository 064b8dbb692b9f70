"""Runs that count histories of a sequence instead of matches, shared by several methods."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from itertools import compress
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from cepbench.engines.aggregation.event_graphs import CountedGraph
from cepbench.engines.aggregation.partitions import numbered
from cepbench.engines.aggregation.protocol import AggregateMetrics, AggregationTask, Key
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.semirings import Total, has_floats
from cepbench.engines.aggregation.sequences import (
    ComparedSequence,
    CountedSequence,
    sequence_of,
)
from cepbench.engines.aggregation.typed_parts import TypedParts
from cepbench.engines.aggregation.valuation import Changes, Valuation
from cepbench.engines.runs.pieces import events_at_once
from cepbench.engines.runs.work import Work
from cepbench.engines.sase.automaton_engine import ROUND, events_of
from cepbench.engines.sase.partitions import side_by_side
from cepbench.engines.sequence_counts.kernels import tables
from cepbench.engines.sequence_counts.windows import CountingWindow
from cepbench.errors import StreamError
from cepbench.kernels.arrays import read_only
from cepbench.patterns.model import EventType
from cepbench.patterns.parse import parse
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: Partitions without events that are not dropped yet.
_IDLE = 16


class _Events(NamedTuple):
    """Some events of partitions, as columns."""

    rows: np.ndarray  #: of the columns of times, flags, values and weights
    parts: np.ndarray  #: the number of each row's partition
    times: np.ndarray
    flags: np.ndarray
    values: np.ndarray  #: shape (columns, …)
    weights: list[np.ndarray]  #: of each total; empty if it has none

    def chosen(self, which: slice, flag: int = 0) -> _Events:
        """Some of the events, and no others, with a further flag."""
        rows = self.rows[which]
        return _Events(
            np.arange(len(rows)),
            self.parts[which],
            self.times[rows],
            self.flags[rows] | flag,
            np.ascontiguousarray(self.values[:, rows]),
            [its[rows] if len(its) else its for its in self.weights],
        )

    def joined(self, other: _Events) -> _Events:
        """These events, and then others."""
        return _Events(
            np.append(self.rows, other.rows + len(self.times)),
            np.append(self.parts, other.parts),
            np.append(self.times, other.times),
            np.append(self.flags, other.flags),
            np.concatenate((self.values, other.values), axis=1),
            [np.append(one, two) for one, two in zip(self.weights, other.weights, strict=True)],
        )


class CountingRun(Stateful):
    """A run that counts histories.

    The events of all partitions are processed together, and the totals are taken after each event that
    may change them: the last one of a match, and if this matters also the first event of the stream
    after a match's first event has expired.

    ``name`` is that of the method; counts are kept by the first event of a match, or not (``by_start``).
    """

    SAVED: ClassVar[tuple[str, ...]] = (
        "_reader", "_known_kinds", "parts", "groups", "_starts", "_done[:]", "_last", "_peak_objects",
        "_peak_counters", "_peak_bytes", "_held.parts", "_held.times", "_held.flags", "_held.values",
        "_held.weights", "valuation", "_windows",
    )  # fmt: skip

    def __init__(self, task: AggregationTask, name: str, *, by_start: bool) -> None:
        self._task = task
        self._reader = NumericReader(2 * task.pattern.window.length)
        self._sequence = self._compiled(name, by_start=by_start)
        pattern = self._sequence.pattern
        plain = {v.name for v in pattern.positive if not v.is_set}
        group_by = task.pattern.group_by
        types = tuple(its for key in group_by if isinstance(its := key.attribute, EventType))
        self._typed: TypedParts | None = None
        if types:
            begins = self._sequence.layout.items.begins.tolist()
            flags = dict(zip(pattern.positive_names, begins, strict=True))
            self._typed = TypedParts(task.pattern, flags, name)
        self.valuation = Valuation(task, (*pattern.equivalences, *types), plain)
        #: Whether each total is over floats; None before the first event.
        self._floats: list[bool] | None = None
        #: The state of each total, as ``_sequence`` makes it.
        self._windows: list[Any] = []
        #: The numbers of partitions by their values of ``[attribute]``, and by their places among the
        #: typed parts of these if there are such; and their groups.
        self.parts: dict[Key, int] = {}
        self.groups = np.zeros(0, np.int64)
        #: The events at the last timestamp.
        self._held = self._no_events()
        #: Times and partitions of first events whose expiry has not been seen.
        self._starts = np.zeros((2, 0), np.int64)
        #: Rows begun, counters changed, and rows read; and the time of the last event.
        self._done = np.zeros(3, np.int64)
        self._last: int | None = None
        self._peak_objects = self._peak_counters = self._peak_bytes = 0

    def _compiled(
        self, name: str, *, by_start: bool
    ) -> CountedSequence | ComparedSequence | CountedGraph:
        """The tables of the pattern."""
        return sequence_of(self._task, self._reader, name, by_start=by_start)

    # -- events ---------------------------------------------------------------------------------

    def push(self, batch: EventStream) -> Rows:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.push`."""
        self._check_kinds(batch)
        rows = []
        times, end = batch.timestamps, 0
        while end < len(batch):
            begin, last = end, times[min(end + events_at_once(ROUND), len(batch)) - 1]
            # Whole timestamps, so that only those at the end of a batch are held.
            end = int(np.searchsorted(times, last, side="right"))
            part = batch[begin:end]
            until = int(times[end] if end < len(batch) else last)
            changes = self._changes(part, until)
            rows.append(self.valuation.push(part, changes, self.groups))
            self._measure()
            self._last = until
            self._drop(until - self._sequence.pattern.window.length)
        return Rows.joined(rows)

    def _changes(self, batch: EventStream, until: int) -> Changes:
        """The totals of partitions after the events of a batch; more may follow at ``until``."""
        read = events_of(self._sequence.layout.of_events, self._reader, batch, 0)
        weights = [self.weights(total, batch, read.rows) for total in self.valuation.totals]
        if self._typed is not None:
            read, weights = self._typed.divided(batch, read, weights)
        rows, parts = self.parts_of(batch, read.rows)
        starting, completing = self._ends_of_matches()
        are_sampled = (read.flags[rows] & completing) != 0
        events = _Events(rows, parts, read.times, read.flags, read.values, weights)
        now = np.searchsorted(rows, np.searchsorted(read.times, until))
        later = events.chosen(slice(now, None), tables.COUNTED)
        if self.valuation.follows_expiry:
            begun = (read.flags[rows] & starting) != 0
            ends, its = self._expired(read.times, rows[begun], parts[begun], until)
            events, rows, are_sampled = self._with_samples(events, are_sampled, ends, its)
        held, self._held = self._held, later
        if len(held.times) and len(read.times) and held.times[0] == read.times[0]:
            if held.times[0] == until:
                self._held = held.joined(later)
            are_sampled = np.append(np.zeros(len(held.rows), bool), are_sampled)
            rows = np.append(np.zeros(len(held.rows), np.int64), rows)
            events = held.joined(events.chosen(slice(None)))
        elif len(held.times):
            self._count(held, np.zeros(len(held.rows), bool), int(read.times[0]))
        totals = self._count(events, are_sampled, until)
        chosen = np.flatnonzero(are_sampled)
        return Changes(rows[chosen] // self._per_event, events.parts[chosen], totals)

    def _ends_of_matches(self) -> tuple[int, int]:
        """The flags of the events that may be the first one of a match, and the last one."""
        items = self._sequence.layout.items
        return int(items.begins[0]), int(items.begins[-1] | items.takes[-1])

    def _count(self, events: _Events, are_sampled: np.ndarray, until: int) -> list[np.ndarray]:
        """Process some events; returns totals after some of them, in their order."""
        given = self._given(events, are_sampled, until)
        found = self._pushed(self._windows, given, int(are_sampled.sum()))
        self._done += sum(done for _, done in found)
        return [totals for totals, _ in found]

    def _pushed(
        self, windows: list[Any], given: list[tables.Events], samples: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Let windows process events; see :meth:`CountingWindow.push`."""
        return [window.push(its, samples) for window, its in zip(windows, given, strict=True)]

    def _given(self, events: _Events, are_sampled: np.ndarray, until: int) -> list[tables.Events]:
        """What the kernels of each total read."""
        rows = events.rows
        samples, chosen = np.full(len(rows), -1), np.flatnonzero(are_sampled)
        samples[chosen] = np.arange(len(chosen))
        parts, spans = np.zeros(1, np.int64), np.array([0, len(rows)])
        if len(self.groups) != 1:
            order, parts, spans = side_by_side(events.parts)
            rows, samples = rows[order], samples[order]
        return [
            tables.Events(
                rows, read_only(events.times), events.flags, events.values, spans, until, weights,
                # Without any, there would be one value after all events.
                samples if len(samples) else np.array([-1]), parts,
            )
            for weights in events.weights
        ]  # fmt: skip

    def _expired(
        self, times: np.ndarray, rows: np.ndarray, parts: np.ndarray, until: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The events with which first events expire, and their partitions."""
        starts = np.concatenate((self._starts, (times[rows], parts)), axis=1)
        window = self._sequence.pattern.window.length
        number = int(np.searchsorted(starts[0], until - window))
        self._starts = starts[:, number:]
        ends = np.searchsorted(times, starts[0, :number] + window, side="right")
        # The next round begins at until.
        is_here = ends < len(times)
        self._starts = np.concatenate((starts[:, :number][:, ~is_here], self._starts), axis=1)
        return ends[is_here], starts[1, :number][is_here]

    def _with_samples(
        self, events: _Events, are_sampled: np.ndarray, ends: np.ndarray, parts: np.ndarray
    ) -> tuple[_Events, np.ndarray, np.ndarray]:
        """Sample partitions also after other events (``ends``), which need not be their own.

        Returns events, some of which do nothing, the row of the stream of each, and which are sampled.
        """
        size = len(events.times)
        own, more = events.parts * size + events.rows, np.unique(parts * size + ends)
        are_sampled = are_sampled | np.isin(own, more)
        more = np.setdiff1d(more, own, assume_unique=True)
        rows = events.rows
        if len(more):
            idle = self._no_events(len(more))
            events = events.joined(
                idle._replace(parts=more // size, times=events.times[more % size])
            )
            rows = np.append(rows, more % size)
            order = np.lexsort((events.parts, rows))
            events = events._replace(rows=events.rows[order], parts=events.parts[order])
            are_sampled = np.append(are_sampled, np.ones(len(more), bool))[order]
            rows = rows[order]
        return events, rows, are_sampled

    def parts_of(self, batch: EventStream, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The events that miss no value by which partitions are made, and their partitions."""
        attributes = self._sequence.pattern.equivalences
        numbers, keys = numbered(batch, attributes, rows // self._per_event)
        if attributes:
            rows, numbers = rows[numbers >= 0], numbers[numbers >= 0]
        if self._typed is not None:
            wanted, numbers = np.unique(
                numbers * self._per_event + rows % self._per_event, return_inverse=True
            )
            places = (divmod(code, self._per_event) for code in wanted.tolist())
            keys = [(*keys[number], part) for number, part in places]
        own = [self.parts.setdefault(key, len(self.parts)) for key in keys]
        new = [*self.parts][len(self.groups) :]
        if new:
            if self._typed is not None:
                # Groups that are first seen with the same event come in the order of their keys.
                apart = dict.fromkeys(key[:-1] for key in new)
                parts = range(self._per_event)
                self.valuation.groups([self._group((*key, k)) for key in apart for k in parts])
            self._add([self._group(key) for key in new])
        if attributes or self._typed is not None:
            numbers = np.array(own, np.int64)[numbers]
        return rows, numbers

    @property
    def _per_event(self) -> int:
        """How many rows stand for an event."""
        return 1 if self._typed is None else len(self._typed.keys)

    def _group(self, key: Key) -> Key:
        """The group that a partition is in."""
        attributes = [*self._sequence.pattern.equivalences]
        types = iter(() if self._typed is None else self._typed.keys[key[-1]])
        return tuple(
            next(types)
            if isinstance(each.attribute, EventType)
            else key[attributes.index(each.attribute)]
            for each in self._task.pattern.group_by
        )

    def _add(self, groups: list[Key]) -> None:
        """Add partitions that are in these groups."""
        numbers = self.valuation.groups(groups)
        self.groups = np.append(self.groups, numbers)
        for window in self._windows:
            window.add(len(groups))

    def _drop(self, earliest: int) -> None:
        """Drop partitions without events from some time on, once they are many."""
        if not self._sequence.pattern.equivalences and self._typed is None:
            return
        active = self._windows[0].are_active(earliest)
        active[self._held.parts] = active[self._starts[1]] = True
        if len(active) <= 2 * active.sum() + _IDLE:
            return
        numbers = np.cumsum(active) - 1
        self._held = self._held._replace(parts=numbers[self._held.parts])
        self._starts = np.stack((self._starts[0], numbers[self._starts[1]]))
        self.keep(active)

    def keep(self, active: np.ndarray) -> None:
        """Keep some partitions, numbered anew."""
        kept = np.flatnonzero(active)
        self.parts = {key: number for number, key in enumerate(compress(self.parts, active))}
        self.groups = self.groups[kept]
        self.valuation.keep(kept)
        for window in self._windows:
            window.keep(kept)

    def _no_events(self, number: int = 0) -> _Events:
        """Events that do nothing, each in a partition of its own."""
        return _Events(
            np.arange(number),
            np.arange(number),
            np.zeros(number, np.int64),
            np.zeros(number, np.int64),
            np.zeros((len(self._sequence.layout.of_events.columns), number)),
            [
                np.zeros(number if total.variable else 0, total.dtype(is_float=is_float))
                for total, is_float in zip(self.valuation.totals, self._kinds, strict=True)
            ],
        )

    def weights(self, total: Total, batch: EventStream, rows: np.ndarray) -> np.ndarray:
        """What each event of a batch adds to a match, of those at some rows."""
        if total.variable is None:
            return np.zeros(0, np.int64)
        column = None if total.attribute is None else batch.column(total.attribute)
        known = dict(zip(self.valuation.totals, self._kinds, strict=True))
        own = total.weights(column, rows, is_float=known[total])
        if total.is_maximum and not total.can_hold(column, rows):
            raise StreamError(
                f"AGG {total.kind}({total.variable}.{total.attribute}) of the largest or smallest "
                "integers of 64 bits, which stand for missing values; use the method two-step"
            )
        weights = np.zeros(len(batch), own.dtype)
        weights[rows] = own
        return weights

    @property
    def _kinds(self) -> list[bool]:
        return self._floats or [False] * len(self.valuation.totals)

    def _check_kinds(self, batch: EventStream) -> None:
        """Check that no values are floats where those before were integers."""
        totals = self.valuation.totals
        known = [None] * len(totals) if self._floats is None else self._floats
        floats = [
            total.attribute is not None and has_floats(batch.column(total.attribute), before=before)
            for total, before in zip(totals, known, strict=True)
        ]
        if self._floats is None:
            self._begin(floats)
        for total, before, now in zip(totals, self._kinds, floats, strict=True):
            if now and not before and total.kind != "COUNT":
                raise StreamError(
                    f"{total.attribute} had integers in the batches before and has floats in this "
                    "one; convert it to the same type in all"
                )

    def _begin(self, floats: list[bool]) -> None:
        self._floats = floats
        self._held = self._no_events()
        self.valuation.begin(floats)
        for total, is_float in zip(self.valuation.totals, floats, strict=True):
            self._windows.append(self._sequence.window(total, is_float=is_float))

    # -- values, metrics, snapshots -------------------------------------------------------------

    def value(self, time: int) -> Rows:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.value`."""
        number = len(self._held.rows)
        asked = self._no_events(len(self.groups))
        asked.times[:] = time
        are_sampled = np.arange(number + len(self.groups)) >= number
        given = self._given(self._held.joined(asked), are_sampled, time)
        totals = asked.weights
        if self._windows:  # not before the first event
            found = self._pushed(deepcopy(self._windows), given, len(self.groups))
            totals = [its for its, _ in found]
        return self.valuation.at(time, totals, self.groups)

    def _measure(self) -> None:
        rows, counters = np.sum([window.peaks() for window in self._windows], axis=0).tolist()
        self._peak_objects = max(self._peak_objects, rows)
        self._peak_counters = max(self._peak_counters, counters)
        self._peak_bytes = max(self._peak_bytes, sum(window.bytes for window in self._windows))

    def metrics(self) -> AggregateMetrics:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.metrics`."""
        begun, updates, read = self._done.tolist()
        work = {"counters_updated": updates}
        if self._sequence.layout.items.by_start:
            # Rows leave with the next event of their partition.
            earliest = (self._last or 0) - self._sequence.pattern.window.length
            active = sum(w.active(earliest) for w in self._windows if isinstance(w, CountingWindow))
            work |= {"rows_created": begun, "rows_expired": begun - active, "rows_read": read}
        return AggregateMetrics(
            updates=updates,
            peak_counters=self._peak_counters,
            peak_objects=self._peak_objects,
            peak_bytes=self._peak_bytes,
            work=Work(work),
        )

    @property
    def _known_kinds(self) -> list[bool] | None:
        return self._floats

    @_known_kinds.setter
    def _known_kinds(self, floats: list[bool]) -> None:
        self._begin(floats)

    def resumed(self) -> None:
        """The rows of the events held are all."""
        number = len(self._held.times)
        self._held = self._held._replace(rows=np.arange(number))


_R = TypeVar("_R", bound=CountingRun)


def warmed(run: _R) -> _R:
    """A new run whose kernels have been loaded, to exclude this from measured times."""
    warm_up(of_values=any(each.attribute for each in run._task.pattern.aggregates))
    return run


@cache
def warm_up(*, of_values: bool = True) -> None:
    """Compile the kernels of COUNT, and of other totals too, or load them from the disk cache.

    Those of integers are also compiled by :mod:`cepbench.engines.sase.counting`.
    """
    events = pd.DataFrame({"type": list("AB"), "time": range(2), "k": 1, "x": 0.5})
    stream = EventStream.from_pandas(events, type="type", time="time")
    aggregates = "SUM(a.x), MAX(a.x)" if of_values else "COUNT"
    pattern = parse(f"PATTERN SEQ(A a, B b) WHERE [k] AGG {aggregates} WITHIN 9 units")
    run = CountingRun(
        AggregationTask(pattern, "change", "window"), "window-product", by_start=False
    )
    run.push(stream)
