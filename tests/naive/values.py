"""Whether conditions are true of events given as plain dictionaries, one value at a time."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from cepbench.patterns.model import (
    NANOSECONDS,
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Negative,
    Window,
)

#: An event is a row of the table of events; a Kleene variable is bound to a list of them.
Event = dict[str, Any]
Bound = dict[str, Event | list[Event]]

_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_COMPARISON = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def in_window(times: Iterable[int], window: Window) -> bool:
    """Whether timestamps are near enough to each other; ``WITHIN <`` excludes the window's length."""
    ordered = sorted(times)
    longest = Fraction(str(window.amount)) * NANOSECONDS.get(window.unit, 1)
    span = ordered[-1] - ordered[0]
    return span < longest if window.exclusive else span <= longest


def clause_true(clause: Clause, bound: Bound) -> bool:
    """Whether one of the comparisons is true, whichever elements of the sets it looks at.

    A clause that speaks of ``b[i-1]`` or of what is before ``i`` looks at every element of ``b``
    but the first, one that speaks of ``b`` plainly at every element.
    """
    first: dict[str, int] = {}
    for comparison in clause.comparisons:
        for side in (comparison.left, comparison.right):
            for name, start in _elements_looked_at(side):
                if isinstance(bound[name], list):
                    first[name] = max(start, first.get(name, 0))
    ranges = [range(start, len(bound[name])) for name, start in first.items()]
    return all(
        any(_true(c, bound, dict(zip(first, indices, strict=True))) for c in clause.comparisons)
        for indices in itertools.product(*ranges)
    )


def _elements_looked_at(expression):
    """Variables that are looked at element by element, and from which element on."""
    match expression:
        case Attribute(variable, _, "each"):
            return [(variable, 0)]
        case Attribute(variable, _, "previous" | "rest"):
            return [(variable, 1)]
        case Aggregate(_, attribute, True):
            return [(attribute.variable, 1)]
        case Negative(operand):
            return _elements_looked_at(operand)
        case Arithmetic(_, left, right):
            return _elements_looked_at(left) + _elements_looked_at(right)
    return []


def _true(comparison: Comparison, bound: Bound, at: dict[str, int]) -> bool:
    left, right = value_of(comparison.left, bound, at), value_of(comparison.right, bound, at)
    if missing(left) or missing(right):
        return False
    return _COMPARISON[comparison.operator](left, right)


def value_of(expression, bound: Bound, at: dict[str, int]):
    """The value of an expression; ``at`` has the index of the element looked at, by variable."""
    match expression:
        case Attribute(variable, name, element):
            events = bound[variable]
            if not isinstance(events, list):
                return _plain(events[name])
            if element in ("each", "rest"):
                return _plain(events[at[variable]][name])
            if element == "previous":
                return _plain(events[at[variable] - 1][name])
            # Of an empty group.
            return _plain(events[{"first": 0, "last": -1}[element]][name]) if events else math.nan
        case Aggregate(function, attribute, before):
            events = bound[attribute.variable]
            assert isinstance(events, list)
            if before:
                events = events[: at[attribute.variable]]
            return _aggregate(function, [_plain(event[attribute.name]) for event in events])
        case Constant(value):
            return value
        case Negative(operand):
            return -value_of(operand, bound, at)
        case Arithmetic("/", left, right):
            return _divide(value_of(left, bound, at), value_of(right, bound, at))
        case Arithmetic("%", left, right):
            return _remainder(value_of(left, bound, at), value_of(right, bound, at))
        case Arithmetic(sign, left, right):
            return _ARITHMETIC[sign](value_of(left, bound, at), value_of(right, bound, at))
    raise AssertionError(expression)


def _aggregate(function: str, values: list[Any]) -> float:
    if function == "count":
        return float(len(values))
    # What is calculated with a missing value, or of no event, is missing.
    if not values or any(missing(value) for value in values):
        return math.nan
    if function == "avg":
        return sum(values) / len(values)
    return {"sum": sum, "min": min, "max": max}[function](values)


def _plain(value):
    # Conditions are on floats, so that 1 / -0 is what it is for those.
    return float(value) if isinstance(value, int) else value


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.inf * math.copysign(1, left) * math.copysign(1, right)


def _remainder(left: float, right: float) -> float:
    return (
        math.nan
        if missing(left) or missing(right) or math.isinf(left) or not right
        else (math.fmod(left, right))
    )


def share(events: list[Event], attributes: tuple[str, ...]) -> bool:
    """Whether the events have one value of each attribute; a single event need have none."""
    first, *others = events
    return all(
        not missing(first[name]) and event[name] == first[name]
        for event in others
        for name in attributes
    )


def missing(value) -> bool:
    """Whether it is NaN or None."""
    return value is None or (isinstance(value, float) and math.isnan(value))
