"""Runs that count histories of a sequence instead of matches, shared by several methods."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cepbench.aggregators.event_graphs import CountedGraph, GraphWindow
from cepbench.aggregators.protocol import AggregateMetrics, AggregationTask, Key, Row
from cepbench.aggregators.semirings import Total, totals_of, value_of
from cepbench.aggregators.sequences import CountedSequence, sequence_of
from cepbench.aggregators.triggers import Triggers, values_of
from cepbench.aggregators.windows import CountingWindow
from cepbench.errors import SnapshotError, StreamError
from cepbench.evaluators.plan_runs.engine import read_only
from cepbench.evaluators.sase.automaton_engine import events_of
from cepbench.evaluators.snapshot import arrays_under
from cepbench.kernels.sase import tables as automata
from cepbench.kernels.sequence_counts import tables
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

_MATCHES = Total("COUNT")


@dataclass(eq=False)
class _Partition:
    """The events that share all values of ``[attribute]``.

    Attributes
    ----------
    key : tuple
        Those values.
    group : tuple
        The values of GROUP BY.
    windows : list of CountingWindow or GraphWindow
        Of each total.
    starts : ndarray of int64
        Times of first events whose expiry has not been seen.
    held : tuple of ndarray
        Times, flags and values of the events at the last timestamp, and their weights.
    totals : list
        The current totals.
    """

    key: Key
    group: Key
    windows: list[CountingWindow | GraphWindow]
    starts: np.ndarray
    held: tuple[np.ndarray, ...]
    totals: list[Any]


@dataclass(eq=False)
class _Group:
    """Totals of the partitions of a group, those without matches left out.

    Attributes
    ----------
    key : tuple
    number : int
        In the order in which groups were seen; -1 before.
    parts : dict of tuple to list
        Totals by partition.
    reported : tuple or None
        The values after the event before.
    """

    key: Key
    number: int = -1
    parts: dict[Key, list[Any]] = field(default_factory=dict)
    reported: tuple[Any, ...] | None = None


class CountingRun:
    """A run that counts histories.

    The events of a partition are processed together, and the totals are taken after each event that
    may change them: the last one of a match, and in scope ``window`` also the first event of the
    stream after a match's first event has expired. Then the partitions are merged in the order of
    positions.

    Parameters
    ----------
    task : AggregationTask
    name : str
        Of the method.
    by_start : bool
        Whether counts are kept by the first event of a match.
    """

    def __init__(self, task: AggregationTask, name: str, *, by_start: bool) -> None:
        self._task = task
        self._reader = NumericReader()
        self._sequence = self._compiled(name, by_start=by_start)
        self._triggers = Triggers(task.pattern)
        listed = [_MATCHES, *(t for its in task.pattern.aggregates for t in totals_of(its))]
        plain = {v.name for v in self._sequence.pattern.positive if not v.is_set}
        #: Every match has one event of a plain item.
        self._same = {
            total: _MATCHES
            if total.kind == "COUNT"
            and total.attribute is None
            and total.variable in (None, *plain)
            else total
            for total in listed
        }
        self._totals = [*dict.fromkeys(self._same.values())]
        #: Whether each total is over floats; None before the first event.
        self._floats: list[bool] | None = None
        self._partitions: dict[Key, _Partition] = {}
        self._groups: dict[Key, _Group] = {}
        self._seen: list[_Group] = []
        #: Groups with values after the last event that are gone with the next one.
        self._passing: set[Key] = set()
        self._position = 0
        self._updates = self._peak_objects = self._peak_counters = self._peak_bytes = 0

    def _compiled(self, name: str, *, by_start: bool) -> CountedSequence | CountedGraph:
        """The tables of the pattern."""
        return sequence_of(self._task, self._reader, name, by_start=by_start)

    # -- events ---------------------------------------------------------------------------------

    def push(self, batch: EventStream) -> list[Row]:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.push`."""
        self._check_kinds(batch)
        first, self._position = self._position, self._position + len(batch)
        changes = self._changes(batch)
        triggers = self._triggers.of(batch)
        reports_changes = self._task.emit == "change"
        rows: list[Row] = []
        passes = self._task.scope == "trigger"
        at = sorted(
            {*changes, *triggers, *((r + 1 for r in changes) if passes else ())} - {len(batch)}
        )
        if passes and self._passing and 0 not in at:
            at.insert(0, 0)
        for row in at:
            time = int(batch.timestamps[row])
            touched = dict.fromkeys(self._passing)
            for key in self._passing:
                self._groups[key].parts.clear()
            self._passing.clear()
            for partition, totals in changes.get(row, ()):
                group = self._add(partition, totals)
                touched[group.key] = None
            known = self._of_trigger(triggers.get(row, []))
            if reports_changes:
                known = [g for g in map(self._groups.__getitem__, touched) if self._has_changed(g)]
                known.sort(key=lambda group: group.number)
            rows += (Row(first + row, time, g.key, self._values(g)) for g in known)
        return rows

    def _changes(self, batch: EventStream) -> dict[int, list[tuple[_Partition, list[Any]]]]:
        """Row → partitions, and their totals after it."""
        events = events_of(self._sequence.layout.of_events, self._reader, batch, 0)
        weights = [self._weights(total, batch, events.rows) for total in self._totals]
        window, until = self._sequence.pattern.window.length, int(batch.timestamps[-1])
        found: dict[int, list[tuple[_Partition, list[Any]]]] = {}
        own = self._rows_by_partition(batch, events.rows)
        for key, partition in [*self._partitions.items()]:
            if not len(partition.starts) or partition.starts[0] + window < until:
                own.setdefault(key, np.zeros(0, np.int64))
        for key, rows in own.items():
            partition = self._partition(key)
            samples = self._advance(partition, rows, events, weights, until)
            for row, *totals in samples:
                found.setdefault(row, []).append((partition, totals))
        self._measure()
        for key in own:
            partition = self._partitions[key]
            is_empty = not len(partition.starts) and not len(partition.held[0])
            if is_empty and partition.windows[0].prevented < until - window:
                del self._partitions[key]
        return found

    def _rows_by_partition(self, batch: EventStream, rows: np.ndarray) -> dict[Key, np.ndarray]:
        """The events of each partition, without those that miss a value."""
        attributes = self._sequence.pattern.equivalences
        if not attributes:
            return {(): rows} if len(rows) else {}
        found: dict[Key, list[int]] = {}
        columns = [values_of(batch.column(name), rows) for name in attributes]
        for row, key in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
            if None not in key:
                found.setdefault(key, []).append(row)
        return {key: np.array(its) for key, its in found.items()}

    def _advance(
        self,
        partition: _Partition,
        own: np.ndarray,
        events: automata.Events,
        weights: list[np.ndarray],
        until: int,
    ) -> Iterator[tuple[Any, ...]]:
        """Process events of a partition; yields rows with the totals after them."""
        sequence, plan = self._sequence, self._sequence.layout.items
        is_window = self._task.scope == "window"
        begun = events.times[own[(events.flags[own] & plan.begins[0]) != 0]]
        starts = np.unique(np.append(partition.starts, begun))
        expired = starts < until - plan.window
        partition.starts = starts[~expired]
        sampled = own[(events.flags[own] & sequence.last_flags) != 0]
        if is_window:
            ends = np.searchsorted(events.times, starts[expired] + plan.window, side="right")
            sampled = np.union1d(sampled, ends)
        rows = np.union1d(own, sampled)
        is_own = np.isin(rows, own)
        times, flags = events.times[rows], np.where(is_own, events.flags[rows], 0)
        values = events.values[:, rows]
        its = [each[rows] for each in weights]
        held_times, held_flags, held_values, *held_weights = partition.held
        samples = np.full(len(held_times) + len(rows), -1)
        samples[len(held_times) :][np.isin(rows, sampled)] = np.arange(len(sampled))
        now = (times == until) & is_own
        is_same = len(held_times) > 0 and held_times[0] == until
        times, flags = np.append(held_times, times), np.append(held_flags, flags)
        values = np.concatenate((held_values, values), axis=1)
        its = [np.append(one, two) for one, two in zip(held_weights, its, strict=True)]
        now = np.append(np.full(len(held_times), is_same), now)
        partition.held = (
            times[now], flags[now] | tables.COUNTED, values[:, now], *(each[now] for each in its)
        )  # fmt: skip
        totals = []
        for window, total, each in zip(partition.windows, self._totals, its, strict=True):
            given = tables.Events(
                rows=np.arange(len(times)),
                times=read_only(times),
                flags=flags,
                values=np.ascontiguousarray(values),
                spans=np.array([0, len(times)]),
                until=until,
                weights=each[:0] if total.variable is None else each,
                samples=samples,
            )
            listed, updates = window.push(given, len(sampled))
            totals.append(listed)
            self._updates += updates
        return zip(sampled.tolist(), *totals, strict=True)

    def _weights(self, total: Total, batch: EventStream, rows: np.ndarray) -> np.ndarray:
        """What each event of a batch adds to a match, of those at some rows."""
        column = None if total.attribute is None else batch.column(total.attribute)
        own = total.weights(column, rows)
        if total.is_maximum and not total.can_hold(column, rows):
            raise StreamError(
                f"AGG {total.kind}({total.variable}.{total.attribute}) of the largest or smallest "
                "integers of 64 bits, which stand for missing values; use the method two-step"
            )
        weights = np.zeros(len(batch), own.dtype)
        weights[rows] = own
        return weights

    def _check_kinds(self, batch: EventStream) -> None:
        """Check that values are all integers, or all floats."""
        floats = [
            total.attribute is not None
            and getattr(batch.column(total.attribute), "dtype", np.dtype(np.int64)).kind == "f"
            for total in self._totals
        ]
        if self._floats is None:
            self._floats = floats
        for total, before, now in zip(self._totals, self._floats, floats, strict=True):
            if before != now and total.kind != "COUNT":
                kinds = ("integers", "floats")
                raise StreamError(
                    f"{total.attribute} had {kinds[before]} in the batches before and has "
                    f"{kinds[now]} in this one; convert it to the same type in all"
                )

    # -- partitions and groups ------------------------------------------------------------------

    def _partition(self, key: Key) -> _Partition:
        partition = self._partitions.get(key)
        if partition is None:
            assert self._floats is not None
            windows: list[CountingWindow | GraphWindow] = []
            weights: list[np.ndarray] = []
            totals: list[Any] = []
            for total, is_float in zip(self._totals, self._floats, strict=True):
                dtype = total.dtype(is_float=is_float)
                windows.append(self._sequence.window(total, is_float=is_float))
                weights.append(np.zeros(0, dtype))
                totals.append(total.units(is_float=is_float)[0])
            of = dict(zip(self._sequence.pattern.equivalences, key, strict=True))
            group = tuple(of[each.attribute] for each in self._task.pattern.group_by)
            none = np.zeros(0, np.int64)
            values = np.zeros((len(self._sequence.layout.of_events.columns), 0))
            held = (none, none, values, *weights)
            partition = _Partition(key, group, windows, none, held, totals)
            self._partitions[key] = partition
        return partition

    def _group(self, key: Key) -> _Group:
        return self._groups.setdefault(key, _Group(key))

    def _see(self, group: _Group) -> None:
        if group.number < 0:
            group.number = len(self._seen)
            self._seen.append(group)

    def _add(self, partition: _Partition, totals: list[Any]) -> _Group:
        """Set, or in scope ``stream`` add, the totals of a partition."""
        group = self._group(partition.group)
        scope = self._task.scope
        if scope == "stream":
            before = group.parts.get((), self._nothing)
            totals = [
                total.combined(one, other)
                for total, one, other in zip(self._totals, before, totals, strict=True)
            ]
            group.parts[()] = totals
        elif totals[0]:
            group.parts[partition.key] = totals
        else:
            group.parts.pop(partition.key, None)
        if totals[0]:
            self._see(group)
        if scope == "trigger":
            self._passing.add(group.key)
        return group

    @property
    def _nothing(self) -> list[Any]:
        floats = self._floats or [False] * len(self._totals)
        return [t.units(is_float=f)[0] for t, f in zip(self._totals, floats, strict=True)]

    def _of_trigger(self, owned: list[Key]) -> list[_Group]:
        """The groups of which a trigger gives the value."""
        found: dict[_Group, None] = {}
        for own in owned:
            if ... not in own:
                group = self._group(own)
                self._see(group)
                found[group] = None
                continue
            for group in self._seen:
                if all(mine in (..., its) for mine, its in zip(own, group.key, strict=True)):
                    found[group] = None
        return sorted(found, key=lambda group: group.number)

    def _values(self, group: _Group) -> tuple[Any, ...]:
        return self._values_of([*group.parts.values()])

    def _values_of(self, parts: list[list[Any]]) -> tuple[Any, ...]:
        """The values of the aggregates over several parts."""
        floats = self._floats or [False] * len(self._totals)
        whole = self._nothing if len(parts) != 1 else parts[0]
        for part in parts if len(parts) > 1 else ():
            whole = [t.combined(a, b) for t, a, b in zip(self._totals, whole, part, strict=True)]
        known = dict(zip(self._totals, whole, strict=True))
        is_float = dict(zip(self._totals, floats, strict=True))
        return tuple(
            value_of(
                aggregate,
                [known[self._same[total]] for total in totals_of(aggregate)],
                is_float=is_float[self._same[totals_of(aggregate)[-1]]],
            )
            for aggregate in self._task.pattern.aggregates
        )

    def _has_changed(self, group: _Group) -> bool:
        values = self._values(group)
        before = self._values_of([]) if group.reported is None else group.reported
        group.reported = values
        return values != before

    # -- values, metrics, snapshots -------------------------------------------------------------

    def value(self, time: int) -> list[Row]:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.value`."""
        if not self._task.pattern.group_by:
            self._see(self._group(()))
        parts = {group.key: [*group.parts.values()] for group in self._seen}
        if self._task.scope == "window":
            parts = {key: [] for key in parts}
            for partition in self._partitions.values():
                if partition.group in parts:
                    parts[partition.group].append(self._totals_at(partition, time))
        return [Row(-1, time, key, self._values_of(its)) for key, its in parts.items()]

    def _totals_at(self, partition: _Partition, time: int) -> list[Any]:
        """The totals of a partition at a time, which changes nothing."""
        times, flags, values, *weights = partition.held
        found = []
        for window, total, its in zip(partition.windows, self._totals, weights, strict=True):
            asked = tables.Events(
                rows=np.arange(len(times) + 1),
                times=read_only(np.append(times, time)),
                flags=np.append(flags, 0),
                values=np.concatenate((values, np.zeros((len(values), 1))), axis=1),
                spans=np.array([0, len(times) + 1]),
                until=time,
                weights=its[:0] if total.variable is None else np.append(its, its[:0].sum()),
                samples=np.append(np.full(len(times), -1), 0),
            )
            found += window.copy().push(asked, 1)[0]
        return found

    def _measure(self) -> None:
        windows = [its for partition in self._partitions.values() for its in partition.windows]
        rows, counters = np.sum([its.peaks() for its in windows], axis=0) if windows else (0, 0)
        self._peak_objects = max(self._peak_objects, int(rows))
        self._peak_counters = max(self._peak_counters, int(counters))
        self._peak_bytes = max(self._peak_bytes, sum(window.bytes for window in windows))

    def metrics(self) -> AggregateMetrics:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.metrics`."""
        return AggregateMetrics(
            updates=self._updates,
            peak_counters=self._peak_counters,
            peak_objects=self._peak_objects,
            peak_bytes=self._peak_bytes,
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.snapshot`."""
        partitions = [*self._partitions.values()]
        state = json.dumps(
            {
                "texts": self._reader.texts,
                "floats": self._floats,
                "partitions": [its.key for its in partitions],
                "groups": [
                    [g.key, g.number, [*g.parts.items()], g.reported] for g in self._groups.values()
                ],
                "passing": [*self._passing],
                "numbers": [
                    self._position,
                    self._updates,
                    self._peak_objects,
                    self._peak_counters,
                    self._peak_bytes,
                ],
            }
        )
        arrays = {"state": np.frombuffer(state.encode(), np.uint8)}
        for place, partition in enumerate(partitions):
            arrays[f"{place} starts"] = partition.starts
            arrays |= {f"{place} held {k}": its for k, its in enumerate(partition.held)}
            for k, window in enumerate(partition.windows):
                arrays |= {f"{place} window {k} {n}": its for n, its in window.arrays().items()}
        return {name: array.copy() for name, array in arrays.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.restore`.

        Raises
        ------
        SnapshotError
            If the snapshot is damaged.
        """
        try:
            known = json.loads(state["state"].tobytes())
            for text in known["texts"]:
                self._reader.code(text)
            self._floats = known["floats"]
            (
                self._position, self._updates, self._peak_objects, self._peak_counters,
                self._peak_bytes,
            ) = known["numbers"]  # fmt: skip
            for key, number, parts, reported in known["groups"]:
                group = self._group(tuple(key))
                group.number = number
                group.parts = {tuple(part): totals for part, totals in parts}
                group.reported = None if reported is None else tuple(reported)
            seen = [group for group in self._groups.values() if group.number >= 0]
            self._seen = sorted(seen, key=lambda group: group.number)
            self._passing = {tuple(key) for key in known["passing"]}
            for place, key in enumerate(known["partitions"]):
                partition = self._partition(tuple(key))
                partition.starts = state[f"{place} starts"]
                held = range(len(partition.held))
                partition.held = tuple(state[f"{place} held {k}"] for k in held)
                for k, window in enumerate(partition.windows):
                    window.restore(arrays_under(f"{place} window {k} ", state))
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot is damaged: no usable values: {error!r}") from error


def warm_up() -> None:
    """Compile the kernels of all totals, or load them from the disk cache.

    Those of integers are also compiled by :mod:`cepbench.evaluators.sase.counting`.
    """
    events = pd.DataFrame({"type": list("AB"), "time": range(2), "k": 1, "x": 0.5})
    stream = EventStream.from_pandas(events, type="type", time="time")
    pattern = parse("PATTERN SEQ(A a, B b) WHERE [k] AGG SUM(a.x), MAX(a.x) WITHIN 9 units")
    run = CountingRun(AggregationTask(pattern, "change", "window"), "a-seq", by_start=True)
    run.push(stream)
