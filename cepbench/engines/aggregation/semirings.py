"""Semirings of aggregates, over which the matches of a sequence are counted without any match.

Every aggregate is computed from *totals* over all matches: their number, the number of values, the
sum of values, the largest value. Each is a sum of products over the matches in a semiring; for sums
over a set of events it is the second part of a dual number, for which columns are kept twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.engines.aggregation.rows import Column, column_of, masked
from cepbench.engines.sequence_counts.kernels import numbers
from cepbench.errors import StreamError
from cepbench.patterns.model import MatchAggregate
from cepbench.streams.columns import (
    AttributeColumn,
    Booleans,
    CodedStrings,
    Decimals,
    kind_of_column,
    numbers_of,
)

_POSITIVE = np.iinfo(np.int64).max

#: Integers up to here convert to floats exactly.
_EXACT = 2**53

#: The sum of an average of floats is so many powers of two smaller, not to overflow where the average
#: does not. Of values below 10^-154 it loses digits.
SMALLER = 512

#: Sums of integers below this are added as integers of 64 bits.
LARGEST = 2.0**62


@dataclass(frozen=True)
class Total:
    """A total over all matches."""

    kind: str  #: {"COUNT", "SUM", "AVG", "MIN", "MAX"}: AVG is the sum of an average.
    #: Over whose events it is; without it, it is the number of matches.
    variable: str | None = None
    attribute: str | None = None  #: Over whose values it is; COUNT without it is over events.

    @property
    def is_maximum(self) -> bool:
        """Whether it is the largest or smallest value."""
        return self.kind in ("MIN", "MAX")

    def dtype(self, *, is_float: bool) -> type:
        """The type of its numbers, of floats or of integers."""
        return np.float64 if is_float and self.kind in ("SUM", "AVG") else np.int64

    def units(self, *, is_float: bool) -> tuple[Any, Any]:
        """Zero and one of its semiring."""
        if self.is_maximum:
            return int(numbers.NO_MATCH), int(numbers.NO_VALUE)
        return (0.0, 1.0) if self.dtype(is_float=is_float) is np.float64 else (0, 1)

    def weights(
        self, column: AttributeColumn | None, rows: np.ndarray, *, is_float: bool
    ) -> np.ndarray:
        """What the events at some rows add to a match, as numbers of the semiring.

        A StreamError if an integer would be rounded to a float.
        """
        if column is None:
            return np.ones(len(rows), np.int64)
        if isinstance(column, CodedStrings | Booleans):
            # Without any value, unless they are only counted.
            missing, values = column.codes[rows] < 0, np.full(len(rows), np.nan)
        else:
            values = numbers_of(column)[rows]
            missing = values != values
        if self.kind == "COUNT":
            return (~missing).astype(np.int64)
        if is_float and values.dtype == np.int64 and not _are_floats(values):
            raise StreamError(
                f"AGG {self.kind}({self.variable}.{self.attribute}) is over floats, to which integers "
                "beyond 2**53 would be rounded; give the attribute one type in all batches"
            )
        values = np.where(missing, 0, values).astype(np.float64 if is_float else np.int64)
        if self.kind == "AVG" and is_float:
            return np.ldexp(values, -SMALLER)
        if self.kind in ("SUM", "AVG"):
            return values
        bits = _ordered(values.view(np.int64)) if is_float else values
        if self.kind == "MIN":
            bits = ~bits
        return np.where(missing, numbers.NO_VALUE, bits)

    def can_hold(self, column: AttributeColumn | None, rows: np.ndarray) -> bool:
        """Whether no value is one that stands for the zero or one of the semiring of maxima."""
        if not isinstance(column, np.ndarray) or column.dtype.kind == "f":
            return True
        values = ~column[rows] if self.kind == "MIN" else column[rows]
        return not (values <= numbers.NO_VALUE).any()


def has_floats(column: AttributeColumn, *, before: bool | None = None) -> bool:
    """Whether values are floats; of a column without any value, whether those before it were."""
    if kind_of_column(column) is None:
        return before is not False
    return isinstance(column, np.ndarray | Decimals) and column.dtype.kind == "f"


def _ordered(bits: np.ndarray) -> np.ndarray:
    """Bits of floats as integers of the same order, and back."""
    return np.asarray(bits ^ (bits >> 63 & _POSITIVE))


def totals_of(aggregate: MatchAggregate, *, counts_values: bool = False) -> list[Total]:
    """The totals from which an aggregate is computed: that of the values, their number before it.

    With ``counts_values`` also MIN and MAX have the number of values, so that no value stands for none.
    """
    name, attribute = aggregate.variable, aggregate.attribute
    count = Total("COUNT", name, attribute)
    match aggregate.function:
        case "COUNT":
            return [count]
        case "SUM" | "AVG":
            return [count, Total(aggregate.function, name, attribute)]
    return [count] * counts_values + [Total(aggregate.function, name, attribute)]


def value_of(aggregate: MatchAggregate, totals: list[np.ndarray], *, is_float: bool) -> Column:
    """The values of an aggregate, which are over floats or not, from its :func:`totals_of`."""
    first, last = totals[0], totals[-1]
    if aggregate.function == "COUNT":
        return first
    if aggregate.function in ("MIN", "MAX"):
        missing = first == 0 if len(totals) > 1 else last <= numbers.NO_VALUE
        bits = ~last if aggregate.function == "MIN" else last
        return (
            np.where(missing, np.nan, _ordered(bits).view(np.float64))
            if is_float
            else masked(bits, missing)
        )
    missing = np.asarray(first == 0, bool)
    if aggregate.function == "SUM":
        return np.where(missing, np.nan, last) if is_float else masked(last, missing)
    if all(its.dtype != object and (is_float or _are_floats(its)) for its in totals):
        with np.errstate(all="ignore"):
            means = np.where(missing, np.nan, last / first)
    else:
        means = column_of([*map(_quotient, last.tolist(), first.tolist())], is_float=True)
    return np.ldexp(means, SMALLER) if is_float else means


def _are_floats(integers: np.ndarray) -> bool:
    """Whether floats hold all of some integers."""
    return bool((np.abs(integers) <= _EXACT).all())


def _quotient(total: Any, count: int) -> float | None:
    try:
        return total / count if count else None
    except OverflowError:  # of floats, by more than 10^308 values
        return None


def largest_sum(values: np.ndarray, number: int) -> float:
    """A bound of the sum of so many of some integers; 0 of floats, infinite of large integers."""
    if values.dtype != np.int64:
        return 0.0 if values.dtype == np.float64 else float("inf")
    return float(np.abs(values.astype(np.float64)).max(initial=0)) * number


def in_floats(
    totals: Sequence[Total],
    before: Sequence[bool],
    after: Sequence[bool],
    columns: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Columns of totals (with the numbers of values, see :func:`totals_of`), some of which were over
    integers and are over floats from now on.
    """
    known = dict(zip(totals, columns, strict=True))
    found = []
    for total, was_float, is_float in zip(totals, before, after, strict=True):
        column = known[total]
        if is_float and not was_float and total.kind in ("SUM", "AVG"):
            column = np.ldexp(column.astype(np.float64), -SMALLER * (total.kind == "AVG"))
        elif is_float and not was_float and total.is_maximum:
            sign = -1 if total.kind == "MIN" else 0
            bits = _ordered((column ^ sign).astype(np.float64).view(np.int64)) ^ sign
            none = known[Total("COUNT", total.variable, total.attribute)] == 0
            column = np.where(none, numbers.NO_MATCH, bits)
        found.append(column)
    return found
