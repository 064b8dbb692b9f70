"""Aggregates over the matches of several queries on a finite stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cepbench.arguments import elements
from cepbench.engines.aggregation.live import WorkloadAggregator, check_no_trigger, ticks_of
from cepbench.engines.aggregation.protocol import AggregateMetrics, Row
from cepbench.engines.aggregation.workload_run import naming
from cepbench.engines.aggregation.workload_tables import (
    QueryRows,
    arrow_of_queries,
    frame_of_queries,
)
from cepbench.errors import EvaluationError
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, check_types

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class WorkloadResult:
    """The values of AGG of the queries of a workload over a stream.

    Attributes
    ----------
    workload : Workload
    sharing : WorkloadPlan, str or None
        What the queries shared.
    method : str
        Of all queries, or the methods in the order of their first queries.
    metrics : AggregateMetrics
        Of all queries together.
    rows : mapping of str to QueryRows
    at : bool
        Whether the values are at given times.
    """

    workload: Workload
    sharing: WorkloadPlan | str | None
    method: str
    metrics: AggregateMetrics
    rows: Mapping[str, QueryRows]
    at: bool

    @cached_property
    def values(self) -> pd.DataFrame:
        """``query``, ``position`` (unless at given times), ``time``, the keys of GROUP BY, the aggregates.

        In the order of positions, then of the queries; missing in columns that a query does not have.
        Otherwise as :attr:`cepbench.engines.aggregation.aggregate.AggregateResult.values`.
        """
        return frame_of_queries(self.rows, at=self.at)

    @cached_property
    def arrow(self) -> pa.Table:
        """The same with null where missing; integers beyond 64 bits are texts."""
        return arrow_of_queries(self.rows, at=self.at)

    def in_whole_stream(self, stream: EventStream) -> WorkloadResult:
        """The result with positions in the whole stream of which ``stream`` is a part.

        As :meth:`cepbench.engines.aggregation.aggregate.AggregateResult.in_whole_stream`.
        """
        if self.at:
            return self
        places = stream.whole_positions()
        moved = {
            name: its._replace(rows=its.rows.at_positions(places))
            for name, its in self.rows.items()
        }
        return replace(self, rows=moved)

    def describe(self) -> str:
        """The number of values, the method and the time, in one line."""
        number = sum(len(its.rows) for its in self.rows.values())
        return (
            f"{number:,} values of {len(self.rows)} queries by {self.method} over "
            f"{self.metrics.events:,} events in {self.metrics.seconds:.3g} s"
        )

    def __repr__(self) -> str:
        return f"WorkloadResult({self.describe()})"

    def _repr_html_(self) -> str:
        return f"<p>{self.describe()}</p>{self.values.head(10).to_html(escape=True, index=False)}"


def aggregate_workload(
    live: WorkloadAggregator,
    stream: EventStream,
    *,
    emit: str,
    scope: str,
    at: Iterable[Any] | None,
) -> WorkloadResult:
    """Compute the values of a new aggregator; see :func:`cepbench.aggregate`."""
    for name, query in live.workload.patterns.items():
        with naming(name):
            check_fit(query.without_aggregate(), stream)
            check_types(query, stream)
    if at is None:
        rows = live.rows_by_query(live.take(stream))
    else:
        if emit != "trigger":
            raise EvaluationError(
                f"emit={emit!r} is for values after events; leave out emit, or at"
            )
        check_no_trigger(scope)
        rows = _rows_at(live, stream, elements(at, "at", "[0, 60]", EvaluationError))
    return WorkloadResult(
        live.workload, live.sharing, live.method, live.metrics, rows, at is not None
    )


def _rows_at(live: WorkloadAggregator, stream: EventStream, times: Any) -> dict[str, QueryRows]:
    """The values at some times, in the order of the times."""
    ticks = np.array([ticks_of(time, live.window) for time in times], np.int64)
    found: dict[str, list[tuple[int, Row]]] = {name: [] for name in live.workload.patterns}
    done = 0
    for place in np.argsort(ticks, kind="stable").tolist():
        end = int(np.searchsorted(stream.timestamps, ticks[place], side="right"))
        live.take(stream[done:end])
        done = end
        for name, rows in live.rows_at(int(ticks[place])).items():  # type: ignore[attr-defined]
            found[name] += ((place, row) for row in rows)
    listed = live.rows_by_query({name: [row for _, row in its] for name, its in found.items()})
    return {
        name: its._replace(places=np.array([place for place, _ in found[name]], np.int64))
        for name, its in listed.items()
    }
