"""Slices of a stream in Parquet files, which each task reads by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from cepbench.errors import StreamError
from cepbench.evaluators.slices import Batch, SliceDetection
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.spark.frames import Columns
from cepbench.spark.slice_tasks import Part, TimeLimit, run_part
from cepbench.streams.dataset_folder import SEQUENCE, read_declaration
from cepbench.streams.event_stream import EventStream
from cepbench.streams.parquet import rows_of, with_row_groups_of
from cepbench.streams.parquet_files import hierarchy_of_schema
from cepbench.streams.parquet_layout import open_parquet
from cepbench.streams.whole_positions import arrival_order

#: Rows read at a time, at most about, and those put in order at a time.
_READ, _ORDERED = 8_000_000, 200_000

#: Rows of a sample, about.
_SAMPLED = 4_000_000


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
        parts: Sequence[Part],
        schema: pa.Schema,
        limit: TimeLimit | None,
        places: Iterator[pa.RecordBatch],
    ) -> Iterator[pa.RecordBatch]:
        """What is detected in the parts at these places; in a Spark worker."""
        for place in (its for batch in places for its in batch.column(0).to_pylist()):
            events = self.batches(detection, parts[place])
            yield from run_part(detection, parts, place, events, schema, limit)

    def batches(self, detection: SliceDetection, its: Part) -> Iterator[Batch]:
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
                yield stream, None if self.id is None else some.column(self.id).combine_chunks()

    def _bound(self, schema: pa.Schema, ticks: int) -> Any:
        is_integer = pa.types.is_integer(schema.field(self.columns.time).type)
        return ticks if is_integer else np.datetime64(ticks, "ns")


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
        times, below, again = self.profile
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
    def profile(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times at which row groups begin or end, the rows before, and those of groups cut there.

        Arrays of int64, float64 and float64, shape (times,); times are in ticks. The rows of a group
        are spread evenly over its time.
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
