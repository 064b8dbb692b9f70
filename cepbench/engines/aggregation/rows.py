"""Rows of values in columns, as methods return them and tables are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.engines.aggregation.protocol import Key, Row
from cepbench.engines.sequence_counts.integers import INT64

#: float64 with NaN where missing; int64, masked where missing; or, if one is beyond 64 bits, an object
#: array of Python ints and None.
Column = np.ndarray


@dataclass(frozen=True, eq=False)
class Rows(Sequence[Row]):
    """A sequence of :class:`~cepbench.engines.aggregation.protocol.Row`, in columns."""

    positions: np.ndarray
    times: np.ndarray
    groups: np.ndarray  #: numbers of keys
    keys: Sequence[Key]
    columns: list[Column]  #: of each aggregate

    @classmethod
    def of(cls, rows: Sequence[Row], floats: Sequence[bool]) -> Rows:
        """The same rows in columns; ``floats`` says whether the values of each aggregate are floats."""
        if isinstance(rows, cls):
            return rows
        numbers: dict[Key, int] = {}
        groups = [numbers.setdefault(row.key, len(numbers)) for row in rows]
        return cls(
            np.array([row.position for row in rows], np.int64),
            np.array([row.time for row in rows], np.int64),
            np.array(groups, np.int64),
            [*numbers],
            [
                column_of([row.values[place] for row in rows], is_float=is_float)
                for place, is_float in enumerate(floats)
            ],
        )

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """The rows of several, one after the other; the keys of each begin with those before."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.positions for part in parts]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.groups for part in parts]),
            parts[-1].keys,
            [joined_columns(its) for its in zip(*(part.columns for part in parts), strict=True)],
        )

    def at_positions(self, places: np.ndarray) -> Rows:
        """The same rows after other events, ``places`` by position."""
        return Rows(places[self.positions], self.times, self.groups, self.keys, self.columns)

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[Row]:
        values = zip(*map(_listed, self.columns), strict=True)
        keys = [self.keys[group] for group in self.groups.tolist()]
        return map(Row, self.positions.tolist(), self.times.tolist(), keys, values)

    def __getitem__(self, place: Any) -> Any:
        return [*self][place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Iterable) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]


def column_of(values: Sequence[Any], *, is_float: bool) -> Column:
    """Numbers, None where missing, as a column of floats or integers."""
    if is_float:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    if not all(value is None or value in INT64 for value in values):
        return np.array([*values, None], object)[:-1]
    missing = np.array([value is None for value in values], bool)
    known = np.array([0 if value is None else value for value in values], np.int64)
    return masked(known, missing)


def masked(numbers: np.ndarray, missing: np.ndarray) -> Column:
    """A column of integers (int64 or object), of which some are missing."""
    if not missing.any():
        return numbers
    if numbers.dtype == object:
        return np.where(missing, None, numbers)  # type: ignore[call-overload]
    return np.ma.MaskedArray(np.where(missing, 0, numbers), missing)


def joined_columns(columns: Sequence[Column]) -> Column:
    """Columns one after the other."""
    if len(columns) == 1:
        return columns[0]
    if any(column.dtype == object for column in columns):
        return np.array([value for its in columns for value in its.tolist()] + [None], object)[:-1]
    if any(isinstance(column, np.ma.MaskedArray) for column in columns):
        joined = np.ma.concatenate(columns)
        # Those without any value may be of integers.
        return joined.filled(np.nan) if joined.dtype == np.float64 else joined
    return np.concatenate(columns)


def _listed(column: Column) -> list[Any]:
    """Python numbers, None where missing."""
    listed: list[Any] = column.tolist()
    if column.dtype == np.float64:
        return [None if value != value else value for value in listed]
    return listed
