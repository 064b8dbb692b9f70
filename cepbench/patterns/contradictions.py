"""Whether a pattern can have a match at all: conditions that contradict, windows too short.

Only contradictions that hold on every stream are found, and not all of those: what is said here
of a pattern is true, what is not said may be. The conditions are read as an order over
expressions, each opaque (nothing is known of ``a.x + 1`` but that it is one number), so that a
circle with a strict step in it is a contradiction.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from cepbench.errors import UnsatisfiablePatternError
from cepbench.patterns.arrays import expression_values
from cepbench.patterns.model import (
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Expression,
    Kind,
    Negative,
    Pattern,
    Structure,
    attributes_of,
)

_MIRRORED = {">": "<", ">=": "<="}


def check_satisfiable(pattern: Pattern) -> None:
    """Refuse a pattern that can have no match, whatever the stream.

    Found are contradictions between conditions (``a.x < b.x AND b.x <= a.x``, ``a.x < 3 AND a.x
    > 5``, ``a.s = 'p' AND a.s = 'q'``, also over several steps and where each alternative of a
    disjunction contradicts the rest), and sequences longer than their window. A pattern with OR
    is refused only if all its branches are impossible. Conditions on negated variables are left
    alone: one that is never true only makes the negation idle. So are conditions with ``b[i-1]``,
    which say nothing of a set of one event.

    Raises
    ------
    UnsatisfiablePatternError
        Naming the conditions that contradict each other.
    """
    first: UnsatisfiablePatternError | None = None
    for branch in pattern.branches():
        try:
            _check_window(branch)
            _check_conditions(branch)
        except UnsatisfiablePatternError as error:
            first = first or error
        else:
            return
    assert first is not None
    raise first


def _check_window(branch: Pattern) -> None:
    times = _steps(branch.structure)
    if times > branch.window.length:
        ticks = "nanoseconds" if branch.window.is_datetime else "units"
        raise UnsatisfiablePatternError(
            f"{branch.structure} needs {times + 1} timestamps, each later than the one before, and "
            f"these do not fit into WITHIN {branch.window}; widen the window to {times} {ticks} or "
            "more, or write AND for events at the same time",
            culprit=branch.window,
        )


def _steps(structure: Structure) -> int:
    """The length of the longest chain of positive variables with strictly growing timestamps."""
    positive = [v.name for v in structure.variables() if v.kind is not Kind.NEGATED]
    before = structure.precedence()
    longest: dict[str, int] = {}
    # Whatever comes before a variable is written before it.
    for name in positive:
        longest[name] = max((longest[x] + 1 for x in longest if (x, name) in before), default=0)
    return max(longest.values())


def _check_conditions(branch: Pattern) -> None:
    negated = {variable.name for variable in branch.negated}
    clauses = [
        clause
        for clause in branch.conditions
        if not clause.is_running and not negated.intersection(clause.variables)
    ]
    elements: dict[str, set[str]] = {name: {"each"} for name in branch.names}
    for clause in clauses:
        for attribute in clause.attributes():
            elements[attribute.variable].add(attribute.element)
    instances = [
        (clause, comparisons) for clause in clauses for comparisons in _instances(clause, elements)
    ]
    order = _Order((c for _, found in instances for c in found), branch.conditions)
    open_ones = []
    for clause, comparisons in instances:
        if len(comparisons) == 1:
            order.add(comparisons[0], clause)
        else:
            open_ones.append((clause, comparisons))
    order.check_unequal()
    # An alternative that contradicts what must hold anyway can be left out; a last one must hold.
    decided = True
    while decided:
        decided = False
        for clause, comparisons in list(open_ones):
            conflicts = {c: order.conflict(c) for c in comparisons}
            possible = [c for c, conflict in conflicts.items() if conflict is None]
            if not possible:
                found = itertools.chain([clause], *(c for c in conflicts.values() if c))
                raise order.contradiction(found)
            if len(possible) == 1:
                order.add(possible[0], clause)
                open_ones.remove((clause, comparisons))
                decided = True
    order.check_unequal()


def _instances(
    clause: Clause, elements: Mapping[str, set[str]]
) -> Iterator[tuple[Comparison, ...]]:
    """What ``clause`` says of any one event of each set, and of the first and last of those."""
    everywhere = {a.variable for a in clause.attributes() if a.element == "each"}
    named = [
        sorted(elements[name]) if name in everywhere else ["each"] for name in clause.variables
    ]
    for chosen in itertools.product(*named):
        places = dict(zip(clause.variables, chosen, strict=True))
        yield tuple(
            Comparison(c.operator, _settled(c.left, places), _settled(c.right, places))
            for c in clause.comparisons
        )


def _settled(expression: Expression, places: Mapping[str, str]) -> Expression:
    """``expression`` for one event of each set, with its constant parts calculated."""
    match expression:
        case Attribute(variable, name, "each"):
            return Attribute(variable, name, places[variable])
        case Negative(operand):
            expression = Negative(_settled(operand, places))
        case Arithmetic(operator, left, right):
            expression = Arithmetic(operator, _settled(left, places), _settled(right, places))
        case _:
            return expression
    if next(attributes_of(expression), None) is not None:
        return expression
    return Constant(float(expression_values(expression, _no_value, _no_code)))


def _no_value(attribute: Attribute) -> np.ndarray:
    raise AssertionError(f"{attribute} is no constant")


def _no_code(text: str) -> float:
    raise AssertionError(f"the text {text!r} cannot be calculated with")


class _Order:
    """What is known of the order of expressions: steps that go up, some of them strictly."""

    def __init__(self, comparisons: Iterable[Comparison], written: Iterable[Clause]) -> None:
        self._written = {clause: number for number, clause in enumerate(written)}
        sides = dict.fromkeys(side for c in comparisons for side in (c.left, c.right))
        # Numbers for the expressions, as their hashes take long.
        self._numbers = {side: number for number, side in enumerate(sides)}
        # Expression -> the expressions not below it, with whether above, and why.
        self._up: list[list[tuple[int, bool, Clause | None]]] = [[] for _ in sides]
        self._unequal: list[tuple[Comparison, Clause]] = []
        self._constants = [side for side in sides if isinstance(side, Constant)]
        ordered = [c for c in self._constants if not isinstance(c.value, str) and not _is_nan(c)]
        ordered.sort(key=lambda constant: float(constant.value))
        for smaller, larger in itertools.pairwise(ordered):
            self._step(smaller, larger, True, None)

    def _step(self, low: Expression, high: Expression, strict: bool, why: Clause | None) -> None:
        self._up[self._numbers[low]].append((self._numbers[high], strict, why))

    def add(self, comparison: Comparison, clause: Clause) -> None:
        """Take in that ``comparison`` holds because of ``clause``, or raise."""
        conflict = self.conflict(comparison)
        if conflict is not None:
            raise self.contradiction([*conflict, clause])
        operator, left, right = _upwards(comparison)
        if operator == "!=":
            self._unequal.append((comparison, clause))
            return
        self._step(left, right, operator == "<", clause)
        if operator == "=":
            self._step(right, left, False, clause)

    def conflict(self, comparison: Comparison) -> list[Clause] | None:
        """The clauses that ``comparison`` contradicts; None if it contradicts nothing known."""
        operator, left, right = _upwards(comparison)
        for side in (left, right):
            if isinstance(side, Constant) and _is_nan(side):
                return []
        match operator:
            case "<":
                return self._path(right, left, strict=False)
            case "<=":
                return self._path(right, left, strict=True)
            case "=":
                found = self._path(right, left, strict=True)
                if found is None:
                    found = self._path(left, right, strict=True)
                return found if found is not None else self._other_text(left, right)
        return self._equal(left, right)

    def check_unequal(self) -> None:
        """Refuse expressions that must differ and be equal."""
        for comparison, clause in self._unequal:
            conflict = self._equal(comparison.left, comparison.right)
            if conflict is not None:
                raise self.contradiction([*conflict, clause])

    def contradiction(self, clauses: Iterable[Clause]) -> UnsatisfiablePatternError:
        """The error that says of these clauses that they cannot all hold."""
        found = sorted(set(clauses), key=self._written.__getitem__)
        shown = [f"({c})" if len(c.comparisons) > 1 else f"{c}" for c in found]
        if len(found) == 1:
            what, advice = f"condition {found[0]} is never true", "correct it, or leave it out"
        else:
            what = f"the conditions {', '.join(shown[:-1])} and {shown[-1]} contradict each other"
            advice = "correct or leave out one of them"
        return UnsatisfiablePatternError(
            f"{what}, so that the pattern can have no match; {advice}", culprit=found[-1]
        )

    def _other_text(self, left: Expression, right: Expression) -> list[Clause] | None:
        """Why both sides of an equality are known to be different texts, or a text and a number."""
        for text in self._constants:
            if not isinstance(text.value, str):
                continue
            for one, other in ((left, right), (right, left)):
                here = self._equal(one, text)
                if here is None:
                    continue
                for constant in self._constants:
                    there = self._equal(other, constant) if constant != text else None
                    if there is not None:
                        return here + there
        return None

    def _equal(self, left: Expression, right: Expression) -> list[Clause] | None:
        """Why two expressions are equal; None if that is not known."""
        up = self._path(left, right, strict=False)
        down = self._path(right, left, strict=False) if up is not None else None
        return None if up is None or down is None else up + down

    def _path(self, low: Expression, high: Expression, *, strict: bool) -> list[Clause] | None:
        """Why ``low`` is not above ``high``, or is below it; None if that is not known."""
        start, end = (self._numbers[low], False), self._numbers[high]
        came_from: dict[tuple[int, bool], tuple[tuple[int, bool], Clause | None]]
        came_from = {start: (start, None)}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            if here[0] == end and (here[1] or not strict):
                found = []
                while here != start:
                    here, why = came_from[here]
                    if why is not None:
                        found.append(why)
                return found[::-1]
            for there, is_strict, why in self._up[here[0]]:
                state = (there, here[1] or is_strict)
                if state not in came_from:
                    came_from[state] = (here, why)
                    waiting.append(state)
        return None


def _is_nan(constant: Constant) -> bool:
    return not isinstance(constant.value, str) and math.isnan(constant.value)


def _upwards(comparison: Comparison) -> tuple[str, Expression, Expression]:
    operator = comparison.operator
    if operator in _MIRRORED:
        return _MIRRORED[operator], comparison.right, comparison.left
    return operator, comparison.left, comparison.right
