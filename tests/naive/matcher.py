"""All matches by trying every combination of events, straight from the definition of a match."""

from __future__ import annotations

import itertools
import math
import operator

import pandas as pd

from cepbench.patterns.model import (
    Arithmetic,
    Attribute,
    Constant,
    Negative,
    Operator,
    Pattern,
    Structure,
)

_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_COMPARISON = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def naive_matches(pattern: Pattern, events: pd.DataFrame) -> set[tuple[int, ...]]:
    """Positions of every match, in the order of the pattern's variables.

    ``events`` has the columns ``type``, ``time`` (integers) and the attributes; positions are row
    numbers.
    """
    rows = events.to_dict("records")
    candidates = [
        [position for position, row in enumerate(rows) if row["type"] == variable.type]
        for variable in pattern.variables
    ]
    found = set()
    for positions in itertools.product(*candidates):
        bound = {
            name: rows[position] for name, position in zip(pattern.names, positions, strict=True)
        }
        times = [row["time"] for row in bound.values()]
        if (
            len(set(positions)) == len(positions)
            and max(times) - min(times) <= pattern.window.length
            and _in_order(pattern.structure, bound)
            and all(
                any(_true(comparison, bound) for comparison in clause.comparisons)
                for clause in pattern.conditions
            )
        ):
            found.add(positions)
    return found


def _in_order(item, bound) -> bool:
    if not isinstance(item, Structure):
        return True
    if not all(_in_order(part, bound) for part in item.items):
        return False
    if item.operator is not Operator.SEQ:
        return True
    return all(
        max(_times(x, bound)) < min(_times(y, bound)) for x, y in itertools.pairwise(item.items)
    )


def _times(item, bound) -> list[int]:
    if isinstance(item, Structure):
        return [time for part in item.items for time in _times(part, bound)]
    return [bound[item.name]["time"]]


def _value(expression, bound):
    match expression:
        case Attribute(variable, name):
            value = bound[variable][name]
            # Conditions are on floats, so that 1 / -0 is what it is for those.
            return float(value) if isinstance(value, int) else value
        case Constant(value):
            return value
        case Negative(operand):
            return -_value(operand, bound)
        case Arithmetic("/", left, right):
            return _divide(_value(left, bound), _value(right, bound))
        case Arithmetic(sign, left, right):
            return _ARITHMETIC[sign](_value(left, bound), _value(right, bound))
    raise AssertionError(expression)


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.inf * math.copysign(1, left) * math.copysign(1, right)


def _missing(value) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _true(comparison, bound) -> bool:
    left, right = _value(comparison.left, bound), _value(comparison.right, bound)
    if _missing(left) or _missing(right):
        return False
    return _COMPARISON[comparison.operator](left, right)
