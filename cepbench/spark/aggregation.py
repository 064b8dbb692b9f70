"""Aggregates over a long stream as one Spark job."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cepbench.arguments import MOST, whole
from cepbench.engines.aggregation.aggregate import AggregateResult
from cepbench.engines.aggregation.protocol import AggregateMetrics
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.slices import SliceTask, SliceValues
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.errors import EvaluationError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.patterns.times import read_columns
from cepbench.spark.frames import (
    ORDER,
    SLICE,
    Columns,
    column,
    opened,
    slices_with,
    ticks_of,
    together,
)
from cepbench.spark.jobs import check_is_builtin, run_job, watched
from cepbench.spark.parquet_slices import ParquetSlices, RowGroups
from cepbench.spark.session import spark_session
from cepbench.streams.dataset_folder import read_declaration, type_column
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, report_types, under_one_hierarchy

#: The values of a slice, and the types of its events.
Done: TypeAlias = tuple[SliceValues, tuple[str, ...]]


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
    df: DataFrame | str | Path,
    pattern: Pattern | str,
    method: str | None = None,
    *,
    time: str = "ts",
    type: str | None = None,
    id: str | None = None,
    emit: str = "trigger",
    scope: str = "window",
    evaluator: str | None = None,
    slices: int | None = None,
) -> AggregateResult:
    """Compute the aggregates that a pattern asks for by AGG on a long stream, in parallel.

    Tasks take slices of time, each with the events up to a window before it (up to two where a NOT
    or a group stands before the first item). Slices are no shorter than that. With a path, what
    further tasks there are divide the groups of GROUP BY k, the values of which all events of a match
    share.

    Parameters
    ----------
    df : DataFrame, str or Path
        Events in any order; or Parquet files of them, such as a data set, of which each task reads
        its slice.
    pattern : Pattern or str
        With AGG, or its text.
    method, emit, evaluator
        See :class:`cepbench.Aggregator`; built-in ones.
    time, type : str
        Columns with the timestamp (or an integer) and the type of each event, the latter by default
        as in :meth:`cepbench.EventStream.from_parquet`.
    id : str, optional
        A column that orders events of one timestamp; by default they are in the order of the
        DataFrame's partitions and rows, or as in :meth:`cepbench.EventStream.from_parquet`.
    scope : {"window", "trigger"}
        Not ``stream``, which needs one pass; its COUNT is the sum of those of ``trigger``.
    slices : int, optional
        Number of Spark tasks, by default four per core; the values do not depend on it.

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
    check_is_builtin(method, AGGREGATORS, "cep.aggregate")
    check_is_builtin(evaluator, EVALUATORS, "cep.aggregate")
    given = opened(df)
    spark = given.sparkSession if isinstance(given, DataFrame) else spark_session()
    if slices is not None:
        slices = whole(slices, "slices", EvaluationError, least=1)
    tasks = slices or 4 * spark.sparkContext.defaultParallelism
    if isinstance(given, DataFrame):
        parts, done = _of_frame(given, task, time, type or "symbol", id, tasks)
    else:
        if type is None:
            declaration = read_declaration(given)
            type = type_column(declaration.kind if declaration else "")
        files = ParquetSlices.of(given, time, type, task.pattern.attributes, id)
        task = replace(task, pattern=_fitting(task.pattern, files))
        parts = slices_of(files.groups, task, tasks)
        run = partial(_values, files, task)
        done = run_job(spark, run, parts, name="aggregate", unit="slice", partitions=len(parts))
    if types := sorted({name for _, names in done for name in names}):
        hierarchy = task.pattern.hierarchy
        where = "DataFrame" if isinstance(given, DataFrame) else "files"
        report_types([task.pattern], types, where, () if hierarchy is None else hierarchy.names)
    return _result(task, parts, [values for values, _ in done])


def _result(
    task: SliceTask, slices: Sequence[Slice], found: Sequence[SliceValues]
) -> AggregateResult:
    """The values of all slices as those of one pass."""
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


# -- a DataFrame --------------------------------------------------------------------------------


def _of_frame(
    df: DataFrame, task: SliceTask, time: str, type: str, id: str | None, tasks: int
) -> tuple[list[Slice], list[Done]]:
    """The slices of a DataFrame, and what is done in each."""
    columns = Columns.of(df, time, type, task.pattern.attributes, id)
    nothing = columns.stream(df.select(*map(column, columns.names)).limit(0).toArrow())
    check_fit(task.pattern.without_aggregate(), nothing)
    ticks = ticks_of(df, time)
    spark = df.sparkSession
    with watched(spark, "aggregate"):
        starts = _starts(df.select(ticks.alias("time")), task, tasks)
        slices = [
            Slice(start, end, (0, 1)) for start, end in itertools.pairwise([None, *starts, None])
        ]
        order = F.monotonically_increasing_id() if id is None else column(id)
        names = [*columns.names, SLICE]
        events = df.select(
            *map(column, columns.names),
            order.alias(ORDER),
            slices_with(ticks, starts, task.lead, 0).alias(SLICE),
        )
        run = partial(_pickled, task, columns, names, slices)
        values = together(events, len(slices), [time, ORDER], names).mapInArrow(
            run, "slice bigint, values binary"
        )
        of_slice = {row["slice"]: pickle.loads(row["values"]) for row in values.collect()}
    # Slices without events have no row.
    return slices, [
        of_slice[number] if number in of_slice else _done(task, nothing, part)
        for number, part in enumerate(slices)
    ]


def _starts(times: DataFrame, task: SliceTask, tasks: int) -> list[int]:
    """Where slices start, with about as many events each, none shorter than what is before it."""
    first, last = times.agg(F.min("time"), F.max("time")).collect()[0]
    if first is None:
        return []
    count = min(tasks, max(1, (last - first) // max(1, task.lead)))
    shares = [number / count for number in range(1, count)]
    found = times.approxQuantile("time", shares, 0.1 / count) if shares else []
    return sorted(set(map(int, found)))


def _pickled(
    task: SliceTask,
    columns: Columns,
    names: Sequence[str],
    slices: Sequence[Slice],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The values of the slice in a partition; in a Spark worker."""
    some = [batch.rename_columns(names) for batch in batches if batch.num_rows]
    if some:
        number = some[0].column(SLICE)[0].as_py()
        events = columns.stream(pa.Table.from_batches(some))
        values = pickle.dumps(_done(task, events, slices[number]))
        yield pa.record_batch([[number], [values]], ["slice", "values"])


def _done(task: SliceTask, events: EventStream, part: Slice) -> Done:
    begin = -MOST if part.start is None else part.start
    return task.values(events, begin, part.keys), events.type_names


# -- files --------------------------------------------------------------------------------------


def _fitting(pattern: Pattern, files: ParquetSlices) -> Pattern:
    """The pattern under the hierarchy of the data, which it fits; no event is read."""
    columns = files.columns
    is_datetime = pa.types.is_timestamp(files.dataset().schema.field(columns.time).type)
    nothing = EventStream.from_parquet(
        files.path,
        time=columns.time,
        type=columns.type,
        types=pattern.types,
        attributes=read_columns(pattern.attributes),
        end=datetime(1900, 1, 1) if is_datetime else -MOST,
        hierarchy=pattern.hierarchy,
    )
    check_fit(pattern.without_aggregate(), nothing)
    return under_one_hierarchy(pattern, nothing)[0]


def slices_of(groups: RowGroups, task: SliceTask, tasks: int) -> list[Slice]:
    """Slices with about as many events each, by the statistics of row groups.

    Parameters
    ----------
    groups : RowGroups
    task : SliceTask
    tasks : int
        How many there should be.
    """
    times, before, _ = groups.profile
    starts: list[int] = []
    if len(times):
        count = min(tasks, max(1, int(times[-1] - times[0]) // max(1, task.lead)))
        ends = np.interp(np.linspace(0, before[-1], count + 1)[1:-1], before, times)
        starts = np.unique(ends.astype(np.int64)).tolist()
    parts = -(-tasks // (len(starts) + 1)) if task.shared_key else 1
    return [
        Slice(start, end, (part, parts))
        for part in range(parts)
        for start, end in itertools.pairwise([None, *starts, None])
    ]


def _values(files: ParquetSlices, task: SliceTask, part: Slice) -> Done:
    """What is done in a slice; in a Spark worker."""
    events = files.events(None if part.start is None else part.start - task.lead, part.end)
    events = events.with_hierarchy(task.pattern.hierarchy)
    return _done(task, events, part)
