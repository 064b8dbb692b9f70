"""DEFINE as programs of a stack machine, and the kinds of values that expressions have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cepbench.engines.plan_runs.programs import ARITHMETIC, COMPARISONS, FUNCTIONS
from cepbench.engines.row_patterns.kernels import search
from cepbench.engines.row_patterns.table import EventTable
from cepbench.errors import UnsupportedPatternError
from cepbench.kernels import instructions
from cepbench.patterns.expressions import OPPOSITE, Constant, Duration
from cepbench.patterns.row_pattern import (
    MatchNumber,
    Operation,
    Reference,
    RowAggregate,
    RowExpression,
    RowPattern,
    parts_of,
)

_Rule = tuple[int, int, int, int]
_END: _Rule = (-1, 0, 0, 0)


@dataclass
class Columns:
    """The columns that programs read, by number, and the kinds of expressions over a table."""

    table: EventTable
    #: What each column of float64 holds: a column of the table, or the argument of an aggregate.
    read: list[str | RowExpression] = field(default_factory=list)

    def place(self, what: str | RowExpression) -> int:
        """The number of a column."""
        if what not in self.read:
            self.read.append(what)
        return self.read.index(what)

    def arrays(self) -> np.ndarray:
        """All columns, float64 (columns, rows)."""
        found = np.empty((len(self.read), len(self.table)))
        for number, what in enumerate(self.read):
            its = self.table.numbers(what) if isinstance(what, str) else self.over_rows(what)
            found[number] = its
        return found

    def over_rows(self, argument: RowExpression) -> np.ndarray | float:
        """The argument of an aggregate, for each row by itself."""
        match argument:
            case Reference(str(column)):
                return self.table.numbers(self.table.name(column))
            case Constant(value):
                return float(value)
            case Operation(operator, operands):
                return calculated(operator, [self.over_rows(part) for part in operands])
        raise AssertionError(argument)

    def kind(self, expression: RowExpression) -> str | None:
        """``number``, ``text``, ``boolean``, ``time`` or ``duration``; None if all values are missing.

        A StreamError for a column that the stream does not have, and for operands that do not fit.
        """
        match expression:
            case Reference(None) | MatchNumber():
                return "text" if isinstance(expression, Reference) else "number"
            case Reference(str(column)):
                return self.table.kind(self.table.name(column, expression))
            case RowAggregate(function, argument):
                kind = None if argument is None else self.kind(argument)
                if function != "COUNT" and kind not in ("number", None):
                    self.table.fail(
                        f"{expression}: {function} of a {kind}; it is over numbers"
                        + (", and FIRST and LAST give the extreme times" if kind == "time" else ""),
                        expression,
                    )
                return "number"
            case Duration():
                return "duration"
            case Constant(value):
                return {str: "text", bool: "boolean"}.get(type(value), "number")
            case Operation(operator, operands):
                return self._kind_of_operation(expression, operator, operands)
        raise AssertionError(expression)

    def _kind_of_operation(
        self, expression: Operation, operator: str, operands: tuple[RowExpression, ...]
    ) -> str | None:
        kinds = [self.kind(part) for part in operands]
        if operator in ("AND", "OR", "NOT", "IS NULL"):
            return "boolean"
        if operator in COMPARISONS:
            known = {kind for kind in kinds if kind}
            if len(known) > 1:
                self.table.fail(
                    f"{expression} compares a {kinds[0]} with a {kinds[1]}; compare values of one kind",
                    expression,
                )
            if known & {"text", "boolean"} and operator not in ("=", "!="):
                (kind,) = known
                self.table.fail(
                    f"{expression}: {operator} orders a {kind}; {kind}s can only be = or !=",
                    expression,
                )
            return "boolean"
        times = {"time", "duration"} & set(kinds)
        if not times and not {"text", "boolean"} & set(kinds):
            return "number"
        results: dict[tuple[str | None, ...], str] = {
            ("-", "time", "time"): "duration",
            ("-", "time", "duration"): "time",
            ("+", "time", "duration"): "time",
            ("+", "duration", "time"): "time",
            ("+", "duration", "duration"): "duration",
            ("-", "duration", "duration"): "duration",
        }
        found = results.get((operator, *kinds))
        if found is None:
            self.table.fail(
                f"{expression}: {operator} of a {' and a '.join(kind or 'number' for kind in kinds)}; "
                + ("a length of time is INTERVAL '10' MINUTE" if times else "it is for numbers"),
                expression,
            )
        return found


def calculated(
    operator: str, operands: list[np.ndarray | float] | list[np.ndarray]
) -> np.ndarray | float:
    """The result of arithmetic on arrays, in the way of the programs."""
    with np.errstate(all="ignore"):
        if len(operands) == 1:
            return -operands[0]
        left, right = operands
        functions = {
            "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod,
        }  # fmt: skip
        found: np.ndarray = functions[operator](left, right)
        return found


def moments(expression: RowExpression, sign: int = 1) -> Iterator[tuple[int, Reference | int]]:
    """The times and lengths that a sum of times consists of, each with its sign."""
    match expression:
        case Reference():
            yield sign, expression
        case Duration(value):
            yield sign, int(value)
        case Operation("-", (left, right)):
            yield from moments(left, sign)
            yield from moments(right, -sign)
        case Operation("+", (left, right)):
            yield from moments(left, sign)
            yield from moments(right, sign)


def is_current(pattern: RowPattern, variable: str, reference: Reference) -> bool:
    """Whether a reference in the condition of a variable starts from the row that is being mapped."""
    covered = pattern.covered(reference.variable)
    return not reference.from_first and not reference.offset and variable in covered


def is_alone(pattern: RowPattern, variable: str, condition: RowExpression) -> bool:
    """Whether the condition of a variable reads its row and rows at fixed distances from it alone."""
    return not any(
        isinstance(part, RowAggregate)
        or (isinstance(part, Reference) and not is_current(pattern, variable, part))
        for part in parts_of(condition)
    )


class ConditionWriter:
    """Writes the conditions of a pattern as programs, those on the row itself apart from the others."""

    def __init__(self, pattern: RowPattern, columns: Columns) -> None:
        self._pattern = pattern
        self._columns = columns
        self._constants: list[float] = []
        self._lengths: list[int] = []
        self._references: list[tuple[int, int, int, int]] = []
        self._aggregates: list[tuple[int, int, int]] = []
        self._tracks: list[int] = []
        self._variable = ""

    def programs(self) -> tuple[search.Programs, search.Programs]:
        """Those on the row and its neighbours, and those on the rows of the match."""
        alone: list[list[_Rule]] = []
        others: list[list[_Rule]] = []
        define = dict(self._pattern.define)
        for variable in self._pattern.variables:
            alone.append([])
            others.append([])
            if variable not in define:
                continue
            self._variable = variable
            self._columns.kind(define[variable])
            for part in _conjuncts(define[variable]):
                rules = [*self._condition(part, is_negated=False), _END]
                _check_stack(rules, part)
                (alone if is_alone(self._pattern, variable, part) else others)[-1].extend(rules)
        return self._tables(alone), self._tables(others)

    def _tables(self, written: list[list[_Rule]]) -> search.Programs:
        return search.Programs(
            np.cumsum([0, *map(len, written)]),
            np.array([rule for its in written for rule in its], np.int64).reshape(-1, 4),
            np.array(self._constants, np.float64),
            np.array(self._lengths, np.int64),
            np.array(self._references, np.int64).reshape(-1, search.REFERENCE_COLUMNS),
            np.array(self._aggregates, np.int64).reshape(-1, search.AGGREGATE_COLUMNS),
            np.array(self._tracks, np.int64),
        )

    def _condition(self, condition: RowExpression, *, is_negated: bool) -> Iterator[_Rule]:
        """The truth value of a condition, or of its negation, false where it is unknown."""
        match condition:
            case Constant(value):
                yield self._number(float(bool(value) != is_negated))
            case Operation("NOT", (operand,)):
                yield from self._condition(operand, is_negated=not is_negated)
            case Operation("AND" | "OR" as operator, operands):
                for part in operands:
                    yield from self._condition(part, is_negated=is_negated)
                both = (operator == "AND") != is_negated
                yield (instructions.MULTIPLY if both else instructions.EITHER), 0, 0, 0
            case Operation("IS NULL", (operand,)):
                if not is_negated:
                    yield self._number(1.0)
                # A value equals itself unless it is missing.
                yield from self._comparison("=", operand, operand)
                if not is_negated:
                    yield instructions.SUBTRACT, 0, 0, 0
            case Operation(operator, (left, right)):
                yield from self._comparison(
                    OPPOSITE[operator] if is_negated else operator, left, right
                )

    def _comparison(
        self, operator: str, left: RowExpression, right: RowExpression
    ) -> Iterator[_Rule]:
        if {self._columns.kind(left), self._columns.kind(right)} & {"time", "duration"}:
            operator, length, later, earlier = self._of_times(operator, left, right)
            self._lengths.append(length)
            place = len(self._lengths) - 1
            yield search.LOAD_TIMES, place, self._reference(later), self._reference(earlier)
            yield self._number(0.0)
        else:
            yield from self._value(left)
            yield from self._value(right)
        yield COMPARISONS[operator], 0, 0, 0

    def _of_times(
        self, operator: str, left: RowExpression, right: RowExpression
    ) -> tuple[str, int, Reference, Reference]:
        """``later - earlier`` compared with a length."""
        parts = [*moments(left), *moments(right, -1)]
        times = sorted(
            ((sign, its) for sign, its in parts if isinstance(its, Reference)),
            key=lambda its: -its[0],
        )
        total = sum(sign * its for sign, its in parts if isinstance(its, int))
        if [sign for sign, _ in times] != [1, -1]:
            raise UnsupportedPatternError(
                f"{Operation(operator, (left, right))}: two times are compared, or their difference with "
                "a length, as in B.ts - A.ts <= INTERVAL '10' MINUTE"
            )
        (_, later), (_, earlier) = times
        return operator, -total, later, earlier

    def _value(self, expression: RowExpression) -> Iterator[_Rule]:
        match expression:
            case Constant(str(value)):
                yield self._number(self._columns.table.code(value))
            case Constant(value):
                yield self._number(float(value))
            case Reference(str(column)):
                place = self._columns.place(self._columns.table.name(column))
                yield search.LOAD_ROW, place, self._reference(expression), 0
            case RowAggregate(function, argument, variable):
                place = -1 if argument is None else self._columns.place(argument)
                row = bits_of(self._pattern, variable), FUNCTIONS[function.lower()], place
                yield search.LOAD_AGGREGATE, _placed(self._aggregates, row), 0, 0
            case Operation(_, (operand,)):
                yield from self._value(operand)
                yield instructions.NEGATE, 0, 0, 0
            case Operation(operator, (left, right)):
                yield from self._value(left)
                yield from self._value(right)
                yield ARITHMETIC[operator], 0, 0, 0

    def _number(self, value: float) -> _Rule:
        self._constants.append(value)
        return instructions.LOAD_CONSTANT, len(self._constants) - 1, 0, 0

    def _reference(self, its: Reference) -> int:
        track = -1
        if not is_current(self._pattern, self._variable, its):
            track = _placed(self._tracks, bits_of(self._pattern, its.variable))
        return _placed(self._references, (track, int(its.from_first), its.offset, its.shift))


def bits_of(pattern: RowPattern, name: str | None) -> int:
    """The variables that a name stands for, as bits by their numbers."""
    return sum(1 << pattern.variables.index(its) for its in pattern.covered(name))


def _placed(listed: list[Any], its: Any) -> int:
    if its not in listed:
        listed.append(its)
    return listed.index(its)


def _conjuncts(condition: RowExpression) -> Iterator[RowExpression]:
    if isinstance(condition, Operation) and condition.operator == "AND":
        for part in condition.operands:
            yield from _conjuncts(part)
    else:
        yield condition


def _check_stack(rules: list[_Rule], condition: RowExpression) -> None:
    """An UnsupportedPatternError if a program needs more than the stack of the machine."""
    depth = deepest = 0
    for opcode, *_ in rules:
        loads = opcode in (
            search.LOAD_ROW, search.LOAD_TIMES, search.LOAD_AGGREGATE, instructions.LOAD_CONSTANT,
        )  # fmt: skip
        depth += 1 if loads else 0 if opcode in (instructions.NEGATE, -1) else -1
        deepest = max(deepest, depth)
    if deepest > instructions.STACK:
        raise UnsupportedPatternError(f"condition {condition} nests too deep; write it flatter")
