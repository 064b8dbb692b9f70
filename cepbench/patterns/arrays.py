"""Vectorized evaluation of expressions and clauses, shared by statistics and evaluators.

Numbers are float64 with NaN for a missing value; texts are codes, equal for equal texts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from cepbench.patterns.model import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Expression,
    Negative,
)

#: Attribute → its values; text constant → its code.
Values = Callable[[Attribute], np.ndarray]
TextCode = Callable[[str], float]

#: Aggregate → its values.
OverSet = Callable[[Aggregate], np.ndarray]

#: Whole numbers up to this are float64 exactly.
_EXACT = 2.0**53


def _modulo(dividend: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """``np.fmod``, several times as fast for whole numbers, whose rounded quotient is exact."""
    if not (_are_whole(dividend) and _are_whole(divisor)):
        return np.fmod(dividend, divisor)
    # In place, since large temporary arrays take longer than the arithmetic.
    rest = np.asarray(dividend / divisor)
    np.trunc(rest, out=rest)
    rest *= divisor
    np.subtract(dividend, rest, out=rest)
    return np.copysign(rest, dividend, out=rest)  # also where nothing remains: -1 % -1 is -0


def _are_whole(numbers: np.ndarray) -> bool:
    largest = max(numbers.max(initial=0), -numbers.min(initial=0))
    return bool(largest <= _EXACT and (np.trunc(numbers) == numbers).all())


_ARITHMETIC: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": _modulo,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "=": np.equal,
}  # fmt: skip


def expression_values(
    expression: Expression, values: Values, code: TextCode, over: OverSet | None = None
) -> np.ndarray:
    """The value of ``expression`` for every candidate, float64.

    Values of attributes, and of aggregates if there are any, are float64 arrays that broadcast
    together; texts are compared by code. Division by zero follows IEEE 754; modulo zero is NaN.
    """
    match expression:
        case Attribute():
            return values(expression)
        case Aggregate():
            assert over is not None, f"{expression} has no value for a single candidate"
            return over(expression)
        case Constant(value):
            return np.asarray(code(value) if isinstance(value, str) else value, dtype=np.float64)
        case Negative(operand):
            return np.negative(expression_values(operand, values, code, over))
        case Arithmetic(operator, left, right):
            with np.errstate(all="ignore"):
                return _ARITHMETIC[operator](
                    expression_values(left, values, code, over),
                    expression_values(right, values, code, over),
                )


def constant_value(expression: Expression) -> float:
    """The value of arithmetic on numbers, without attributes."""
    return float(expression_values(expression, _none, _none))


def constant_holds(comparison: Comparison) -> bool:
    """Whether a comparison of constants is true."""
    codes: dict[str, float] = {}
    return bool(
        comparison_holds(comparison, _none, lambda its: codes.setdefault(its, float(len(codes))))
    )


def _none(its: object) -> NoReturn:
    raise AssertionError(f"{its} is not a number")


def comparison_holds(
    comparison: Comparison, values: Values, code: TextCode, over: OverSet | None = None
) -> np.ndarray:
    """Where ``comparison`` is true; a missing value on either side makes it false."""
    left = expression_values(comparison.left, values, code, over)
    right = expression_values(comparison.right, values, code, over)
    if comparison.operator == "!=":
        # ``left != right`` would be true for NaN.
        return (left < right) | (left > right)
    return _COMPARISONS[comparison.operator](left, right)


def clause_holds(
    clause: Clause, values: Values, code: TextCode, over: OverSet | None = None
) -> np.ndarray:
    """Where at least one comparison of ``clause`` is true (bool array)."""
    held = comparison_holds(clause.comparisons[0], values, code, over)
    for comparison in clause.comparisons[1:]:
        held = held | comparison_holds(comparison, values, code, over)
    return held


def over_sets(function: str, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The aggregate, one of ``AGGREGATES``, of each of several sets of values, float64, shape (sets,).

    Set ``i`` is ``values[offsets[i] : offsets[i + 1]]``; offsets are int64, shape (sets + 1,). NaN
    if a value is missing, and of an empty set, whose ``count`` is 0.
    """
    return over_ranges(function, values, offsets[:-1], np.diff(offsets))


def over_ranges(
    function: str, values: np.ndarray, begin: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """The aggregate of each of several ranges of values, which may overlap; as :func:`over_sets`.

    Sums of whole numbers are differences of running sums, as far as these are exact.

    Range ``i`` is ``values[begin[i] : begin[i] + sizes[i]]``; both int64, shape (ranges,).
    """
    if function == "count":
        return sizes.astype(np.float64)
    if len(sizes) > len(values) and sizes.min() == sizes.max() > 0:
        # Many ranges are the same one.
        starts = np.arange(len(values) - sizes[0] + 1)
        return over_ranges(function, values, starts, np.full(len(starts), sizes[0]))[begin]
    some = sizes > 0
    found = np.full(len(sizes), np.nan)
    if not some.any():
        return found
    ends = np.stack((begin[some], (begin + sizes)[some]))
    known = ~np.isnan(values)
    numbers = np.where(known, values, 0.0)
    with np.errstate(all="ignore"):  # infinite values are not whole numbers
        is_whole = (np.fmod(numbers, 1) == 0).all() and np.abs(numbers).sum() < _EXACT
    if function in ("sum", "avg") and is_whole:
        total, missing = (
            np.diff(np.concatenate(([0], np.cumsum(its)))[ends], axis=0)[0]
            for its in (numbers, ~known)
        )
        found[some] = np.where(missing > 0, np.nan, total)
    else:
        reduce = {"min": np.minimum, "max": np.maximum}.get(function, np.add).reduceat
        # Every other result is one between two ranges; the last range may end behind all values.
        found[some] = reduce(np.append(values, 0.0), ends.T.ravel())[::2]
    if function == "avg":
        found[some] /= sizes[some]
    return found


def before_each(function: str, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The aggregate of the values before each value of its set, as :func:`over_sets`, shape (values,).

    NaN for the first of each set, and if a value is missing.
    """
    found = np.full(len(values), np.nan)
    accumulate = {"min": np.minimum, "max": np.maximum}.get(function, np.add).accumulate
    for start, stop in itertools.pairwise(offsets.tolist()):
        counts = np.arange(1.0, stop - start)
        inside = counts if function == "count" else accumulate(values[start : max(start, stop - 1)])
        found[start + 1 : stop] = inside / counts if function == "avg" else inside
    return found
