"""Incremental detection of the matches of a workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
import pandas as pd

from cepbench.arguments import choice, text
from cepbench.engines.detection.arrival import sharing as sharing_state
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.pushes import Progress
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import OUTPUTS, PARTIAL_MATCH_LIMIT, task_for
from cepbench.engines.detection.workload_evaluate import (
    chosen_for,
    queries_of,
    total_metrics,
    workload_plan,
)
from cepbench.engines.reuse.events import Events
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
    united,
)
from cepbench.engines.runs.arrow_matches import arrow_table
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.protocol import Arguments, Evaluator
from cepbench.engines.runs.result import Metrics, NodeTable
from cepbench.engines.runs.returned import frame_of, returned_table
from cepbench.errors import (
    EvaluationError,
    PartialMatchLimitError,
    errors_naming,
)
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.reuse import Reuse, goes_on, waits_on_stream
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.state import arrays_under
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, under_one_hierarchy
from cepbench.streams.numeric import NumericReader
from cepbench.streams.recent import RecentEvents

__all__ = ["Detector", "WorkloadDetector"]

_QUERY, _RECENT = "query/", "recent/"
_KEPT, _PENDING = "kept/", "pending/"

#: Positions of matches by the sizes of their sets, int64, shape (variables, matches).
Tables = dict[Sizes, np.ndarray]


class _Moment(NamedTuple):
    """What is known after a batch.

    Attributes
    ----------
    events : Events
        Those kept.
    first : int
        The position of the first one.
    new : int
        The place among them of the first one of the batch.
    before : int or None
        The last timestamp before the batch.
    now : int or None
        The last timestamp; None at the end of the stream.
    """

    events: Events
    first: int
    new: int
    before: int | None
    now: int | None

    def due(self, window: int) -> Sought:
        """The matches whose window has passed since the batch before."""
        times = self.events.times
        begin = 0 if self.before is None else np.searchsorted(times, self.before - window)
        end = len(times) if self.now is None else np.searchsorted(times, self.now - window)
        return Sought(int(begin), int(end), by_first=True)


class WorkloadDetector(Detector):
    """Finds the matches of every query of a workload in a stream that arrives in batches.

    ``cep.Detector(workload, plan)`` makes one. Each push gives for every query exactly what a detector
    of this query alone gives at that push.

    Parameters
    ----------
    workload : Workload
    plan : WorkloadPlan or mapping of str to plan, optional
        As :func:`cepbench.evaluate` takes it for a workload.
    evaluator, options, output, partial_match_limit, position
        As of :class:`cepbench.Detector`; ``output`` is ``matches``, ``arrow`` or ``count``.

    Attributes
    ----------
    plan : WorkloadPlan
    asked : str, Evaluator or None
        The evaluator that was given.

    Raises
    ------
    PatternError, PlanError, EvaluationError
        If an argument is invalid, or if a query would be reported later than at the end of its window.

    Notes
    -----
    With a plan with ``delays`` the matches of some queries come later, at the end of their window or of
    the stream: those of queries whose source goes on after them, and those of queries that are computed
    from such ones.

    Events are kept for the longest window of the queries that are computed from others, twice that if
    matches wait. Matches of a source that an event yet to come can extend, and those that wait, are kept
    for their window.
    """

    KIND = "detector with one plan of a workload"

    HEADER: ClassVar[Mapping[str, Any]] = {
        "plan": dict,
        "reported": list,
        "order": list,
        "groups": dict,
        "reused": list,
        "texts": list,
        "clock": (list, type(None)),
        **Arguments.PACKED,
        "matches": dict,
        "past": list,
    }

    plan: WorkloadPlan  # type: ignore[assignment]

    def __init__(
        self,
        workload: Workload,
        plan: WorkloadPlan | Mapping[str, AnyPlan] | None = None,
        *,
        evaluator: str | Evaluator | None = None,
        options: Mapping[str, Any] | None = None,
        output: str = "matches",
        partial_match_limit: int = PARTIAL_MATCH_LIMIT,
        latency: bool = False,
        node_times: bool = False,
        position: int = 0,
    ) -> None:
        if latency or node_times:
            self._refuse_single()
        asked = Arguments(
            evaluator=evaluator,
            options=options,
            output=output,
            partial_match_limit=partial_match_limit,
            position=position,
        )
        self._set_up(workload, plan, asked)

    @classmethod
    def of_plan(cls, plan: WorkloadPlan, asked: Arguments) -> Self:
        """A detector of the queries of a plan."""
        detector = cls.__new__(cls)
        detector._set_up(plan.workload, plan, asked)
        return detector

    def _set_up(self, workload: Workload, given: Any, asked: Arguments) -> None:
        self.output = choice(asked.output, "output", OUTPUTS[:3], EvaluationError)
        self.partial_match_limit = asked.partial_match_limit
        self.asked = asked.evaluator
        self._arguments = asked
        self._reader = NumericReader()
        plan = workload_plan(workload, given)
        self._start(asked.position)
        #: That stamps the events, of all queries alike, under ORDER BY arrival; None before them.
        self._clock: ArrivalClock | None = None
        self._begin(plan)
        self.options = dict(asked.options or {})
        self._arguments = replace(asked, options=self.options)
        self._read_plan(plan)

    def _begin(
        self,
        plan: WorkloadPlan,
        order: Sequence[str] | None = None,
        groups: Mapping[str, int] | None = None,
        reused: Iterable[str] = (),
    ) -> None:
        """Open all queries, at the present position.

        Parameters
        ----------
        plan : WorkloadPlan
        order : sequence of str, optional
            Of the queries, where it is not the plan's.
        groups : mapping of str to int, optional
            The state that each query from scratch shares, by default the same one.
        reused : iterable of str
            Queries that take part in reuse although they are the source of none any more.
        """
        self.plan = plan
        #: The queries that are reported; a source may be computed although it was removed.
        self._reported = list(plan.workload.patterns)
        self._ways = [plan.reuse(query) for query in (plan.order if order is None else order)]
        self._detectors: dict[str, Detector] = {}
        #: The number of the state that a detector shares with others.
        self._groups: dict[str, int] = {}
        #: Those of detectors that are no more.
        self._past = Metrics(partial_matches_created=0, comparisons=0)
        self._counts: dict[str, int] = dict.fromkeys(self._reported, 0)
        #: Those that take part in reuse although they are the source of none any more.
        self._unused = tuple(reused)
        self._link()
        if groups is None:
            groups = {way.query: 0 for way in self._ways if way.source is None}
        self._detectors |= self._opened(plan, groups)
        self._groups |= groups

    def _stamp_by(self, clock: ArrivalClock) -> None:
        """Let a clock stamp the events, before the first one."""
        self._clock = clock
        self._link()
        for detector in self._detectors.values():
            detector.stamp_by(clock)

    def follow(self, old: WorkloadDetector) -> None:
        """Stamp events as another detector does that has had the same ones."""
        if old._clock is not None:
            self._stamp_by(old._clock.restarted())

    def _link(self) -> None:
        """Prepare the reuse of matches; nothing is known yet."""
        patterns = self.plan.computed.patterns
        if self.plan.workload.order == "arrival":
            clock = self._clock or ArrivalClock.live(patterns.values())
            patterns = {query: clock.pattern(its) for query, its in patterns.items()}
        self._queries = queries_of(patterns, self._ways)
        self._queries |= {query: query_of(patterns[query]) for query in self._unused}
        #: Whether the matches of each query are known at the end of their window only.
        self._waits: dict[str, bool] = {}
        for way in self._ways:
            self._waits[way.query] = waits_on_stream(way, self._waits, patterns)
        self._edges = {way.query: self._edges_of(way) for way in self._ways if way.sources}
        used = [patterns[query] for query in self._queries]
        span = max((pattern.window.length for pattern in used), default=0)
        if any(self._waits[query] for query in self._edges):
            # A negation at the start looks back as far from the last event.
            span *= 2
        self._recent = RecentEvents(_attributes(used), span, self.position) if used else None
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
                evaluator, plan = chosen_for(pattern, plan, self.asked)
                entry = None if evaluator is None else evaluator_for(evaluator)
                if entry is not None and entry.together is not None:
                    shared = sharing.get((entry.name, group))
                    shared = shared or sharing_state(entry, pattern.order)
                    evaluator = sharing[entry.name, group] = shared
                asked = replace(self._arguments, evaluator=evaluator, position=self.position)
                if query in self._queries:
                    # What is reused is shown here, whoever found it.
                    pattern = replace(pattern, returns=())
                    asked = replace(asked, output="matches")
                opened[query] = Detector.of_task(task_for(pattern, plan, asked))
                if self._clock is not None:
                    opened[query].stamp_by(self._clock.restarted())
        return opened

    def _edges_of(self, way: Reuse) -> Way:
        """The edges of a way; negated events that come last are left for when matches are due."""
        if way.method != "down" or self._waits[way.sources[0]]:
            return Way.of(way, self._queries)
        query = self._queries[way.query]
        late = {check.name for check in query.checks if check.is_late}
        prompt = query.pattern.without(v for v in query.pattern.negated if v.name in late)
        return Way.of(
            way, {**self._queries, way.query: query_of(prompt)} if late else self._queries
        )

    def push(self, batch: EventStream) -> dict[str, Any]:
        """Process the next events and return the matches that they complete.

        Parameters
        ----------
        batch : EventStream
            The next events; timestamps must not decrease.

        Returns
        -------
        dict of str to DataFrame, pyarrow.Table or int
            For every query what :meth:`cepbench.Detector.push` of a detector of it alone returns.

        Raises
        ------
        StreamError, PartialMatchLimitError, FailedStateError
            As by :meth:`cepbench.Detector.push`.
        """
        shown: dict[str, Any] = self._pushed(batch, shows=True)
        return shown

    def _process(self, batch: EventStream, progress: Progress, *, shows: bool) -> Any:
        found = self._found(batch)
        self._progress = progress
        self._note_time()
        return self._given(self._reported_of(found), shows=shows)

    def _end(self, *, shows: bool) -> Any:
        found = self._found(None)
        self._note_time()
        return self._given(self._reported_of(found), shows=shows)

    def prepare(self, batch: EventStream) -> None:
        """See :meth:`cepbench.Detector.prepare`."""
        if self.plan.workload.order == "time" or not len(batch):
            return
        clock = self._clock or ArrivalClock.live(self.plan.computed.patterns.values(), batch)
        clock.stamped(batch)  # or an error
        if self._clock is None:
            with self._state.changing("a push"):
                self._stamp_by(clock)

    def _check_fit(self, batch: EventStream) -> None:
        for query, pattern in self.plan.computed.patterns.items():
            with errors_naming(query):
                check_fit(under_one_hierarchy(pattern, batch)[0], batch)

    def _found(self, batch: EventStream | None) -> dict[str, Found]:
        """The new matches of all queries that are computed; with None, at the end of the stream."""
        found: dict[str, Found] = {}
        matches: dict[str, Tables] = {}
        stamped = batch
        if batch is not None and self._clock is not None:
            stamped, self._clock = self._clock.stamped(batch)
        moment = self._moment(stamped)
        for way in self._ways:
            query = way.query
            if way.source is None:
                detector = self._detectors[query]
                found[query] = detector.finish() if batch is None else detector.take(batch)
                if query not in self._queries:
                    continue
                (part,) = detector.in_branches([found[query]])
                matches[query] = by_sizes(self._queries[query], part)
            elif moment is None:
                matches[query] = {}
            else:
                now_known = self._reused(way, matches, moment)
                matches[query] = {
                    sizes: np.stack(its.columns()) + moment.first
                    for sizes, its in now_known.items()
                }
            number = sum(table.shape[1] for table in matches[query].values())
            found[query] = Found(number, (as_columns(self._queries[query], matches[query]),))
        if batch is not None and len(batch):
            self._keep(matches)
        return found

    def _moment(self, batch: EventStream | None) -> _Moment | None:
        """What is known after a batch or, with None, at the end; None if there are no new events."""
        last = self._progress.last
        if self._recent is None or (last is None if batch is None else not len(batch)):
            return None
        before = self._recent.last
        if batch is not None:
            self._recent.push(batch)
        return _Moment(
            events=Events(self._recent.stream, self._reader, self._queries.values()),
            first=self._recent.first,
            new=self.position - self._recent.first,
            before=before,
            now=None if batch is None else self._recent.last,
        )

    def _reported_of(self, found: Mapping[str, Found]) -> dict[str, Found]:
        """The matches of the queries that are reported, counted."""
        for query in self._reported:
            self._counts[query] += found[query].number
        return {query: found[query] for query in self._reported}

    def _reused(self, way: Reuse, matches: Mapping[str, Tables], moment: _Moment) -> Sized:
        """The matches of a query that are now known, from those of its sources, in kept events."""
        edges, limit, events = self._edges[way.query], self.partial_match_limit, moment.events
        tables = {source: matches[source] for source in way.sources}
        if way.method == "down" and way.sources[0] in self._kept:
            (source,) = way.sources
            tables[source] = _joined([self._kept[source], tables[source]])
        sources = [
            listed(self._queries[source], its, moment.first) for source, its in tables.items()
        ]
        # Of sources that wait, all events in the windows of the matches are known.
        new = ALL if self._waits[way.sources[0]] else Sought(begin=moment.new)
        if way.query not in self._pending:
            if way.method == "down":
                return edges.down(sources[0], events, limit, new)
            return edges.up(sources, events, limit, new)[0]
        query = self._queries[way.query]
        due = moment.due(query.window)
        if way.method == "down":
            fresh = edges.down(sources[0], events, limit, new)
            return allowed(query, self._released(query, way, fresh, due, moment), events, limit)
        fresh = edges.projected(sources)
        waited = distinct(self._released(query, way, fresh, due, moment))
        return united([waited, edges.delta(waited, events, limit, due)])

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
        if sum(table.shape[1] for table in tables.values()) > self.partial_match_limit:
            raise PartialMatchLimitError(
                f"query {query!r}: more than {self.partial_match_limit:,} matches have to be stored until "
                "their window has passed; choose another source, or allow more with "
                "partial_match_limit"
            )
        return {sizes: table for sizes, table in tables.items() if table.shape[1]}

    def _keep(self, matches: Mapping[str, Tables]) -> None:
        """Keep the matches that a later event can extend, and drop those out of every window."""
        for source in self._kept.keys() & matches.keys():
            assert self._recent is not None and self._recent.last is not None
            oldest = self._recent.last - self._queries[source].window
            times, first = self._recent.stream.timestamps, self._recent.first
            together = _joined([self._kept[source], matches[source]])
            left = {
                sizes: table[:, times[table.min(axis=0) - first] >= oldest]
                for sizes, table in together.items()
            }
            self._kept[source] = self._within_limit(source, left)

    def _shown(self, found: Mapping[str, Found]) -> dict[str, Any]:  # type: ignore[override]
        """The matches of each query, as a detector of it shows them."""
        return {
            query: self._reused_shown(query, its)
            if query in self._queries
            else self._detectors[query]._shown(its)
            for query, its in found.items()
        }

    def _reused_shown(self, query: str, found: Found) -> Any:
        """Those of a query that takes part in reuse."""
        if self.output == "count":
            return found.number
        pattern = self.plan.workload.patterns[query]
        (part,) = found.matches
        assert part is not None
        if pattern.returns:
            assert self._recent is not None
            table = arrow_table(pattern, (part,))
            kept = self._recent
            table = returned_table(table, pattern, kept.stream, first=kept.first)
            return table if self.output == "arrow" else frame_of(table)
        return arrow_table(pattern, (part,)) if self.output == "arrow" else part.frame()

    def resume(self, old: WorkloadDetector, events: EventStream) -> None:
        """Go on where a detector of the same queries with another plan is.

        What both plans compute from scratch, and the matches that both keep, are taken over; the rest is
        rebuilt from events, without being reported [liu2011]_, section 6.

        Parameters
        ----------
        old : WorkloadDetector
            It cannot be used any more.
        events : EventStream
            Those that may be in a match yet to come, from :attr:`position` on to the last one that
            was pushed to ``old``.
        """
        with self._state.changing("a change of the plan"):
            self._resume_as(old, events)

    def _resume_as(self, old: WorkloadDetector, events: EventStream) -> None:
        self.follow(old)
        moved = self._moved_from(old)
        kept = {
            query: its
            for query, its in old._kept.items()
            if query in self._kept and old._queries[query] is self._queries[query]
        }
        pending = {
            query: its
            for query, its in old._pending.items()
            if query in self._pending and old._edges[query] == self._edges[query]
        }
        rebuilt = (
            (self._detectors.keys() - moved.keys())
            | (self._kept.keys() - kept.keys())
            | (self._pending.keys() - pending.keys())
        )
        needed = _needed(rebuilt, self.plan)
        all_ways = self._ways
        self._ways = [way for way in all_ways if way.query in needed]
        for query in moved.keys() - needed:
            self._detectors[query].leave()
        self._found(events)
        self._ways = all_ways
        self._kept |= kept
        self._pending |= pending
        dropped = [its for query, its in old._detectors.items() if query not in moved]
        others = 1 + max(self._groups.values(), default=0)
        self._groups |= {query: others + old._groups[query] for query in moved}
        past = [old._past, *(its.metrics() for its in dropped)]
        self._past = total_metrics(past, events=0, seconds=0.0, matches=0)
        for its in (*dropped, *(self._detectors[query] for query in moved.keys() & needed)):
            its.leave()
        self._detectors |= moved
        kinds = self._progress.kinds
        # Virtual queries may read attributes that the old plan did not.
        known = {**kinds.kinds, **old._progress.kinds.kinds}
        self._progress = old._progress._replace(kinds=replace(kinds, kinds=known), fits=None)
        for name in ("_seconds", "_counts", "_reported"):
            setattr(self, name, getattr(old, name))

    def _moved_from(self, old: WorkloadDetector) -> dict[str, Detector]:
        """The detectors that another plan has too.

        Those that share state are taken over together or not at all, as otherwise there would be one
        state more with each change of the plan. Those whose matches depend on all earlier ones have to be.
        """
        moved = {
            query: its
            for query, its in old._detectors.items()
            if query in self._detectors and _task_of(its) == _task_of(self._detectors[query])
        }
        if all(query in moved or not its.shares for query, its in self._detectors.items()):
            return moved
        return {query: its for query, its in moved.items() if its.pattern.selects or not its.shares}

    def add(self, query: str, pattern: Any) -> None:
        """Compute one more query from here on, from scratch; the others keep their state.

        Parameters
        ----------
        query : str
            Its name.
        pattern : Pattern or str
            Or its text. It has the matches all of whose events are pushed from here on.

        Raises
        ------
        EvaluationError
            If there is a query of that name.
        PatternError
            If the pattern is invalid.
        """
        self._state.check()
        workload = self.plan.workload
        if text(query, "the name of a query", EvaluationError) in workload.patterns:
            raise EvaluationError(
                f"the workload has a query {query!r}; remove it first, or choose another name"
            )
        with errors_naming(query):
            patterns = {**workload.patterns, query: pattern_from(pattern)}
        plan = self._planned(patterns, self.plan)
        group = 1 + max(self._groups.values(), default=0)
        opened = self._opened(plan, {query: group})
        with self._state.changing("adding a query"):
            self.plan = plan
            self._detectors |= opened
            self._groups[query] = group
            self._ways.append(plan.reuse(query))
            self._reported.append(query)
            self._counts[query] = 0
            self._read_plan(plan)

    def remove(self, query: str) -> None:
        """Report a query no more; it is computed as long as others are computed from it.

        Raises
        ------
        EvaluationError
            If there is no such query, or no other one.
        """
        self._state.check()
        if query not in self._reported or len(self._reported) == 1:
            raise EvaluationError(
                f"the detector cannot remove {query!r}: it reports {', '.join(self._reported)}, and "
                "has to report at least one query"
            )
        left = [each for each in self._reported if each != query]
        needed = _needed(left, self.plan)
        patterns = self.plan.workload.patterns
        plan = self._planned({q: patterns[q] for q in patterns if q in needed}, self.plan)
        with self._state.changing("removing a query"):
            self._reported = left
            for each in [way.query for way in self._ways if way.query not in needed]:
                if each in self._detectors:
                    self._detectors[each].leave()
                for state in (
                    self._detectors, self._groups, self._edges, self._kept, self._pending,
                    self._queries,
                ):  # fmt: skip
                    state.pop(each, None)
            self._ways = [way for way in self._ways if way.query in needed]
            self.plan = plan
            self._read_plan(plan)

    def _read_plan(self, plan: WorkloadPlan) -> None:
        """Read what the queries of a plan read, from the next batch on."""
        patterns = plan.computed.patterns
        exact = self.asked is not None and not evaluator_for(self.asked).is_builtin
        self._read([*patterns.values()], exact=exact)
        if self._recent is not None:
            self._recent.keep(_attributes(patterns[q] for q in self._queries))

    def _planned(self, patterns: Mapping[str, Any], before: WorkloadPlan) -> WorkloadPlan:
        """The plan for other queries, those that it had as before and new ones from scratch."""
        needed = _needed(patterns, before)
        virtual = {name: its for name, its in before.virtual.items() if name in needed}
        sources = before.sources or {}
        computed = {*patterns, *virtual}
        return WorkloadPlan(
            Workload(patterns, hierarchy=before.workload.hierarchy),
            sources={query: sources.get(query) for query in computed},
            embeddings={q: its for q, its in before.embeddings.items() if q in computed},
            plans={q: its for q, its in before.plans.items() if q in computed},
            orders={q: its for q, its in before.orders.items() if q in computed},
            virtual=virtual,
            delays=before.delays,
        )

    def evaluator_of(self, query: str) -> str:
        """What computes a query: an evaluator, or the way of reuse."""
        way = self.plan.reuse(query)
        return way.method if way.sources else self._detectors[query].evaluator

    def metrics(self) -> Metrics:
        """Metrics of the detection so far, summed over queries."""
        with self._state.changing("reading metrics"):
            found = [self._past, *(its.metrics() for its in self._detectors.values())]
        return total_metrics(
            found,
            events=self._progress.events,
            seconds=self._seconds,
            matches=sum(self._counts.values()),
        )

    def _refuse_single(self) -> NoReturn:
        raise EvaluationError(
            "latency and metrics by node are measured of single patterns; open a detector of "
            "workload.patterns[...]"
        )

    def latency(self) -> Latency | None:
        """Not measured."""
        self._refuse_single()

    def node_metrics(self) -> pd.DataFrame:
        """Not measured."""
        self._refuse_single()

    def node_table(self) -> NodeTable | None:
        """Not measured."""
        self._refuse_single()

    def _header(self) -> dict[str, Any]:
        return {
            "plan": self.plan.to_dict(),
            "reported": self._reported,
            "order": [way.query for way in self._ways],
            "groups": self._groups,
            "reused": list(self._queries),
            "texts": self._reader.texts,
            "clock": None if self._clock is None else astuple(self._clock),
            **replace(self._arguments, position=self.position).packed(),
            "matches": self._counts,
            "past": [self._past.partial_matches_created, self._past.comparisons],
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = {}
        for number, way in enumerate(self._ways):
            if way.source is None:
                its = self._detectors[way.query].snapshot()
                arrays |= {f"{_QUERY}{number}/{name}": array for name, array in its.items()}
            for prefix, state in ((_KEPT, self._kept), (_PENDING, self._pending)):
                for sizes, table in state.get(way.query, {}).items():
                    arrays[f"{prefix}{number}/{' '.join(map(str, sizes))}"] = table.copy()
        if self._recent is not None:
            arrays |= {f"{_RECENT}{name}": its for name, its in self._recent.snapshot().items()}
        return arrays

    @classmethod
    def _of_header(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        plan = WorkloadPlan.from_dict(header["plan"])
        asked = Arguments(**{name: header[name] for name in Arguments.PACKED})
        return cls.of_plan(plan, asked)

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        order, groups = header["order"], header["groups"]
        # In their order, in which those that share state were opened.
        its_groups = {query: groups[query] for query in order if query in groups}
        if header["clock"] is not None:
            self._clock = ArrivalClock(*header["clock"])
        self._begin(self.plan, order, its_groups, header["reused"])
        for number, way in enumerate(self._ways):
            if way.source is None:
                own = arrays_under(f"{_QUERY}{number}/", arrays)
                self._detectors[way.query].resume_from(own)
            for prefix, state in ((_KEPT, self._kept), (_PENDING, self._pending)):
                its = arrays_under(f"{prefix}{number}/", arrays)
                if way.query in state:
                    state[way.query] = {
                        tuple(map(int, sizes.split())): np.array(table)
                        for sizes, table in its.items()
                    }
        if self._recent is not None:
            self._recent.restore(arrays_under(_RECENT, arrays))
        for text_of_value in header["texts"]:
            self._reader.code(text_of_value)
        self._reported, self._counts = header["reported"], header["matches"]
        created, comparisons = header["past"]
        self._past = Metrics(partial_matches_created=created, comparisons=comparisons)


def _joined(parts: Sequence[Tables]) -> Tables:
    """The matches of all parts."""
    found: dict[Sizes, list[np.ndarray]] = {}
    for part in parts:
        for sizes, table in part.items():
            found.setdefault(sizes, []).append(table)
    return {sizes: np.concatenate(its, axis=1) for sizes, its in found.items()}


def _attributes(patterns: Iterable[Pattern]) -> tuple[str, ...]:
    """The attributes that queries read."""
    return tuple(dict.fromkeys(name for pattern in patterns for name in pattern.attributes))


def _task_of(detector: Detector) -> tuple[Any, ...]:
    """What detectors of queries may differ in."""
    return detector.pattern, detector.plan, detector.evaluator, detector.output


def _needed(queries: Iterable[str], plan: WorkloadPlan) -> set[str]:
    """Some queries and all that they are computed from."""
    found = {*queries}
    for query in reversed(plan.order):
        if query in found:
            found.update(plan.reuse(query).sources)
    return found


Detector.of_workloads = WorkloadDetector
