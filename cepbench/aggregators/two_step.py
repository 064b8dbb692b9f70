"""Aggregation in two steps: the matches are constructed, then aggregated [qi2014]_, section 2.2.

The baseline of A-Seq, over any evaluator, and exact for every pattern. Each match is folded into
the aggregate of its first event (START), and dropped from the value when this event expires. A
value is computed from the aggregates of all active STARTs.

Differs from the paper: an aggregate for each START instead of a list of matches; STARTs of the same
timestamp share it, because they expire together.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cepbench.aggregators.folds import Fold, State
from cepbench.aggregators.protocol import (
    AggregateMetrics,
    AggregationMethod,
    AggregationTask,
    Key,
    Row,
)
from cepbench.aggregators.triggers import Triggers, values_of
from cepbench.errors import EvaluationError, SnapshotError
from cepbench.evaluators.detector import Detector
from cepbench.evaluators.matches import BranchMatches, Column, Found, SetColumn
from cepbench.evaluators.registry import EVALUATORS, evaluator_for
from cepbench.evaluators.snapshot import arrays_under
from cepbench.evaluators.tasks import constructs_of, evaluator_without_plan, runs_some
from cepbench.patterns.model import Pattern
from cepbench.plans.model import AnyPlan, OrderPlan, TreePlan, UnionPlan
from cepbench.plans.tree import right_deep
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents

_DEFAULT = "stack-nfa"
_DETECTOR, _RECENT = "detector ", "recent "


class _Arrival(NamedTuple):
    """Matches of one group with the same last event and the same earliest timestamp."""

    key: Key
    start: int
    matches: int
    states: list[State]


@dataclass(eq=False)
class _Group:
    """The matches of a group that count.

    Attributes
    ----------
    key : tuple
    number : int
        In the order in which groups were seen.
    starts : dict of int to list
        Earliest timestamp → number of matches, and the state of each aggregate.
    values : tuple or None
        The current values; None if to be computed.
    reported : tuple or None
        The values after the event before.
    """

    key: Key
    number: int
    starts: dict[int, list[Any]] = field(default_factory=dict)
    values: tuple[Any, ...] | None = None
    reported: tuple[Any, ...] | None = None


class TwoStepRun:
    """A run of ``two-step``.

    Parameters
    ----------
    task : AggregationTask
    detector : Detector, optional
        Finds the matches; by default the evaluator of the task.
    """

    def __init__(self, task: AggregationTask, detector: Any = None) -> None:
        self._task = task
        pattern = task.pattern
        if detector is None:
            matches = pattern.without_aggregate()
            plan, evaluator = matching(matches, task.evaluator)
            detector = Detector(matches, plan, evaluator=evaluator)
        self._detector = detector
        self._pattern = pattern
        attributes = {key.attribute for key in pattern.group_by}
        attributes |= {each.attribute for each in pattern.aggregates if each.attribute}
        self._length = pattern.window.length
        self._recent = RecentEvents(attributes, self._length, 0)
        self._triggers = Triggers(pattern)
        self._folds = [Fold(aggregate) for aggregate in pattern.aggregates]
        self._nothing = self._values([])
        self._groups: dict[Key, _Group] = {}
        #: Earliest timestamps with the numbers of their groups, for expiry.
        self._expiring: list[tuple[int, int]] = []
        self._by_number: list[_Group] = []
        self._active = self._counters = 0
        self._updates = self._peak_active = self._peak_counters = 0

    def push(self, batch: EventStream) -> list[Row]:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.push`."""
        first = self._detector.position
        found = self._detector.take(batch)
        self._recent.push(batch)
        arrivals = self._arrivals(found)
        if arrivals and min(arrivals) < first:
            raise EvaluationError(
                f"the evaluator {self._detector.evaluator} reported a match after the batch of its "
                "last event; use cep.aggregate, which takes the whole stream"
            )
        triggers = self._triggers.of(batch)
        rows: list[Row] = []
        reports_changes = self._task.emit == "change"
        positions: Iterable[int] = range(first, first + len(batch))
        if not reports_changes:
            positions = sorted({*arrivals, *(first + row for row in triggers)})
        for position in positions:
            time = int(batch.timestamps[position - first])
            touched = dict.fromkeys(self._expire(time))
            for arrival in arrivals.get(position, ()):
                touched[self._fold(arrival)] = None
            self._peak_active = max(self._peak_active, self._active)
            self._peak_counters = max(self._peak_counters, self._counters)
            groups = self._of_trigger(triggers.get(position - first, []))
            if reports_changes:
                groups = [group for group in touched if self._has_changed(group)]
                groups.sort(key=lambda group: group.number)
            rows += (Row(position, time, g.key, self._values_of(g)) for g in groups)
        return rows

    def value(self, time: int) -> list[Row]:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.value`."""
        if not self._pattern.group_by:
            self._group(())
        least = time - self._length if self._task.scope == "window" else None
        return [
            Row(
                -1,
                time,
                group.key,
                self._values(
                    its for start, its in group.starts.items() if least is None or start >= least
                ),
            )
            for group in self._groups.values()
        ]

    def metrics(self) -> AggregateMetrics:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.metrics`."""
        found = self._detector.metrics()
        buffered = found.peak_buffered_events
        return AggregateMetrics(
            updates=self._updates,
            peak_counters=self._peak_counters,
            peak_objects=self._peak_active + (0 if buffered != buffered else int(buffered)),
            peak_bytes=found.peak_bytes,
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.snapshot`."""
        groups = [
            [list(group.key), list(group.starts.items()), group.reported]
            for group in self._groups.values()
        ]
        numbers = [self._updates, self._peak_active, self._peak_counters]
        state = json.dumps({"groups": groups, "numbers": numbers})
        arrays = {"state": np.frombuffer(state.encode(), np.uint8)}
        arrays |= {f"{_DETECTOR}{name}": its for name, its in self._detector.snapshot().items()}
        return arrays | {f"{_RECENT}{name}": its for name, its in self._recent.packed().items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """See :meth:`cepbench.aggregators.protocol.AggregationRun.restore`.

        Raises
        ------
        SnapshotError
            If the snapshot is damaged.
        """
        self._detector = Detector.restore(arrays_under(_DETECTOR, state))
        self._recent.restore(arrays_under(_RECENT, state))
        try:
            known = json.loads(state["state"].tobytes())
            self._updates, self._peak_active, self._peak_counters = known["numbers"]
            for key, starts, reported in known["groups"]:
                group = self._group(tuple(key))
                group.reported = None if reported is None else tuple(reported)
                for start, (matches, *states) in starts:
                    group.starts[start] = [matches, *states]
                    self._expiring.append((start, group.number))
                    self._active += matches
                    self._counters += 1
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot is damaged: no usable values: {error!r}") from error
        heapq.heapify(self._expiring)

    # -- groups ---------------------------------------------------------------------------------

    def _group(self, key: Key) -> _Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(key, len(self._by_number))
            self._by_number.append(group)
        return group

    def _of_trigger(self, owned: list[Key]) -> list[_Group]:
        """The groups of which a trigger gives the value."""
        found: dict[_Group, None] = {}
        for own in owned:
            if ... not in own:
                found[self._group(own)] = None
                continue
            for group in self._groups.values():
                if all(mine in (..., its) for mine, its in zip(own, group.key, strict=True)):
                    found[group] = None
        return sorted(found, key=lambda group: group.number)

    def _expire(self, time: int) -> Iterator[_Group]:
        """Drop the matches that count no more; yields their groups."""
        scope = self._task.scope
        if scope == "stream":
            return
        least = time - self._length
        # In scope trigger nothing is left after the event that completed it.
        while self._expiring and (scope == "trigger" or self._expiring[0][0] < least):
            start, number = heapq.heappop(self._expiring)
            group = self._by_number[number]
            self._active -= group.starts.pop(start)[0]
            self._counters -= 1
            group.values = None
            yield group

    def _fold(self, arrival: _Arrival) -> _Group:
        """Add matches to the aggregate of their first event."""
        group = self._group(arrival.key)
        # What never expires needs no START.
        start = 0 if self._task.scope == "stream" else arrival.start
        its = group.starts.get(start)
        if its is None:
            its = group.starts[start] = [0, *(fold.nothing for fold in self._folds)]
            heapq.heappush(self._expiring, (start, group.number))
            self._counters += 1
        its[0] += arrival.matches
        for place, (fold, state) in enumerate(zip(self._folds, arrival.states, strict=True), 1):
            its[place] = fold.plus(its[place], state)
        self._active += arrival.matches
        self._updates += arrival.matches
        group.values = None
        return group

    def _has_changed(self, group: _Group) -> bool:
        values = self._values_of(group)
        before = self._nothing if group.reported is None else group.reported
        group.reported = values
        return values != before

    def _values_of(self, group: _Group) -> tuple[Any, ...]:
        if group.values is None:
            group.values = self._values(group.starts.values())
        return group.values

    def _values(self, starts: Iterable[list[Any]]) -> tuple[Any, ...]:
        listed = list(starts)
        return tuple(
            fold.total([its[place] for its in listed]) for place, fold in enumerate(self._folds, 1)
        )

    # -- matches --------------------------------------------------------------------------------

    def _arrivals(self, found: Found) -> dict[int, list[_Arrival]]:
        """The matches of a batch by the position of their last event."""
        arrivals: dict[int, list[_Arrival]] = {}
        for matches in found.matches:
            if matches is not None and len(matches):
                self._add_arrivals(matches, arrivals)
        return arrivals

    def _add_arrivals(self, matches: BranchMatches, arrivals: dict[int, list[_Arrival]]) -> None:
        """Fold matches of one branch by last event, group and START."""
        events, first = self._recent.stream, self._recent.first
        bound = {
            name: _rows_and_owners(column, first)
            for name, column in zip(matches.names, matches.columns, strict=True)
        }
        earliest = matches.first_positions() - first
        numbers: dict[Key, int] = {(): 0}
        group = np.zeros(len(earliest), np.int64)
        if self._pattern.group_by:
            keys = self._keys(events, earliest, {name: rows for name, (rows, _) in bound.items()})
            # Groups that are first seen with the same event come in the order of their keys.
            ordered = sorted(dict.fromkeys(key for key in keys if None not in key))
            numbers = {key: number for number, key in enumerate(ordered)}
            group[:] = [numbers.get(key, -1) for key in keys]
        folds, fold_of = _distinct(matches.last_positions(), group, events.timestamps[earliest])
        counted = np.bincount(fold_of)
        states: list[list[State]] = []
        for fold in self._folds:
            name, attribute = fold.aggregate.variable, fold.aggregate.attribute
            if name is None:
                states.append(counted.tolist())
            elif name not in bound:
                states.append([fold.nothing] * len(counted))
            else:
                rows, owners = bound[name]
                values = None if attribute is None else events.column(attribute)
                states.append(fold.of_events(values, rows, fold_of[owners], len(counted)))
        listed = list(numbers)
        for (position, code, start), number, *its in zip(
            folds.T.tolist(), counted.tolist(), *states, strict=True
        ):
            if code >= 0:
                arrivals.setdefault(position, []).append(_Arrival(listed[code], start, number, its))

    def _keys(
        self, events: EventStream, earliest: np.ndarray, rows: Mapping[str, np.ndarray]
    ) -> list[Key]:
        """The group of each match, with None for a missing value."""
        columns = [
            values_of(
                events.column(key.attribute),
                earliest if key.variable is None else rows[key.variable],
            )
            for key in self._pattern.group_by
        ]
        return list(zip(*columns, strict=True))


def _distinct(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of columns, in ascending order, as columns, and which of them each row is.

    :func:`numpy.unique` takes ten times as long for rows.
    """
    order = np.lexsort(columns[::-1])
    rows = np.stack([column[order] for column in columns])
    begins = np.ones(len(order), bool)
    begins[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    places = np.empty(len(order), np.int64)
    places[order] = np.cumsum(begins) - 1
    return rows[:, begins], places


def _rows_and_owners(column: Column, first: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a variable's events, and the match that each belongs to."""
    if isinstance(column, SetColumn):
        return column.positions - first, np.repeat(np.arange(len(column)), column.sizes)
    return column - first, np.arange(len(column))


def matching(pattern: Pattern, evaluator: str | None) -> tuple[AnyPlan | None, str]:
    """How the matches of a pattern are found: a plan, in the written order, and an evaluator.

    By default ``stack-nfa``, the automaton of section 2.2, or where it does not support the pattern
    the default evaluator without plans for its strategy, or ``lazy-nfa``.

    Raises
    ------
    EvaluationError
        If the evaluator is unknown.
    """
    if evaluator is not None:
        entry = evaluator_for(evaluator)
    else:
        entry = EVALUATORS[_DEFAULT]
        if not (
            constructs_of(pattern) <= set(entry.constructs)
            and pattern.strategy.name in entry.strategies
        ):
            entry = evaluator_without_plan(pattern.strategy.name) or EVALUATORS["lazy-nfa"]
    if entry.without_plan:
        return None, entry.name
    plans = [
        OrderPlan(branch.planned_names)
        if runs_some(entry, "order")
        else TreePlan(right_deep(branch.planned_names))
        for branch in pattern.branches()
    ]
    return plans[0] if len(plans) == 1 else UnionPlan(plans), entry.name


TWO_STEP = AggregationMethod(
    "two-step", TwoStepRun, lists_matches=True, source="[qi2014]_, section 2.2"
)
