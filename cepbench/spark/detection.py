"""Detection of a pattern on a Spark DataFrame, in slices of the stream."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import TimestampNTZType, TimestampType

from cepbench.arguments import choice, kind_of, text, whole
from cepbench.errors import EvaluationError, StreamError, did_you_mean
from cepbench.evaluators.registry import EVALUATORS
from cepbench.evaluators.slices import COUNTS, Batch, Slice, SliceDetection, matches_schema
from cepbench.evaluators.tasks import chosen_evaluator, refuse
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.patterns.reach import shared_keys
from cepbench.plans.model import AnyPlan
from cepbench.spark.balance import Density, Slices, planned_slices
from cepbench.spark.columns import Columns
from cepbench.spark.jobs import watched
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit

#: Sampled events of each type, and events of the parts in which selectivities are measured.
_SAMPLED, _PIECES, _PIECE_EVENTS = 20_000, 4, 10_000

#: Rows of a batch of matches.
_ROWS = 100_000

#: Columns of our own; an attribute does not begin with a space.
_SLICE, _ID, _ORDER = " slice", " id", " order"

#: The row of a partition in ``monotonically_increasing_id``.
_ROW = (1 << 33) - 1


def detect(
    df: DataFrame,
    pattern: Pattern | str,
    plan: AnyPlan | str | None = None,
    *,
    time: str,
    type: str,
    id: str | None = None,
    key: str | None = None,
    generator: str = "DP-B",
    evaluator: str | None = None,
    output: str = "matches",
    slices: Slices | int | None = None,
) -> Any:
    """Find all matches of a pattern in the events of a DataFrame, in parallel.

    Tasks take slices of time with the events around them on which their matches depend: those of a
    window after it, and, where a NOT or a group stands before the first item, of a window before
    it. A match belongs to the slice of its earliest event. Where matches depend on all earlier ones
    (``STRATEGY consuming``, ``OUTPUT non_overlap``), tasks take parts of the values of an attribute
    that all events of a match share. The matches are those of :func:`cepbench.evaluate` on the
    whole stream. A task holds the events of a few windows.

    Parameters
    ----------
    df : DataFrame
        Events in any order.
    pattern : Pattern or str
    plan : OrderPlan, TreePlan, Automaton, UnionPlan or "per-slice", optional
        By default one plan for all slices, from statistics measured on a sample; ``"per-slice"``
        makes one for the arrival rates of each slice.
    time, type : str
        Columns with the timestamp (or an integer) and the type of each event.
    id : str, optional
        A column that identifies events, and orders those of one timestamp. Without it events of one
        timestamp are in the order of the DataFrame's partitions and rows, and matches have
        positions in the whole stream, for which all events are sorted, also those of types that the
        pattern does not have.
    key : str, optional
        An attribute by whose values the stream is divided instead of time; equalities must tie all
        variables to it. By default one is used if matches depend on earlier ones, and besides time
        if slices for all cores would copy too many events.
    generator : str
        A name in ``cep.PLAN_GENERATORS``, if a plan is made.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``; a built-in one.
    output : {"matches", "count", "arrow"}
        A DataFrame of matches; a DataFrame with a row for each task (``slice``, ``events`` of its
        own, ``copied`` ones, ``matches``, ``seconds`` in detectors); or, at once and with a progress
        bar, an Arrow table of the matches.
    slices : Slices or int, optional
        As :func:`slices` returns them, or the number of tasks.

    Returns
    -------
    DataFrame or pyarrow.Table
        Lazy, unless ``output="arrow"``: only the sample is read before an action. For each variable
        the ``id`` of its event (a list for a Kleene variable or a group), or the columns of RETURN;
        with OR also ``branch``. Rows are in no order.

    Raises
    ------
    PatternError, PlanError, EvaluationError
        If an argument is invalid, or pattern, plan and evaluator do not fit each other.
    StreamError
        If the DataFrame does not fit the pattern.
    UnsupportedPatternError
        If matches depend on all earlier ones, and no attribute divides the stream.
    """
    job = _Job.of(df, pattern, time, type, id, key, evaluator, output)
    made = slices
    if not isinstance(made, Slices):
        made = job.slices(plan, generator, made)
    elif plan is not None:
        raise EvaluationError("plan= and slices= with plans of their own; leave out plan=")
    found = replace(job, detection=job.detection_by(made)).detected(made)
    if output != "arrow":
        return found
    with watched(job.spark, "detect", "task"):
        return found.toArrow()


def slices(
    df: DataFrame,
    pattern: Pattern | str,
    plan: AnyPlan | str | None = None,
    *,
    time: str,
    type: str,
    key: str | None = None,
    generator: str = "DP-B",
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
    job = _Job.of(df, pattern, time, type, None, key, evaluator, output)
    return job.slices(plan, generator, tasks)


@dataclass(frozen=True)
class _Job:
    """A DataFrame, and what is detected in it."""

    df: DataFrame
    columns: Columns
    id: str | None
    detection: SliceDetection

    @classmethod
    def of(
        cls,
        df: DataFrame,
        pattern: Pattern | str,
        time: str,
        type: str,
        id: str | None,
        key: str | None,
        evaluator: str | None,
        output: str,
    ) -> _Job:
        """Check the arguments of :func:`detect`."""
        pattern, columns = checked(df, pattern, time, type, id, evaluator)
        if df.isStreaming:
            raise StreamError("df is a stream; use cep.spark.detect_stream")
        choice(output, "output", ("matches", "count", "arrow"), EvaluationError)
        detection = SliceDetection(pattern, evaluator, output == "count", key)
        if key is None and not detection.by_time:
            detection = replace(detection, key=shared_keys(pattern)[0])
        return cls(df, columns, id, detection)

    @property
    def spark(self) -> SparkSession:
        return self.df.sparkSession

    @property
    def pattern(self) -> Pattern:
        return self.detection.pattern

    @property
    def _kept(self) -> Column | None:
        return depended(self.pattern, self.columns)

    @property
    def _ticks(self) -> Column:
        return ticks(self.df, self.columns.time)

    def _needs_names(self) -> bool:
        """Whether the matches name their events."""
        returns = self.pattern.returns
        return not self.detection.counts and (
            not returns or any(isinstance(column.value, str) for column in returns)
        )

    # -- the plan of the job --------------------------------------------------------------------

    def slices(self, plan: AnyPlan | str | None, generator: str, tasks: int | None) -> Slices:
        """Slices, from a sample of the events."""
        if isinstance(plan, str):
            choice(plan, "plan", ("per-slice",), EvaluationError)
        if tasks is not None:
            tasks = whole(tasks, "slices", EvaluationError, least=1)
        with watched(self.spark, "sample", "task"):
            density = self._density()
            pieces = self._pieces(density)
        cores = self.spark.sparkContext.defaultParallelism
        made = planned_slices(
            self.detection, density, pieces, plan, generator, tasks=tasks, cores=cores
        )
        evaluator = chosen_evaluator(
            made.plans[0], self.detection.evaluator, self.pattern.strategy.name
        )
        if not evaluator.batches:
            refuse(evaluator, "take a stream in batches", lambda e: e.batches)
        return made

    def _density(self) -> Density:
        types = self.pattern.types
        kind = column(self.columns.type).cast("string")
        if types is not None:
            kind = F.when(kind.isin(*types), kind).otherwise("")
        events = self.df if self._kept is None else self.df.where(self._kept)
        narrow = events.select(self._ticks.alias("time"), kind.alias("type"))
        totals = {row["type"]: row["count"] for row in narrow.groupBy("type").count().collect()}
        if types is not None:
            self._check_types(totals)
        shares = {name: min(1.0, _SAMPLED / total) for name, total in totals.items()}
        sample = narrow.sampleBy("type", shares, seed=0).dropna().toArrow()
        return Density.of(
            sample["time"].to_numpy(), np.array(sample["type"].to_pylist(), object), totals
        )

    def _check_types(self, totals: dict[str, int]) -> None:
        """Check that there are events of each type, or concepts above them."""
        hierarchy = self.pattern.hierarchy
        for variable in self.pattern.variables:
            name = variable.type
            if name in totals or name is None or (hierarchy is not None and name in hierarchy):
                continue
            rows = self.df.select(column(self.columns.type).cast("string")).distinct().limit(1000)
            known = sorted(row[0] for row in rows.collect() if row[0] is not None)
            if known:
                raise StreamError(
                    f"no event of type {name!r} (variable {variable.name!r}) in the DataFrame, "
                    f"whose types are {', '.join(known[:8])}"
                    f"{f' and {len(known) - 8} more' * (len(known) > 8)}{did_you_mean(name, known)}"
                )

    def _pieces(self, density: Density) -> list[EventStream]:
        """Some parts of the stream in which selectivities are measured."""
        below = np.concatenate(([0.0], np.cumsum(density.events)))
        if not below[-1]:
            return []
        share = min(1.0 / _PIECES, _PIECE_EVENTS / below[-1])
        at = (np.arange(_PIECES) + 0.5) / _PIECES - share / 2
        bounds = np.interp(np.concatenate((at, at + share)) * below[-1], below, density.edges)
        ranges = bounds.astype(np.int64).reshape(2, -1).T.tolist()
        ticks = self._ticks
        some = reduce(Column.__or__, ((ticks >= a) & (ticks < b) for a, b in ranges))
        events = self.df.where(some if self._kept is None else some & self._kept)
        table = events.select(*map(column, self.columns.names)).toArrow()
        stream = self.columns.stream(table, sort=True).with_hierarchy(self.pattern.hierarchy)
        return [stream.with_rows(slice(*np.searchsorted(stream.timestamps, its))) for its in ranges]

    def detection_by(self, made: Slices) -> SliceDetection:
        """The detection divided as given, which is checked."""
        if made.by_time and made.starts and not self.detection.by_time:
            raise EvaluationError(
                "the slices are of time, and matches depend on all earlier ones; make them for this "
                "pattern by cep.spark.slices"
            )
        return replace(self.detection, key=made.key)

    # -- the DataFrame of matches ---------------------------------------------------------------

    def detected(self, made: Slices) -> DataFrame:
        """The matches, or their numbers."""
        names = self._needs_names()
        kind = None
        if names:
            kind = pa.int64() if self.id is None else self._schema.field(self.id).type
        events = self._numbered(made) if names and self.id is None else self._with_order(names)
        if self._kept is not None:
            events = events.where(self._kept)
        by_time = [its.start for its in made.slices() if its.start is not None]
        ticks, detection = self._ticks, self.detection
        first = _rank(ticks - detection.tail, by_time)
        last = _rank(ticks + detection.lead, by_time) if detection.lead else _rank(ticks, by_time)
        number = F.explode(F.sequence(first, last)) if by_time else F.lit(0)
        events = events.select("*", number.alias(_SLICE))
        if made.parts > 1:
            assert made.key is not None
            part = _part(self.df, made.key, made.parts)
            events = events.withColumn(_SLICE, column(_SLICE) * made.parts + part)
        columns = [*self.columns.names, _SLICE, *([_ID] if names else [])]
        order = _ID if names else _ORDER
        events = (
            events.repartitionById(made.tasks, column(_SLICE))
            .sortWithinPartitions(column(self.columns.time), column(order))
            # Arrow's side of Spark does not take names with dots.
            .select(*(column(name).alias(f"c{place}") for place, name in enumerate(columns)))
        )
        schema = (
            COUNTS
            if detection.counts
            else matches_schema(self.pattern, self.columns.stream(self._schema.empty_table()), kind)
        )
        run = partial(
            _run, detection, self.columns, columns, made.slices(), made.parts, plain(schema)
        )
        return events.mapInArrow(run, from_arrow_schema(plain(schema)))

    @property
    def _schema(self) -> pa.Schema:
        return arrow_schema(self.df)

    def _with_order(self, names: bool) -> DataFrame:
        """The events with their identifier, or with their order in the DataFrame."""
        added = F.monotonically_increasing_id().alias(_ORDER)
        if self.id is not None:
            added = column(self.id).alias(_ID if names else _ORDER)
        return self.df.select(*map(column, self.columns.names), added)

    def _numbered(self, made: Slices) -> DataFrame:
        """All events with their positions in the whole stream."""
        events = self._with_order(False)
        starts = list(made.starts)
        number = _rank(self._ticks, starts)
        with watched(self.spark, "count", "task"):
            counted = self.df.select(number.alias("n")).groupBy("n").count().collect()
        counts = np.zeros(len(starts) + 1, np.int64)
        for found in counted:
            counts[found["n"]] += found["count"]
        before = np.concatenate(([0], np.cumsum(counts)[:-1]))
        row = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW))
        return (
            events.repartitionById(len(starts) + 1, number)
            .sortWithinPartitions(column(self.columns.time), column(_ORDER))
            .withColumn(_ID, F.get(F.lit(before.tolist()), F.spark_partition_id()) + row)
            .drop(column(_ORDER))
        )


def checked(
    df: DataFrame,
    pattern: Pattern | str,
    time: str,
    type: str,
    id: str | None,
    evaluator: str | None,
) -> tuple[Pattern, Columns]:
    """The pattern and the columns that it needs, which the DataFrame is checked to have."""
    if not isinstance(df, DataFrame):
        raise StreamError(f"df must be a Spark DataFrame, not {kind_of(df)}")
    pattern = pattern_from(pattern)
    if evaluator is not None and not EVALUATORS.find(evaluator).is_builtin:
        raise EvaluationError(
            f"{evaluator} is user-defined, and Spark's workers do not have it; use "
            "cep.evaluate, which runs it in this process"
        )
    columns = Columns(
        text(time, "time", StreamError), text(type, "type", StreamError), pattern.attributes
    )
    for name in [*columns.names, *filter(None, [id])]:
        if name not in df.columns:
            raise StreamError(
                f"no column {name!r} in the DataFrame; there are {', '.join(df.columns)}"
                f"{did_you_mean(name, df.columns)}"
            )
    check_fit(pattern, columns.stream(arrow_schema(df).empty_table()))
    return pattern, columns


def arrow_schema(df: DataFrame) -> pa.Schema:
    """The schema of the rows in Arrow, in workers."""
    return to_arrow_schema(df.schema, timezone="UTC")


def depended(pattern: Pattern, columns: Columns) -> Column | None:
    """Which events matches depend on; None for all."""
    types = pattern.types
    if types is None or "contiguity" in pattern.strategy.name:
        return None
    return column(columns.type).cast("string").isin(*types)


def ticks(df: DataFrame, time: str) -> Column:
    """Times in ticks."""
    micros = microseconds(df, time)
    return column(time).cast("bigint") if micros is None else micros * 1000


def microseconds(df: DataFrame, time: str) -> Column | None:
    """Times in microseconds since 1970; None if they are numbers."""
    its, kind = column(time), df.schema[time].dataType
    if isinstance(kind, TimestampType):
        return F.unix_micros(its)
    if isinstance(kind, TimestampNTZType):
        epoch = F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'")
        return F.timestamp_diff("MICROSECOND", epoch, its)
    return None


def column(name: str) -> Column:
    """The column of this very name, with dots or not."""
    return F.col("`" + name.replace("`", "``") + "`")


def _rank(value: Column, starts: Sequence[int]) -> Column:
    """How many of the ascending starts are not after a value; of a missing one 0."""
    if not starts:
        return F.lit(0)

    def between(low: int, high: int) -> Column:
        if low == high:
            return F.lit(low)
        middle = (low + high) // 2
        return F.when(value < starts[middle], between(low, middle)).otherwise(
            between(middle + 1, high)
        )

    return F.when(value.isNull(), F.lit(0)).otherwise(between(0, len(starts)))


def _part(df: DataFrame, key: str, parts: int) -> Column:
    """The part of an event by its value of a key: equal values are of one part."""
    return F.pmod(F.hash(compared(df, key)), F.lit(parts))


def compared(df: DataFrame, key: str) -> Column:
    """The values of an attribute as they are compared: numbers as floats, and −0 is 0."""
    its = column(key)
    if df.schema[key].dataType.typeName() not in ("string", "char", "varchar"):
        its = its.cast("double") + F.lit(0.0)
    return its


def plain(schema: pa.Schema) -> pa.Schema:
    """A schema without the types that Spark does not take."""
    return pa.schema([(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    return kind


def _run(
    detection: SliceDetection,
    columns: Columns,
    names: Sequence[str],
    slices: Sequence[Slice],
    parts: int,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The matches of the slice in a partition; in a Spark worker."""
    some = (batch.rename_columns(names) for batch in batches if batch.num_rows)
    first = next(some, None)
    if first is None:
        return
    task = first.column(_SLICE)[0].as_py()
    part = replace(slices[task // parts], number=task)
    events: Iterator[Batch] = (
        (columns.stream(batch), batch.column(_ID) if _ID in names else None)
        for batch in itertools.chain([first], some)
    )
    found = [detection.count(part, events)] if detection.counts else detection.matches(part, events)
    for table in found:
        yield from table.cast(schema).to_batches(max_chunksize=_ROWS)
