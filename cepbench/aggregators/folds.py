"""Aggregates folded from matches: commutative monoids whose states are numbers, pairs or None."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.patterns.model import MatchAggregate
from cepbench.streams.columns import AttributeColumn, CodedStrings

#: COUNT: a number; SUM and AVG: how many values, and their sum; MIN and MAX: a value or None.
State = Any

_LARGEST = 2**62


@dataclass(frozen=True)
class Fold:
    """The monoid of an aggregate, over contributions of matches.

    Attributes
    ----------
    aggregate : MatchAggregate
    """

    aggregate: MatchAggregate

    @property
    def nothing(self) -> State:
        """The state of no match."""
        return {"COUNT": 0, "SUM": (0, 0), "AVG": (0, 0)}.get(self.aggregate.function)

    def plus(self, one: State, other: State) -> State:
        """Both together."""
        match self.aggregate.function:
            case "COUNT":
                return one + other
            case "SUM" | "AVG":
                return one[0] + other[0], one[1] + other[1]
        if one is None or other is None:
            return one if other is None else other
        return self._extreme((one, other))

    def total(self, states: Sequence[State]) -> Any:
        """The value over several states: an int, a float, or None if missing."""
        match self.aggregate.function:
            case "COUNT":
                return sum(states)
            case "SUM" | "AVG":
                number = sum(state[0] for state in states)
                if not number:
                    return None
                total = _sum([state[1] for state in states])
                return total if self.aggregate.function == "SUM" else total / number
        some = [state for state in states if state is not None]
        return self._extreme(some) if some else None

    @property
    def _extreme(self) -> Callable[[Iterable[Any]], Any]:
        return min if self.aggregate.function == "MIN" else max

    def of_events(
        self, column: AttributeColumn | None, rows: np.ndarray, folds: np.ndarray, number: int
    ) -> list[State]:
        """States from the events bound to the aggregate's variable.

        Parameters
        ----------
        column : AttributeColumn or None
            The aggregate's attribute; None if it has none.
        rows : ndarray of int64, shape (n,)
            Rows of ``column``.
        folds : ndarray of int64, shape (n,)
            Which state each belongs to.
        number : int
            How many states there are.
        """
        if column is None:
            return list(np.bincount(folds, minlength=number).tolist())
        if isinstance(column, CodedStrings):
            present = column.codes[rows] >= 0
            return list(np.bincount(folds[present], minlength=number).tolist())
        values = column[rows]
        if values.dtype.kind == "f":
            present = ~np.isnan(values)
            values, folds = values[present], folds[present]
        counted = np.bincount(folds, minlength=number).tolist()
        match self.aggregate.function:
            case "COUNT":
                return list(counted)
            case "SUM" | "AVG":
                return list(zip(counted, _sums(values, folds, number), strict=True))
        some: list[State] = [None] * number
        order = np.lexsort((values, folds))
        if self.aggregate.function == "MIN":
            order = order[::-1]
        for fold, value in zip(folds[order].tolist(), values[order].tolist(), strict=True):
            some[fold] = value
        return some


def _sums(values: np.ndarray, folds: np.ndarray, number: int) -> list[Any]:
    """The sum of the values of each state; integers exactly."""
    if values.dtype.kind == "f":
        # Extended precision, so that rounding does not grow with the number of matches.
        totals = np.zeros(number, np.longdouble)
        np.add.at(totals, folds, values)
        return list(totals.astype(np.float64).tolist())
    largest = max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
    exact = np.zeros(number, np.int64 if largest * len(values) < _LARGEST else object)
    np.add.at(exact, folds, values if exact.dtype != object else values.astype(object))
    return list(exact.tolist())


def _sum(values: Sequence[Any]) -> Any:
    if all(isinstance(value, int) for value in values):
        return sum(values)
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # an intermediate sum is too large; inf - inf
        return sum(values)
