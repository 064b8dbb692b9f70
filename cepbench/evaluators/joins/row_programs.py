"""Clauses that look into sets, as the rules that :mod:`cepbench.kernels.joins.clauses` reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cepbench.evaluators.joins.programs import (
    ARITHMETIC,
    COMPARISONS,
    Derived,
    ProgramWriter,
    Rule,
)
from cepbench.kernels.joins import clauses, filters
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

_FUNCTIONS = {
    "sum": clauses.SUM,
    "avg": clauses.AVERAGE,
    "min": clauses.LEAST,
    "max": clauses.GREATEST,
    "count": clauses.COUNT,
}
_MEMBERS = {
    "each": clauses.LOAD_MEMBER,
    "previous": clauses.LOAD_PREVIOUS,
    "first": clauses.LOAD_FIRST,
    "last": clauses.LOAD_LAST,
}

#: Of a set: the number of its leaf, and the column that says where it starts; -1 for the set that
#: is being made.
SetPlace = tuple[int, int]


class RowPrograms:
    """Writes clauses over one row, its sets and maybe one event beside it.

    Parameters
    ----------
    writer : ProgramWriter
        Keeps the constants of all programs of a plan.
    floats : callable
        (leaf, value) → float column of a leaf.
    leaf_of : mapping of str to int
        Variable → number of its leaf.
    """

    def __init__(
        self,
        writer: ProgramWriter,
        floats: Callable[[int, Derived], int],
        leaf_of: Mapping[str, int],
    ) -> None:
        self._writer = writer
        self._floats = floats
        self._leaf_of = leaf_of

    def clause(
        self,
        clause: Clause,
        sets: Mapping[str, SetPlace],
        own: Callable[[Derived], int],
        negated: str = "",
    ) -> list[Rule]:
        """The rules of a clause.

        Parameters
        ----------
        clause : Clause
        sets : mapping of str to SetPlace
            The Kleene variables.
        own : callable
            Value of a plain variable → float column of the row.
        negated : str
            The variable of the event beside the row, if there is one.
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
            name: clauses.FROM_SECOND
            if name in running
            else (clauses.EACH if name in each else clauses.ONCE)
            for name in names
        }
        code: list[Rule] = []

        def visit(expression: Expression) -> None:
            match expression:
                case Attribute(variable, name, element):
                    raw = (variable, Attribute(variable, name))
                    if variable in slot_of:
                        column = self._floats(self._leaf_of[variable], raw)
                        code.append((_MEMBERS[element], column, slot_of[variable], 0))
                    elif variable == negated:
                        column = self._floats(self._leaf_of[variable], raw)
                        code.append((filters.LOAD_RIGHT, column, 0, 0))
                    else:
                        code.append((filters.LOAD_LEFT, own(raw), 0, 0))
                case Aggregate(function, attribute, before):
                    raw = (attribute.variable, Attribute(attribute.variable, attribute.name))
                    column = self._floats(self._leaf_of[attribute.variable], raw)
                    kind = _FUNCTIONS[function] + 8 * before
                    code.append((clauses.AGGREGATE, column, slot_of[attribute.variable], kind))
                case Constant(value):
                    code.append((filters.LOAD_CONSTANT, self._writer.constant(value), 0, 0))
                case Negative(operand):
                    visit(operand)
                    code.append((filters.NEGATE, 0, 0, 0))
                case Arithmetic(operator, first, second):
                    visit(first)
                    visit(second)
                    code.append((ARITHMETIC[operator], 0, 0, 0))

        def visit_comparison(comparison: Comparison) -> None:
            visit(comparison.left)
            visit(comparison.right)
            code.append((COMPARISONS[comparison.operator], 0, 0, 0))

        visit_comparison(clause.comparisons[0])
        for comparison in clause.comparisons[1:]:
            visit_comparison(comparison)
            code.append((filters.EITHER, 0, 0, 0))
        self._writer.check_depth(_depth(code), clause)
        return self._whole([(sets[name], loops[name]) for name in names], code)

    def distinct(
        self, first: SetPlace, second: SetPlace | None, own: int | None = None
    ) -> list[Rule]:
        """No member of a set is in another set, is the row's own event, or the event beside it.

        Parameters
        ----------
        first : SetPlace
        second : SetPlace, optional
        own : int, optional
            Integer column of the row with the position of an event.
        """
        slots = [(first, clauses.EACH)]
        code: list[Rule] = [(clauses.LOAD_MEMBER_INTEGER, 1, 0, 0)]
        if second is not None:
            slots.append((second, clauses.EACH))
            code.append((clauses.LOAD_MEMBER_INTEGER, 1, 1, 0))
        elif own is not None:
            code.append((clauses.LOAD_INTEGER, own, 0, 0))
        else:
            code.append((clauses.LOAD_OTHER_INTEGER, 1, 0, 0))
        return self._whole(slots, [*code, (filters.UNEQUAL, 0, 0, 0)])

    def contiguous(self, columns: Sequence[int], sets: Sequence[SetPlace], rank: int) -> list[Rule]:
        """The ranks of all events of the row follow each other without a gap.

        Parameters
        ----------
        columns : sequence of int
            Integer columns of the row with ranks.
        sets : sequence of SetPlace
        rank : int
            Integer column of every leaf with the rank.
        """
        code: list[Rule] = [(clauses.BEGIN_SPAN, 0, 0, 0)]
        code += [(clauses.SPAN_INTEGER, column, 0, 0) for column in columns]
        code += [(clauses.SPAN_SET, rank, slot, 0) for slot in range(len(sets))]
        code.append((clauses.END_SPAN, 0, 0, 0))
        return self._whole([(place, clauses.ONCE) for place in sets], code)

    def _whole(self, slots: Sequence[tuple[SetPlace, int]], code: list[Rule]) -> list[Rule]:
        rules = [(clauses.SLOT, leaf, column, loop) for (leaf, column), loop in slots]
        rules += [*code, (filters.KEEP_IF_TRUE, 0, 0, 0)]
        return [(clauses.CLAUSE, len(slots), 0, len(rules) + 1), *rules]


def _depth(code: Sequence[Rule]) -> int:
    """The deepest stack that instructions need."""
    depth = deepest = 0
    loads = {
        filters.LOAD_LEFT,
        filters.LOAD_RIGHT,
        filters.LOAD_CONSTANT,
        clauses.AGGREGATE,
        *_MEMBERS.values(),
    }
    for opcode, *_ in code:
        depth += 1 if opcode in loads else (0 if opcode == filters.NEGATE else -1)
        deepest = max(deepest, depth)
    return deepest
