"""A stream as the table that a row pattern reads, in the order of partitions and arrival."""

from __future__ import annotations

from functools import cached_property
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.engines.runs.arrow_matches import event_values, own_name
from cepbench.errors import PatternError, StreamError, did_you_mean
from cepbench.patterns.row_pattern import RowPattern
from cepbench.streams.columns import EXACT, kind_of_column
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


class EventTable:
    """The columns of a stream by the names in SQL, rows by partition.

    Its columns are those of event type and time (``type`` and ``time`` if their names are not known)
    and the attributes. A name is that of a column, or the only one that differs in case.
    """

    def __init__(self, stream: EventStream, pattern: RowPattern) -> None:
        self._stream = stream
        self._pattern = pattern
        self._time = stream.time_name or "time"
        self._type = stream.type_column or "type"
        #: All columns that have values.
        self.names = tuple(dict.fromkeys((self._type, self._time, *stream.attributes)))
        self._reader = NumericReader()
        #: Constants that are texts, as numbers.
        self.code = self._reader.code
        partition_by = [self.name(its, "PARTITION BY") for its in pattern.partition_by]
        #: The row of the stream of each row here, and where each partition begins.
        self.order, self.bounds = self._partitioned(partition_by)
        self._check_order([self.name(its, "ORDER BY") for its in pattern.order_by])

    def __len__(self) -> int:
        return len(self._stream)

    def fail(self, message: str, *places: object, column: str | None = None) -> NoReturn:
        """Raise a StreamError that marks the first of these places in the query, if it has one."""
        written = self._pattern.written
        if written is not None and any(place in written.places for place in places):
            message = str(written.error(PatternError, message, *places))
        raise StreamError(message, column=column)

    def name(self, written: str, *places: object) -> str:
        """The column of a name; a StreamError if there is none, or several differ in case."""
        known = (*self.names, *self._stream.unusable)
        found = [name for name in known if name == written]
        found = found or [name for name in known if name.upper() == written.upper()]
        if len(found) == 1:
            return found[0]
        if found:
            self.fail(
                f"column {written!r} may be {' or '.join(map(repr, found))}, whose names differ only in "
                "case; rename one of them, or write the name as it is",
                *places,
            )
        return self.fail(
            f"the stream has no column {written!r}; it has {', '.join(known)}"
            f"{did_you_mean(written, known)}",
            *places,
            column=written,
        )

    def is_moment(self, name: str) -> bool:
        """Whether a column is of datetimes."""
        return (
            name == self._time and name not in self._stream.attributes and self._stream.is_datetime
        )

    def kind(self, name: str) -> str | None:
        """``time``, ``number``, ``text`` or ``boolean``; None if all values are missing."""
        if self.is_moment(name):
            return "time"
        if name in self._stream.attributes or name in self._stream.unusable:
            return kind_of_column(self._stream.column(name))
        return "text" if name == self._type else "number"

    @cached_property
    def times(self) -> np.ndarray:
        """The timestamp of each row."""
        return self._stream.timestamps[self.order]

    def numbers(self, name: str) -> np.ndarray:
        """The values of a column by row, as numbers that compare as they do; NaN where missing."""
        if name in self._stream.attributes:
            return self._reader.read(self._stream, name, self.order)
        if name == self._type:
            codes = np.array([*map(self.code, self._stream.type_names), np.nan])
            return codes[self._stream.type_codes[self.order]]
        times = self.times
        if len(times) and (times.max() > EXACT or times.min() < -EXACT):
            raise StreamError(
                f"times in {name!r} are too large to compare exactly as floats; subtract a common origin"
            )
        return times.astype(np.float64)

    def values(self, name: str) -> pa.Array:
        """The values of a column as they are, by row of the stream."""
        if name not in self._stream.attributes:
            name = own_name("time" if name == self._time else "type", self._stream)
        found = event_values(self._stream, name)
        return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found

    def _partitioned(self, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The rows by partition, in order of first appearance; missing values are equal there."""
        count = len(self._stream)
        codes = np.zeros(count, np.int64)
        for name in names:
            values = self.values(name)
            if pa.types.is_floating(values.type):
                values = pc.add(values, 0.0)  # -0 is 0
            its = values.dictionary_encode(null_encoding="encode").indices.to_numpy()
            codes = codes * (int(its.max(initial=0)) + 1) + its
            codes = np.unique(codes, return_inverse=True)[1]
        _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
        places = np.empty(len(firsts), np.int64)
        places[np.argsort(firsts)] = np.arange(len(firsts))
        codes = places[codes]
        sizes = np.bincount(codes, minlength=len(firsts))
        return np.argsort(codes, kind="stable"), np.append(0, np.cumsum(sizes))

    def _check_order(self, names: list[str]) -> None:
        """A StreamError if the rows of a partition are not in order of these columns."""
        if not names or names == [self._time]:
            return
        is_less = np.zeros(max(0, len(self) - 1), bool)
        is_equal = ~is_less
        is_equal[self.bounds[1:-1] - 1] = False  # another partition begins
        is_apart = ~is_equal
        for name in names:
            if self.kind(name) not in ("time", "number", None):
                raise StreamError(
                    f"ORDER BY {name}, which is a {self.kind(name)}; rows are ordered by time or a number"
                )
            its = self.times if self.is_moment(name) else self.numbers(name)
            is_less |= is_equal & (its[:-1] < its[1:])
            is_equal &= its[:-1] == its[1:]
        wrong = np.flatnonzero(~(is_less | is_equal | is_apart))
        if len(wrong):
            row = int(self.order[wrong[0] + 1])
            raise StreamError(
                f"row {row}: it is not in the order of ORDER BY {', '.join(names)}; rows are in the order of "
                f"{self._time} and arrival, so order by that alone, or sort the events before",
                row=row,
            )
