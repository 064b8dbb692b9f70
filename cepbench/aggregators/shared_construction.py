"""Two-step aggregation of a workload whose common part is matched once, as by E-Cube in [qi2014]_, 6.3.

The longest sequence of items that queries have in common is searched once. Each query completes the
matches of this part by those of its own items before and behind it, and aggregates its matches as
``two-step`` does.

Differs from E-Cube: only one part is shared, and not between queries of different concepts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cepbench.aggregators.protocol import AggregateMetrics, AggregationTask, Row
from cepbench.aggregators.triggers import values_of
from cepbench.aggregators.two_step import TwoStepRun, matching
from cepbench.errors import SnapshotError
from cepbench.evaluators.detector import Detector
from cepbench.evaluators.matches import BranchMatches, Found, joined, no_matches
from cepbench.evaluators.result import Metrics
from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.model import Clause, Pattern
from cepbench.plans.segments import Segment
from cepbench.plans.workload import WorkloadPlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader
from cepbench.streams.recent import RecentEvents

#: The name of this sharing.
CONSTRUCTION = "CONSTRUCTION"


class ConstructionRun:
    """Runs the queries of a workload by ``two-step``, with a common part.

    Parameters
    ----------
    tasks : mapping of str to AggregationTask
    plan : WorkloadPlan
        Without cuts: the segments are the queries.

    Attributes
    ----------
    methods : mapping of str to str
        By query.
    """

    def __init__(self, tasks: Mapping[str, AggregationTask], plan: WorkloadPlan) -> None:
        self.methods = dict.fromkeys(tasks, "two-step")
        whole = {
            name: segment
            for name, task in tasks.items()
            for segment in plan.segments(name)
            # A NOT forbids the events of its partition only.
            if not (segment.equivalences and task.pattern.negated)
        }
        places = common_part(whole)
        self._common: _Search | None = None
        self._completed: dict[str, _Completed] = {}
        if places:
            windows = [tasks[name].pattern.window for name in places]
            name, place = next(iter(places.items()))
            pattern = part_of(tasks[name].pattern.without_aggregate(), place)
            longest = max(windows, key=lambda window: window.length)
            self._common = _Search(replace(pattern, window=longest), tasks[name].evaluator)
            for query, its in places.items():
                self._completed[query] = _Completed(tasks[query], its)
        self._runs = {
            name: TwoStepRun(task, self._completed.get(name)) for name, task in tasks.items()
        }

    def push(self, batch: EventStream) -> dict[str, Sequence[Row]]:
        """Process the next events; returns the rows to report of each query."""
        if self._common is not None:
            found = self._common.take(batch)
            for completed in self._completed.values():
                completed.common = found
        return {name: run.push(batch) for name, run in self._runs.items()}

    def value(self, time: int) -> dict[str, Sequence[Row]]:
        """The value of each query and group at a time; changes nothing."""
        return {name: run.value(time) for name, run in self._runs.items()}

    def metrics(self) -> AggregateMetrics:
        """Metrics so far; the matches of the common part are objects too."""
        listed = [run.metrics() for run in self._runs.values()]
        found = sum((its.peak_stored for its in self._completed.values()), 0)
        shared = 0 if self._common is None else self._common.peak_buffered + self._common.found
        return AggregateMetrics(
            updates=sum(its.updates for its in listed),
            peak_counters=sum(its.peak_counters for its in listed),
            peak_objects=sum(its.peak_objects for its in listed) + found + shared,
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """Not supported.

        Raises
        ------
        SnapshotError
        """
        raise SnapshotError(
            "an aggregator with sharing='CONSTRUCTION', a baseline, has no snapshots; leave out sharing"
        )

    restore: Any = snapshot


def common_part(queries: Mapping[str, Segment]) -> dict[str, slice]:
    """Where the longest part is that two queries or more have in common, by query.

    Of parts of the same length it is one of most queries.
    """
    found: dict[tuple[Any, ...], dict[str, slice]] = {}
    for name, segment in queries.items():
        for begin in range(len(segment.steps)):
            for end in range(begin + 1, len(segment.steps) + 1):
                steps = segment.steps[begin:end]
                last = replace(steps[-1], negations=frozenset[Any]())
                key = segment.equivalences, (*steps[:-1], last)
                found.setdefault(key, {}).setdefault(name, slice(begin, end))
    shared = [(len(key[1]), len(its), its) for key, its in found.items() if len(its) > 1]
    return max(shared, key=lambda each: each[:2], default=(0, 0, {}))[2]


def part_of(pattern: Pattern, place: slice) -> Pattern:
    """The items of a pattern at some places, with the NOTs between them."""
    before = pattern.structure.precedence()
    kept = pattern.positive_names[place]
    is_inner = {
        variable.name
        for variable in pattern.negated
        if any((name, variable.name) in before for name in kept)
        and any((variable.name, name) in before for name in kept)
    }
    return pattern.without(v for v in pattern.variables if v.name not in {*kept, *is_inner})


class _Search:
    """Finds the matches of a part of a query."""

    def __init__(self, pattern: Pattern, evaluator: str | None) -> None:
        plan, chosen = matching(pattern, evaluator)
        self.pattern = pattern
        self._detector = Detector(pattern, plan, evaluator=chosen)
        self.evaluator = self._detector.evaluator
        self.found = 0

    def take(self, batch: EventStream) -> BranchMatches:
        """The matches that a batch completes, in the order of their last events."""
        matches = self._detector.take(batch).matches
        found = matches[0] if matches else None
        if found is None or not len(found):
            return no_matches(self.pattern.positive)
        self.found += len(found)
        return found.taken(np.argsort(found.last_positions(), kind="stable"))

    @property
    def peak_buffered(self) -> int:
        """The most events that were stored."""
        found = self._detector.metrics().peak_buffered_events
        return 0 if found != found else int(found)


@dataclass(frozen=True)
class _Kept:
    """Matches of a part, in the order of their last events.

    Attributes
    ----------
    matches : BranchMatches
    firsts, lasts : ndarray of int64
        Times of their first and last events.
    keys : ndarray of int64
        Numbers of their partitions.
    """

    matches: BranchMatches
    firsts: np.ndarray
    lasts: np.ndarray
    keys: np.ndarray

    def taken(self, chosen: np.ndarray) -> _Kept:
        """These of them."""
        matches = self.matches.taken(chosen)
        return _Kept(matches, self.firsts[chosen], self.lasts[chosen], self.keys[chosen])

    def followed_by(self, other: _Kept) -> _Kept:
        """These, and then others of the same part."""
        return _Kept(
            joined((self.matches, other.matches)),
            np.append(self.firsts, other.firsts),
            np.append(self.lasts, other.lasts),
            np.append(self.keys, other.keys),
        )


class _Completed:
    """The matches of a query, from those of its parts; as a detector gives them.

    Parameters
    ----------
    task : AggregationTask
    place : slice
        Of the common part among its items.

    Attributes
    ----------
    common : BranchMatches
        Those of the common part that the next batch completes.
    """

    def __init__(self, task: AggregationTask, place: slice) -> None:
        pattern = task.pattern.without_aggregate()
        self._window = pattern.window.length
        ends = [0, place.start, place.stop, len(pattern.positive)]
        slices = [slice(*its) for its in pairwise(ends) if its[0] < its[1]]
        self._common = slices.index(slice(place.start, place.stop))
        self._parts = [part_of(pattern, its) for its in slices]
        self._searches = {
            number: _Search(part, task.evaluator)
            for number, part in enumerate(self._parts)
            if number != self._common
        }
        #: Behind each part but the last one: what a NOT forbids before the next one.
        self._forbidden = [_forbidden_at(pattern, its.stop) for its in slices[:-1]]
        self._reader = NumericReader()
        self._times: list[list[np.ndarray]] = [[] for _ in self._forbidden]
        self._recent = RecentEvents(pattern.equivalences, self._window, 0)
        self._keys: dict[tuple[Any, ...], int] = {}
        self._kept: list[_Kept | None] = [None for _ in self._forbidden]
        self.common = no_matches(())
        self.position = 0
        self.evaluator = next(iter(self._searches.values())).evaluator if self._searches else ""
        self.peak_stored = 0

    def take(self, batch: EventStream) -> Found:
        """The matches that a batch completes."""
        self.position += len(batch)
        self._recent.push(batch)
        new = [
            self._timed(
                BranchMatches(part.positive_names, self.common.chunks)
                if number == self._common
                else self._searches[number].take(batch)
            )
            for number, part in enumerate(self._parts)
        ]
        found, earliest = new[-1], int(batch.timestamps[-1]) - self._window
        for number in reversed(range(len(self._kept))):
            forbidden = self._forbidden_times(number, batch, earliest)
            before, kept = new[number], self._kept[number]
            if kept is not None:
                before = kept.followed_by(before)
            found = self._connected(before, found, forbidden)
            if number != self._common:
                self.peak_stored = max(self.peak_stored, most_kept(before, self._window))
            self._kept[number] = before.taken(np.flatnonzero(before.firsts >= earliest))
        return Found(len(found.firsts), (found.matches,))

    def metrics(self) -> Metrics:
        """Of the parts that are not shared."""
        buffered = sum(search.peak_buffered for search in self._searches.values())
        return Metrics(peak_buffered_events=buffered)

    def _timed(self, matches: BranchMatches) -> _Kept:
        """Matches with their times and keys."""
        stream, first = self._recent.stream, self._recent.first
        firsts = matches.first_positions() - first
        columns = [values_of(stream.column(name), firsts) for name in stream.attributes]
        keys = zip(*columns, strict=True) if columns else [()] * len(firsts)
        return _Kept(
            matches,
            stream.timestamps[firsts],
            stream.timestamps[matches.last_positions() - first],
            np.array([self._keys.setdefault(key, len(self._keys)) for key in keys], np.int64),
        )

    def _forbidden_times(self, number: int, batch: EventStream, earliest: int) -> list[np.ndarray]:
        """Times of the events that the NOTs behind a part forbid, by NOT."""
        listed = []
        for place, (type, clauses) in enumerate(self._forbidden[number]):
            rows = batch.rows_of(type)
            for clause in clauses:
                rows = rows[
                    clause_holds(
                        clause,
                        lambda a, at=rows: self._reader.read(batch, a.name, at),  # type: ignore[misc]
                        self._reader.code,
                    )
                ]
            known = self._times[number]
            before = known[place] if place < len(known) else np.zeros(0, np.int64)
            listed.append(np.append(before, batch.timestamps[rows]))
        self._times[number] = [its[its >= earliest] for its in listed]
        return listed

    def _connected(self, left: _Kept, right: _Kept, forbidden: list[np.ndarray]) -> _Kept:
        """The pairs of matches of two parts that are a match together."""
        low = np.searchsorted(left.lasts, right.lasts - self._window)
        high = np.searchsorted(left.lasts, right.firsts)
        sizes = np.maximum(high - low, 0)
        two = np.repeat(np.arange(len(sizes)), sizes)
        one = np.arange(len(two)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + low[two]
        fits = left.firsts[one] >= np.repeat(right.lasts - self._window, sizes)
        if len(self._keys) > 1:
            fits &= left.keys[one] == np.repeat(right.keys, sizes)
        for times in forbidden:
            after = np.searchsorted(times, left.lasts[one], side="right")
            fits &= after == np.searchsorted(times, right.firsts[two])
        before, behind = left.taken(one[fits]), right.taken(two[fits])
        matches = BranchMatches(
            (*before.matches.names, *behind.matches.names),
            [(*before.matches.columns, *behind.matches.columns)],
        )
        return _Kept(matches, before.firsts, behind.lasts, behind.keys)


def most_kept(matches: _Kept, window: int) -> int:
    """The most matches at a time, each from its last event until its first one expires."""
    expired = np.searchsorted(np.sort(matches.firsts + window), matches.lasts)
    return int((np.arange(1, len(expired) + 1) - expired).max(initial=0))


def _forbidden_at(pattern: Pattern, place: int) -> list[tuple[str | None, tuple[Clause, ...]]]:
    """The types and conditions of the NOTs before an item."""
    before = pattern.structure.precedence()
    return [
        (variable.type, tuple(c for c in pattern.conditions if c.variables == (variable.name,)))
        for variable in pattern.negated
        if sum((name, variable.name) in before for name in pattern.positive_names) == place
    ]
