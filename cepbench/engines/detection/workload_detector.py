"""Incremental detection of the matches of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn, Self

from cepbench.arguments import choice, text
from cepbench.engines.detection.detector import Detector, shown_matches
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import OUTPUTS
from cepbench.engines.detection.workload_evaluate import workload_plan
from cepbench.engines.detection.workload_run import WorkloadRun, needed_for
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.protocol import Arguments
from cepbench.engines.runs.result import NodeTable
from cepbench.errors import EvaluationError, errors_naming
from cepbench.patterns.given import pattern_from
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, under_one_hierarchy

__all__ = ["Detector", "WorkloadDetector"]


class WorkloadDetector(Detector):
    """Finds the matches of every query of a workload in a stream that arrives in batches.

    ``cep.Detector(workload, plan)`` makes one. Each push gives for every query exactly what a detector
    of this query alone gives at that push, in a dict.

    Parameters
    ----------
    plan : WorkloadPlan or mapping of str to plan, optional
        As :func:`cepbench.evaluate` takes it for a workload.
    evaluator, options, output, partial_match_limit, position
        As of :class:`cepbench.Detector`; ``output`` is ``matches``, ``arrow`` or ``count``.

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

    _run: WorkloadRun

    @classmethod
    def of_plan(cls, plan: WorkloadPlan, asked: Arguments) -> Self:
        """A detector of the queries of a plan."""
        detector = cls.__new__(cls)
        detector._set_up(plan.workload, plan, asked)
        return detector

    def _set_up(self, pattern: Workload, plan: Any, asked: Arguments) -> None:
        if asked.latency or asked.node_times:
            self._refuse_single()
        self.output = choice(asked.output, "output", OUTPUTS[:3], EvaluationError)
        self.partial_match_limit = asked.partial_match_limit
        plan = workload_plan(pattern, plan)
        self._start(asked.position)
        # By default, or if chosen for each, each query has one of its own, which is built-in.
        given: Any = asked.evaluator
        by_query = given is None or isinstance(given, Mapping)
        self._evaluator = evaluator_for("tree" if by_query else given)
        self._run = WorkloadRun(plan, asked)
        self.options = dict(asked.options or {})
        # A mapping, as was checked where queries were opened; the given one may change.
        self._run.asked = replace(asked, options=self.options)
        self._read_plan()

    @property
    def plan(self) -> WorkloadPlan:  # type: ignore[override]
        """The present plan, of all queries that are computed."""
        return self._run.plan

    def _nothing(self, batch: EventStream) -> Any:
        return self._run.push(batch)

    def prepare(self, batch: EventStream) -> None:
        """See :meth:`cepbench.Detector.prepare`."""
        if self.plan.workload.order == "time" or not len(batch):
            return
        clock = self._run.clock or ArrivalClock.live(self.plan.computed.patterns.values(), batch)
        clock.stamped(batch)  # or an error
        if self._run.clock is None:
            with self._state.changing("a push"):
                self._run.stamp_by(clock)

    def stamp_by(self, clock: ArrivalClock | None) -> None:
        """See :meth:`cepbench.Detector.stamp_by`."""
        if clock is not None:
            self._run.stamp_by(clock)

    @property
    def clock(self) -> ArrivalClock | None:
        """See :attr:`cepbench.Detector.clock`."""
        clock = self._run.clock
        return None if clock is None else clock.restarted()

    def _check_fit(self, batch: EventStream) -> None:
        for query, pattern in self.plan.computed.patterns.items():
            with errors_naming(query):
                check_fit(under_one_hierarchy(pattern, batch)[0], batch)

    def _counted(self, given: Any, *, ended: bool) -> Any:
        self._matches += sum(its.number for its in given.values())
        return given

    def _shown(self, found: Mapping[str, Found]) -> dict[str, Any]:  # type: ignore[override]
        """The matches of each query, as a detector of it shows them."""
        return {
            query: self._reused_shown(query, its)
            if query in self._run.queries
            else self._run.detectors[query]._shown(its)
            for query, its in found.items()
        }

    def _reused_shown(self, query: str, found: Found) -> Any:
        """Those of a query that takes part in reuse."""
        if self.output == "count":
            return found.number
        (part,) = found.matches
        assert part is not None
        return shown_matches(
            self.plan.workload.patterns[query], (part,), self.output, self._run.recent
        )

    def adopt(self, old: Detector) -> bool:
        """Not possible: plans have different queries."""
        return False

    def resume(self, old: WorkloadDetector, events: EventStream) -> None:
        """Go on where a detector of the same queries with another plan is.

        What both plans compute from scratch, and the matches that both keep, are taken over; the
        rest is rebuilt from ``events``, without being reported [liu2011]_, section 6. Parameters
        are those of :meth:`cepbench.Detector.resume`.
        """
        with self._state.changing("a change of the plan"):
            self._run.resume(old._run, events)
            kinds = self._progress.kinds
            # Virtual queries may read attributes that the old plan did not.
            known = {**kinds.kinds, **old._progress.kinds.kinds}
            self._progress = old._progress._replace(kinds=replace(kinds, kinds=known), fits=None)
            self._seconds, self._matches = old._seconds, old._matches

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
        with self._state.changing("adding a query", reads=True):
            self._run.add(query, plan)
            self._read_plan()

    def remove(self, query: str) -> None:
        """Report a query no more; it is computed as long as others are computed from it.

        Raises
        ------
        EvaluationError
            If there is no such query, or no other one.
        """
        self._state.check()
        reported = self._run.reported
        if query not in reported or len(reported) == 1:
            raise EvaluationError(
                f"the detector cannot remove {query!r}: it reports {', '.join(reported)}, and "
                "has to report at least one query"
            )
        needed = needed_for([each for each in reported if each != query], self.plan)
        patterns = self.plan.workload.patterns
        plan = self._planned({q: patterns[q] for q in patterns if q in needed}, self.plan)
        with self._state.changing("removing a query"):
            self._run.remove(query, plan, needed)
            self._read_plan()

    def _read_plan(self) -> None:
        """Read what the queries of the plan read, from the next batch on."""
        patterns = [*self.plan.computed.patterns.values()]
        self._read(patterns, exact=not self._evaluator.is_builtin)
        self._run.keep_read()

    def _planned(self, patterns: Mapping[str, Any], before: WorkloadPlan) -> WorkloadPlan:
        """The plan for other queries, those that it had as before and new ones from scratch."""
        needed = needed_for(patterns, before)
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
        return way.method if way.sources else self._run.detectors[query].evaluator

    def _refuse_single(self) -> NoReturn:
        raise EvaluationError(
            "latency and metrics by node are measured of single patterns; open a detector of "
            "workload.patterns[...]"
        )

    def latency(self) -> Latency | None:
        """Not measured."""
        self._refuse_single()

    def node_table(self) -> NodeTable | None:
        """Not measured."""
        self._refuse_single()

    def check_saves(self) -> None:
        """See :meth:`cepbench.engines.detection.live.Live.check_saves`."""
        for detector in self._run.detectors.values():
            detector.check_saves()

    def _header(self) -> dict[str, Any]:
        asked = replace(self._run.asked, position=self.position)
        return {"plan": self.plan.to_dict(), **asked.packed()}

    @classmethod
    def _of_header(cls, header: Mapping[str, Any]) -> Self:
        return cls.of_plan(WorkloadPlan.from_dict(header["plan"]), Arguments.unpacked(header))


Detector.of_workloads = WorkloadDetector
