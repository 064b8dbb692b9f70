"""Compilation of conditions to rules, the rows of integer arrays that the kernels interpret.

A comparison of two columns is a single rule. Every other clause is a program of a stack machine:
over blocks of candidates, see :mod:`cepbench.engines.joins.kernels.filters`, or, if it reads sets of Kleene
variables, over single rows, see :mod:`cepbench.kernels.clauses`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cepbench.errors import UnsupportedPatternError
from cepbench.kernels import instructions
from cepbench.patterns.equivalences import Derived, separated_sides, variables_of
from cepbench.patterns.expressions import MIRRORED
from cepbench.patterns.model import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Constant,
    Expression,
    Negative,
)

#: Text → its code, for texts in conditions.
Codes = Callable[[str], float]
#: Four numbers; an engine has further kinds of rules in addition to programs.
Rule = tuple[int, int, int, int]
#: A set: the number of its leaf, and the column of its start; -1 for the set under construction.
SetPlace = tuple[int, int]

COMPARISONS = {
    "<": instructions.LESS,
    "<=": instructions.LESS_EQUAL,
    ">": instructions.GREATER,
    ">=": instructions.GREATER_EQUAL,
    "=": instructions.EQUAL,
    "!=": instructions.UNEQUAL,
}
ARITHMETIC = {
    "+": instructions.ADD,
    "-": instructions.SUBTRACT,
    "*": instructions.MULTIPLY,
    "/": instructions.DIVIDE,
    "%": instructions.MODULO,
}
FUNCTIONS = {
    "sum": instructions.SUM,
    "avg": instructions.AVERAGE,
    "min": instructions.LEAST,
    "max": instructions.GREATEST,
    "count": instructions.COUNT,
}
_MEMBERS = {
    "each": instructions.LOAD_MEMBER,
    "rest": instructions.LOAD_MEMBER,
    "previous": instructions.LOAD_PREVIOUS,
    "first": instructions.LOAD_FIRST,
    "last": instructions.LOAD_LAST,
}
_END: Rule = (instructions.KEEP_IF_TRUE, 0, 0, 0)


def rule_tables(
    written: Sequence[Mapping[int, Sequence[Rule]]], kinds: int
) -> tuple[np.ndarray, np.ndarray]:
    """All rules as one table, from those of each owner by their kind.

    The rules of a kind are ``rules[spans[owner, kind] : spans[owner, kind + 1]]``; see
    :data:`cepbench.kernels.instructions.RULE_COLUMNS`.
    """
    rules: list[Rule] = []
    spans = np.zeros((len(written), kinds + 1), np.int64)
    for owner, its in enumerate(written):
        spans[owner, 0] = len(rules)
        for kind in range(kinds):
            rules += its.get(kind, ())
            spans[owner, kind + 1] = len(rules)
    return spans, np.array(rules, np.int64).reshape(-1, instructions.RULE_COLUMNS)


class Compared(NamedTuple):
    """A comparison of values of two variables, the fastest test."""

    left: Derived
    operator: int
    right: Derived


def compared(clause: Clause, mine: Container[str] | None = None) -> Compared | None:
    """A clause as such a comparison, if it is one; with a variable of ``mine`` on the left."""
    sides = separated_sides(clause)
    if sides is None:
        return None
    left, operator, right = sides
    if mine is not None and left[0] not in mine:
        left, operator, right = right, MIRRORED[operator], left
    return Compared(left, COMPARISONS[operator], right)


def derived_values(clause: Clause) -> list[Derived]:
    """The values that a join on ``clause`` reads: its largest parts over a single variable."""
    found: list[Derived] = []

    def visit(expression: Expression) -> None:
        names = variables_of(expression)
        if len(names) == 1:
            found.append((names.pop(), expression))
        elif isinstance(expression, Negative):
            visit(expression.operand)
        elif isinstance(expression, Arithmetic):
            visit(expression.left)
            visit(expression.right)

    for comparison in clause.comparisons:
        visit(comparison.left)
        visit(comparison.right)
    return list(dict.fromkeys(found))


@dataclass
class ProgramWriter:
    """Writes clauses as rules, and numbers the constants of all programs of a plan."""

    code: Codes
    constants: list[float] = field(default_factory=list)

    def conditions(
        self,
        tested: Iterable[Clause],
        mine: Container[str],
        compare: Callable[[Compared], Rule | None],
        load: Callable[[Derived], Rule],
    ) -> tuple[list[Rule], list[Rule]]:
        """Rules of comparisons of two values, and programs for all other clauses.

        The left sides of comparisons are values of ``mine``. A comparison without a rule is not tested.
        """

        def loaded(expression: Expression) -> Rule | None:
            names = variables_of(expression)
            return load((names.pop(), expression)) if len(names) == 1 else None

        rules: list[Rule] = []
        programs: list[Rule] = []
        for clause in tested:
            comparison = compared(clause, mine)
            if comparison is None:
                programs += self.instructions(clause, loaded)
            elif (rule := compare(comparison)) is not None:
                rules.append(rule)
        return rules, programs

    def instructions(self, clause: Clause, load: Callable[[Expression], Rule | None]) -> list[Rule]:
        """The program of a clause; an UnsupportedPatternError if it nests deeper than the stack.

        ``load`` gives None for an expression that is computed from its parts.
        """
        written: list[Rule] = []
        depth = deepest = 0

        def emit(rule: Rule, change: int) -> None:
            nonlocal depth, deepest
            written.append(rule)
            depth += change
            deepest = max(deepest, depth)

        def visit(expression: Expression) -> None:
            loaded = load(expression)
            if loaded is not None:
                emit(loaded, 1)
                return
            match expression:
                case Constant(value):
                    number = self.code(value) if isinstance(value, str) else float(value)
                    self.constants.append(number)
                    emit((instructions.LOAD_CONSTANT, len(self.constants) - 1, 0, 0), 1)
                case Negative(operand):
                    visit(operand)
                    emit((instructions.NEGATE, 0, 0, 0), 0)
                case Arithmetic(operator, first, second):
                    visit(first)
                    visit(second)
                    emit((ARITHMETIC[operator], 0, 0, 0), -1)

        for number, comparison in enumerate(clause.comparisons):
            visit(comparison.left)
            visit(comparison.right)
            emit((COMPARISONS[comparison.operator], 0, 0, 0), -1)
            if number > 0:
                emit((instructions.EITHER, 0, 0, 0), -1)
        if deepest > instructions.STACK:
            raise UnsupportedPatternError(
                f"condition {clause} nests {deepest} deep, more than the {instructions.STACK} values "
                "that can be kept at hand; split it or calculate parts of it as attributes"
            )
        return [*written, _END]


@dataclass(frozen=True)
class RowPrograms:
    """Writes clauses over a row, its sets, and optionally one other event, with the float column of
    each leaf and value.
    """

    writer: ProgramWriter
    floats: Callable[[int, Derived], int]
    leaf_of: Mapping[str, int]

    def clause(
        self,
        clause: Clause,
        sets: Mapping[str, SetPlace],
        own: Mapping[Derived, int],
        negated: str = "",
    ) -> list[Rule]:
        """The rules of a clause over Kleene variables, columns of the row with the values of plain
        ones, and the other event, that of ``negated``.
        """
        names = [name for name in clause.variables if name in sets]
        slot_of = {name: slot for slot, name in enumerate(names)}
        running = clause.running_variables()
        each = {
            term.variable
            for term in clause.terms()
            if isinstance(term, Attribute) and term.element == "each"
        }
        loops = {
            name: instructions.FROM_SECOND
            if name in running
            else (instructions.EACH if name in each else instructions.ONCE)
            for name in names
        }

        def leaf_column(variable: str, name: str) -> int:
            return self.floats(self.leaf_of[variable], (variable, Attribute(variable, name)))

        def load(expression: Expression) -> Rule | None:
            match expression:
                case Attribute(variable, name, element) if variable in slot_of:
                    column = leaf_column(variable, name)
                    return _MEMBERS[element], column, slot_of[variable], 0
                case Attribute(variable, name) if variable == negated:
                    return instructions.LOAD_RIGHT, leaf_column(variable, name), 0, 0
                case Attribute(variable, name):
                    return instructions.LOAD_LEFT, own[variable, Attribute(variable, name)], 0, 0
                case Aggregate(function, attribute, before):
                    column = leaf_column(attribute.variable, attribute.name)
                    kind = FUNCTIONS[function] + 8 * before
                    return instructions.AGGREGATE, column, slot_of[attribute.variable], kind
            return None

        code = self.writer.instructions(clause, load)
        return _clause([(sets[name], loops[name]) for name in names], code)


def distinct_events(
    first: SetPlace, second: SetPlace | None = None, own: int | None = None
) -> list[Rule]:
    """That no member of a set is in another set, or the event whose position is in an integer
    column of the row, or the other event.
    """
    slots = [(first, instructions.EACH)]
    other = (instructions.LOAD_OTHER_INTEGER, 1, 0, 0)
    if second is not None:
        slots.append((second, instructions.EACH))
        other = (instructions.LOAD_MEMBER_INTEGER, 1, 1, 0)
    elif own is not None:
        other = (instructions.LOAD_INTEGER, own, 0, 0)
    member = (instructions.LOAD_MEMBER_INTEGER, 1, 0, 0)
    return _clause(slots, [member, other, (instructions.UNEQUAL, 0, 0, 0), _END])


def contiguous_ranks(columns: Sequence[int], sets: Sequence[SetPlace], rank: int) -> list[Rule]:
    """That the ranks of all events of the row are consecutive: those in some integer columns of it,
    and those in the column ``rank`` of the members of sets.
    """
    code: list[Rule] = [(instructions.BEGIN_SPAN, 0, 0, 0)]
    code += [(instructions.SPAN_INTEGER, column, 0, 0) for column in columns]
    code += [(instructions.SPAN_SET, rank, slot, 0) for slot in range(len(sets))]
    code += [(instructions.END_SPAN, 0, 0, 0), _END]
    return _clause([(place, instructions.ONCE) for place in sets], code)


def _clause(slots: Sequence[tuple[SetPlace, int]], code: list[Rule]) -> list[Rule]:
    """A program over a single row, with its header and the sets that it reads."""
    rules = [(instructions.SLOT, leaf, column, loop) for (leaf, column), loop in slots] + code
    return [(instructions.CLAUSE, len(slots), 0, len(rules) + 1), *rules]
