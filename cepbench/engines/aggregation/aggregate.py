"""The front end: aggregates over the matches of a finite stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.arguments import elements
from cepbench.engines.aggregation.e_cube import E_CUBE
from cepbench.engines.aggregation.live import (
    Aggregator,
    WorkloadAggregator,
    check_no_trigger,
    ticks_of,
)
from cepbench.engines.aggregation.protocol import AggregateMetrics, Row
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.tables import arrow_of, frame_of, shown_number
from cepbench.engines.aggregation.workload_aggregate import WorkloadResult, aggregate_workload
from cepbench.engines.detection.registry import evaluator_for
from cepbench.errors import EvaluationError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import (
    check_fit,
    check_types,
    reporting_missing_types,
    under_one_hierarchy,
)
from cepbench.streams.given import Frame, events_from


@dataclass(frozen=True, eq=False)
class AggregateResult:
    """The values of AGG over a stream.

    Attributes
    ----------
    pattern : Pattern
    method : str
    metrics : AggregateMetrics
    rows : sequence of Row
    at : bool
        Whether the values are at given times.
    """

    pattern: Pattern
    method: str
    metrics: AggregateMetrics
    rows: Rows
    at: bool

    @cached_property
    def values(self) -> pd.DataFrame:
        """``position`` (unless at given times), ``time``, the keys of GROUP BY, the aggregates.

        COUNT is int64; other integers are Int64 with NA where missing; beyond 64 bits they are
        Python ints. Floats are float64 with NaN where missing.
        """
        return frame_of(self.pattern, self.rows, **self._kind)

    @cached_property
    def arrow(self) -> pa.Table:
        """The same with null where missing; integers beyond 64 bits are texts."""
        return arrow_of(self.pattern, self.rows, **self._kind)

    @property
    def _kind(self) -> dict[str, bool]:
        return {"is_datetime": self.pattern.window.is_datetime, "at": self.at}

    def in_whole_stream(self, stream: EventStream) -> AggregateResult:
        """The result with positions in the whole stream of which ``stream`` is a part.

        Parameters
        ----------
        stream : EventStream
            The aggregated stream: a slice, some types or some days of another one.

        Raises
        ------
        StreamError
            If the stream has no positions in a whole stream.
        """
        if self.at:
            return self
        return replace(self, rows=self.rows.at_positions(stream.whole_positions()))

    def describe(self) -> str:
        """The number of values, the method and the time, in one line."""
        return (
            f"{len(self.rows):,} values by {self.method} over {self.metrics.events:,} events in "
            f"{self.metrics.seconds:.3g} s"
        )

    def __repr__(self) -> str:
        return f"AggregateResult({self.describe()})"

    def _repr_html_(self) -> str:
        head = self.values.head(10)
        large = [name for name in map(str, self.pattern.aggregates) if head[name].dtype == object]
        table = head.to_html(
            escape=True, index=False, formatters=dict.fromkeys(large, shown_number)
        )
        return f"<p>{self.describe()}</p>{table}"


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
        See :class:`Aggregator`.
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
    stream = events_from(stream, type, time)
    if not isinstance(pattern, Workload):
        pattern, stream = under_one_hierarchy(pattern_from(pattern, aggregates=True), stream)
    elif pattern.hierarchy is None and stream.hierarchy is not None:
        given, pattern = pattern, Workload(pattern.patterns, hierarchy=stream.hierarchy)
        if isinstance(sharing, WorkloadPlan) and sharing.workload == given:
            sharing = replace(sharing, workload=pattern)
    with reporting_missing_types(missing_types):
        if isinstance(pattern, Workload):
            if sharing is None and method is not None and method.lower() == E_CUBE:
                sharing = "CHASE"
            if isinstance(sharing, str):
                name = None if evaluator is None else evaluator_for(evaluator).name
                statistics = measure_statistics(pattern, stream)
                sharing = plan_workload(pattern, statistics, sharing, evaluator=name)
        live = Aggregator(
            pattern, method, sharing=sharing, emit=emit, scope=scope, evaluator=evaluator
        )
        if isinstance(live, WorkloadAggregator):
            return aggregate_workload(live, stream, emit=emit, scope=scope, at=at)
        check_fit(live.pattern.without_aggregate(), stream)
        check_types(live.pattern, stream)
    if at is None:
        rows = live.take(stream)
    else:
        if emit != "trigger":
            raise EvaluationError(
                f"emit={emit!r} is for values after events; leave out emit, or at"
            )
        check_no_trigger(scope)
        rows = _rows_at(live, stream, elements(at, "at", "[0, 60]", EvaluationError))
    return AggregateResult(live.pattern, live.method, live.metrics, rows, at is not None)


def _rows_at(live: Aggregator, stream: EventStream, times: Sequence[Any]) -> Rows:
    """The values at some times, in the order of the times."""
    ticks = np.array([ticks_of(time, live.window) for time in times], np.int64)
    found: dict[int, Sequence[Row]] = {}
    done = 0
    for place in np.argsort(ticks, kind="stable").tolist():
        end = int(np.searchsorted(stream.timestamps, ticks[place], side="right"))
        live.take(stream[done:end])
        done = end
        found[place] = live.rows_at(int(ticks[place]))
    listed = [row for place in range(len(ticks)) for row in found[place]]
    return Rows.of(listed, live.floats)
