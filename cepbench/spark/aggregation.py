"""Aggregates over a long stream as one Spark job."""

from __future__ import annotations

import pickle
from pathlib import Path

from pyspark.sql import DataFrame

from cepbench.arguments import whole
from cepbench.engines.aggregation.aggregate import AggregateResult
from cepbench.engines.aggregation.protocol import AggregateMetrics
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.slices import SliceAggregation, SliceValues
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.runs.work import Work
from cepbench.errors import EvaluationError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.spark.balance import Slices
from cepbench.spark.frames import opened
from cepbench.spark.jobs import check_is_builtin, watched
from cepbench.spark.parquet_slices import ParquetSlices
from cepbench.spark.slice_job import Events, SliceJob, events_of, nothing_of
from cepbench.streams.dataset_folder import read_declaration, type_column
from cepbench.streams.parquet import refuse_unknown


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
    its = pattern_from(pattern, aggregates=True)
    aggregation = SliceAggregation(its, method, emit, scope, evaluator)
    check_is_builtin(method, AGGREGATORS, "cep.aggregate")
    check_is_builtin(evaluator, EVALUATORS, "cep.aggregate")
    given = opened(df)
    if slices is not None:
        slices = whole(slices, "slices", EvaluationError, least=1)
    declaration = None if isinstance(given, DataFrame) else read_declaration(given)
    own = type_column(declaration.kind if declaration else "")
    events = events_of(given, aggregation, time, own if type is None else type, id)
    job = SliceJob.fitting(events, aggregation, nothing_of(events))
    if declaration is not None and events.columns.type == own:
        refuse_unknown(its.types or (), declaration.counts, job.slicer.pattern.hierarchy, given)
    with watched(job.spark, "aggregate"):
        tasks = slices or 4 * job.spark.sparkContext.defaultParallelism
        made = even_slices(job.events, job.slicer, tasks)
        found = job.run(made).toArrow().to_pydict()
    values = dict(zip(found["slice"], map(pickle.loads, found["values"]), strict=True))
    if types := sorted({name for its in values.values() for name in its.types}):
        job.report(types)
    return _result(job, made, values)


def even_slices(events: Events, aggregation: SliceAggregation, tasks: int) -> Slices:
    """Slices with about as many events each, none shorter than what is before it.

    Of files, what further tasks there are divide the groups.
    """
    first, end = events.extent
    starts = events.starts(min(tasks, max(1, (end - first) // max(1, aggregation.lead))))
    key = aggregation.shared_key if isinstance(events, ParquetSlices) else None
    return Slices(tuple(starts), -(-tasks // (len(starts) + 1)) if key else 1, key)


def _result(
    job: SliceJob[SliceAggregation], made: Slices, values: dict[int, SliceValues]
) -> AggregateResult:
    """The values of all slices as those of one pass."""
    parts = made.all_parts()
    found = [
        values.get(part.number) or job.slicer.values(part, [(job.nothing, None)]) for part in parts
    ]
    of_keys: dict[int, list[SliceValues]] = {}
    for part, its in zip(parts, found, strict=True):
        of_keys.setdefault(part.of_key, []).append(its)
    rows = [row for its in of_keys.values() for row in job.slicer.joined(its)]
    floats = [any(its) for its in zip(*(its.floats for its in found), strict=True)]
    metrics = [its.metrics for its in found]
    return AggregateResult(
        job.slicer.pattern,
        found[0].method,
        AggregateMetrics(
            seconds=sum(its.seconds for its in metrics),
            events=sum(its.events for its in of_keys[0]),
            updates=sum(its.updates for its in metrics),
            peak_counters=max(its.peak_counters for its in metrics),
            peak_objects=max(its.peak_objects for its in metrics),
            peak_bytes=max(its.peak_bytes for its in metrics),
            work=Work.total(its.work for its in metrics),
        ),
        Rows.of(sorted(rows, key=lambda row: row.position), floats),
        at=False,
    )
