"""Slices of a stream in a DataFrame, the events of each of which are shuffled to its task."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cepbench.engines.runs.slices import Batch, Reader, Slice, Slicer
from cepbench.spark.balance import Slices
from cepbench.spark.frames import Columns, SlicedEvents, arrow_schema, column, compared, ticks_of
from cepbench.spark.jobs import watched
from cepbench.streams.event_stream import EventStream

#: Columns of our own; an attribute does not begin with a space.
_SLICE, _ORDER = " slice", " order"

#: The row of a partition in ``monotonically_increasing_id``.
_ROW = (1 << 33) - 1


@dataclass(frozen=True)
class FrameSlices(SlicedEvents):
    """A DataFrame of events."""

    where = "DataFrame"

    @property
    def spark(self) -> SparkSession:
        spark: SparkSession = self.source.sparkSession
        return spark

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that are read."""
        return arrow_schema(self.source, self.columns.all_names)

    def hierarchy(self) -> None:
        """A DataFrame states no concepts."""

    @property
    def _ticks(self) -> Column:
        return ticks_of(self.source, self.columns.time)

    @property
    def _of_types(self) -> Column:
        """Which events are of the types."""
        kept = self.columns.of_type(self.types)
        return F.lit(True) if kept is None else kept

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The first time, and the tick after the last one."""
        first, last = self.source.select(F.min(self._ticks), F.max(self._ticks)).collect()[0]
        return (0, 0) if last is None else (int(first), int(last) + 1)

    def starts(self, number: int) -> list[int]:
        """Where slices with about as many events each start."""
        shares = [its / number for its in range(1, number)]
        times = self.source.select(self._ticks.alias("time"))
        found = times.approxQuantile("time", shares, 0.1 / number) if shares else []
        return sorted(set(map(int, found)))

    def sampled_by_type(
        self, types: Sequence[str] | None, most: int
    ) -> tuple[np.ndarray, np.ndarray, dict[str, int]]:
        """As :meth:`ParquetSlices.sampled_by_type`."""
        kind = column(self.columns.type).cast("string")
        if types is not None:
            kind = F.when(kind.isin(*types), kind).otherwise("")
        narrow = self.source.where(self._of_types).select(
            self._ticks.alias("time"), kind.alias("type")
        )
        with watched(self.spark, "sample"):
            totals = {row["type"]: row["count"] for row in narrow.groupBy("type").count().collect()}
            shares = {name: min(1.0, most / total) for name, total in totals.items()}
            sample = narrow.sampleBy("type", shares, seed=0).dropna().toArrow()
        return sample["time"].to_numpy(), np.array(sample["type"].to_pylist(), object), totals

    def known_types(self) -> list[str]:
        """Some of the types that there are."""
        rows = self.source.select(column(self.columns.type).cast("string")).distinct().limit(1000)
        return sorted(row[0] for row in rows.collect() if row[0] is not None)

    def events(self, ranges: Sequence[tuple[int, int]]) -> list[EventStream]:
        """All events from one tick on and before another, in order."""
        if not ranges:
            return []
        some = reduce(Column.__or__, ((self._ticks >= a) & (self._ticks < b) for a, b in ranges))
        events = self.source.where(some & self._of_types)
        with watched(self.spark, "sample"):
            table = events.select(*map(column, self.columns.names)).toArrow()
        stream = self.columns.stream(table, sort=True)
        return [stream.with_rows(slice(*np.searchsorted(stream.timestamps, its))) for its in ranges]

    def divided(
        self, slicer: Slicer, made: Slices, rests: Sequence[Slice] | None
    ) -> tuple[DataFrame, Reader]:
        """The events of each slice, or of each rest of some, in a partition, and how tasks read them."""
        events = self._numbered(made) if self.numbered else self._with_order()
        events = self._with_places(slicer, events.where(self._of_types), made, rests)
        tasks = made.tasks if rests is None else len(rests)
        columns = [*self.columns.names, _SLICE, *([_ORDER] if slicer.names_events else [])]
        # Named by their place: Arrow's side of Spark does not take names with dots.
        named = (column(name).alias(f"c{place}") for place, name in enumerate(columns))
        events = (
            events.repartitionById(tasks, column(_SLICE))
            .sortWithinPartitions(column(self.columns.time), column(_ORDER))
            .select(*named)
        )
        return events, partial(_read, self.columns, columns)

    def _with_places(
        self, slicer: Slicer, events: DataFrame, made: Slices, rests: Sequence[Slice] | None
    ) -> DataFrame:
        """The events, one row for each part that needs them, with its place."""
        ticks, of_key = self._ticks, F.lit(0)
        if made.parts > 1:
            assert made.key is not None
            # Equal values are of one part.
            of_key = F.pmod(F.hash(compared(self.source, made.key)), F.lit(made.parts))
        if rests is None:
            starts = [its.start for its in made.slices() if its.start is not None]
            first, last = _rank(ticks - slicer.tail, starts), _rank(ticks + slicer.lead, starts)
            number = F.explode(F.sequence(first, last)) if starts else first
            events = events.select("*", number.alias(_SLICE))
            return events.withColumn(_SLICE, column(_SLICE) * made.parts + of_key)
        places = []
        for place, part in enumerate(rests):
            begin, end = slicer.reach(part)
            inside = (ticks >= F.lit(begin)) & (ticks < F.lit(end)) & (of_key == part.of_key)
            places.append(F.when(inside, F.lit(place)))
        return events.select("*", F.explode(F.array_compact(F.array(*places))).alias(_SLICE))

    def _with_order(self) -> DataFrame:
        """The events with their identifier, or with their order in the DataFrame."""
        order = (
            F.monotonically_increasing_id() if self.columns.id is None else column(self.columns.id)
        )
        return self.source.select(*map(column, self.columns.names), order.alias(_ORDER))

    def _numbered(self, made: Slices) -> DataFrame:
        """All events with their positions in the whole stream."""
        starts = list(made.starts)
        number = _rank(self._ticks, starts)
        with watched(self.spark, "count"):
            counted = self.source.select(number.alias("n")).groupBy("n").count().collect()
        counts = np.zeros(len(starts) + 1, np.int64)
        for found in counted:
            counts[found["n"]] += found["count"]
        before = np.concatenate(([0], np.cumsum(counts)[:-1]))
        row = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW))
        return (
            self._with_order()
            .repartitionById(len(starts) + 1, number)
            .sortWithinPartitions(column(self.columns.time), column(_ORDER))
            .withColumn(_ORDER, F.get(F.lit(before.tolist()), F.spark_partition_id()) + row)
        )


def _rank(value: Column, starts: Sequence[int]) -> Column:
    """How many of the ascending starts are not after a value; of a missing one 0.

    A binary search: as nested CASE, thousands of starts make code that Java does not compile.
    """
    if not starts:
        return F.lit(0)
    times = F.lit(list(starts))
    steps = F.lit([1 << bit for bit in reversed(range(len(starts).bit_length()))])
    return F.aggregate(
        steps,
        F.lit(0),
        lambda at, step: F.when(F.get(times, at + step - 1) <= value, at + step).otherwise(at),
    )


def _read(
    columns: Columns, names: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, Iterable[Batch]]]:
    """The place of the part whose events are in a partition, and these; in a Spark worker."""
    some = (batch.rename_columns(names) for batch in batches if batch.num_rows)
    for first in itertools.islice(some, 1):
        events = (
            (columns.stream(batch), batch.column(_ORDER) if _ORDER in names else None)
            for batch in itertools.chain([first], some)
        )
        yield first.column(_SLICE)[0].as_py(), events
