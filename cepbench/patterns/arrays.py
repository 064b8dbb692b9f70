"""Vectorized evaluation of expressions and clauses, shared by statistics and evaluators.

Numbers are float64 with NaN for a missing value; texts are codes, equal for equal texts.
"""

from __future__ import annotations

from collections.abc import Callable

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

_ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_COMPARISONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "=": np.equal,
}  # fmt: skip


def expression_values(expression: Expression, values: Values, code: TextCode) -> np.ndarray:
    """The value of ``expression`` for every candidate.

    Parameters
    ----------
    expression : Expression
    values : callable
        Attribute → float64 array; all arrays broadcast together.
    code : callable
        Text → its code.

    Returns
    -------
    ndarray of float64
        Division by zero follows IEEE 754.
    """
    match expression:
        case Attribute():
            return values(expression)
        case Aggregate():
            raise AssertionError(f"{expression} has no value for a single candidate")
        case Constant(value):
            return np.asarray(code(value) if isinstance(value, str) else value, dtype=np.float64)
        case Negative(operand):
            return np.negative(expression_values(operand, values, code))
        case Arithmetic(operator, left, right):
            with np.errstate(all="ignore"):
                return _ARITHMETIC[operator](
                    expression_values(left, values, code), expression_values(right, values, code)
                )


def constant_value(expression: Expression) -> float:
    """The value of arithmetic on numbers, without attributes."""
    return float(expression_values(expression, _no_values, _no_code))


def constant_holds(comparison: Comparison) -> bool:
    """Whether a comparison of constants is true."""
    codes: dict[str, float] = {}
    return bool(
        comparison_holds(
            comparison, _no_values, lambda text: codes.setdefault(text, float(len(codes)))
        )
    )


def _no_values(attribute: Attribute) -> np.ndarray:
    raise AssertionError(f"{attribute} is not a constant")


def _no_code(text: str) -> float:
    raise AssertionError(f"arithmetic on the text {text!r}")


def comparison_holds(comparison: Comparison, values: Values, code: TextCode) -> np.ndarray:
    """Where ``comparison`` is true; a missing value on either side makes it false."""
    left = expression_values(comparison.left, values, code)
    right = expression_values(comparison.right, values, code)
    if comparison.operator == "!=":
        # ``left != right`` would be true for NaN.
        return (left < right) | (left > right)
    return _COMPARISONS[comparison.operator](left, right)


def clause_holds(clause: Clause, values: Values, code: TextCode) -> np.ndarray:
    """Where at least one comparison of ``clause`` is true (bool array)."""
    held = comparison_holds(clause.comparisons[0], values, code)
    for comparison in clause.comparisons[1:]:
        held = held | comparison_holds(comparison, values, code)
    return held
