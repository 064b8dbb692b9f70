"""The columns of a stream, as read from Arrow and Parquet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cepbench.errors import StreamError


@dataclass(frozen=True, slots=True)
class CodedStrings:
    """A text column as codes, int32, into a table of values; code -1 is a missing value."""

    codes: np.ndarray
    values: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> CodedStrings:
        return CodedStrings(self.codes[rows], self.values)

    def compacted(self) -> CodedStrings:
        """The same texts, with those of the table that occur."""
        used = np.flatnonzero(np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)))
        codes = np.full(len(self.values) + 1, -1, self.codes.dtype)  # the last is for those missing
        codes[used] = np.arange(len(used))
        return CodedStrings(codes[self.codes], tuple(self.values[code] for code in used.tolist()))

    def tolist(self) -> list[str | None]:
        """The texts; None where missing."""
        values = (*self.values, None)
        return [values[code] for code in self.codes.tolist()]


@dataclass(frozen=True, slots=True)
class Booleans:
    """A boolean column as codes, int8: 0 is false, 1 true, -1 a missing value."""

    codes: np.ndarray
    values: ClassVar[tuple[bool, ...]] = (False, True)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Booleans:
        return Booleans(self.codes[rows])

    def tolist(self) -> list[bool | None]:
        """The booleans; None where missing."""
        values = (*self.values, None)
        return [values[code] for code in self.codes.tolist()]


@dataclass(frozen=True, slots=True)
class Decimals:
    """A column of decimals of at most 15 significant digits, each as the float nearest to it.

    Such decimals are equal, and in order, exactly where their floats are, which are NaN where missing.
    No value has more digits after the point than the scale, which is 1 or more.
    """

    numbers: np.ndarray
    scale: int

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Decimals:
        return Decimals(self.numbers[rows], self.scale)

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the floats."""
        return self.numbers.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numbers, dtype, copy=copy)

    def tolist(self) -> list[float]:
        """The nearest floats; NaN where missing."""
        return self.numbers.tolist()


AttributeColumn = np.ndarray | CodedStrings | Booleans | Decimals

#: Integers up to here convert to floats exactly.
EXACT = 2**53


def declared_kind(column: AttributeColumn) -> str:
    """The kind of a column's values, if it has any: ``text``, ``boolean`` or ``number``."""
    if isinstance(column, CodedStrings):
        return "text"
    return "boolean" if isinstance(column, Booleans) else "number"


def kind_of_column(column: AttributeColumn) -> str | None:
    """The kind of a column's values; None if all are missing, which fits every use."""
    if isinstance(column, (CodedStrings, Booleans)):  # a union takes longer
        codes = column.codes
        has_any = len(codes) and (codes[0] >= 0 or (codes >= 0).any())
    else:
        numbers = numbers_of(column)
        has_any = len(numbers) and (numbers[0] == numbers[0] or not np.isnan(numbers).all())
    return declared_kind(column) if has_any else None


def numbers_of(column: np.ndarray | Decimals) -> np.ndarray:
    """A column of numbers as int64 or float64."""
    return column.numbers if isinstance(column, Decimals) else column


def missing_values(like: AttributeColumn, number: int) -> AttributeColumn:
    """So many missing values, as a column that joins another one."""
    if isinstance(like, CodedStrings):
        return CodedStrings(np.full(number, -1, like.codes.dtype), like.values)
    if isinstance(like, Booleans):
        return Booleans(np.full(number, -1, like.codes.dtype))
    missing = np.full(number, np.nan)
    return Decimals(missing, like.scale) if isinstance(like, Decimals) else missing


def joined_columns(name: str, first: AttributeColumn, second: AttributeColumn) -> AttributeColumn:
    """The values of an attribute in two batches, one after the other.

    A StreamError if their values are of different kinds, or an integer would be rounded.
    """
    if declared_kind(first) != declared_kind(second) or isinstance(first, Decimals) != isinstance(
        second, Decimals
    ):
        if kind_of_column(second) is None:
            second = missing_values(first, len(second))
        elif kind_of_column(first) is None:
            first = missing_values(second, len(first))
    if isinstance(first, CodedStrings) and isinstance(second, CodedStrings):
        places = {text: code for code, text in enumerate(first.values)}
        moved = [places.setdefault(text, len(places)) for text in second.values]
        codes = np.array([*moved, -1], first.codes.dtype)[second.codes]
        texts = CodedStrings(np.concatenate((first.codes, codes)), tuple(places))
        return texts.compacted() if len(places) > len(texts) else texts
    if isinstance(first, Booleans) and isinstance(second, Booleans):
        return Booleans(np.concatenate((first.codes, second.codes)))
    if isinstance(first, CodedStrings | Booleans) or isinstance(second, CodedStrings | Booleans):
        raise StreamError(
            f"attribute {name!r} is a {declared_kind(first)} in one batch and a "
            f"{declared_kind(second)} in another; convert it to one of the two before making the "
            "streams"
        )
    numbers = numbers_of(first), numbers_of(second)
    if numbers[0].dtype != numbers[1].dtype:
        for its in numbers:
            if its.dtype == np.int64 and len(its) and (its.max() > EXACT or its.min() < -EXACT):
                raise StreamError(
                    f"attribute {name!r} has integers beyond 2**53 in one batch, which the floats or "
                    "missing values of another one would round; convert it to a text"
                )
    joined = np.concatenate(numbers)
    if isinstance(first, Decimals) and isinstance(second, Decimals):
        return Decimals(joined, max(first.scale, second.scale))
    return joined


def packed_column(column: AttributeColumn) -> tuple[np.ndarray, Any]:
    """A column as a plain array, and the rest of it for JSON."""
    match column:
        case CodedStrings():
            return column.codes, {"texts": column.values}
        case Booleans():
            return column.codes, "booleans"
        case Decimals():
            return column.numbers, {"scale": column.scale}
    return column, None


def unpacked_column(array: np.ndarray, rest: Any) -> AttributeColumn:
    """The column of which :func:`packed_column` made this."""
    match rest:
        case {"texts": values}:
            return CodedStrings(array, tuple(values))
        case {"scale": scale}:
            return Decimals(array, scale)
        case "booleans":
            return Booleans(array)
    return array
