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
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from cepbench.errors import StreamError
from cepbench.evaluators.slices import Batch, Budget, Slice, SliceDetection
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.spark.balance import Slices
from cepbench.spark.frames import Columns
from cepbench.spark.jobs import run_job
from cepbench.streams.dataset_folder import SEQUENCE, read_declaration
from cepbench.streams.event_stream import EventStream
from cepbench.streams.parquet import open_parquet, rows_of, with_row_groups_of
from cepbench.streams.parquet_files import hierarchy_of_schema
from cepbench.streams.whole_positions import arrival_order

#: Rows read at a time, at most about, those put in order at a time, and those of a batch for a detector.
_READ, _ORDERED, _BATCH = 8_000_000, 200_000, 20_000

#: Rows of a sample, about.
_SAMPLED = 4_000_000

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
    types : list of str or None
        Those of the events that are read; None for all.
    """

    path: Path
    columns: Columns
    id: str | None
    types: list[str] | None = None

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
    def groups(self) -> RowGroups:
        """The row groups that may have events of the types; once read, they go to tasks with this."""
        dataset = self.dataset()
        if self.types is not None:
            dataset = with_row_groups_of(dataset, self.columns.type, self.types, None)
        return row_groups(dataset, self.columns.time)

    @property
    def extent(self) -> tuple[int, int]:
        """The first time, and the tick after the last one."""
        its = self.groups
        return (int(its.first.min()), int(its.last.max()) + 1) if len(its.rows) else (0, 0)

    def sample(self) -> tuple[EventStream, float]:
        """Events without attributes of some row groups, and how many times as many there are.

        All row groups are read if those have no event of some type.
        """
        wanted = None if self.types is None else set(self.types)
        rows = self.groups.rows
        every = max(1, int(rows.sum()) // _SAMPLED)
        columns = Columns(self.columns.time, self.columns.type, ())
        while True:
            some = np.zeros(len(rows), bool)
            some[::every] = True
            stream = columns.stream(self._read(some, columns.names, None, None), sort=True)
            if every == 1 or (wanted or set()) <= {
                n for n, c in stream.counts_by_type().items() if c
            }:
                return stream, float(rows.sum() / max(1, rows[some].sum()))
            every = 1

    def events(self, start: int, stop: int) -> EventStream:
        """All events from one tick on and before another."""
        its = self.groups.between(start, stop)
        return self.columns.stream(self._read(its, self.columns.names, start, stop), sort=True)

    def _read(
        self, some: np.ndarray, names: list[str], start: int | None, stop: int | None
    ) -> pa.Table:
        """Columns of events of the types in some row groups, from one tick on and before another."""
        schema = self.groups.dataset.schema
        bounds = (None if its is None else self._bound(schema, its) for its in (start, stop))
        rows = rows_of(schema, self.columns.type, self.columns.time, self.types, *bounds)
        # A task has one core.
        return self.groups.dataset_of(some).to_table(names, rows, use_threads=False)

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
        _ = self.groups  # before tasks read it, each for itself
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
        """The events that a part needs, in order."""
        part, of_key, parts = its
        first, last = detection.reach(part)
        begin, end = self.extent
        first = begin if first is None else max(begin, first)
        last = end if last is None else min(end, last)
        keys = [self.columns.time, *filter(None, [self.tie_breaker])]
        also = filter(None, [self.id, detection.key])
        names = list(dict.fromkeys([*self.columns.names, *keys, *also]))
        for start, stop in self.groups.steps(first, last):
            table = self._read(self.groups.between(start, stop), names, start, stop)
            if parts > 1:
                assert detection.key is not None
                table = table.filter(_of_part(table.column(detection.key), parts) == of_key)
            table = table.unify_dictionaries().combine_chunks()
            order = _in_order(table, keys)
            for row in range(0, len(order), _ORDERED):
                some = table.take(order[row : row + _ORDERED])
                stream = self.columns.stream(some)
                ids = None if self.id is None else some.column(self.id).combine_chunks()
                for at in range(0, len(stream), _BATCH):
                    its_rows = slice(at, at + _BATCH)
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


def _in_order(table: pa.Table, keys: Sequence[str]) -> pa.Array:
    """The rows of a table by time and what orders events of one time."""
    *_, last = (table.column(key) for key in keys)
    if len(keys) == 1 or (pa.types.is_signed_integer(last.type) and not last.null_count):
        return pa.array(arrival_order(table, keys))
    return pc.sort_indices(table, [(key, "ascending") for key in keys])


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Row groups of Parquet files, and which times they have.

    Attributes
    ----------
    dataset : Dataset
    file, number : ndarray of int64, shape (groups,)
        Which fragment of the dataset, and which of its row groups.
    first, last : ndarray of int64, shape (groups,)
        In ticks.
    rows : ndarray of int64, shape (groups,)
    """

    dataset: ds.Dataset
    file: np.ndarray
    number: np.ndarray
    first: np.ndarray
    last: np.ndarray
    rows: np.ndarray

    def between(self, start: int, stop: int) -> np.ndarray:
        """Which may have events from ``start`` on and before ``stop``; an array of bool."""
        return (self.first < stop) & (self.last >= start)

    def dataset_of(self, some: np.ndarray) -> ds.Dataset:
        """Some of the row groups."""
        pieces = []
        for place, fragment in enumerate(self.dataset.get_fragments()):
            numbers = self.number[some & (self.file == place)].tolist()
            if numbers:
                pieces.append(fragment.subset(row_group_ids=numbers))
        whole = self.dataset
        return ds.FileSystemDataset(pieces, whole.schema, whole.format, whole.filesystem)

    def steps(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Parts of a range of times, in order, with about :data:`_READ` rows at most.

        A row group that has events of two parts is read for each. So parts end where that costs
        least: in files that are sorted by time after an eighth of these rows, and in a month that
        is sorted by type at its end.
        """
        times, below, again = self._profile
        while start < stop:
            before = np.interp(start, times, below) if len(times) else 0.0
            rows = below - before
            near = (rows >= _READ / 8) & (rows <= _READ) & (times < stop)
            end = stop
            if len(times) and np.interp(stop, times, rows) > _READ:
                end = max(start + 1, int(np.interp(_READ, rows, times)))
                if near.any():
                    share = np.maximum(0.1, again[near] / rows[near])
                    end = int(times[near][share.argmin()])
            yield start, end
            start = end

    @cached_property
    def _profile(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times at which row groups begin or end, the rows before, and those of groups cut there.

        The rows of a group are spread evenly over its time.
        """
        times, places = np.unique([self.first, self.last + 1], return_inverse=True)
        begin, end = places.reshape(2, -1)
        size = len(times)
        rate = self.rows / (self.last + 1 - self.first)
        slope = np.cumsum(np.bincount(begin, rate, size) - np.bincount(end, rate, size))
        below = np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(times))))[:size]
        starting = np.bincount(begin, self.rows, size)
        again = np.cumsum(starting - np.bincount(end, self.rows, size)) - starting
        return times, below, again


def row_groups(dataset: ds.Dataset, time: str) -> RowGroups:
    """The row groups of Parquet files, by their footers.

    Raises
    ------
    StreamError
        If these do not state the times.
    """
    found = []
    for place, fragment in enumerate(dataset.get_fragments()):
        metadata = fragment.metadata
        column = metadata.schema.names.index(time)
        for group in fragment.row_groups:
            if not group.num_rows:
                continue
            its = metadata.row_group(group.id).column(column).statistics
            if its is None or not its.has_min_max or its.null_count:
                raise StreamError(
                    f"the Parquet file {fragment.path} does not state the times of all its events, "
                    f"column {time!r}, in its statistics; read it by spark.read.parquet, and give "
                    "the DataFrame"
                )
            found.append((place, group.id, _ticks(its.min), _ticks(its.max), group.num_rows))
    return RowGroups(dataset, *np.array(found, np.int64).reshape(-1, 5).T)


def _ticks(time: Any) -> int:
    """A time in the statistics of a row group."""
    return time if isinstance(time, int) else int(pd.Timestamp(time).as_unit("ns").value)
