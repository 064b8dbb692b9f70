"""Slices of a stream in Parquet files, which each task reads by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from cepbench.arguments import kind_of
from cepbench.engines.runs.slices import Batch, Reader, Slice, Slicer, part_of
from cepbench.errors import DatasetError, StreamError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.spark.balance import Slices
from cepbench.spark.frames import Columns, SlicedEvents
from cepbench.spark.session import spark_session
from cepbench.streams.dataset_folder import SEQUENCE, read_declaration
from cepbench.streams.event_stream import EventStream
from cepbench.streams.parquet import rows_of, with_row_groups_of
from cepbench.streams.parquet_files import hierarchy_of_schema
from cepbench.streams.parquet_layout import leaf_of, open_parquet
from cepbench.streams.whole_positions import arrival_order

#: Rows read at a time, at most about.
READ = 8_000_000

#: A column of our own: positions in the whole stream.
_POSITION = " position"


@dataclass(frozen=True)
class ParquetSlices(SlicedEvents):
    """Parquet files of events below a path.

    Attributes
    ----------
    read, ordered, sampled : int
        Rows read at a time, at most about; rows put in order at a time; rows of a sample, about.
    """

    read: int = READ
    ordered: int = 200_000
    sampled: int = 4_000_000

    where = "files"

    @property
    def spark(self) -> SparkSession:
        return spark_session()

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that there are."""
        return self.dataset().schema

    def dataset(self) -> ds.Dataset:
        return opened_parquet(self.source, self.columns.type)

    def hierarchy(self) -> ConceptHierarchy | None:
        """The concepts above the types that the files state."""
        return hierarchy_of_schema(self.schema)

    @cached_property
    def tie_breaker(self) -> str | None:
        """The column that orders events of one time; None where they are in the order of rows."""
        if self.columns.id is None and read_declaration(self.source) is not None:
            return SEQUENCE if SEQUENCE in self.schema.names else None
        return self.columns.id

    @cached_property
    def groups(self) -> RowGroups:
        """The row groups that may have events of the types; once read, they go to tasks with this."""
        dataset = self.dataset()
        if self.types is not None:
            dataset = with_row_groups_of(dataset, self.columns.type, self.types, None)
        return row_groups(dataset, self.columns.time)

    @cached_property
    def all_groups(self) -> RowGroups:
        """The row groups that have events of any type, as :attr:`groups`."""
        return row_groups(self.dataset(), self.columns.time)

    def read_footers(self) -> None:
        """Read what goes to tasks with this."""
        _ = self.groups
        if self.numbered:
            _ = self.all_groups, self.tie_breaker

    @property
    def extent(self) -> tuple[int, int]:
        """The first time, and the tick after the last one."""
        its = self.groups
        return (int(its.first.min()), int(its.last.max()) + 1) if len(its.rows) else (0, 0)

    @property
    def order(self) -> list[str]:
        """The columns by which events are ordered."""
        return [self.columns.time, *filter(None, [self.tie_breaker])]

    def starts(self, number: int) -> list[int]:
        """Where slices with about as many events each start, by the statistics of row groups."""
        times, before, _ = self.groups.profile
        if not len(times):
            return []
        shares = np.linspace(0, before[-1], number + 1)[1:-1]
        found: list[int] = np.unique(np.interp(shares, before, times).astype(np.int64)).tolist()
        return found

    def sampled_by_type(
        self, types: Sequence[str] | None, most: int
    ) -> tuple[np.ndarray, np.ndarray, dict[str, int]]:
        """Times and types of some events, about ``most`` of each type, and the numbers of all.

        Events of other types are of the type "", as all are if ``types`` is None.
        """
        stream, times_as_many = self.sample()
        rows = {name: stream.rows_of(name) for name in types or ()}
        if self.types is None:
            others = np.ones(len(stream), bool)
            for its in rows.values():
                others[its] = False
            rows[""] = np.flatnonzero(others)
        totals = {name: round(len(its) * times_as_many) for name, its in rows.items() if len(its)}
        some = {name: rows[name][:: max(1, len(rows[name]) // most)] for name in totals}
        times = [np.empty(0, np.int64), *(stream.timestamps[its] for its in some.values())]
        names = np.repeat(np.array(list(some), object), list(map(len, some.values())))
        return np.concatenate(times), names, totals

    def known_types(self) -> list[str]:
        """Some of the types that there are."""
        stream, _ = replace(self, types=None).sample()
        return sorted(stream.type_names)

    def sample(self) -> tuple[EventStream, float]:
        """Events without attributes of some row groups, and how many times as many there are.

        All row groups are read if those have no event of some type.
        """
        wanted = None if self.types is None else set(self.types)
        rows = self.groups.rows
        every = max(1, int(rows.sum()) // self.sampled)
        columns = Columns(self.columns.time, self.columns.type, ())
        while True:
            some = np.zeros(len(rows), bool)
            some[::every] = True
            table = self._read(self.groups, some, columns.names, self.types, None, None)
            stream = columns.stream(table, sort=True)
            if every == 1 or (wanted or set()) <= {
                n for n, c in stream.counts_by_type().items() if c
            }:
                return stream, float(rows.sum() / max(1, rows[some].sum()))
            every = 1

    def events(self, ranges: Sequence[tuple[int, int]]) -> list[EventStream]:
        """All events from one tick on and before another, in order."""
        names = [*self.columns.names, *self.order]
        groups, found = self.groups, []
        for start, stop in ranges:
            table = self._read(groups, groups.between(start, stop), names, self.types, start, stop)
            found.append(self.columns.stream(_taken(table, _in_order(table, self.order))))
        return found

    def _read(
        self,
        groups: RowGroups,
        some: np.ndarray,
        names: list[str],
        types: list[str] | None,
        start: int | None,
        stop: int | None,
    ) -> pa.Table:
        """Columns of events of the types in some row groups, from one tick on and before another."""
        rows = self._rows(groups.dataset.schema, types, start, stop)
        names = list(dict.fromkeys(names))
        with _as_parquet(self.source):
            # A task has one core.
            return groups.dataset_of(some).to_table(names, rows, use_threads=False)

    def _rows(
        self, schema: pa.Schema, types: list[str] | None, start: int | None, stop: int | None
    ) -> ds.Expression | None:
        bounds = (None if its is None else self._bound(schema, its) for its in (start, stop))
        with _as_parquet(self.source):
            return rows_of(schema, self.columns.type, self.columns.time, types, *bounds)

    def divided(
        self, slicer: Slicer, made: Slices, rests: Sequence[Slice] | None
    ) -> tuple[DataFrame, Reader]:
        """The place of each slice, or of each rest of some, and how tasks read their events."""
        self.read_footers()  # before tasks do, each for itself
        parts = made.all_parts() if rests is None else rests
        places = self.spark.range(len(parts), numPartitions=len(parts))
        return places, partial(self._parts, slicer, parts)

    def _parts(
        self, slicer: Slicer, parts: Sequence[Slice], places: Iterator[pa.RecordBatch]
    ) -> Iterator[tuple[int, Iterable[Batch]]]:
        """The parts at these places, and their events; in a Spark worker."""
        for batch in places:
            for place in batch.column(0).to_pylist():
                yield place, self.batches(slicer, parts[place])

    def batches(self, slicer: Slicer, part: Slice) -> Iterator[Batch]:
        """The events that a slice needs, in order."""
        first, last = slicer.reach(part)
        begin, end = self.extent
        first = begin if first is None else max(begin, first)
        last = end if last is None else min(end, last)
        names = [*self.columns.names, *self.order, *filter(None, [self.columns.id, slicer.key])]
        order, reported = self.order, self.columns.id
        groups = self.groups
        if self.numbered:
            groups = self.all_groups
            order, reported = [self.columns.time, _POSITION], _POSITION
        for start, stop in groups.steps(first, last, self.read):
            if self.numbered:
                table = self._numbered(names, start, stop)
            else:
                some = groups.between(start, stop)
                table = self._read(groups, some, names, self.types, start, stop)
            if slicer.key is not None and part.parts > 1:
                keys = table.column(slicer.key).to_numpy()
                table = table.filter(part_of(keys, part.parts) == part.of_key)
            table = table.unify_dictionaries().combine_chunks()
            rows = _in_order(table, order)
            for row in range(0, len(rows), self.ordered):
                some = table.take(rows[row : row + self.ordered])
                stream = self.columns.stream(some)
                yield stream, None if reported is None else some.column(reported).combine_chunks()

    def _numbered(self, names: list[str], start: int, stop: int) -> pa.Table:
        """Events from one tick on and before another, and their positions in the whole stream.

        They are the rows of the files, one file after the other, or where the tie breaker orders
        a data set the places in its order.
        """
        if self.tie_breaker is None:
            return self._with_rows(names, start, stop)
        groups = self.all_groups
        table = self._read(groups, groups.between(start, stop), names, None, start, stop)
        positions = np.empty(len(table), np.int64)
        before = self._events_before(start)
        positions[_in_order(table, self.order).to_numpy()] = np.arange(before, before + len(table))
        table = table.append_column(_POSITION, pa.array(positions))
        kept = self._rows(table.schema, self.types, None, None)
        return table if kept is None else table.filter(kept)

    def _events_before(self, tick: int) -> int:
        """How many events of any type are before a time."""
        groups = self.all_groups
        cut = (groups.first < tick) & (groups.last >= tick)
        rows = self._rows(groups.dataset.schema, None, None, tick)
        counted = groups.dataset_of(cut).count_rows(filter=rows, use_threads=False)
        return int(groups.rows[groups.last < tick].sum()) + int(counted)

    def _with_rows(self, names: list[str], start: int, stop: int) -> pa.Table:
        groups = self.all_groups
        some = groups.between(start, stop)
        scanner = groups.dataset_of(some).scanner(list(dict.fromkeys(names)), use_threads=False)
        kept = self._rows(groups.dataset.schema, self.types, start, stop)
        rows = zip(groups.begin[some], groups.rows[some], strict=True)
        positions = np.concatenate([np.empty(0, np.int64), *(b + np.arange(n) for b, n in rows)])
        nothing = scanner.projected_schema.empty_table()
        found = [nothing.append_column(_POSITION, pa.array([], pa.int64()))]
        seen = 0
        for batch in scanner.to_batches():
            its = pa.array(positions[seen : seen + len(batch)])
            seen += len(batch)
            table = pa.Table.from_batches([batch]).append_column(_POSITION, its)
            found.append(table.filter(kept))
        return pa.concat_tables(found)

    def _bound(self, schema: pa.Schema, ticks: int) -> Any:
        is_integer = pa.types.is_integer(schema.field(self.columns.time).type)
        return ticks if is_integer else np.datetime64(ticks, "ns")


@contextmanager
def _as_parquet(path: Path) -> Iterator[None]:
    """Errors of Arrow as one that names the path."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [kind_of(error)])[0]
        reason = reason.rsplit("Could not open Parquet input source ", 1)[-1].rstrip(".")
        raise DatasetError(
            f"{path} cannot be read as Parquet: {reason}; read other files by Spark, such as "
            "spark.read.csv(path, header=True, inferSchema=True), and give the DataFrame"
        ) from error


def opened_parquet(path: Path, type: str) -> ds.Dataset:
    """The files below a path.

    Raises
    ------
    DatasetError
        If they cannot be read as Parquet.
    """
    with _as_parquet(path):
        return open_parquet(path, type)


def _taken(table: pa.Table, rows: pa.Array) -> pa.Table:
    return table.unify_dictionaries().take(rows)


def _in_order(table: pa.Table, keys: Sequence[str]) -> pa.Array:
    """The rows of a table by time and what orders events of one time."""
    *_, last = (table.column(key) for key in keys)
    if pa.types.is_dictionary(last.type):  # by their values, which Arrow does not do in a table
        last = last.cast(last.type.value_type)
        table = table.set_column(table.schema.get_field_index(keys[-1]), keys[-1], last)
    if len(keys) == 1 or (pa.types.is_signed_integer(last.type) and not last.null_count):
        return pa.array(arrival_order(table, keys))
    return pc.sort_indices(table, [(key, "ascending") for key in keys])


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Row groups of Parquet files, and which times they have.

    Attributes
    ----------
    file, number : ndarray of int64, shape (groups,)
        Which fragment of the dataset, and which of its row groups.
    first, last, begin, rows : ndarray of int64, shape (groups,)
        Times in ticks; how many rows of the dataset are before, and in the group.
    """

    dataset: ds.Dataset
    file: np.ndarray
    number: np.ndarray
    first: np.ndarray
    last: np.ndarray
    begin: np.ndarray
    rows: np.ndarray

    def between(self, start: int | None, stop: int | None) -> np.ndarray:
        """Which may have events from ``start`` on and before ``stop``; an array of bool."""
        some = np.ones(len(self.rows), bool)
        if start is not None:
            some &= self.last >= start
        if stop is not None:
            some &= self.first < stop
        return some

    def dataset_of(self, some: np.ndarray) -> ds.Dataset:
        """Some of the row groups."""
        pieces = []
        for place, fragment in enumerate(self.dataset.get_fragments()):
            numbers = self.number[some & (self.file == place)].tolist()
            if numbers:
                pieces.append(fragment.subset(row_group_ids=numbers))
        whole = self.dataset
        return ds.FileSystemDataset(pieces, whole.schema, whole.format, whole.filesystem)

    def steps(self, start: int, stop: int, most: int = READ) -> Iterator[tuple[int, int]]:
        """Parts of a range of times, in order, with about so many rows at most.

        A row group that has events of two parts is read for each. So parts end where that costs
        least: in files that are sorted by time after an eighth of these rows, and in a month that
        is sorted by type at its end.
        """
        times, below, again = self.profile
        while start < stop:
            before = np.interp(start, times, below) if len(times) else 0.0
            rows = below - before
            near = (rows >= most / 8) & (rows <= most) & (times < stop)
            end = stop
            if len(times) and np.interp(stop, times, rows) > most:
                end = max(start + 1, int(np.interp(most, rows, times)))
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
        If an event has no time.
    """
    found = []
    begin = 0
    for place, fragment in enumerate(dataset.get_fragments()):
        metadata = fragment.metadata
        column = leaf_of(metadata, time)
        for group in fragment.row_groups:
            if not group.num_rows:
                continue
            its = column is not None and metadata.row_group(group.id).column(column).statistics
            if its and its.has_min_max and its.has_null_count:
                missing, first, last = its.null_count, its.min, its.max
            else:  # the footer does not state them
                part = fragment.subset(row_group_ids=[group.id])
                times = part.to_table(dataset.schema, [time]).column(0)
                missing = times.null_count
                first, last = (bound.as_py() for bound in pc.min_max(times).values())
            if missing:
                raise StreamError(
                    f"an event of the Parquet file {fragment.path} has no timestamp in column "
                    f"{time!r}; every event needs one"
                )
            first, last = _ticks(first), _ticks(last)
            found.append((place, group.id, first, last, begin, group.num_rows))
            begin += group.num_rows
    return RowGroups(dataset, *np.array(found, np.int64).reshape(-1, 6).T)


def _ticks(time: Any) -> int:
    """A time in the statistics of a row group."""
    return time if isinstance(time, int) else int(pd.Timestamp(time).as_unit("ns").value)
