"""Detection of a pattern on a Spark DataFrame, in slices of the stream."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from cepbench.arguments import choice, whole
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.detection.slices import (
    QUERY,
    Batch,
    SliceDetection,
    counts_schema,
    matches_schema,
)
from cepbench.engines.detection.tasks import chosen_evaluator, refuse
from cepbench.engines.detection.workload_evaluate import chosen_for, workload_plan
from cepbench.errors import EvaluationError, StreamError, errors_naming
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.spark.balance import Density, Slices, planned_slices
from cepbench.spark.frames import (
    ORDER,
    SLICE,
    Columns,
    arrow_schema,
    column,
    compared,
    opened,
    plain,
    rank,
    slices_with,
    ticks_of,
    together,
)
from cepbench.spark.jobs import check_is_builtin, watched
from cepbench.spark.parquet_slices import ParquetSlices
from cepbench.spark.session import spark_session
from cepbench.spark.slice_tasks import Part, TimeLimit, parts_of, run_part
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, report_types, under_one_hierarchy

#: Sampled events of each type, and events of the parts in which selectivities are measured.
_SAMPLED, _PIECES, _PIECE_EVENTS = 20_000, 4, 10_000

#: A column of our own.
_ID = " id"

T = TypeVar("T")

#: The row of a partition in ``monotonically_increasing_id``.
_ROW = (1 << 33) - 1


def detect(
    df: DataFrame | str | Path,
    pattern: Pattern | str | Workload,
    plan: AnyPlan | WorkloadPlan | str | None = None,
    *,
    time: str,
    type: str,
    id: str | None = None,
    key: str | None = None,
    generator: str | None = None,
    evaluator: str | None = None,
    output: str = "matches",
    slices: Slices | int | None = None,
) -> Any:
    """Find all matches of a pattern in a DataFrame or Parquet files of events, in parallel.

    Tasks take slices of time with the events around them on which their matches depend: those of a
    window after it, and, where a NOT or a group stands before the first item, of a window before
    it. A match belongs to the slice of its earliest event. Where matches depend on all earlier ones
    (``STRATEGY consuming``, ``OUTPUT non_overlap``), tasks take parts of the values of an attribute
    that all events of a match share. The matches are those of :func:`cepbench.evaluate` on the
    whole stream. A task holds the events of a few windows.

    Parameters
    ----------
    df : DataFrame, str or Path
        Events in any order. Of the path of a Parquet file or folder, such as a data set, each task
        reads its own slice, without a shuffle; times may have nanoseconds, which Spark's own do not.
    pattern : Pattern, str or Workload
        Of a workload every query gets its own matches; its plan is run in each slice.
    plan : OrderPlan, TreePlan, Automaton, UnionPlan, WorkloadPlan or "per-slice", optional
        By default one plan for all slices, from statistics measured on a sample, of a workload that
        of CHASE; ``"per-slice"`` makes one for the arrival rates of each slice.
    time, type : str
        Columns with the timestamp (or an integer) and the type of each event.
    id : str, optional
        A column that identifies events, and orders those of one timestamp. Without it events of one
        timestamp are in the order of the DataFrame's partitions and rows (of a path as in
        :meth:`EventStream.from_parquet`), and matches have positions in the whole stream: of a path
        the rows of the files, one after the other, or the places in a data set; of a DataFrame the
        places in order of time, for which all events are sorted, also those of types that the
        pattern does not have.
    key : str, optional
        An attribute by whose values the stream is divided instead of time; equalities must tie all
        variables of each query to it. By default one is used if matches depend on earlier ones, and besides time
        if slices for all cores would copy too many events.
    generator : str, optional
        A name in ``cep.PLAN_GENERATORS``, if a plan is made; by default that of :func:`cepbench.plan`,
        of orders for an evaluator that does not run all trees.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``; a built-in one.
    output : {"matches", "count", "arrow"}
        A DataFrame of matches; a DataFrame with a row for each task (``slice``, ``events`` of its
        own, ``copied`` ones, ``matches``, ``seconds`` in detectors); or, at once and with a progress
        bar, an Arrow table of the matches. A slice that takes much longer than expected is then cut,
        and the rest divided among all cores.
    slices : Slices or int, optional
        As :func:`slices` returns them, or the number of tasks.

    Returns
    -------
    DataFrame or pyarrow.Table
        Lazy, unless ``output="arrow"``: only the sample is read before an action. For each variable
        the ``id`` of its event (a list for a Kleene variable or a group), or the columns of RETURN;
        with OR also ``branch``. Rows are in no order. Of a workload each row has the name of its
        ``query``, and in a struct of that name these columns; counts have in ``matches`` a struct
        of the queries; and of Arrow tables there is a mapping, as of :func:`cepbench.evaluate`.

    Raises
    ------
    PatternError, PlanError, EvaluationError
        If an argument is invalid, or pattern, plan and evaluator do not fit each other.
    StreamError
        If the DataFrame does not fit the pattern.
    DatasetError
        If there is no such path, or no Parquet.
    UnsupportedPatternError
        If matches depend on all earlier ones, and no attribute divides the stream.
    """
    job = DetectionJob.of(df, pattern, time, type, id, key, evaluator, output)
    made = slices
    if not isinstance(made, Slices):
        made = job.slices(_given(pattern, plan), generator, made)
    elif plan is not None:
        raise EvaluationError("plan= and slices= with plans of their own; leave out plan=")
    job = job.divided(made)
    if output != "arrow":
        return job.detected(made)
    table = pa.concat_tables(job.at_once(made, DataFrame.toArrow))
    return _by_query(table) if isinstance(job.pattern, Workload) else table


def slices(
    df: DataFrame | str | Path,
    pattern: Pattern | str | Workload,
    plan: AnyPlan | WorkloadPlan | str | None = None,
    *,
    time: str,
    type: str,
    key: str | None = None,
    generator: str | None = None,
    evaluator: str | None = None,
    output: str = "matches",
    tasks: int | None = None,
) -> Slices:
    """How :func:`detect` would divide a stream, and what it would cost, from a sample.

    Parameters
    ----------
    df, pattern, plan, time, type, key, generator, evaluator, output
        See :func:`detect`.
    tasks : int, optional
        By default four per core; fewer if more than 5 % of the events would be copied between
        slices and there is no key to divide them by, but at least one per core.

    Returns
    -------
    Slices
        For ``slices=``; ``describe()`` and ``table`` have the expected events, copied events,
        partial matches and seconds.

    Raises
    ------
    CepbenchError
        As :func:`detect`.
    """
    job = DetectionJob.of(df, pattern, time, type, None, key, evaluator, output)
    return job.slices(_given(pattern, plan), generator, tasks)


@dataclass(frozen=True)
class DetectionJob:
    """A DataFrame or files, and what is detected in them."""

    df: DataFrame | None
    files: ParquetSlices | None
    columns: Columns
    id: str | None
    detection: SliceDetection

    @classmethod
    def of(
        cls,
        df: DataFrame | str | Path,
        pattern: Pattern | str | Workload,
        time: str,
        type: str,
        id: str | None,
        key: str | None,
        evaluator: str | None,
        output: str,
    ) -> DetectionJob:
        """Check the arguments of :func:`detect`."""
        given = opened(df)
        if isinstance(pattern, Workload):
            _check_queries(pattern)
        else:
            pattern = pattern_from(pattern)
        choice(output, "output", ("matches", "count", "arrow"), EvaluationError)
        check_is_builtin(evaluator, EVALUATORS, "cep.evaluate")
        if isinstance(given, DataFrame) and given.isStreaming:
            raise StreamError("df is a stream; use cep.spark.detect_stream")
        detection = SliceDetection(pattern, evaluator, output == "count", key)
        read = (name for its in detection.queries.values() for name in its.attributes)
        attributes = tuple(dict.fromkeys(read))
        files = None
        if isinstance(given, DataFrame):
            columns = Columns.of(given, time, type, attributes, id)
        else:
            files = ParquetSlices.of(given, time, type, attributes, id)
            columns = files.columns
        if key is None and not detection.by_time:
            detection = replace(detection, key=detection.keys[0])
        frame = given if isinstance(given, DataFrame) else None
        job = cls(frame, files, columns, id, detection)
        detection = replace(detection, pattern=_fitting(pattern, job.nothing()))
        job = replace(job, detection=detection)
        if files is None:
            return job
        numbered = id is None and job._needs_names()
        return replace(job, files=replace(files, types=detection.types, numbered=numbered))

    @property
    def spark(self) -> SparkSession:
        return spark_session() if self.df is None else self.df.sparkSession

    @property
    def frame(self) -> DataFrame:
        """The DataFrame, where no files were given."""
        assert self.df is not None
        return self.df

    @property
    def events_schema(self) -> pa.Schema:
        """The columns that there are."""
        return arrow_schema(self.frame) if self.files is None else self.files.dataset().schema

    @property
    def pattern(self) -> Pattern | Workload:
        return self.detection.pattern

    def nothing(self) -> EventStream:
        """A stream of no events with the columns of the DataFrame."""
        nothing = self.columns.stream(self.events_schema.empty_table())
        return nothing.with_hierarchy(None if self.files is None else self.files.hierarchy())

    @property
    def _kept(self) -> Column | None:
        """Which events matches depend on; None for all."""
        return self.columns.of_type(self.detection.types)

    def _needs_names(self) -> bool:
        """Whether the matches name their events."""
        return not self.detection.counts and any(
            not its.returns or any(isinstance(column.value, str) for column in its.returns)
            for its in self.detection.queries.values()
        )

    # -- the plan of the job --------------------------------------------------------------------

    def slices(
        self,
        plan: AnyPlan | str | None,
        generator: str | None,
        tasks: int | None,
        *,
        sample: tuple[Density, list[EventStream]] | None = None,
        cores: int | None = None,
    ) -> Slices:
        """Slices, by default from a new sample of the events, and for the cores of the session."""
        if isinstance(plan, str):
            choice(plan, "plan", ("per-slice",), EvaluationError)
        if tasks is not None:
            tasks = whole(tasks, "slices", EvaluationError, least=1)
        density, pieces = sample or self.sample()
        if cores is None:
            if not str(self.spark.sparkContext.master).startswith("local"):
                self.spark.range(1).count()  # cores are counted once executors have registered
            cores = self.spark.sparkContext.defaultParallelism
        made = planned_slices(
            self.detection, density, pieces, plan, generator, tasks=tasks, cores=cores
        )
        for query, pattern in self.detection.queries.items():
            its: Any = made.plans[0]
            given: Any = self.detection.evaluator
            if isinstance(its, WorkloadPlan):
                given, its = chosen_for(pattern, its.plans.get(query), given)
            evaluator = chosen_evaluator(its, given, pattern.strategy.name)
            if not evaluator.batches:
                refuse(evaluator, "take a stream in batches", lambda e: e.batches)
        return made

    def sample(self) -> tuple[Density, list[EventStream]]:
        """When how many events of each type arrive, and some parts of the stream."""
        if self.files is not None:
            density = self._density_of_files(self.files)
            pieces = [self.files.events(*its) for its in _pieces(density)]
            return density, [its.with_hierarchy(self.pattern.hierarchy) for its in pieces]
        with watched(self.spark, "sample", "task"):
            density = self._density()
            return density, self._pieces(density)

    def _density_of_files(self, files: ParquetSlices) -> Density:
        stream, times_as_many = files.sample()
        types = self.pattern.types
        rows = {name: stream.rows_of(name) for name in types or ()}
        if self.detection.types is None:
            others = np.ones(len(stream), bool)
            for its in rows.values():
                others[its] = False
            rows[""] = np.flatnonzero(others)
        totals = {name: round(len(its) * times_as_many) for name, its in rows.items() if len(its)}
        if types is not None:
            self._check_types(totals)
        some = {name: rows[name][:: max(1, len(rows[name]) // _SAMPLED)] for name in totals}
        return Density.of(
            np.concatenate([np.empty(0, np.int64), *(stream.timestamps[r] for r in some.values())]),
            np.repeat(np.array(list(some), object), list(map(len, some.values()))),
            totals,
        )

    def _density(self) -> Density:
        types = self.pattern.types
        kind = column(self.columns.type).cast("string")
        if types is not None:
            kind = F.when(kind.isin(*types), kind).otherwise("")
        events = self.frame if self._kept is None else self.frame.where(self._kept)
        narrow = events.select(
            ticks_of(self.frame, self.columns.time).alias("time"), kind.alias("type")
        )
        totals = {row["type"]: row["count"] for row in narrow.groupBy("type").count().collect()}
        if types is not None:
            self._check_types(totals)
        shares = {name: min(1.0, _SAMPLED / total) for name, total in totals.items()}
        sample = narrow.sampleBy("type", shares, seed=0).dropna().toArrow()
        return Density.of(
            sample["time"].to_numpy(), np.array(sample["type"].to_pylist(), object), totals
        )

    def _check_types(self, totals: dict[str, int]) -> None:
        """Report the types without events and without a concept above them."""
        hierarchy = self.pattern.hierarchy
        declared = () if hierarchy is None else hierarchy.names
        queries = self.detection.queries.values()
        asked = {v.type for its in queries for v in its.variables if v.type is not None}
        if asked.issubset((*totals, *declared)):
            return
        if known := self._known_types():
            where = "DataFrame" if self.files is None else "files"
            report_types(queries, known, where, declared)

    def _known_types(self) -> list[str]:
        """Some of the types that there are."""
        if self.files is not None:
            stream, _ = replace(self.files, types=None).sample()
            return sorted(stream.type_names)
        rows = self.frame.select(column(self.columns.type).cast("string")).distinct().limit(1000)
        return sorted(row[0] for row in rows.collect() if row[0] is not None)

    def _pieces(self, density: Density) -> list[EventStream]:
        ranges = _pieces(density)
        if not ranges:
            return []
        ticks = ticks_of(self.frame, self.columns.time)
        some = reduce(Column.__or__, ((ticks >= a) & (ticks < b) for a, b in ranges))
        events = self.frame.where(some if self._kept is None else some & self._kept)
        table = events.select(*map(column, self.columns.names)).toArrow()
        stream = self.columns.stream(table, sort=True).with_hierarchy(self.pattern.hierarchy)
        return [stream.with_rows(slice(*np.searchsorted(stream.timestamps, its))) for its in ranges]

    def divided(self, made: Slices) -> DetectionJob:
        """The job divided as given, which is checked."""
        if made.by_time and made.starts and not self.detection.by_time:
            raise EvaluationError(
                "the slices are of time, and matches depend on all earlier ones; make them for this "
                "pattern by cep.spark.slices"
            )
        return replace(self, detection=replace(self.detection, key=made.key))

    # -- the DataFrame of matches ---------------------------------------------------------------

    def schema(self) -> pa.Schema:
        """The columns of the matches, or of their numbers."""
        if self.detection.counts:
            return counts_schema(self.pattern)
        kind = None
        if self._needs_names():
            kind = pa.int64() if self.id is None else self.events_schema.field(self.id).type
        return plain(matches_schema(self.pattern, self.nothing(), kind))

    def at_once(self, made: Slices, action: Callable[[DataFrame], T]) -> list[T]:
        """Act on the matches, or their numbers, in one DataFrame after the other.

        Tasks that take too long hand back the rests of their slices, which are divided among all
        cores and make the next DataFrame. A slice that was cut has its matches until there, for
        which it needs the events of one more window.
        """
        parts, cut, found = parts_of(made), 0, []
        while parts:
            limit = TimeLimit.of(self.spark, made, self.detection.tail)
            name = f"detect, the rest of {cut} slices" if cut else "detect"
            with watched(self.spark, name, "task"):
                found.append(action(self.detected(made, parts if cut else None, limit)))
            cut = len(limit.cuts.value)
            cores = self.spark.sparkContext.defaultParallelism
            parts = limit.rests(parts, self._end, 2 * cores) if cut else []
        return found

    @cached_property
    def _end(self) -> int:
        """The tick after the last event."""
        if self.files is not None:
            return self.files.extent[1]
        last = self.frame.select(F.max(ticks_of(self.frame, self.columns.time))).collect()[0][0]
        return 0 if last is None else int(last) + 1

    def detected(
        self, made: Slices, rests: Sequence[Part] | None = None, limit: TimeLimit | None = None
    ) -> DataFrame:
        """The matches, or their numbers, of all slices or of what is left of some."""
        schema = self.schema()
        parts = parts_of(made) if rests is None else rests
        if self.files is not None:
            self.files.read_footers()  # before tasks do, each for itself
            its = partial(self.files.run, self.detection, parts, schema, limit)
            tasks = self.spark.range(len(parts), numPartitions=len(parts))
            return tasks.mapInArrow(its, from_arrow_schema(schema))
        names = self._needs_names()
        events = self._numbered(made) if names and self.id is None else self._with_order(names)
        if self._kept is not None:
            events = events.where(self._kept)
        events = self._with_places(events, made, rests)
        columns = [*self.columns.names, SLICE, *([_ID] if names else [])]
        order = _ID if names else ORDER
        events = together(events, len(parts), [self.columns.time, order], columns)
        run = partial(_run, self.detection, self.columns, columns, parts, schema, limit)
        return events.mapInArrow(run, from_arrow_schema(schema))

    def _with_places(
        self, events: DataFrame, made: Slices, rests: Sequence[Part] | None
    ) -> DataFrame:
        """The events, one row for each part that needs them, with its place."""
        detection, ticks = self.detection, ticks_of(self.frame, self.columns.time)
        of_key = F.lit(0)
        if made.parts > 1:
            assert made.key is not None
            of_key = _part(self.frame, made.key, made.parts)
        if rests is None:
            starts = [its.start for its in made.slices() if its.start is not None]
            number = slices_with(ticks, starts, detection.lead, detection.tail)
            events = events.select("*", number.alias(SLICE))
            return events.withColumn(SLICE, column(SLICE) * made.parts + of_key)
        places = []
        for place, part in enumerate(rests):
            first, last = detection.reach(part.slice)
            inside = (ticks >= F.lit(first)) & (ticks < F.lit(last)) & (of_key == part.of_key)
            places.append(F.when(inside, F.lit(place)))
        return events.select("*", F.explode(F.array_compact(F.array(*places))).alias(SLICE))

    def _with_order(self, names: bool) -> DataFrame:
        """The events with their identifier, or with their order in the DataFrame."""
        added = F.monotonically_increasing_id().alias(ORDER)
        if self.id is not None:
            added = column(self.id).alias(_ID if names else ORDER)
        return self.frame.select(*map(column, self.columns.names), added)

    def _numbered(self, made: Slices) -> DataFrame:
        """All events with their positions in the whole stream."""
        events = self._with_order(False)
        starts = list(made.starts)
        number = rank(ticks_of(self.frame, self.columns.time), starts)
        with watched(self.spark, "count", "task"):
            counted = self.frame.select(number.alias("n")).groupBy("n").count().collect()
        counts = np.zeros(len(starts) + 1, np.int64)
        for found in counted:
            counts[found["n"]] += found["count"]
        before = np.concatenate(([0], np.cumsum(counts)[:-1]))
        row = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW))
        return (
            events.repartitionById(len(starts) + 1, number)
            .sortWithinPartitions(column(self.columns.time), column(ORDER))
            .withColumn(_ID, F.get(F.lit(before.tolist()), F.spark_partition_id()) + row)
            .drop(column(ORDER))
        )


def _pieces(density: Density) -> list[tuple[int, int]]:
    """Parts of the stream, in ticks, in which selectivities are measured."""
    below = np.concatenate(([0.0], np.cumsum(density.events)))
    if not below[-1]:
        return []
    share = min(1.0 / _PIECES, _PIECE_EVENTS / below[-1])
    at = (np.arange(_PIECES) + 0.5) / _PIECES - share / 2
    bounds = np.interp(np.concatenate((at, at + share)) * below[-1], below, density.edges)
    return list(map(tuple, bounds.astype(np.int64).reshape(2, -1).T.tolist()))


def _given(pattern: Pattern | str | Workload, plan: Any) -> Any:
    """The plan, of a workload as a WorkloadPlan; None or a word as it is."""
    is_plan = plan is not None and not isinstance(plan, str)
    return workload_plan(pattern, plan) if is_plan and isinstance(pattern, Workload) else plan


def _check_queries(workload: Workload) -> None:
    """Check that the matches of queries can be columns of one DataFrame.

    Raises
    ------
    EvaluationError
    """
    workload_plan(workload, None)  # without AGG
    names = Counter([QUERY, *map(str.lower, workload.patterns)])
    for query in workload.patterns:
        if names[query.lower()] > 1:
            raise EvaluationError(
                f"query {query!r}: Spark does not tell its column from {QUERY!r} or that of another "
                "query, whatever the case; choose another name"
            )


def _fitting(pattern: Pattern | Workload, nothing: EventStream) -> Any:
    """The pattern, or the workload, under the hierarchy of a stream, which it fits."""
    if isinstance(pattern, Workload):
        patterns = {}
        for query, its in pattern.patterns.items():
            with errors_naming(query):
                patterns[query] = _fitting(its, nothing)
        hierarchy = pattern.hierarchy if nothing.hierarchy is None else nothing.hierarchy
        return Workload(patterns, hierarchy=hierarchy)
    check_fit(pattern, nothing)
    return under_one_hierarchy(pattern, nothing)[0]


def _by_query(table: pa.Table) -> dict[str, pa.Table]:
    """The matches of each query of a workload, with columns of their own."""
    _, *queries = table.column_names
    return {
        query: pa.Table.from_struct_array(table.filter(pc.field(QUERY) == query).column(query))
        for query in queries
    }


def _part(df: DataFrame, key: str, parts: int) -> Column:
    """The part of an event by its value of a key: equal values are of one part."""
    return F.pmod(F.hash(compared(df, key)), F.lit(parts))


def _run(
    detection: SliceDetection,
    columns: Columns,
    names: Sequence[str],
    parts: Sequence[Part],
    schema: pa.Schema,
    limit: TimeLimit | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The matches of the part whose events are in a partition; in a Spark worker."""
    some = (batch.rename_columns(names) for batch in batches if batch.num_rows)
    first = next(some, None)
    if first is None:
        return
    place = first.column(SLICE)[0].as_py()
    events: Iterator[Batch] = (
        (columns.stream(batch), batch.column(_ID) if _ID in names else None)
        for batch in itertools.chain([first], some)
    )
    yield from run_part(detection, parts, place, events, schema, limit)
