"""Aggregates over slices of a stream, each with the events before it that its values depend on.

The rows of all slices together are those of one pass, sums of floats up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.engines.aggregation.live import Aggregator
from cepbench.engines.aggregation.protocol import AggregateMetrics, Key, Row
from cepbench.engines.aggregation.triggers import Triggers
from cepbench.errors import EvaluationError, UnsupportedPatternError
from cepbench.patterns.model import Kind, Pattern
from cepbench.patterns.reach import looks_back
from cepbench.streams.columns import AttributeColumn, Booleans, CodedStrings, numbers_of
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import under_hierarchy_of

#: Strategies by which events of other groups do not matter.
_BLIND = ("any", "next")


@dataclass(frozen=True)
class SliceTask:
    """How slices are aggregated; checked on construction.

    Attributes
    ----------
    pattern : Pattern
        With AGG.
    method : str, optional
    emit : {"trigger", "change"}
    scope : {"window", "trigger"}
    evaluator : str, optional

    Raises
    ------
    EvaluationError, PatternError
        If an argument is invalid, or the scope is ``stream``.
    UnsupportedPatternError
        If a value depends on events long before, or the method cannot run the pattern.
    """

    pattern: Pattern
    method: str | None
    emit: str
    scope: str
    evaluator: str | None

    def __post_init__(self) -> None:
        self.live()
        if self.scope == "stream":
            raise EvaluationError(
                "scope='stream' counts matches of all slices; add up the values of scope='trigger', "
                "or use cep.aggregate, which takes the stream in one pass"
            )
        pattern = self.pattern
        if pattern.selects:
            what = "STRATEGY consuming" if pattern.output == "all" else f"OUTPUT {pattern.output}"
            raise UnsupportedPatternError(
                f"{what}: a match depends on all earlier matches, not only on those in the window; "
                "use cep.aggregate, which takes the stream in one pass"
            )
        if self.emit == "trigger" and not self._has_known_keys() and looks_back(self.pattern):
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

    @property
    def lead(self) -> int:
        """How long before a slice the events begin that its values depend on, in ticks.

        A match that counts lies in the window. What stands before its first item reaches back from
        its last event by another window.
        """
        return (1 + looks_back(self.pattern)) * self.pattern.window.length

    @property
    def shared_key(self) -> str | None:
        """An attribute by whose values events can be aggregated apart."""
        if self.emit != "trigger" or self.pattern.strategy.name not in _BLIND:
            return None
        return next((str(k.attribute) for k in self.pattern.group_by if k.variable is None), None)

    def values(
        self, events: EventStream, start: int, keys: tuple[int, int] = (0, 1)
    ) -> SliceValues:
        """The values of a slice.

        Parameters
        ----------
        events : EventStream
            From :attr:`lead` ticks before the slice to its end.
        start : int
            Time of the slice's beginning, in ticks.
        keys : (int, int)
            (k, n): the k-th of n parts of the groups, by :attr:`shared_key`.
        """
        events = under_hierarchy_of([self.pattern], events)
        first = int(np.searchsorted(events.timestamps, start))
        kept = np.arange(len(events))
        if keys[1] > 1:
            assert self.shared_key is not None
            kept = np.flatnonzero(_codes(events.column(self.shared_key)) % keys[1] == keys[0])
        live = self.live()
        rows = [
            row._replace(position=int(kept[row.position]) - first)
            for row in live.take(events.with_rows(kept))
        ]
        triggers: list[Trigger] = []
        if self.emit == "trigger" and not self._has_known_keys():
            own = kept[kept >= first]
            its_events = events.with_rows(own)
            triggers = [
                (int(own[row]) - first, int(its_events.timestamps[row]), known)
                for row, found in sorted(Triggers(self.pattern).of(its_events).items())
                for known in found
            ]
        return SliceValues(
            events=len(events) - first,
            start=None if first == len(events) else int(events.timestamps[first]),
            # With changes, the rows before the slice are what it changes from.
            rows=[row for row in rows if row.position >= 0 or self.emit == "change"],
            groups=live.groups(),
            triggers=triggers,
            method=live.method,
            metrics=live.metrics,
            floats=live.floats,
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

    def _has_known_keys(self) -> bool:
        """Whether a trigger determines its group."""
        lasts = [
            [v.name for v in branch.variables() if v.kind is not Kind.NEGATED][-1]
            for branch in self.pattern.structure.alternatives()
        ]
        return all(
            key.variable is None or all(key.variable == last for last in lasts)
            for key in self.pattern.group_by
        )


def _codes(column: AttributeColumn) -> np.ndarray:
    """Numbers of the values of a column."""
    if isinstance(column, CodedStrings | Booleans):
        return column.codes
    return np.unique(numbers_of(column), return_inverse=True)[1]


#: Position and time of a trigger, and its keys with ``...`` for what it does not determine.
Trigger = tuple[int, int, Key]


@dataclass(frozen=True)
class SliceValues:
    """The values of a slice.

    Attributes
    ----------
    events : int
    start : int or None
        Time of the first event; None without events.
    rows : list of Row
        With positions in the slice; with changes also those of the events before it.
    groups : list of tuple
        The groups seen, in order.
    triggers : list of Trigger
        Those that do not determine their groups.
    method : str
    metrics : AggregateMetrics
    floats : list of bool
    """

    events: int
    start: int | None
    rows: list[Row]
    groups: list[Key]
    triggers: list[Trigger]
    method: str
    metrics: AggregateMetrics
    floats: list[bool]
