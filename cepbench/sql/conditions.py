"""Conditions of a WHERE clause as SQL, with the semantics of :mod:`cepbench.patterns.arrays`."""

from __future__ import annotations

import math
from collections.abc import Callable

from cepbench.errors import UnsupportedPatternError
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
from cepbench.sql.dialects import Dialect

#: (variable, column) → the SQL of that column of the variable's event.
Place = Callable[[str, str], str]


class ConditionWriter:
    """Writes the conditions of one pattern.

    Unlike a pattern, SQL distinguishes texts from numbers. The type of an attribute is inferred
    from its uses; where it is only ever compared for equality with another such attribute, the SQL
    is correct for both types.

    Parameters
    ----------
    pattern : Pattern
    dialect : Dialect
    time : str
        The time column, whose values compare as they are.

    Raises
    ------
    UnsupportedPatternError
        If an attribute is used both as a text and as a number.
    """

    def __init__(self, pattern: Pattern, dialect: Dialect, time: str) -> None:
        self._dialect = dialect
        self._time = time
        self._is_datetime = pattern.window.is_datetime
        self._is_text = _kinds(pattern)

    def clause(self, clause: Clause, place: Place) -> str:
        """A disjunction of comparisons."""
        parts = [self._comparison(comparison, place) for comparison in clause.comparisons]
        return parts[0] if len(parts) == 1 else f"({' OR '.join(f'({part})' for part in parts)})"

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
            # Two attributes of unknown type: texts, or numbers that may be NaN.
            assert isinstance(left, Attribute) and isinstance(right, Attribute)
            written = [place(a.variable, a.name) for a in (left, right)]
            missing = [self._dialect.maybe_nan(column) for column in written]
        elif kinds[0]:
            written = [self._text(side, place) for side in sides]
            missing = ["", ""]
        else:
            # Columns of the same name compare as they are; all else compares as doubles.
            doubles = written = [self.number(side, place) for side in sides]
            columns = [side for side in sides if isinstance(side, Attribute)]
            if len(columns) == 2 and columns[0].name == columns[1].name:
                written = [place(column.variable, column.name) for column in columns]
            missing = [
                "" if _is_finite(side) else f"isnan({double})"
                for side, double in zip(sides, doubles, strict=True)
            ]
        # NaN is the largest number to these engines, so it is never less than a number, and a
        # value equal to one that is not NaN is not NaN either.
        looked_at = {"<": [1], "<=": [1], ">": [0], ">=": [0], "=": [0], "<>": [0, 1]}[operator]
        if operator == "=" and not all(missing):
            looked_at = []
        guards = [f"NOT {missing[side]}" for side in looked_at if missing[side]]
        return " AND ".join([f"{written[0]} {operator} {written[1]}", *dict.fromkeys(guards)])

    def _kind(self, expression: Expression) -> bool | None:
        """Whether it is a text; None if unknown."""
        match expression:
            case Attribute(_, name):
                return self._is_text.get(name)
            case Constant(value):
                return isinstance(value, str)
        return False

    def _text(self, expression: Expression, place: Place) -> str:
        match expression:
            case Attribute(variable, name):
                return place(variable, name)
            case Constant(str(value)):
                return self._dialect.text(value)
        raise AssertionError(f"{expression} is not a text")

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
                divisor = f"nullif({self.number(right, place)}, 0e0)"
                return f"({self.number(left, place)} % {divisor})"
            case Arithmetic(operator, left, right):
                return f"({self.number(left, place)} {operator} {self.number(right, place)})"
        raise AssertionError(f"{expression} is over a Kleene set")


def _is_finite(expression: Expression) -> bool:
    return isinstance(expression, Constant) and math.isfinite(float(expression.value))


def _kinds(pattern: Pattern) -> dict[str, bool]:
    """Attribute name → whether it is a text, as far as the pattern implies it."""
    known: dict[str, bool] = {}
    linked: list[tuple[str, str]] = []

    def learn(name: str, is_text: bool) -> None:
        if known.setdefault(name, is_text) != is_text:
            raise UnsupportedPatternError(
                f"attribute {name!r} is used as a text and as a number; an SQL column has one type, so "
                "use it as one of the two"
            )

    for clause in pattern.conditions:
        for comparison in clause.comparisons:
            sides = (comparison.left, comparison.right)
            if all(isinstance(side, Attribute) for side in sides):
                first, second = (attribute.name for attribute in comparison.attributes())
                if comparison.operator in ("=", "!="):
                    linked.append((first, second))
                    continue
            constants = [isinstance(s, Constant) and isinstance(s.value, str) for s in sides]
            texts = any(constants)
            if texts and (
                comparison.operator not in ("=", "!=")
                or not all(
                    constant or isinstance(side, Attribute)
                    for constant, side in zip(constants, sides, strict=True)
                )
            ):
                raise UnsupportedPatternError(
                    f"condition {clause}: texts can only be equal or not, to an attribute or to "
                    "another text",
                    culprit=clause,
                )
            for attribute in comparison.attributes():
                learn(attribute.name, texts)
    for column in pattern.returns:
        if isinstance(column.value, Negative | Arithmetic):
            for attribute in column.attributes():
                learn(attribute.name, False)
    before = -1
    while before < len(known):
        before = len(known)
        for one, other in (*linked, *((b, a) for a, b in linked)):
            if one in known:
                learn(other, known[one])
    return known
