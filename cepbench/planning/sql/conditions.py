"""Conditions of a WHERE clause as SQL, with the semantics of :mod:`cepbench.patterns.arrays`."""

from __future__ import annotations

import math
from collections.abc import Callable

from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.expressions import kind_of_constant
from cepbench.patterns.model import (
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Duration,
    Expression,
    Negative,
    Pattern,
)
from cepbench.planning.sql.dialects import Dialect

#: (variable, column) → the SQL of that column of the variable's event.
Place = Callable[[str, str], str]


class ConditionWriter:
    """Writes the conditions of one pattern; those on the time column compare it as it is.

    SQL converts what a pattern does not compare: texts, numbers and booleans. Which of them an
    attribute is, is inferred from its uses; where it is only ever compared for equality with another
    such attribute, the SQL is correct for all of them.

    Raises UnsupportedPatternError if an attribute is used as values of two kinds.
    """

    def __init__(self, pattern: Pattern, dialect: Dialect, time: str) -> None:
        self._dialect = dialect
        self._time = time
        self._is_datetime = pattern.window.is_datetime
        self._kinds = _kinds(pattern)

    def clause(self, clause: Clause, place: Place) -> str:
        """A disjunction of comparisons."""
        parts = [self._comparison(comparison, place) for comparison in clause.comparisons]
        return parts[0] if len(parts) == 1 else f"({' OR '.join(f'({part})' for part in parts)})"

    def fails(self, clause: Clause, place: Place) -> str:
        """That no comparison of a disjunction holds, be it false or unknown."""
        parts = []
        for comparison in clause.comparisons:
            sides = [
                place(side.variable, side.name)
                if isinstance(side, Attribute)
                else self.number(side, place)
                for side in (comparison.left, comparison.right)
                if not isinstance(side, Constant) and not isinstance(comparison.right, Duration)
            ]
            fails = [f"NOT ({self._comparison(comparison, place)})"]
            parts.append(" OR ".join([*fails, *(f"{side} IS NULL" for side in sides)]))
        return parts[0] if len(parts) == 1 else f"({' AND '.join(f'({part})' for part in parts)})"

    def _comparison(self, comparison: Comparison, place: Place) -> str:
        left, right = comparison.left, comparison.right
        sides = [left, right]
        operator = "<>" if comparison.operator == "!=" else comparison.operator
        times = [its for its in comparison.attributes() if its.name == self._time]
        if isinstance(right, Duration) or times == sides:
            later, earlier = (place(its.variable, its.name) for its in times)
            if isinstance(right, Duration):
                return self._dialect.compared(later, earlier, operator, right)
            return f"{later} {operator} {earlier}"
        if times and self._is_datetime:
            raise UnsupportedPatternError(
                f"{comparison}: {self._time} is the time, a datetime; compare it with that of another "
                f"event, or with a length of time: b.{self._time} - a.{self._time} <= 10 seconds"
            )
        kinds = [self._kind(side) for side in sides]
        if kinds[0] is None:
            # Two attributes of unknown kind: all but numbers are never NaN.
            assert isinstance(left, Attribute) and isinstance(right, Attribute)
            written = [place(a.variable, a.name) for a in (left, right)]
            missing = [self._dialect.maybe_nan(column) for column in written]
        elif kinds[0] == "number":
            # Columns of the same name compare as they are; all else compares as doubles.
            doubles = written = [self.number(side, place) for side in sides]
            columns = [side for side in sides if isinstance(side, Attribute)]
            if len(columns) == 2 and columns[0].name == columns[1].name:
                written = [place(column.variable, column.name) for column in columns]
            missing = [
                "" if _is_finite(side) else self._dialect.is_nan(double)
                for side, double in zip(sides, doubles, strict=True)
            ]
        else:
            written = [self._value(side, place) for side in sides]
            if any(isinstance(side, Constant) for side in sides):
                # A column without any value may have any type, and is missing in each.
                written = [
                    self._dialect.typed(text, kinds[0]) if isinstance(side, Attribute) else text
                    for side, text in zip(sides, written, strict=True)
                ]
            missing = ["", ""]
        looked_at = self._dialect.not_nan.get(operator, [])
        if operator == "=" and not all(missing):
            looked_at = []
        guards = [f"NOT {missing[side]}" for side in looked_at if missing[side]]
        return " AND ".join([f"{written[0]} {operator} {written[1]}", *dict.fromkeys(guards)])

    def _kind(self, expression: Expression) -> str | None:
        """``text``, ``boolean`` or ``number``; None if unknown."""
        return (
            self._kinds.get(expression.name)
            if isinstance(expression, Attribute)
            else kind_of_constant(expression) or "number"
        )

    def _value(self, expression: Expression, place: Place) -> str:
        """A text or boolean."""
        match expression:
            case Attribute(variable, name):
                return place(variable, name)
            case Constant(bool(value)):
                return str(value).upper()
            case Constant(str(value)):
                return self._dialect.text(value)
        raise AssertionError(f"{expression} is a number")

    def number(self, expression: Expression, place: Place) -> str:
        """An expression over numbers, as a double."""
        match expression:
            case Attribute(variable, name):
                return f"CAST({place(variable, name)} AS DOUBLE)"
            case Constant(value):
                return self._dialect.number(float(value))
            case Negative(operand):
                return f"(-{self.number(operand, place)})"
            case Arithmetic("/", left, right):
                return self._dialect.quotient(self.number(left, place), self.number(right, place))
            case Arithmetic("%", left, right):
                return self._dialect.remainder(self.number(left, place), self.number(right, place))
            case Arithmetic(operator, left, right):
                return f"({self.number(left, place)} {operator} {self.number(right, place)})"
        raise AssertionError(f"{expression} is over a Kleene set")


def _is_finite(expression: Expression) -> bool:
    return isinstance(expression, Constant) and math.isfinite(float(expression.value))


def _kinds(pattern: Pattern) -> dict[str, str]:
    """Attribute name → ``text``, ``boolean`` or ``number``, as far as the pattern implies it."""
    known: dict[str, str] = {}
    linked: list[tuple[str, str]] = []

    def learn(name: str, kind: str) -> None:
        before = known.setdefault(name, kind)
        if before != kind:
            one, other = sorted((before, kind), key=("text", "boolean", "number").index)
            raise UnsupportedPatternError(
                f"attribute {name!r} is used as a {one} and as a {other}; an SQL column has one type, "
                "so use it as one of the two"
            )

    for clause in pattern.conditions:
        for comparison in clause.comparisons:
            sides = (comparison.left, comparison.right)
            if all(isinstance(side, Attribute) for side in sides):
                first, second = (attribute.name for attribute in comparison.attributes())
                if comparison.operator in ("=", "!="):
                    linked.append((first, second))
                    continue
            # An attribute takes the kind of a constant beside it.
            given = [
                kind_of_constant(side) or "number"
                for side in sides
                if not isinstance(side, Attribute)
            ]
            kind = next(iter(given), "number")
            if kind != "number" and (
                comparison.operator not in ("=", "!=") or any(its != kind for its in given)
            ):
                raise UnsupportedPatternError(
                    f"condition {clause}: {kind}s can only be equal or not, to an attribute or to "
                    f"another {kind}",
                    culprit=clause,
                )
            for attribute in comparison.attributes():
                learn(attribute.name, kind)
    for column in pattern.returns:
        if isinstance(column.value, Negative | Arithmetic):
            for attribute in column.attributes():
                learn(attribute.name, "number")
    before = -1
    while before < len(known):
        before = len(known)
        for one, other in (*linked, *((b, a) for a, b in linked)):
            if one in known:
                learn(other, known[one])
    return known
