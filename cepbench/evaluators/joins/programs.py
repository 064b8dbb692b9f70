"""Conditions as the small arrays that the join kernels read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cepbench.errors import UnsupportedPatternError
from cepbench.kernels.joins import filters
from cepbench.patterns.model import (
    Arithmetic,
    Clause,
    Comparison,
    Constant,
    Expression,
    Negative,
    attributes_of,
)

#: A float column of a leaf: an expression over one variable, calculated when its event arrives.
Derived = tuple[str, Expression]
#: Gives the column number of a derived value on one side of a join.
ColumnOf = Callable[[Derived], int]
#: Four numbers that a kernel reads, see :mod:`cepbench.kernels.joins.tables`.
Rule = tuple[int, int, int, int]

COMPARISONS = {
    "<": filters.LESS,
    "<=": filters.LESS_EQUAL,
    ">": filters.GREATER,
    ">=": filters.GREATER_EQUAL,
    "=": filters.EQUAL,
    "!=": filters.UNEQUAL,
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
ARITHMETIC = {
    "+": filters.ADD,
    "-": filters.SUBTRACT,
    "*": filters.MULTIPLY,
    "/": filters.DIVIDE,
}


def variables_of(expression: Expression) -> set[str]:
    """Names of the variables that an expression reads."""
    return {attribute.variable for attribute in attributes_of(expression)}


def separated_sides(clause: Clause) -> tuple[Derived, str, Derived] | None:
    """The clause as ``value of one variable, operator, value of another``, if it is one.

    Such a clause is a plain comparison of two columns, which is what the kernels do fastest; all
    others run as a program.
    """
    if len(clause.comparisons) > 1:
        return None
    comparison = clause.comparisons[0]
    left, right = variables_of(comparison.left), variables_of(comparison.right)
    if len(left) == len(right) == 1 and left != right:
        return (
            (left.pop(), comparison.left),
            comparison.operator,
            (right.pop(), comparison.right),
        )
    return None


def derived_values(clause: Clause) -> list[Derived]:
    """The values that joining on ``clause`` reads: its largest parts over a single variable."""
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
    """Writes clauses as instructions of the stack machine in :mod:`cepbench.kernels.joins.filters`.

    Parameters
    ----------
    code : callable
        Text → its code.
    """

    code: Callable[[str], float]
    constants: list[float] = field(default_factory=list)

    def instructions(
        self, clause: Clause, left_variables: set[str], left: ColumnOf, right: ColumnOf
    ) -> list[Rule]:
        """The instructions that keep a pair of rows if ``clause`` is true.

        Parameters
        ----------
        clause : Clause
        left_variables : set of str
            Variables bound on the left side of the join.
        left, right : callable
            Column numbers on either side.

        Raises
        ------
        UnsupportedPatternError
            If the clause nests deeper than the stack.
        """
        written: list[Rule] = []
        depth = deepest = 0

        def emit(opcode: int, argument: int, change: int) -> None:
            nonlocal depth, deepest
            written.append((opcode, argument, 0, 0))
            depth += change
            deepest = max(deepest, depth)

        def visit(expression: Expression) -> None:
            names = variables_of(expression)
            if len(names) == 1:
                derived = (names.pop(), expression)
                if derived[0] in left_variables:
                    emit(filters.LOAD_LEFT, left(derived), 1)
                else:
                    emit(filters.LOAD_RIGHT, right(derived), 1)
                return
            match expression:
                case Constant(value):
                    emit(filters.LOAD_CONSTANT, self.constant(value), 1)
                case Negative(operand):
                    visit(operand)
                    emit(filters.NEGATE, 0, 0)
                case Arithmetic(operator, first, second):
                    visit(first)
                    visit(second)
                    emit(ARITHMETIC[operator], 0, -1)

        def visit_comparison(comparison: Comparison) -> None:
            visit(comparison.left)
            visit(comparison.right)
            emit(COMPARISONS[comparison.operator], 0, -1)

        visit_comparison(clause.comparisons[0])
        for comparison in clause.comparisons[1:]:
            visit_comparison(comparison)
            emit(filters.EITHER, 0, -1)
        emit(filters.KEEP_IF_TRUE, 0, -1)
        self.check_depth(deepest, clause)
        return written

    def conditions(
        self,
        clauses: Iterable[Clause],
        mine: set[str],
        left: Mapping[Derived, int],
        right: Mapping[Derived, int],
    ) -> tuple[list[Rule], list[Rule]]:
        """Plain comparisons of two columns, and programs for all other clauses.

        Parameters
        ----------
        clauses : iterable of Clause
        mine : set of str
            Variables bound on the left side.
        left, right : mapping of Derived to int
            Float columns on either side.
        """
        compared: list[Rule] = []
        programs: list[Rule] = []
        for clause in clauses:
            sides = separated_sides(clause)
            if sides is None:
                programs += self.instructions(clause, mine, left.__getitem__, right.__getitem__)
                continue
            first, operator, second = sides
            if first[0] not in mine:
                first, operator, second = second, _FLIPPED[operator], first
            compared.append((left[first], right[second], COMPARISONS[operator], 0))
        return compared, programs

    def constant(self, value: float | str) -> int:
        """The number of a constant that programs read."""
        self.constants.append(self.code(value) if isinstance(value, str) else float(value))
        return len(self.constants) - 1

    def check_depth(self, deepest: int, clause: Clause) -> None:
        """See that a program's stack is deep enough.

        Raises
        ------
        UnsupportedPatternError
            If the clause nests deeper.
        """
        if deepest > filters.STACK:
            raise UnsupportedPatternError(
                f"condition {clause} nests {deepest} deep, more than the {filters.STACK} values "
                "that can be kept at hand; split it or calculate parts of it as attributes"
            )


def new_stack() -> np.ndarray:
    """A stack for programs."""
    return np.empty((filters.STACK, filters.BLOCK))
