"""Aggregates over slices of a stream, each with the events before it that its values depend on.

The rows of all slices together are those of one pass, sums of floats up to rounding.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cepbench.arguments import MOST
from cepbench.engines.aggregation.live import Aggregator
from cepbench.engines.aggregation.partitions import numbered
from cepbench.engines.aggregation.protocol import AggregateMetrics, Key, Row
from cepbench.engines.aggregation.triggers import Triggers
from cepbench.engines.runs.slices import Batch, Budget, Slice, Slicer, part_of, selection
from cepbench.errors import EvaluationError, UnsupportedPatternError
from cepbench.patterns.model import Pattern
from cepbench.streams.columns import AttributeColumn, Booleans, CodedStrings, numbers_of
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import under_hierarchy_of

#: Columns of values: a row for each slice that has events, with its SliceValues as bytes.
VALUES = pa.schema({"slice": pa.int64(), "values": pa.binary()})

#: Strategies by which events of other groups do not matter.
_BLIND = ("any", "next")


@dataclass(frozen=True)
class SliceAggregation(Slicer):
    """The values after the events of each slice; checked on construction.

    Events of all parts of a slice have positions, so each part divides them by itself.

    An EvaluationError or a PatternError if an argument is invalid, or the scope is ``stream``. An
    UnsupportedPatternError if a value depends on events long before, or the method cannot run the
    pattern.
    """

    pattern: Pattern  #: with AGG
    method: str | None = None
    emit: str = "trigger"
    scope: str = "window"
    evaluator: str | None = None

    spans = 1, 0

    def __post_init__(self) -> None:
        self.live()
        if self.scope == "stream":
            raise EvaluationError(
                "scope='stream' counts matches of all slices; add up the values of scope='trigger', "
                "or use cep.aggregate, which takes the stream in one pass"
            )
        pattern = self.pattern
        if pattern.selects:
            raise UnsupportedPatternError(
                f"{selection(pattern)}: a match depends on all earlier matches, not only on those in the window; "
                "use cep.aggregate, which takes the stream in one pass"
            )
        if self._has_unknown_keys and self.looks_back:
            raise UnsupportedPatternError(
                f"GROUP BY {', '.join(map(str, pattern.group_by))} with a NOT or a group before the "
                "first item: which groups were seen depends on all earlier events; group by an "
                "attribute of the last item, or use cep.aggregate"
            )

    def live(self) -> Aggregator:
        """A new aggregator."""
        return Aggregator(
            self.pattern, self.method, emit=self.emit, scope=self.scope, evaluator=self.evaluator
        )

    @cached_property
    def _has_unknown_keys(self) -> bool:
        """Whether a trigger has rows of groups that it does not determine."""
        return self.emit == "trigger" and not Triggers(self.pattern).knows_all

    @property
    def shared_key(self) -> str | None:
        """An attribute by whose values events can be aggregated apart."""
        if self.emit != "trigger" or self.pattern.strategy.name not in _BLIND:
            return None
        return next((str(k.attribute) for k in self.pattern.group_by if k.variable is None), None)

    def schema(self, nothing: EventStream, names: pa.DataType | None) -> pa.Schema:
        return VALUES

    def found(
        self, part: Slice, batches: Iterable[Batch], budget: Budget | None = None
    ) -> Iterator[pa.Table]:
        """The values of a slice; none if there is no event."""
        values = self.values(part, batches)
        if values.types:
            yield pa.table([[part.number], [pickle.dumps(values)]], schema=VALUES)

    def values(self, part: Slice, batches: Iterable[Batch]) -> SliceValues:
        """The values of a slice, of the batches of :meth:`found`."""
        start = -MOST if part.start is None else part.start
        live, triggers = self.live(), Triggers(self.pattern)
        begin, seen, before = None, 0, 0
        types: dict[str, None] = {}
        rows: list[Row] = []
        unknown: list[Trigger] = []
        positions = [np.zeros(0, np.int64)]
        for batch, _ in batches:
            events = under_hierarchy_of([self.pattern], batch)
            types |= dict.fromkeys(events.type_names)
            first = int(np.searchsorted(events.timestamps, start))
            before += first
            if begin is None and first < len(events):
                begin = int(events.timestamps[first])
            kept = np.arange(len(events))
            if part.parts > 1:
                assert self.shared_key is not None
                parts = _parts(events.column(self.shared_key), part.parts)
                kept = np.flatnonzero(parts == part.of_key)
                events = events.with_rows(kept)
            rows += live.take(events)
            positions.append(seen + kept)
            if self._has_unknown_keys:
                own = int(np.searchsorted(kept, first))
                places = seen - before + kept[own:]
                unknown += _unknown_keys(triggers, self.pattern, events[own:], places)
            seen += len(batch)
        at = np.concatenate(positions) - before
        rows = [row._replace(position=int(at[row.position])) for row in rows]
        return SliceValues(
            events=seen - before,
            start=begin,
            # With changes, the rows before the slice are what it changes from.
            rows=[row for row in rows if row.position >= 0 or self.emit == "change"],
            groups=live.groups(),
            triggers=unknown,
            types=tuple(types),
            method=live.method,
            metrics=live.metrics,
            floats=live.floats[""],
        )

    def joined(self, slices: Sequence[SliceValues]) -> list[Row]:
        """The rows of consecutive slices, by position."""
        order: dict[Key, int] = {}
        current: dict[Key, tuple[Any, ...]] = {}
        rows: list[Row] = []
        position = 0
        for part in slices:
            if self.emit == "change":
                found = [*self._changed(part, current)]
            else:
                found = [*part.rows, *self._of_groups_before(part, order)]
            for key in part.groups:
                order.setdefault(key, len(order))
            found.sort(key=lambda row: (row.position, order[row.key]))
            rows += (row._replace(position=position + row.position) for row in found)
            position += part.events
        return rows

    def _changed(self, part: SliceValues, current: dict[Key, tuple[Any, ...]]) -> Iterator[Row]:
        """The rows of a slice that differ from the values before it, which are updated."""
        if part.start is None:
            return
        after = {row.key: row.values for row in part.rows if row.position <= 0}
        for key in {**current, **after}:
            values = after.get(key, self._nothing)
            if values != current.get(key, self._nothing):
                yield Row(0, part.start, key, values)
            current[key] = values
        for row in part.rows:
            if row.position > 0:
                current[row.key] = row.values
                yield row

    def _of_groups_before(self, part: SliceValues, seen: dict[Key, int]) -> Iterator[Row]:
        """Rows of groups that a slice has not seen yet, but those before it have."""
        there = {(row.position, row.key) for row in part.rows}
        for position, time, known in part.triggers:
            for key in seen:
                if (position, key) not in there and all(
                    mine in (..., its) for mine, its in zip(known, key, strict=True)
                ):
                    there.add((position, key))
                    yield Row(position, time, key, self._nothing)

    @property
    def _nothing(self) -> tuple[Any, ...]:
        """The values of no match."""
        return tuple(0 if its.function == "COUNT" else None for its in self.pattern.aggregates)


def _unknown_keys(
    triggers: Triggers, pattern: Pattern, events: EventStream, places: np.ndarray
) -> Iterator[Trigger]:
    """The triggers among some events, at some positions, that do not determine all of their keys."""
    for known, rows in triggers.by_keys(events):
        if len(known) == len(pattern.group_by):
            continue
        codes, keys = numbered(events, [pattern.group_by[its].attribute for its in known], rows)
        for row, code in zip(rows[codes >= 0].tolist(), codes[codes >= 0].tolist(), strict=True):
            own = dict(zip(known, keys[code], strict=True))
            key = tuple(own.get(place, ...) for place in range(len(pattern.group_by)))
            yield int(places[row]), int(events.timestamps[row]), key


def _parts(column: AttributeColumn, parts: int) -> np.ndarray:
    """The part of each event by its value in a column, in all batches and slices the same."""
    if isinstance(column, CodedStrings | Booleans):
        return part_of(np.array([*map(str, column.values), ""], object), parts)[column.codes]
    return part_of(numbers_of(column), parts)


#: Position and time of a trigger, and its keys with ``...`` for what it does not determine.
Trigger = tuple[int, int, Key]


@dataclass(frozen=True)
class SliceValues:
    """The values of a slice."""

    events: int
    start: int | None  #: time of the first event; None without events
    rows: list[Row]  #: with positions in the slice; with changes also those of the events before it
    groups: list[Key]  #: those seen, in order
    triggers: list[Trigger]  #: those that do not determine their groups
    types: tuple[str, ...]  #: those of the events; () without events
    method: str
    metrics: AggregateMetrics
    floats: list[bool]
