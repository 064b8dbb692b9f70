"""One Spark job for all that is found in slices of a stream: matches, their number, values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.accumulators import Accumulator, AddingAccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from cepbench.arguments import text
from cepbench.engines.runs.slices import Budget, Reader, Slice, Slicer
from cepbench.errors import StreamError, errors_naming
from cepbench.planning.workloads.model import of_queries
from cepbench.spark.balance import Slices
from cepbench.spark.frame_slices import FrameSlices
from cepbench.spark.frames import Columns, plain
from cepbench.spark.parquet_slices import ParquetSlices, opened_parquet
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, report_types, under_one_hierarchy

Events: TypeAlias = FrameSlices | ParquetSlices

Its = TypeVar("Its", bound=Slicer)


#: A slice is cut when it takes so many times the expected seconds.
_TIMES = 2.0

#: Windows of a rest: of a shorter one most would be done twice.
_LEAST_WINDOWS = 2

#: Rows of a batch of what is found.
_ROWS = 100_000


@dataclass(frozen=True)
class TimeLimit:
    """When tasks cut their slices, and where they did: the place of a part, and where its rest starts.

    The shortest rest has ``least`` ticks.
    """

    seconds: float
    least: int
    cuts: Accumulator[list[tuple[int, int]]]

    @classmethod
    def of(cls, spark: SparkSession, made: Slices, window: int) -> Self:
        """The limit for slices of which something is expected, with no cuts yet."""
        seconds = 0.0 if made.table is None else float(made.table["seconds"].max()) / made.parts
        limit = max(made.patience, _TIMES * seconds) if made.by_time else float("inf")
        cuts: Any = spark.sparkContext.accumulator([], AddingAccumulatorParam([]))
        return cls(limit, max(1, _LEAST_WINDOWS * window), cuts)

    def rests(self, parts: Sequence[Slice], end: int, wanted: int) -> list[Slice]:
        """What is left of the parts that were cut, divided into so many if windows allow it.

        The last event is before the tick ``end``.
        """
        found = []
        rests = [(parts[place], cut) for place, cut in sorted(self.cuts.value) if cut < end]
        for part, cut in rests:
            last = end if part.end is None else part.end
            number = max(1, min(-(-wanted // len(rests)), (last - cut) // self.least))
            bounds = [cut + (last - cut) * k // number for k in range(number + 1)]
            found += [replace(part, start=a, end=b) for a, b in itertools.pairwise(bounds)]
        return found


def _for_spark(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table in the types of Spark; a StreamError if a timestamp is not a whole microsecond."""
    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        raise StreamError(
            f"a column of the matches does not fit Spark's types, whose times have microseconds: "
            f"{error}; give nanoseconds as integers"
        ) from error


def events_of(
    given: DataFrame | Path, slicer: Slicer, time: str, type: str, id: str | None
) -> Events:
    """The events of a DataFrame or of files, with the columns that queries read.

    A StreamError or DatasetError if there is no such column, or the files cannot be read as
    Parquet.
    """
    read = (name for its in slicer.queries.values() for name in its.attributes)
    attributes = tuple(dict.fromkeys(read))
    if isinstance(given, DataFrame):
        return FrameSlices(given, Columns.of(given, time, type, attributes, id))
    names = opened_parquet(given, text(type, "type", StreamError)).schema.names
    return ParquetSlices(given, Columns.of(names, time, type, attributes, id))


def nothing_of(events: Events) -> EventStream:
    """A stream of no events with the columns of these."""
    nothing = events.columns.stream(events.schema.empty_table())
    return nothing.with_hierarchy(events.hierarchy())


@dataclass(frozen=True)
class SliceJob(Generic[Its]):
    """A DataFrame or files, what is found in slices of them, and a stream of none of the events."""

    events: Events
    slicer: Its
    nothing: EventStream

    @classmethod
    def fitting(cls, events: Events, slicer: Its, nothing: EventStream) -> Self:
        """Take over the hierarchy of the events, or raise a StreamError if queries do not fit them."""
        queries = {}
        for query, pattern in slicer.queries.items():
            with errors_naming(query):
                check_fit(pattern.without_aggregate(), nothing)
                queries[query] = under_one_hierarchy(pattern, nothing)[0]
        hierarchy = nothing.hierarchy or slicer.pattern.hierarchy
        its: Any = slicer
        slicer = replace(its, pattern=of_queries(queries, hierarchy))
        numbered = slicer.names_events and events.columns.id is None
        return cls(replace(events, types=slicer.types, numbered=numbered), slicer, nothing)

    @property
    def spark(self) -> SparkSession:
        """The session of the DataFrame, or for files the current one."""
        return self.events.spark

    def schema(self) -> pa.Schema:
        """The columns of what is found."""
        kind = None
        if self.slicer.names_events:
            id = self.events.columns.id
            kind = pa.int64() if id is None else self.events.schema.field(id).type
        return plain(self.slicer.schema(self.nothing, kind))

    def report(self, types: Iterable[str]) -> None:
        """Report the types that no event has and that are no concepts; these are all there are."""
        hierarchy = self.slicer.pattern.hierarchy
        declared = () if hierarchy is None else hierarchy.names
        report_types(self.slicer.queries.values(), types, self.events.where, declared)

    def run(
        self, made: Slices, rests: Sequence[Slice] | None = None, limit: TimeLimit | None = None
    ) -> DataFrame:
        """What is found in all slices, or in what is left of some; lazy."""
        schema = self.schema()
        parts = made.all_parts() if rests is None else rests
        events, read = self.events.divided(self.slicer, made, rests)
        run = partial(_run, read, self.slicer, parts, schema, limit)
        return events.mapInArrow(run, from_arrow_schema(schema))


def _run(
    read: Reader,
    slicer: Slicer,
    parts: Sequence[Slice],
    schema: pa.Schema,
    limit: TimeLimit | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """What is found in the parts that a task gets; in a Spark worker."""
    for place, events in read(batches):
        budget = None if limit is None else Budget(limit.seconds, limit.least)
        for table in slicer.found(parts[place], events, budget):
            yield from _for_spark(table, schema).to_batches(max_chunksize=_ROWS)
        if limit is not None and budget is not None and budget.cut is not None:
            limit.cuts.add([(place, budget.cut)])
