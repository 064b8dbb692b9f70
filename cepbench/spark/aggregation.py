"""Aggregates over a long stream as one Spark job."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from cepbench.aggregators.aggregate import AggregateResult
from cepbench.aggregators.protocol import AggregateMetrics
from cepbench.aggregators.registry import AGGREGATORS
from cepbench.aggregators.rows import Rows
from cepbench.aggregators.slices import SliceTask, SliceValues
from cepbench.arguments import MOST, whole
from cepbench.errors import DatasetError, EvaluationError
from cepbench.evaluators.registry import EVALUATORS
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.spark.jobs import run_job
from cepbench.spark.parquet_slices import row_groups
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, under_one_hierarchy

#: The column of times in a data set.
_TIME = "ts"


@dataclass(frozen=True)
class Slice:
    """A part of the stream, and of its groups.

    Attributes
    ----------
    start, end : int or None
        In ticks; the first slice has no start, the last one no end.
    keys : (int, int)
        As :meth:`SliceTask.values` takes them.
    """

    start: int | None
    end: int | None
    keys: tuple[int, int]


def aggregate(
    spark: SparkSession,
    data_path: str | Path,
    pattern: Pattern | str,
    method: str | None = None,
    *,
    emit: str = "trigger",
    scope: str = "window",
    evaluator: str | None = None,
    partitions: int | None = None,
    progress: bool = True,
) -> AggregateResult:
    """Compute the aggregates that a pattern asks for by AGG on a data set, in parallel.

    Tasks take slices of time, each with the events up to a window before it (up to two where a NOT
    or a group stands before the first item). Slices are no shorter than that; what further tasks
    there are divide the groups of GROUP BY k, the values of which all events of a match share.

    Parameters
    ----------
    spark : SparkSession
    data_path : path
        A data set written by :mod:`cepbench.spark.generate` or :mod:`cepbench.spark.ingest`, or
        other Parquet with columns ``symbol`` and ``ts``, in any order.
    pattern : Pattern or str
        With AGG, or its text.
    method, emit, evaluator
        See :class:`cepbench.Aggregator`; built-in ones.
    scope : {"window", "trigger"}
        Not ``stream``, which needs one pass; its COUNT is the sum of those of ``trigger``.
    partitions : int, optional
        Number of Spark tasks, by default four per core; the values do not depend on it.
    progress : bool
        Whether to show a progress bar after a few seconds.

    Returns
    -------
    AggregateResult
        As :func:`cepbench.aggregate` on the whole stream, sums of floats up to rounding. Seconds and
        updates are the sums of the tasks, peaks those of the largest one.

    Raises
    ------
    DatasetError, StreamError
        If the data cannot be read, or does not fit the pattern.
    PatternError, EvaluationError
        If an argument is invalid, or the scope is ``stream``.
    UnsupportedPatternError
        If the method cannot run the pattern, or a value depends on events long before.
    """
    task = SliceTask(pattern_from(pattern, aggregates=True), method, emit, scope, evaluator)
    for name, registry in ((method, AGGREGATORS), (evaluator, EVALUATORS)):
        if name is not None and not registry.find(name).is_builtin:
            raise EvaluationError(
                f"{name} is user-defined, and Spark's workers do not have it; use cep.aggregate, "
                "which runs it in this process"
            )
    path = Path(data_path).resolve()
    task = replace(task, pattern=_fitting(task.pattern, path))
    tasks = whole(
        partitions or 4 * spark.sparkContext.defaultParallelism, "partitions", DatasetError, least=1
    )
    slices = slices_of(path, task, tasks)
    found = run_job(
        spark, partial(_values, path, task), slices, name="aggregate", unit="slice",
        partitions=len(slices), progress=progress,
    )  # fmt: skip
    of_keys: dict[int, list[SliceValues]] = {}
    for part, values in zip(slices, found, strict=True):
        of_keys.setdefault(part.keys[0], []).append(values)
    rows = [row for its in of_keys.values() for row in task.joined(its)]
    floats = [any(its) for its in zip(*(values.floats for values in found), strict=True)]
    metrics = [values.metrics for values in found]
    return AggregateResult(
        task.pattern,
        found[0].method,
        AggregateMetrics(
            seconds=sum(its.seconds for its in metrics),
            events=sum(values.events for values in of_keys[0]),
            updates=sum(its.updates for its in metrics),
            peak_counters=max(its.peak_counters for its in metrics),
            peak_objects=max(its.peak_objects for its in metrics),
            peak_bytes=max(its.peak_bytes for its in metrics),
        ),
        Rows.of(sorted(rows, key=lambda row: row.position), floats),
        at=False,
    )


def _fitting(pattern: Pattern, path: Path) -> Pattern:
    """The pattern under the hierarchy of the data, which it fits; no event is read."""
    schema = ds.dataset(path).schema
    is_datetime = _TIME in schema.names and pa.types.is_timestamp(schema.field(_TIME).type)
    never = datetime(1900, 1, 1) if is_datetime else -MOST
    nothing = EventStream.from_parquet(
        path,
        types=pattern.types,
        attributes=pattern.attributes,
        end=never,
        sort=True,
        hierarchy=pattern.hierarchy,
    )
    check_fit(pattern.without_aggregate(), nothing)
    return under_one_hierarchy(pattern, nothing)[0]


def slices_of(path: Path, task: SliceTask, tasks: int) -> list[Slice]:
    """Slices with about as many events each, by the statistics of row groups.

    Parameters
    ----------
    path : path
    task : SliceTask
    tasks : int
        How many there should be.
    """
    first, last, rows = row_groups(path, _TIME)
    starts: list[int] = []
    if len(rows):
        # Events spread evenly over their row group.
        times = np.unique([first, last])
        share = (times[:, None] - first) / np.maximum(last - first, 1)
        before = np.clip(share, 0, 1) @ rows
        count = min(tasks, max(1, int(times[-1] - times[0]) // max(1, task.lead)))
        ends = np.interp(np.linspace(0, before[-1], count + 1)[1:-1], before, times)
        starts = np.unique(ends.astype(np.int64)).tolist()
    parts = -(-tasks // (len(starts) + 1)) if task.shared_key else 1
    return [
        Slice(start, end, (part, parts))
        for part in range(parts)
        for start, end in itertools.pairwise([None, *starts, None])
    ]


def _values(path: Path, task: SliceTask, part: Slice) -> SliceValues:
    """The values of a slice; in a Spark worker."""

    def bound(ticks: int | None) -> Any:
        is_datetime = task.pattern.window.is_datetime and ticks is not None
        return np.datetime64(ticks, "ns") if is_datetime else ticks

    begins = None if part.start is None else part.start - task.lead
    events = EventStream.from_parquet(
        path,
        attributes=task.pattern.attributes,
        start=bound(begins),
        end=bound(part.end),
        sort=True,
        hierarchy=task.pattern.hierarchy,
    )
    return task.values(events, -MOST if part.start is None else part.start, part.keys)
