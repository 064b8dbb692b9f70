"""The front end: aggregates over the matches of a finite stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Self, overload

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.arguments import elements
from cepbench.engines.aggregation.chosen import faster
from cepbench.engines.aggregation.live import Aggregator, check_no_trigger, ticks_of
from cepbench.engines.aggregation.opening import is_e_cube, tasks_of
from cepbench.engines.aggregation.protocol import AggregateMetrics, Row
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.tables import QueryRows, arrow_of, frame_of, shown_number
from cepbench.engines.detection.planned import sampled_queries
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.runs.result import check_evaluated
from cepbench.errors import EvaluationError, errors_naming
from cepbench.patterns.model import Pattern
from cepbench.planning.planners.sharing.generate import is_worth_planning, plan_workload
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import (
    check_fit,
    check_types,
    reporting_missing_types,
    under_one_hierarchy,
)
from cepbench.streams.given import Frame, events_from


class _Values:
    """The values of AGG of queries: their tables, and how they are shown."""

    method: str
    metrics: AggregateMetrics
    rows: Any
    at: bool
    reason: str | None = None

    @property
    def _queries(self) -> Mapping[str, QueryRows]:
        raise NotImplementedError

    @cached_property
    def values(self) -> pd.DataFrame:
        """``query`` (of a workload), ``position`` (unless at given times), ``time``, the keys of GROUP BY,
        the aggregates.

        In the order of positions, then of queries. COUNT is int64; other integers, and those of columns
        that some queries do not have, are Int64 with NA where missing; beyond 64 bits they are Python
        ints. Floats are float64 with NaN where missing.
        """
        return frame_of(self._queries, at=self.at)

    @cached_property
    def arrow(self) -> pa.Table:
        """The same with null where missing; integers beyond 64 bits are texts."""
        return arrow_of(self._queries, at=self.at)

    def in_whole_stream(self, stream: EventStream) -> Self:
        """The result with positions in the whole stream of which ``stream`` is a part.

        Parameters
        ----------
        stream : EventStream
            The aggregated stream: a slice, some types or some days of another one.

        Raises
        ------
        StreamError
            If the stream has no positions in a whole stream, or another number of events than the
            aggregated one.
        """
        if self.at:
            return self
        check_evaluated(stream, self.metrics.events)
        places = stream.whole_positions()
        moved = {
            name: its._replace(rows=its.rows.at_positions(places))
            for name, its in self._queries.items()
        }
        return replace(self, rows=moved[""].rows if "" in moved else moved)  # type: ignore[type-var]

    def describe(self) -> str:
        """The number of values, the method and the time, in one line."""
        listed = self._queries
        of = "" if "" in listed else f" of {len(listed)} queries"
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"{sum(len(its.rows) for its in listed.values()):,} values{of} by {self.method}{why} over "
            f"{self.metrics.events:,} events in {self.metrics.seconds:.3g} s"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    def _repr_html_(self) -> str:
        head = self.values.head(10)
        names = {str(each) for its in self._queries.values() for each in its.pattern.aggregates}
        large = [name for name in names if head[name].dtype == object]
        table = head.to_html(
            escape=True, index=False, formatters=dict.fromkeys(large, shown_number)
        )
        return f"<p>{self.describe()}</p>{table}"


@dataclass(frozen=True, eq=False, repr=False)
class AggregateResult(_Values):
    """The values of AGG over a stream."""

    pattern: Pattern
    method: str
    metrics: AggregateMetrics
    rows: Rows
    at: bool  #: whether the values are at given times
    #: Why the method was chosen, by a sample of the stream; None if it was given, or is the first one that
    #: runs the pattern.
    reason: str | None = None

    @property
    def _queries(self) -> Mapping[str, QueryRows]:
        return {"": QueryRows(self.pattern, self.rows, self.rows.positions)}


@dataclass(frozen=True, eq=False, repr=False)
class WorkloadResult(_Values):
    """The values of AGG of the queries of a workload over a stream."""

    workload: Workload
    sharing: WorkloadPlan | str | None  #: what the queries shared
    method: str  #: of all queries, or the methods in the order of their first queries
    metrics: AggregateMetrics  #: of all queries together
    rows: Mapping[str, QueryRows]
    at: bool  #: whether the values are at given times

    @property
    def _queries(self) -> Mapping[str, QueryRows]:
        return self.rows


@overload
def aggregate(
    pattern: Pattern | str,
    stream: EventStream | Frame,
    method: str | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    sharing: WorkloadPlan | str | None = None,
    emit: str = "trigger",
    scope: str = "window",
    at: Iterable[Any] | None = None,
    evaluator: str | None = None,
    missing_types: str = "warn",
) -> AggregateResult: ...
@overload
def aggregate(
    pattern: Workload,
    stream: EventStream | Frame,
    method: str | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    sharing: WorkloadPlan | str | None = None,
    emit: str = "trigger",
    scope: str = "window",
    at: Iterable[Any] | None = None,
    evaluator: str | None = None,
    missing_types: str = "warn",
) -> WorkloadResult: ...
def aggregate(
    pattern: Pattern | Workload | str,
    stream: EventStream | Frame,
    method: str | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    sharing: WorkloadPlan | str | None = None,
    emit: str = "trigger",
    scope: str = "window",
    at: Iterable[Any] | None = None,
    evaluator: str | None = None,
    missing_types: str = "warn",
) -> AggregateResult | WorkloadResult:
    """Compute the aggregates that a pattern asks for by AGG.

    Parameters
    ----------
    pattern : Pattern, str or Workload
        With AGG, or its text; or several queries with AGG.
    stream, type, time
        See :func:`cepbench.evaluate`.
    method, sharing, emit, scope, evaluator
        See :class:`Aggregator`. Of a pattern on a long stream the default is another method than there, if a
        sample of the stream tells that it is faster.
    at : list of int or datetime, optional
        Times at which to give the value of each group seen so far, instead of after events; in any
        order. A datetime without a time zone is in UTC.
    missing_types : {"warn", "error"}
        As in :func:`cepbench.evaluate`.

    Returns
    -------
    AggregateResult or WorkloadResult

    Raises
    ------
    StreamError
        If the stream does not have the types or attributes of the pattern, or texts where numbers
        are aggregated.
    PatternError, EvaluationError
        If an argument is invalid.
    UnsupportedPatternError
        If the method, or the evaluator, cannot run the pattern.

    Examples
    --------
    >>> import cepbench as cep
    >>> events = pd.DataFrame({"kind": list("ABAB"), "at": [1, 2, 3, 4]})
    >>> stream = cep.EventStream.from_pandas(events, type="kind", time="at")
    >>> cep.aggregate("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 units", stream).values
       position  time  COUNT
    0         1     2      1
    1         3     4      3
    """
    given = queries_from(pattern, aggregates=True)
    queries, stream = under_one_hierarchy(given, events_from(stream, type, time))
    with reporting_missing_types(missing_types):
        if queries.by_query:
            if isinstance(sharing, WorkloadPlan) and sharing.workload == given != queries:
                sharing = replace(sharing, workload=queries)
            if sharing is None and is_e_cube(method):
                sharing = "CHASE"
            if isinstance(sharing, str):
                sharing = _planned(queries, stream, sharing, method, evaluator)
        live = Aggregator(
            queries, method, sharing=sharing, emit=emit, scope=scope, evaluator=evaluator
        )
        for name, query in queries.queries.items():
            with errors_naming(name):
                check_fit(query.without_aggregate(), stream)
                check_types(query, stream)
        choice = None
        if method is None and not queries.by_query:
            (task,) = tasks_of(queries, emit, scope, evaluator).values()
            choice = faster(live.method, task, stream)
        if choice is not None:
            live = Aggregator(queries, choice.method, emit=emit, scope=scope)
    if at is None:
        rows = live.by_query(live.take(stream))
    else:
        if emit != "trigger":
            raise EvaluationError(
                f"emit={emit!r} is for values after events; leave out emit, or at"
            )
        check_no_trigger(scope)
        rows = _rows_at(live, stream, elements(at, "at", "[0, 60]", EvaluationError))
    is_at = at is not None
    if queries.by_query:
        return WorkloadResult(queries, live.sharing, live.method, live.metrics, rows, is_at)
    reason = None if choice is None else choice.reason
    return AggregateResult(queries, live.method, live.metrics, rows[""].rows, is_at, reason)


def _planned(
    queries: Workload, stream: EventStream, planner: str, method: str | None, evaluator: str | None
) -> WorkloadPlan | None:
    """The plan of a planner; None where planning what counts to share would take longer than it may save."""
    entry = WORKLOAD_PLANNERS.find(planner)
    if entry.shares == "matches":
        name = None if evaluator is None else evaluator_for(evaluator).name
        return plan_workload(queries, measure_statistics(queries, stream), planner, evaluator=name)
    its = method if method is None else method.lower()
    if its is None and not is_worth_planning(queries, stream):
        return None
    matched = {query: its.without_aggregate() for query, its in queries.patterns.items()}
    statistics, length = sampled_queries(matched, stream)
    return plan_workload(queries, statistics, planner, method=its, length=length)


def _rows_at(live: Aggregator, stream: EventStream, times: Sequence[Any]) -> dict[str, QueryRows]:
    """The values at some times, in the order of the times."""
    ticks = np.array([ticks_of(time, live.window) for time in times], np.int64)
    found: dict[str, list[tuple[int, Row]]] = {name: [] for name in live.pattern.queries}
    done = 0
    for place in np.argsort(ticks, kind="stable").tolist():
        end = int(np.searchsorted(stream.timestamps, ticks[place], side="right"))
        live.take(stream[done:end])
        done = end
        for name, its in live.by_query(live.rows_at(int(ticks[place]))).items():
            found[name] += ((place, row) for row in its.rows)
    listed = {}
    for name, pattern in live.pattern.queries.items():
        ordered = sorted(found[name], key=itemgetter(0))
        rows = Rows.of([row for _, row in ordered], live.floats[name])
        places = np.array([place for place, _ in ordered], np.int64)
        listed[name] = QueryRows(pattern, rows, places)
    return listed
