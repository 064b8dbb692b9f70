"""The values of queries: those that share counters together, and the others by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cepbench.engines.aggregation.arrival import ArrivalAggregation, by_arrival
from cepbench.engines.aggregation.protocol import (
    AggregateMetrics,
    AggregationRun,
    AggregationTask,
    Row,
)
from cepbench.engines.aggregation.shared import SharedQuery, SharedRun, warm_up
from cepbench.errors import UnsupportedPatternError
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream

#: The method whose counters can be shared.
SHARED = "a-seq"


class QueryRuns(Stateful):
    """Runs of queries: of those alone, by their methods, and of those that share counters by a plan.

    ``methods`` are by query.
    """

    SAVED = ("_alone", "_shared")

    def __init__(
        self,
        alone: Mapping[str, tuple[str, AggregationRun]],
        shared: Mapping[str, AggregationTask] | None = None,
        plan: WorkloadPlan | None = None,
    ) -> None:
        shared = shared or {}
        self.methods = dict.fromkeys(shared, SHARED) | {
            q: method for q, (method, _) in alone.items()
        }
        self._alone = {query: run for query, (_, run) in alone.items()}
        partitions: dict[frozenset[str], list[str]] = {}
        for query, task in shared.items():
            attributes = frozenset(task.pattern.without_aggregate().equivalences)
            partitions.setdefault(attributes, []).append(query)
        self._shared: list[Any] = []
        for names in partitions.values():
            assert plan is not None
            opener = partial(SharedRun, plan, names)
            self._shared.append(by_arrival(opener, *(shared[query] for query in names)))
        if shared:
            warm_up()

    def prepare(self, batch: EventStream) -> None:
        """Check that all runs under ORDER BY arrival take the next events."""
        for run in self._runs():
            if isinstance(run, ArrivalAggregation):
                run.prepare(batch)

    def push(self, batch: EventStream) -> dict[str, Sequence[Row]]:
        """Process the next events; returns the rows to report of each query."""
        found = {name: run.push(batch) for name, run in self._alone.items()}
        for shared in self._shared:
            found |= shared.push(batch)
        return found

    def value(self, time: int) -> dict[str, Sequence[Row]]:
        """The value of each query and group at a time; changes nothing."""
        found = {name: run.value(time) for name, run in self._alone.items()}
        for shared in self._shared:
            found |= shared.value(time)
        return found

    def metrics(self) -> AggregateMetrics:
        """Metrics so far, summed over the queries; the maxima may be of different times."""
        return AggregateMetrics.of_runs([run.metrics() for run in self._runs()])

    def _runs(self) -> list[Any]:
        return [*self._alone.values(), *self._shared]


def counted_queries(tasks: Mapping[str, AggregationTask], plan: WorkloadPlan) -> dict[str, bool]:
    """The queries whose counters can be shared, and whether each of them shares any.

    By itself a query is faster.

    An UnsupportedPatternError if one that is cut is not among them.
    """
    found = {}
    for name, task in tasks.items():
        try:
            if plan.segments(name):
                SharedQuery(task, plan.segments(name))
                found[name] = _shares(name, plan)
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
