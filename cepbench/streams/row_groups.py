"""Row groups of Parquet files: which have events of some types and times, in which order and places."""

from __future__ import annotations

import bisect
import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from cepbench.arguments import MOST, shown, whole
from cepbench.errors import StreamError
from cepbench.streams.moments import nanoseconds
from cepbench.streams.parquet_layout import leaf_of

#: Rows read at a time, at most about.
READ = 8_000_000

#: A column of our own: positions in the whole stream.
POSITION = " position"

#: Ticks of a unit of a time in Arrow.
TICKS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Row groups of Parquet files, and which times they have.

    ``type`` and ``time`` are the columns of event types and times.
    """

    dataset: ds.Dataset
    type: str
    time: str
    #: ``file``, ``number``: int64, shape (groups,): which fragment of the dataset, and which of
    #: its row groups.
    file: np.ndarray
    number: np.ndarray
    #: ``first``, ``last``, ``begin``, ``rows``: int64, shape (groups,): times in ticks; how many
    #: rows of the dataset are before, and in the group.
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

    def events(
        self, types: list[str] | None, start: int | None, stop: int | None
    ) -> ds.Expression | None:
        """The events of some types from one tick on and before another; None for all."""
        schema = self.dataset.schema
        is_integer = pa.types.is_integer(schema.field(self.time).type)
        bounds: Any = (
            its if its is None or is_integer else np.datetime64(its, "ns") for its in (start, stop)
        )
        return rows_of(schema, self.type, self.time, types, *bounds)

    def table(
        self,
        names: Iterable[str],
        types: list[str] | None,
        start: int | None,
        stop: int | None,
        some: np.ndarray | None = None,
    ) -> pa.Table:
        """Columns of these events, of all or some of the row groups."""
        dataset = self.dataset_of(self.between(start, stop) if some is None else some)
        rows = self.events(types, start, stop)
        # A task has one core.
        return dataset.to_table(list(dict.fromkeys(names)), rows, use_threads=False)

    def numbered(
        self,
        names: Iterable[str],
        types: list[str] | None,
        start: int,
        stop: int,
        tie_breaker: str | None,
    ) -> pa.Table:
        """Columns of these events, and in :data:`POSITION` their places in the whole stream.

        They are the rows of the files, one file after the other, or where there is a tie breaker the
        places in the order of time and this column.
        """
        names = [*names, self.type, self.time, *filter(None, [tie_breaker])]
        if tie_breaker is None:
            return self._with_rows(list(dict.fromkeys(names)), types, start, stop)
        table = self.table(names, None, start, stop)
        cut = self.dataset_of((self.first < start) & (self.last >= start))
        before = cut.count_rows(filter=self.events(None, None, start), use_threads=False)
        before += int(self.rows[self.last < start].sum())
        positions = np.empty(len(table), np.int64)
        order = arrival_order(table, [self.time, tie_breaker])
        positions[order] = np.arange(before, before + len(table))
        table = table.append_column(POSITION, pa.array(positions))
        kept = self.events(types, None, None)
        return table if kept is None else table.filter(kept)

    def _with_rows(
        self, names: list[str], types: list[str] | None, start: int, stop: int
    ) -> pa.Table:
        kept = self.events(types, start, stop)
        may = {fragment.path for fragment in self.dataset.get_fragments(filter=kept)}
        read = np.array([its.path in may for its in self.dataset.get_fragments()], bool)
        some = self.between(start, stop) & read[self.file]
        scanner = self.dataset_of(some).scanner(names, use_threads=False)
        rows = zip(self.begin[some], self.rows[some], strict=True)
        positions = np.concatenate([np.empty(0, np.int64), *(b + np.arange(n) for b, n in rows)])
        nothing = scanner.projected_schema.empty_table()
        found = [nothing.append_column(POSITION, pa.array([], pa.int64()))]
        seen = 0
        for batch in scanner.to_batches():
            its = pa.array(positions[seen : seen + len(batch)])
            seen += len(batch)
            table = pa.Table.from_batches([batch]).append_column(POSITION, its)
            found.append(table.filter(kept))
        return pa.concat_tables(found)

    def positions(
        self, times: np.ndarray, types: list[str] | None, tie_breaker: str | None
    ) -> np.ndarray:
        """The places of the events of some types at these times, the first and the last of which count.

        In the order of rows, or where there is a tie breaker ascending.
        """
        if not len(times):
            return np.empty(0, np.int64)
        start, stop = int(times[0]), int(times[-1]) + 1
        parts = [(start, stop)] if tie_breaker is None else self.steps(start, stop)
        tables = [self.numbered((), types, *part, tie_breaker) for part in parts]
        found = np.concatenate([table.column(POSITION).to_numpy() for table in tables])
        return found if tie_breaker is None else np.sort(found)

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


def row_groups(
    dataset: ds.Dataset, type: str, time: str, types: list[str] | None = None
) -> RowGroups:
    """The row groups of Parquet files that may have events of the types, by their footers.

    A StreamError if an event has no time.
    """
    if types is not None:
        dataset = with_row_groups_of(dataset, type, types, None)
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
    return RowGroups(dataset, type, time, *np.array(found, np.int64).reshape(-1, 6).T)


def _ticks(time: Any) -> int:
    """A time in the statistics of a row group."""
    return time if isinstance(time, int) else int(pd.Timestamp(time).as_unit("ns").value)


def with_row_groups_of(
    dataset: ds.Dataset, type: str, types: list[str], rows: ds.Expression | None
) -> ds.Dataset:
    """The dataset without the row groups that have none of the types.

    Arrow prunes by plain columns but not by dictionary columns, as which types are read. The events
    of a pattern in a year are in about one of seventy row groups.
    """
    ordered = sorted(types)
    pieces = []
    for fragment in dataset.get_fragments(filter=rows):
        metadata = fragment.metadata
        column = leaf_of(metadata, type)
        numbers = []
        for number in range(metadata.num_row_groups):
            seen = None if column is None else metadata.row_group(number).column(column).statistics
            if seen is not None and seen.has_min_max and isinstance(seen.min, str):
                at = bisect.bisect_left(ordered, seen.min)
                if at == len(ordered) or ordered[at] > seen.max:
                    continue
            numbers.append(number)
        if numbers:
            pieces.append(fragment.subset(row_group_ids=numbers))
    return ds.FileSystemDataset(pieces, dataset.schema, dataset.format, dataset.filesystem)


def rows_of(
    schema: pa.Schema,
    type: str,
    time: str,
    types: list[str] | None,
    start: datetime | int | None,
    end: datetime | int | None,
) -> ds.Expression | None:
    """The rows of some types with ``start <= time < end``; None for all."""
    parts: list[ds.Expression] = []
    if types is not None:
        kind = schema.field(type).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_integer(kind):
            types = [name for name in types if _is_written(name, kind)]
        parts.append(ds.field(type).isin(pa.array(types, pa.string()).cast(kind)))
    moment = schema.field(time).type
    if start is not None:
        parts.append(ds.field(time) >= bound(start, moment, time))
    if end is not None:
        parts.append(ds.field(time) < bound(end, moment, time))
    return functools.reduce(operator.and_, parts) if parts else None


def bound(moment: datetime | int, kind: pa.DataType, time: str) -> pa.Scalar:
    """The first instant at or after ``moment`` that a column of this type can represent."""
    try:
        if pa.types.is_timestamp(kind) and isinstance(moment, date | str | np.datetime64):
            try:
                ticks = nanoseconds(moment)
            except pd.errors.OutOfBoundsDatetime:  # as the year 9999, for no bound
                ticks = MOST if pd.Timestamp(moment).year > 1970 else -MOST
            return pa.scalar(-(-ticks // TICKS[kind.unit]), pa.int64()).cast(kind)
        if pa.types.is_integer(kind):
            return pa.scalar(whole(moment, "the bound", StreamError, least=-MOST), pa.int64())
    except (StreamError, ValueError, OverflowError):
        pass  # not a datetime, or out of pandas' range
    raise StreamError(
        f"start and end are datetimes for a datetime column and integers for an integer one; "
        f"{time!r} has type {kind}, but got {shown(moment)}"
    )


def _is_written(name: str, kind: pa.DataType) -> bool:
    """Whether a type of events is that of an integer of this kind: 07 and 300 of 8 bits have none."""
    try:
        return str(pa.scalar(int(name), kind)) == name
    except (ValueError, OverflowError):
        return False


def arrival_order(table: pa.Table, keys: Sequence[str]) -> np.ndarray:
    """The permutation that sorts by time, then by another column of integers, if given, or by row."""
    moments = table.column(keys[0]).cast(pa.int64()).to_numpy()
    if keys[1:]:
        sequence = table.column(keys[1]).cast(pa.int64()).to_numpy()
        both = _as_one(moments, sequence)
        if both is None:
            return np.lexsort((sequence, moments))
        order = np.argsort(both)
        ranks = both[order]
        if np.all(ranks[1:] > ranks[:-1]):
            return order
        moments = both
    # Files are sorted runs, which a stable sort merges quickly.
    return np.argsort(moments, kind="stable")


def _as_one(moments: np.ndarray, sequence: np.ndarray) -> np.ndarray | None:
    """Integers in the order of both keys, which one sort orders; None if they exceed 64 bits."""
    if not len(moments):
        return moments
    first, least = int(moments.min()), int(sequence.min())
    span = int(sequence.max()) - least + 1
    if (int(moments.max()) - first + 1) * span >= 2**63:
        return None
    both = moments - first
    both *= span
    both += sequence
    both -= least
    return both
