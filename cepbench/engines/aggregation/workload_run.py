"""The values of several queries: those that share counters together, and the others by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from cepbench.arguments import shown
from cepbench.engines.aggregation.arrival import ArrivalAggregation
from cepbench.engines.aggregation.e_cube import E_CUBE, ReuseRun
from cepbench.engines.aggregation.opening import opened
from cepbench.engines.aggregation.protocol import (
    AggregateMetrics,
    AggregationRun,
    AggregationTask,
    Row,
)
from cepbench.engines.aggregation.shared import SharedQuery, SharedRun, by_partitions, warm_up
from cepbench.errors import (
    EvaluationError,
    PatternError,
    StreamError,
    UnsupportedPatternError,
)
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.state import Stateful
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream

#: The method whose counters can be shared.
SHARED = "a-seq"


class WorkloadRun(Stateful):
    """Runs the queries of a workload.

    Parameters
    ----------
    tasks : mapping of str to AggregationTask
    plan : WorkloadPlan or None
        Which counters are shared; None for a run for each query.
    method : str, optional
        Of the queries that run by themselves.

    Attributes
    ----------
    methods : mapping of str to str
        By query.

    Raises
    ------
    UnsupportedPatternError
        If a method cannot run its query, or a query that is cut shares no counters.
    """

    SAVED = ("_alone", "_shared")

    def __init__(
        self,
        tasks: Mapping[str, AggregationTask],
        plan: WorkloadPlan | None,
        method: str | None,
    ) -> None:
        counted = {} if plan is None else shared_queries(tasks, plan)
        # By itself a query is faster.
        shared = {name: its for name, its in counted.items() if plan and _shares(name, plan)}
        self._names = [*tasks]
        self._shared = [
            _shared_run({name: tasks[name] for name in its}, plan)
            for its in by_partitions(shared)
            if plan is not None
        ]
        if self._shared:
            warm_up()
        self.methods = dict.fromkeys(tasks, SHARED)
        self._alone: dict[str, AggregationRun] = {}
        for name, task in tasks.items():
            if name not in shared:
                with naming(name):
                    own = SHARED if name in counted else method
                    chosen, self._alone[name] = opened(task, own)
                self.methods[name] = chosen.name

    def prepare(self, batch: EventStream) -> None:
        """Check that all runs under ORDER BY arrival take the next events."""
        for run in self._runs():
            if isinstance(run, ArrivalAggregation):
                run.prepare(batch)

    def push(self, batch: EventStream) -> dict[str, Sequence[Row]]:
        """Process the next events; returns the rows to report of each query."""
        found: dict[str, Sequence[Row]] = {
            name: run.push(batch) for name, run in self._alone.items()
        }
        for shared in self._shared:
            found |= shared.push(batch)
        return {name: found[name] for name in self._names}

    def value(self, time: int) -> dict[str, Sequence[Row]]:
        """The value of each query and group at a time; changes nothing."""
        found: dict[str, Sequence[Row]] = {
            name: run.value(time) for name, run in self._alone.items()
        }
        for shared in self._shared:
            found |= shared.value(time)
        return {name: found[name] for name in self._names}

    def metrics(self) -> AggregateMetrics:
        """Metrics so far, summed over the queries; the maxima may be of different times."""
        listed = [run.metrics() for run in self._runs()]
        return AggregateMetrics(
            updates=sum(its.updates for its in listed),
            peak_counters=sum(its.peak_counters for its in listed),
            peak_objects=sum(its.peak_objects for its in listed),
            peak_bytes=sum(its.peak_bytes for its in listed),
        )

    def _runs(self) -> list[AggregationRun | SharedRun | ArrivalAggregation]:
        return [*self._alone.values(), *self._shared]


def _shared_run(
    tasks: Mapping[str, AggregationTask], plan: WorkloadPlan
) -> SharedRun | ArrivalAggregation:
    """The run of queries with counters in common."""
    if plan.workload.order == "time":
        return _shared_run_by(None, tasks, plan)
    opener = partial(_shared_run_by, tasks=tasks, plan=plan)
    return ArrivalAggregation(opener, [task.pattern for task in tasks.values()])


def _shared_run_by(
    clock: ArrivalClock | None, tasks: Mapping[str, AggregationTask], plan: WorkloadPlan
) -> SharedRun:
    """The same, by a clock that stamps the events."""
    if clock is not None:
        tasks = {
            name: replace(its, pattern=clock.pattern(its.pattern)) for name, its in tasks.items()
        }
    queries = {name: SharedQuery(task, plan.segments(name)) for name, task in tasks.items()}
    scope = next(iter(tasks.values())).scope
    return SharedRun(queries, shares_prefixes=plan.shares_prefixes, scope=scope)


@contextmanager
def naming(query: str) -> Iterator[None]:
    """Add the name of a query to errors about it."""
    try:
        yield
    except (PatternError, EvaluationError, StreamError) as error:
        raise type(error)(f"query {query!r}: {error}") from None


def shared_queries(
    tasks: Mapping[str, AggregationTask], plan: WorkloadPlan
) -> dict[str, SharedQuery]:
    """The queries whose counters can be shared.

    Raises
    ------
    UnsupportedPatternError
        If one that is cut is not among them.
    """
    found = {}
    for name, task in tasks.items():
        try:
            if plan.segments(name):
                found[name] = SharedQuery(task, plan.segments(name))
        except UnsupportedPatternError as error:
            if plan.cuts[name]:
                raise UnsupportedPatternError(f"query {name!r} is cut: {error}") from None
    return found


def _shares(query: str, plan: WorkloadPlan) -> bool:
    """Whether a query is cut, or has a counter in common with the last segment of another one."""
    own, *more = plan.segments(query)
    if more or not plan.shares_prefixes:
        return bool(more)
    lasts = [plan.segments(name)[-1:] for name in plan.workload.patterns if name != query]
    # Counters of whole queries are apart.
    return any(
        its.equivalences == own.equivalences
        and its.steps[0] == own.steps[0]
        and (len(its.steps) > 1) == (len(own.steps) > 1)
        for listed in lasts
        for its in listed
    )


def run_of(
    workload: Workload,
    tasks: Mapping[str, AggregationTask],
    method: str | None,
    sharing: WorkloadPlan | str | None,
) -> Any:
    """The run of a workload's queries.

    Raises
    ------
    EvaluationError
        If ``sharing`` is no plan of the workload, or not of the method.
    UnsupportedPatternError
        If a method cannot run its query, or a query that is cut shares no counters.
    """
    if sharing is None:
        if method is not None and method.lower() == E_CUBE:
            raise EvaluationError(
                f"the method {E_CUBE} reuses matches as a plan says; give sharing=cep.plan_workload("
                'workload, statistics, planner="CHASE"), or use cep.aggregate, which plans'
            )
        return WorkloadRun(tasks, None, method)
    reuses = isinstance(sharing, WorkloadPlan) and sharing.sources is not None
    due = E_CUBE if reuses else SHARED
    if method is not None and method.lower() != due:
        raise EvaluationError(
            f"the sharing is for the method {due}, not {method}; leave out method, or sharing"
        )
    if not isinstance(sharing, WorkloadPlan):
        raise EvaluationError(
            f"sharing is a cep.WorkloadPlan, not {shown(sharing)}; a planner needs statistics, so give cep.plan_workload(workload, statistics, planner)"
        )
    if sharing.workload != workload:
        raise EvaluationError("the plan is of another workload; make one with this workload")
    if reuses:
        return ReuseRun(tasks, sharing)
    if any(task.evaluator is not None for task in tasks.values()):
        raise EvaluationError(f"the method {SHARED} uses no evaluator; leave it out")
    return WorkloadRun(tasks, sharing, method)
