"""A run of the queries of a workload, some of which are computed from the matches of others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any, NamedTuple

import numpy as np

from cepbench.engines.detection.arrival import sharing as sharing_state
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.live import attributes_of
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import task_for
from cepbench.engines.detection.workload_evaluate import (
    chosen_for,
    engine_of,
    from_events,
    queries_of,
    words_of,
)
from cepbench.engines.reuse.events import Events, ReuseWork
from cepbench.engines.reuse.growth import ALL, Sought
from cepbench.engines.reuse.queries import Query, query_of
from cepbench.engines.reuse.reuse import warm_up
from cepbench.engines.reuse.sets import (
    Sized,
    Sizes,
    Way,
    allowed,
    as_columns,
    by_sizes,
    distinct,
    listed,
    number_of,
    united,
)
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.protocol import Arguments, Evaluator
from cepbench.engines.runs.result import Metrics
from cepbench.engines.runs.work import Work
from cepbench.errors import PartialMatchLimitError, errors_naming
from cepbench.planning.plans.reuse import Reuse, goes_on, waits_on_stream
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.state import Stateful
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader
from cepbench.streams.recent import RecentEvents

#: Positions of matches by the sizes of their sets, int64, shape (variables, matches).
Tables = dict[Sizes, np.ndarray]


class _Moment(NamedTuple):
    """What is known after a batch."""

    events: Events  #: those kept
    first: int  #: the position of the first one
    new: int  #: the place among them of the first one of the batch
    before: int | None  #: the last timestamp before the batch
    now: int | None  #: the last timestamp; None at the end of the stream

    def due(self, window: int) -> Sought:
        """The matches whose window has passed since the batch before."""
        times = self.events.times
        begin = 0 if self.before is None else np.searchsorted(times, self.before - window)
        end = len(times) if self.now is None else np.searchsorted(times, self.now - window)
        return Sought(int(begin), int(end), by_first=True)


class WorkloadRun(Stateful):
    """A run of all queries of a plan, as ``asked``; what it finds is by query."""

    SAVED = (
        "position", "_last", "_clocked", "_shape", "_from_scratch", "_kept", "_pending", "recent",
        "_reader", "_did",
    )  # fmt: skip

    def __init__(self, plan: WorkloadPlan, asked: Arguments) -> None:
        self.asked = asked
        self._reader = NumericReader()
        self.position = asked.position
        #: The last timestamp; None before the first event.
        self._last: int | None = None
        #: Stamps the events, of all queries alike, under ORDER BY arrival; None before them.
        self.clock: ArrivalClock | None = None
        self._begin(plan)

    def _begin(
        self,
        plan: WorkloadPlan,
        order: Sequence[str] | None = None,
        groups: Mapping[str, int] | None = None,
        reused: Iterable[str] = (),
    ) -> None:
        """Open all queries at the present position.

        ``groups`` number the state that each query from scratch shares, by default one; ``reused`` take part
        in reuse although they are the source of none any more.
        """
        self.plan = plan
        #: The queries that are reported; a source may be computed although it was removed.
        self.reported = list(plan.workload.patterns)
        self._ways = [plan.reuse(query) for query in (plan.order if order is None else order)]
        #: Those of the queries that are computed from scratch.
        self.detectors: dict[str, Detector] = {}
        #: The number of the state that a detector shares with others.
        self._groups: dict[str, int] = {}
        #: What reuse did, and detectors that are no more, word by word.
        self._did = Work()
        self._unused = tuple(reused)
        self._link()
        if groups is None:
            groups = {way.query: 0 for way in self._ways if way.source is None}
        self.detectors |= self._opened(plan, groups)
        self._groups |= groups

    def stamp_by(self, clock: ArrivalClock) -> None:
        """Let a clock stamp the events, before the first one."""
        self.clock = clock
        self._link()
        for detector in self.detectors.values():
            detector.stamp_by(clock)

    def _link(self) -> None:
        """Prepare the reuse of matches; nothing is known yet."""
        patterns = self.plan.computed.patterns
        if self.plan.workload.order == "arrival":
            clock = self.clock or ArrivalClock.live(patterns.values())
            patterns = {query: clock.pattern(its) for query, its in patterns.items()}
        #: The queries that take part in reuse, so that their matches are listed.
        self.queries = queries_of(patterns, self._ways)
        self.queries |= {query: query_of(patterns[query]) for query in self._unused}
        self._reader.span = 2 * max(its.window.length for its in patterns.values())
        #: Whether the matches of each query are known at the end of their window only.
        self._waits: dict[str, bool] = {}
        for way in self._ways:
            self._waits[way.query] = waits_on_stream(way, self._waits, patterns)
        self._edges = {way.query: self._edges_of(way) for way in self._ways if way.sources}
        used = [patterns[query] for query in self.queries]
        span = max((pattern.window.length for pattern in used), default=0)
        if any(self._waits[query] for query in self._edges):
            # A negation at the start looks back as far from the last event.
            span *= 2
        self.recent = RecentEvents(attributes_of(used), span, self.position) if used else None
        #: Matches of sources that a later event can extend, as positions in the stream.
        self._kept: dict[str, Tables] = {}
        #: Matches, or projections, of queries that a later event can forbid, or contain.
        self._pending: dict[str, Tables] = {}
        for way in self._ways:
            prompt = [source for source in way.sources if not self._waits[source]]
            if way.method == "down" and prompt and goes_on(patterns[way.query], way.embedding):
                (source,) = prompt
                self._kept[source] = {}
            if self._waits[way.query] and (prompt if way.method == "down" else way.sources):
                self._pending[way.query] = {}
        if used:
            warm_up()

    def _opened(self, planned: WorkloadPlan, groups: Mapping[str, int]) -> dict[str, Detector]:
        """Detectors of queries that are computed from scratch; those of a group may share state."""
        opened: dict[str, Detector] = {}
        sharing: dict[tuple[str, int], Evaluator] = {}
        for query, group in groups.items():
            pattern, plan = planned.computed.patterns[query], planned.plans.get(query)
            with errors_naming(query):
                evaluator = engine_of(self.asked.evaluator, query)
                evaluator, plan = chosen_for(pattern, plan, evaluator)
                entry = None if evaluator is None else evaluator_for(evaluator)
                if entry is not None and entry.together is not None:
                    shared = sharing.get((entry.name, group))
                    shared = shared or sharing_state(entry, pattern.order)
                    evaluator = sharing[entry.name, group] = shared
                asked = replace(self.asked, evaluator=evaluator, position=self.position)
                if query in self.queries:
                    # What is reused is shown here, whoever found it.
                    pattern = replace(pattern, returns=())
                    asked = replace(asked, output="matches")
                opened[query] = Detector.of_task(task_for(pattern, plan, asked))
                if self.clock is not None:
                    opened[query].stamp_by(self.clock.restarted())
        return opened

    def _edges_of(self, way: Reuse) -> Way:
        """The edges of a way; negated events that come last are left for when matches are due."""
        if way.method != "down" or self._waits[way.sources[0]]:
            return Way.of(way, self.queries)
        query = self.queries[way.query]
        late = {check.name for check in query.checks if check.is_late}
        prompt = query.pattern.without(v for v in query.pattern.negated if v.name in late)
        return Way.of(way, {**self.queries, way.query: query_of(prompt)} if late else self.queries)

    def push(self, batch: EventStream) -> dict[str, Found]:
        """The new matches of the queries that are reported."""
        found = self._found(batch)
        self.position += len(batch)
        if len(batch):
            self._last = int(batch.timestamps[-1])
        return {query: found[query] for query in self.reported}

    def finish(self) -> dict[str, Found]:
        """Those that waited for the end of the stream."""
        found = self._found(None)
        return {query: found[query] for query in self.reported}

    def _found(self, batch: EventStream | None) -> dict[str, Found]:
        """The new matches of all queries that are computed; with None, at the end of the stream."""
        found: dict[str, Found] = {}
        matches: dict[str, Tables] = {}
        stamped = batch
        if batch is not None and self.clock is not None:
            stamped, self.clock = self.clock.stamped(batch)
        moment = self._moment(stamped)
        counts = self.asked.output == "count"
        sources = {source for way in self._ways for source in way.sources}
        for way in self._ways:
            query = way.query
            if way.source is None:
                detector = self.detectors[query]
                found[query] = detector.finish() if batch is None else detector.take(batch)
                if query not in self.queries:
                    continue
                (part,) = detector.in_branches([found[query]])
                matches[query] = by_sizes(self.queries[query], part)
            elif moment is None:
                matches[query] = {}
            else:
                moment.events.work = ReuseWork()
                now_known, reused = self._reused(way, matches, moment)
                words = words_of(moment.events.work, number_of(now_known), reused)
                self._did = Work.total([self._did, words])
                # Where a run goes on, the queries of a source that is kept may be left out.
                if counts and query not in sources and query not in self._kept:
                    found[query] = Found(number_of(now_known), (None,))
                    continue
                matches[query] = {
                    sizes: its.copied(np.int64) + moment.first for sizes, its in now_known.items()
                }
            number = sum(table.shape[1] for table in matches[query].values())
            columns = None if counts else as_columns(self.queries[query], matches[query])
            found[query] = Found(number, (columns,))
        if batch is not None and len(batch):
            self._keep(matches)
        return found

    def _moment(self, batch: EventStream | None) -> _Moment | None:
        """What is known after a batch or, with None, at the end; None if there are no new events."""
        if self.recent is None or (self._last is None if batch is None else not len(batch)):
            return None
        before = self.recent.last
        if batch is not None:
            self.recent.push(batch)
        return _Moment(
            events=Events(self.recent.stream, self._reader, self.queries.values()),
            first=self.recent.first,
            new=self.position - self.recent.first,
            before=before,
            now=None if batch is None else self.recent.last,
        )

    def _reused(
        self, way: Reuse, matches: Mapping[str, Tables], moment: _Moment
    ) -> tuple[Sized, int]:
        """The matches of a query that are now known, in kept events, and how many its sources have."""
        edges, limit = self._edges[way.query], self.asked.partial_match_limit
        events = moment.events
        waits = self._waits[way.sources[0]]
        # At the end of the stream no event is new, and a source that does not wait has no matches.
        at_end = moment.now is None and not waits
        if at_end and way.query not in self._pending:
            return {}, 0
        tables = {source: matches[source] for source in way.sources}
        if way.method == "down" and way.sources[0] in self._kept and not at_end:
            (source,) = way.sources
            tables[source] = _joined([self._kept[source], tables[source]])
        sources = [
            listed(self.queries[source], its, moment.first) for source, its in tables.items()
        ]
        # Of sources that wait, all events in the windows of the matches are known.
        new = ALL if waits else Sought(begin=moment.new)
        if way.query not in self._pending:
            if way.method != "down":
                return edges.up(sources, events, limit, new)
            found = edges.down(sources[0], events, limit, new)
            return found, number_of(found)
        query = self.queries[way.query]
        due = moment.due(query.window)
        if way.method == "down":
            (edge,) = edges.edges
            fresh = edges.down(sources[0], events, limit, new)
            released = self._released(query, way, fresh, due, moment)
            its = edge.specific
            if len(edge.images) == len(its.names) and not its.checks:  # else counted when found
                events.work.source_matches += number_of(released)
            found = allowed(query, released, events, limit)
            return found, number_of(found)
        fresh = edges.projected(sources, events)
        waited = distinct(self._released(query, way, fresh, due, moment))
        return united([waited, edges.delta(waited, events, limit, due)]), number_of(waited)

    def _released(
        self, query: Query, way: Reuse, fresh: Sized, due: Sought, moment: _Moment
    ) -> Sized:
        """Those of the pending matches of a query, and of some new ones, that are due."""
        released, left = {}, {}
        pending = united([listed(query, self._pending[way.query], moment.first), fresh])
        for sizes, its in pending.items():
            is_due = due.mask(its.table)
            released[sizes] = np.ascontiguousarray(its.table[:, is_due])
            left[sizes] = its.table[:, ~is_due].astype(np.int64) + moment.first
        self._pending[way.query] = self._within_limit(way.query, left)
        return listed(query, released)

    def _within_limit(self, query: str, tables: Tables) -> Tables:
        if sum(table.shape[1] for table in tables.values()) > self.asked.partial_match_limit:
            raise PartialMatchLimitError(
                f"query {query!r}: more than {self.asked.partial_match_limit:,} matches have to be stored until "
                "their window has passed; choose another source, or allow more with "
                "partial_match_limit"
            )
        return {sizes: table for sizes, table in tables.items() if table.shape[1]}

    def _keep(self, matches: Mapping[str, Tables]) -> None:
        """Keep the matches that a later event can extend, and drop those out of every window."""
        for source in self._kept.keys() & matches.keys():
            assert self.recent is not None and self.recent.last is not None
            oldest = self.recent.last - self.queries[source].window
            times, first = self.recent.stream.timestamps, self.recent.first
            together = _joined([self._kept[source], matches[source]])
            left = {
                sizes: table[:, times[table.min(axis=0) - first] >= oldest]
                for sizes, table in together.items()
            }
            self._kept[source] = self._within_limit(source, left)

    def resume(self, old: WorkloadRun, events: EventStream) -> None:
        """See :meth:`cepbench.engines.detection.workload_detector.WorkloadDetector.resume`."""
        moved = self._moved_from(old)
        kept = {
            query: its
            for query, its in old._kept.items()
            if query in self._kept and old.queries[query] is self.queries[query]
        }
        pending = {
            query: its
            for query, its in old._pending.items()
            if query in self._pending and old._edges[query] == self._edges[query]
        }
        rebuilt = (
            (self.detectors.keys() - moved.keys())
            | (self._kept.keys() - kept.keys())
            | (self._pending.keys() - pending.keys())
        )
        needed = needed_for(rebuilt, self.plan)
        all_ways = self._ways
        self._ways = [way for way in all_ways if way.query in needed]
        for query in moved.keys() - needed:
            self.detectors[query].leave()
        self._found(events)
        self._ways = all_ways
        self._kept |= kept
        self._pending |= pending
        dropped = [its for query, its in old.detectors.items() if query not in moved]
        others = 1 + max(self._groups.values(), default=0)
        self._groups |= {query: others + old._groups[query] for query in moved}
        self._did = Work.total([old._did, *map(_work_of, dropped)])
        for its in (*dropped, *(self.detectors[query] for query in moved.keys() & needed)):
            its.leave()
        self.detectors |= moved
        self.position, self._last, self.reported = old.position, old._last, old.reported

    def _moved_from(self, old: WorkloadRun) -> dict[str, Detector]:
        """The detectors that another plan has too.

        Those that share state are taken over together or not at all, as each change of the plan would add a
        state otherwise. Those whose matches depend on all earlier ones have to be.
        """
        moved = {
            query: its
            for query, its in old.detectors.items()
            if query in self.detectors and _task_of(its) == _task_of(self.detectors[query])
        }
        if all(query in moved or not its.shares for query, its in self.detectors.items()):
            return moved
        return {query: its for query, its in moved.items() if its.pattern.selects or not its.shares}

    def add(self, query: str, plan: WorkloadPlan) -> None:
        """Compute one more query from here on, from scratch."""
        group = 1 + max(self._groups.values(), default=0)
        opened = self._opened(plan, {query: group})
        self.plan = plan
        self.detectors |= opened
        self._groups[query] = group
        self._ways.append(plan.reuse(query))
        self.reported.append(query)

    def remove(self, query: str, plan: WorkloadPlan, needed: Collection[str]) -> None:
        """Report a query no more, and drop what is not needed."""
        self.reported = [each for each in self.reported if each != query]
        for each in [way.query for way in self._ways if way.query not in needed]:
            if each in self.detectors:
                self.detectors[each].leave()
            for state in (
                self.detectors, self._groups, self._edges, self._kept, self._pending, self.queries,
            ):  # fmt: skip
                state.pop(each, None)
        self._ways = [way for way in self._ways if way.query in needed]
        self.plan = plan

    def keep_read(self) -> None:
        """Keep the attributes only that queries read."""
        if self.recent is not None:
            patterns = self.plan.computed.patterns
            self.recent.keep(attributes_of(patterns[q] for q in self.queries))

    def metrics(self) -> Metrics:
        """Summed over queries."""
        return Metrics(work=Work.total([self._did, *map(_work_of, self.detectors.values())]))

    def resumed(self) -> None:
        """See :meth:`cepbench.state.Stateful.resumed`."""
        self._did = Work(self._did)

    @property
    def _clocked(self) -> tuple[Any, ...] | None:
        return None if self.clock is None else astuple(self.clock)

    @_clocked.setter
    def _clocked(self, clock: tuple[Any, ...] | None) -> None:
        self.clock = None if clock is None else ArrivalClock(*clock)

    @property
    def _shape(self) -> tuple[Any, ...]:
        """What the run was opened with, and is opened with again."""
        order = [way.query for way in self._ways]
        return order, self._groups, [*self.queries], self.reported

    @_shape.setter
    def _shape(self, shape: tuple[Any, ...]) -> None:
        order, groups, reused, reported = shape
        # In their order, in which those that share state were opened.
        its_groups = {query: groups[query] for query in order if query in groups}
        self._begin(self.plan, order, its_groups, reused)
        self.reported = reported

    @property
    def _from_scratch(self) -> list[Detector]:
        return [self.detectors[way.query] for way in self._ways if way.source is None]


def _joined(parts: Sequence[Tables]) -> Tables:
    """The matches of all parts."""
    found: dict[Sizes, list[np.ndarray]] = {}
    for part in parts:
        for sizes, table in part.items():
            found.setdefault(sizes, []).append(table)
    return {sizes: np.concatenate(its, axis=1) for sizes, its in found.items()}


def _task_of(detector: Detector) -> tuple[Any, ...]:
    """What detectors of queries may differ in."""
    return detector.pattern, detector.plan, detector.evaluator, detector.output


def _work_of(detector: Detector) -> dict[str, int]:
    """What a query from scratch did."""
    metrics = detector.metrics()
    return {**metrics.work, **words_of(from_events(metrics), metrics.matches, 0)}


def needed_for(queries: Iterable[str], plan: WorkloadPlan) -> set[str]:
    """Some queries and all that they are computed from."""
    found = {*queries}
    for query in reversed(plan.order):
        if query in found:
            found.update(plan.reuse(query).sources)
    return found
