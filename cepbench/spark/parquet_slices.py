"""Slices of a stream in Parquet files, which each task reads by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from cepbench.arguments import kind_of
from cepbench.engines.runs.slices import Batch, Reader, Slice, Slicer, part_of
from cepbench.errors import DatasetError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.spark.balance import Slices
from cepbench.spark.frames import Columns, SlicedEvents
from cepbench.spark.session import spark_session
from cepbench.streams.dataset_folder import SEQUENCE, read_declaration
from cepbench.streams.event_stream import EventStream
from cepbench.streams.parquet_files import hierarchy_of_schema
from cepbench.streams.parquet_layout import open_parquet
from cepbench.streams.row_groups import POSITION, READ, RowGroups, arrival_order, row_groups


@dataclass(frozen=True)
class ParquetSlices(SlicedEvents):
    """Parquet files of events below a path."""

    #: ``read``, ``ordered``, ``sampled``: rows read at a time, at most about; rows put in order at
    #: a time; rows of a sample, about.
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
        return row_groups(self.dataset(), self.columns.type, self.columns.time, self.types)

    @cached_property
    def all_groups(self) -> RowGroups:
        """The row groups that have events of any type, as :attr:`groups`."""
        return row_groups(self.dataset(), self.columns.type, self.columns.time)

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
            with _as_parquet(self.source):
                table = self.groups.table(columns.names, self.types, None, None, some)
            stream = columns.stream(table, sort=True)
            if every == 1 or (wanted or set()) <= {
                n for n, c in stream.counts_by_type().items() if c
            }:
                return stream, float(rows.sum() / max(1, rows[some].sum()))
            every = 1

    def events(self, ranges: Sequence[tuple[int, int]]) -> list[EventStream]:
        """All events from one tick on and before another, in order."""
        names = [*self.columns.names, *self.order]
        found = []
        for start, stop in ranges:
            with _as_parquet(self.source):
                table = self.groups.table(names, self.types, start, stop)
            table = table.unify_dictionaries().take(_in_order(table, self.order))
            found.append(self.columns.stream(table))
        return found

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
            order, reported = [self.columns.time, POSITION], POSITION
        for start, stop in groups.steps(first, last, self.read):
            with _as_parquet(self.source):
                if self.numbered:
                    table = groups.numbered(names, self.types, start, stop, self.tie_breaker)
                else:
                    table = groups.table(names, self.types, start, stop)
            if slicer.key is not None and part.parts > 1:
                keys = table.column(slicer.key).to_numpy()
                table = table.filter(part_of(keys, part.parts) == part.of_key)
            table = table.unify_dictionaries().combine_chunks()
            rows = _in_order(table, order)
            for row in range(0, len(rows), self.ordered):
                some = table.take(rows[row : row + self.ordered])
                stream = self.columns.stream(some)
                yield stream, None if reported is None else some.column(reported).combine_chunks()


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
    """The files below a path; a DatasetError if they cannot be read as Parquet."""
    with _as_parquet(path):
        return open_parquet(path, type)


def _in_order(table: pa.Table, keys: Sequence[str]) -> pa.Array:
    """The rows of a table by time and what orders events of one time."""
    *_, last = (table.column(key) for key in keys)
    if pa.types.is_dictionary(last.type):  # by their values, which Arrow does not do in a table
        last = last.cast(last.type.value_type)
        table = table.set_column(table.schema.get_field_index(keys[-1]), keys[-1], last)
    if len(keys) == 1 or (pa.types.is_signed_integer(last.type) and not last.null_count):
        return pa.array(arrival_order(table, keys))
    return pc.sort_indices(table, [(key, "ascending") for key in keys])
