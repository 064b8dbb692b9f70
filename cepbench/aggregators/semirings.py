"""Semirings of aggregates, over which the matches of a sequence are counted without any match.

Every aggregate is computed from *totals* over all matches: their number, the number of values, the
sum of values, the largest value. Each is a sum of products over the matches in a semiring; for sums
over a set of events it is the second part of a dual number, for which columns are kept twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.aggregators.rows import Column, column_of, masked
from cepbench.kernels.sequence_counts import numbers
from cepbench.patterns.model import MatchAggregate
from cepbench.streams.columns import AttributeColumn, CodedStrings

#: Integers below are added without overflow, and those below the second one are exact as floats.
_LARGE, _EXACT = 2**62, 2**53

_POSITIVE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Total:
    """A total over all matches.

    Attributes
    ----------
    kind : {"COUNT", "SUM", "MIN", "MAX"}
    variable : str, optional
        Over whose events it is; without it, it is the number of matches.
    attribute : str, optional
        Over whose values it is; COUNT without it is over events.
    """

    kind: str
    variable: str | None = None
    attribute: str | None = None

    @property
    def is_maximum(self) -> bool:
        """Whether it is the largest or smallest value."""
        return self.kind in ("MIN", "MAX")

    def dtype(self, *, is_float: bool) -> type:
        """The type of its numbers, of floats or of integers."""
        return np.float64 if is_float and self.kind == "SUM" else np.int64

    def units(self, *, is_float: bool) -> tuple[Any, Any]:
        """Zero and one of its semiring."""
        if self.is_maximum:
            return int(numbers.NO_MATCH), int(numbers.NO_VALUE)
        return (0.0, 1.0) if self.dtype(is_float=is_float) is np.float64 else (0, 1)

    def weights(self, column: AttributeColumn | None, rows: np.ndarray) -> np.ndarray:
        """What the events at some rows add to a match, as numbers of the semiring."""
        if column is None:
            return np.ones(len(rows), np.int64)
        if isinstance(column, CodedStrings):
            return (column.codes[rows] >= 0).astype(np.int64)
        values = column[rows]
        is_float = values.dtype.kind == "f"
        missing = np.isnan(values) if is_float else np.zeros(len(rows), bool)
        if self.kind == "COUNT":
            return (~missing).astype(np.int64)
        if self.kind == "SUM":
            return np.where(missing, 0, values).astype(self.dtype(is_float=is_float))
        bits = _ordered(values.view(np.int64)) if is_float else values.astype(np.int64)
        if self.kind == "MIN":
            bits = ~bits
        return np.where(missing, numbers.NO_VALUE, bits)

    def can_hold(self, column: AttributeColumn | None, rows: np.ndarray) -> bool:
        """Whether no value is one that stands for the zero or one of the semiring of maxima."""
        if not isinstance(column, np.ndarray) or column.dtype.kind == "f":
            return True
        values = ~column[rows] if self.kind == "MIN" else column[rows]
        return not (values <= numbers.NO_VALUE).any()

    def combined(self, one: Any, other: Any) -> Any:
        """The total over two disjoint sets of matches."""
        return max(one, other) if self.is_maximum else one + other

    def accumulated(self, totals: np.ndarray, start: Any) -> np.ndarray:
        """Each total over all matches up to there, those of ``start`` included."""
        if self.is_maximum:
            return np.maximum.accumulate(np.append(start, totals))[1:]
        if totals.dtype == np.int64:
            size = np.abs(totals.astype(np.float64)).sum()
            if max(abs(start), size) >= _LARGE:
                totals = totals.astype(object)
        return np.asarray(np.cumsum(totals) + start)

    def value(self, total: int, *, is_float: bool) -> Any:
        """The smallest or largest value; None if there is none."""
        if total <= numbers.NO_VALUE:
            return None
        bits = ~total if self.kind == "MIN" else total
        return float(_ordered(np.array([bits])).view(np.float64)[0]) if is_float else bits


def _ordered(bits: np.ndarray) -> np.ndarray:
    """Bits of floats as integers of the same order, and back."""
    return np.asarray(bits ^ (bits >> 63 & _POSITIVE))


def totals_of(aggregate: MatchAggregate) -> list[Total]:
    """The totals from which an aggregate is computed: that of the values, their number before it."""
    name, attribute = aggregate.variable, aggregate.attribute
    count = Total("COUNT", name, attribute)
    match aggregate.function:
        case "COUNT":
            return [count]
        case "SUM" | "AVG":
            return [count, Total("SUM", name, attribute)]
    return [Total(aggregate.function, name, attribute)]


def value_of(aggregate: MatchAggregate, totals: list[Any], *, is_float: bool) -> Any:
    """The value of an aggregate from its totals; None if missing."""
    if aggregate.function == "COUNT":
        return totals[0]
    if aggregate.function in ("MIN", "MAX"):
        return totals_of(aggregate)[0].value(totals[0], is_float=is_float)
    count, total = totals
    if not count:
        return None
    if aggregate.function == "SUM":
        return total
    try:
        return total / count
    except OverflowError:  # of floats, by more than 10^308 values
        return None


def column_of_totals(
    aggregate: MatchAggregate, totals: list[np.ndarray], *, is_float: bool
) -> Column:
    """The values of an aggregate, each from its totals as :func:`value_of` computes it."""
    function, last = aggregate.function, totals[-1]
    is_exact = function != "AVG" or is_float or not (np.abs(last) > _EXACT).any()
    if last.dtype == object or totals[0].dtype == object or not is_exact:
        values = [
            value_of(aggregate, [*its], is_float=is_float)
            for its in zip(*(total.tolist() for total in totals), strict=True)
        ]
        return column_of(values, is_float=function == "AVG" or (is_float and function != "COUNT"))
    if function == "COUNT":
        return last
    if function in ("MIN", "MAX"):
        missing = last <= numbers.NO_VALUE
        bits = ~last if function == "MIN" else last
        known = _ordered(bits).view(np.float64) if is_float else bits
    else:
        missing = totals[0] == 0
        known = last / np.where(missing, 1, totals[0]) if function == "AVG" else last
    return np.where(missing, np.nan, known) if known.dtype.kind == "f" else masked(known, missing)
