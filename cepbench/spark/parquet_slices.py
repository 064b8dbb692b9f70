"""Slices of a stream in Parquet files, which each task reads by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from cepbench.errors import StreamError
from cepbench.evaluators.slices import Batch, Budget, Slice, SliceDetection
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.spark.balance import Slices
from cepbench.spark.frames import Columns
from cepbench.spark.jobs import run_job
from cepbench.streams.dataset_folder import SEQUENCE, read_declaration
from cepbench.streams.parquet import open_parquet, read_rows, rows_of
from cepbench.streams.parquet_files import hierarchy_of_schema

#: Events read at a time, about, and those of a batch for a detector.
_READ, _BATCH = 200_000, 20_000

#: A slice is cut when it takes so many times the expected seconds, and at least these seconds.
_TIMES, _LEAST_SECONDS = 2.0, 5.0

#: A slice, and which of how many parts of the values of the key.
_Part = tuple[Slice, int, int]


@dataclass(frozen=True)
class ParquetSlices:
    """Parquet files of events, and which columns are read.

    Attributes
    ----------
    path : Path
    columns : Columns
    id : str or None
        A column that is reported of events, and orders those of one time.
    """

    path: Path
    columns: Columns
    id: str | None

    def dataset(self) -> ds.Dataset:
        return open_parquet(self.path, self.columns.type)

    def hierarchy(self) -> ConceptHierarchy | None:
        """The concepts above the types that the files state."""
        return hierarchy_of_schema(self.dataset().schema)

    @property
    def tie_breaker(self) -> str | None:
        """The column that orders events of one time; None where they are in the order of rows."""
        if self.id is None and read_declaration(self.path) is not None:
            return SEQUENCE if SEQUENCE in self.dataset().schema.names else None
        return self.id

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The first time, and the tick after the last one; once read, it goes to tasks with this."""
        first, last, _ = row_groups(self.path, self.columns.time)
        return (int(first.min()), int(last.max()) + 1) if len(first) else (0, 0)

    def run(
        self,
        detection: SliceDetection,
        slices: Sequence[Slice],
        parts: int,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
    ) -> Iterator[pa.RecordBatch]:
        """What is detected in the slices of these numbers; in a Spark worker."""
        for task in (number for batch in batches for number in batch.column(0).to_pylist()):
            its: _Part = (replace(slices[task // parts], number=task), task % parts, parts)
            events = self.batches(detection, its)
            found = (
                [detection.count(its[0], events)]
                if detection.counts
                else detection.matches(its[0], events)
            )
            for table in found:
                yield from table.cast(schema).to_batches()

    def at_once(
        self,
        spark: SparkSession,
        detection: SliceDetection,
        made: Slices,
        schema: pa.Schema,
    ) -> pa.Table:
        """The matches, by tasks that hand back the rest of a slice that takes too long.

        The rests are divided among all cores, and cut again if they take too long too. A slice
        that was cut has its matches until there, for which it needs the events of one more window.

        Parameters
        ----------
        spark : SparkSession
        detection : SliceDetection
        made : Slices
        schema : Schema
            Of the matches.
        """
        seconds = 0.0 if made.table is None else float(made.table["seconds"].max()) / made.parts
        budget = max(_LEAST_SECONDS, _TIMES * seconds) if made.by_time else float("inf")
        left: list[_Part] = [
            (replace(its, number=its.number * made.parts + part), part, made.parts)
            for its in made.slices()
            for part in range(made.parts)
        ]
        _ = self.extent  # before tasks read it, each for itself
        run = partial(_until, self, detection, schema, budget)
        found = [schema.empty_table()]
        while left:
            outcome = run_job(spark, run, left, name="detect", unit="slice", partitions=len(left))
            found += [table for table, _ in outcome]
            rests = [
                (replace(its, start=cut), part, parts)
                for (its, part, parts), (_, cut) in zip(left, outcome, strict=True)
                if cut is not None and cut < self.extent[1]
            ]
            wanted = -(-2 * spark.sparkContext.defaultParallelism // max(1, len(rests)))
            left = [
                (piece, part, parts)
                for its, part, parts in rests
                for piece in self._divided(its, wanted, detection.tail)
            ]
        return pa.concat_tables(found)

    def _divided(self, part: Slice, wanted: int, tail: int) -> Iterator[Slice]:
        """At least two equal shares of the time of a slice, none shorter than a window."""
        assert part.start is not None
        end = self.extent[1] if part.end is None else part.end
        number = max(1, min(max(2, wanted), (end - part.start) // max(1, tail)))
        starts = [part.start + (end - part.start) * k // number for k in range(number)]
        for start, its_end in itertools.pairwise([*starts, part.end]):
            yield replace(part, start=start, end=its_end)

    def batches(self, detection: SliceDetection, its: _Part) -> Iterator[Batch]:
        """The events that a part needs, in order; read in steps of about as many events each."""
        part, of_key, parts = its
        first, last = detection.reach(part)
        begin, end = self.extent
        at = begin if first is None else max(begin, first)
        end = end if last is None else min(end, last)
        dataset, names = self.dataset(), self.columns.names
        keys = [self.columns.time, *filter(None, [self.tie_breaker])]
        read = list(dict.fromkeys([*names, *keys, *filter(None, [self.id, detection.key])]))
        types = detection.types
        step = max(1, detection.tail)
        while at < end:
            rows = rows_of(
                dataset.schema,
                self.columns.type,
                self.columns.time,
                types,
                self._bound(dataset.schema, at),
                self._bound(dataset.schema, min(end, at + step)),
            )
            table = read_rows(dataset, read, rows, type=self.columns.type, types=types)
            at += step
            if len(table) < _READ / 2:
                step *= 2
            elif len(table) > 2 * _READ:
                step = max(1, step // 2)
            if parts > 1:
                assert detection.key is not None
                table = table.filter(_of_part(table.column(detection.key), parts) == of_key)
            table = table.unify_dictionaries().sort_by([(key, "ascending") for key in keys])
            stream = self.columns.stream(table)
            ids = None if self.id is None else table.column(self.id).combine_chunks()
            for row in range(0, len(stream), _BATCH):
                its_rows = slice(row, row + _BATCH)
                yield stream[its_rows], None if ids is None else ids[its_rows]

    def _bound(self, schema: pa.Schema, ticks: int) -> Any:
        is_integer = pa.types.is_integer(schema.field(self.columns.time).type)
        return ticks if is_integer else np.datetime64(ticks, "ns")


def _until(
    files: ParquetSlices,
    detection: SliceDetection,
    schema: pa.Schema,
    seconds: float,
    its: _Part,
) -> tuple[pa.Table, int | None]:
    """The matches of a part until its time is over, and where the rest starts; in a Spark worker."""
    budget = Budget(seconds)
    found = detection.matches(its[0], files.batches(detection, its), budget)
    return pa.concat_tables(
        [schema.empty_table(), *(table.cast(schema) for table in found)]
    ), budget.cut


def _of_part(values: pa.ChunkedArray, parts: int) -> np.ndarray:
    """The part of each event by its value of a key: equal values are of one part."""
    its = values.to_numpy()
    if its.dtype != object:
        its = its.astype(np.float64) + 0.0  # as they are compared; and −0 is 0
    return pd.util.hash_array(its) % np.uint64(parts)


def row_groups(path: Path, time: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first and last time, in ticks, and the number of events of each row group of Parquet files.

    Raises
    ------
    StreamError
        If the files do not state them.
    """
    found = []
    for fragment in ds.dataset(path).get_fragments():
        metadata = fragment.metadata
        column = metadata.schema.names.index(time)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            its = group.column(column).statistics
            if its is None or not its.has_min_max or its.null_count:
                raise StreamError(
                    f"the Parquet file {fragment.path} does not state the times of all its events, "
                    f"column {time!r}, in its statistics; read it by spark.read.parquet, and give "
                    "the DataFrame"
                )
            found.append((_ticks(its.min), _ticks(its.max), group.num_rows))
    first, last, rows = np.array(found, np.int64).reshape(-1, 3).T
    return first, last, rows


def _ticks(time: Any) -> int:
    """A time in the statistics of a row group."""
    return time if isinstance(time, int) else int(pd.Timestamp(time).as_unit("ns").value)
