"""The order of expressions that a set of comparisons implies.

Expressions are opaque: ``a.x + 1`` is just a number. Comparisons are edges upwards, some strict;
expressions on a cycle are equal, so a cycle with a strict edge, or with two constants, is a
contradiction. Everything but :meth:`Order.excludes` and :meth:`Order.implies` takes time linear in
the comparisons.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Sequence

from cepbench.patterns.expressions import (
    MIRRORED,
    OPPOSITE,
    Clause,
    Comparison,
    Constant,
    Expression,
)

#: A comparison that holds, and the clause that it is from.
Fact = tuple[Comparison, Clause]

#: A constant bound of an expression, and whether it is strict.
_Bound = tuple[float, bool]


class Order:
    """The order that facts imply.

    The steps are a budget of :meth:`excludes` and :meth:`implies` over all calls; beyond it,
    nothing is known to be excluded.
    """

    def __init__(self, facts: Sequence[Fact], steps: int) -> None:
        self.steps_left = steps
        #: Clauses with a comparison to NaN.
        self._never = [clause for comparison, clause in facts if _has_nan(comparison)]
        self._unequal: list[tuple[int, int, Clause]] = []
        self._numbers: dict[Expression, int] = {}
        #: Expression → the expressions not below it, whether strictly above, and the clause.
        self._up: list[list[tuple[int, bool, Clause | None]]] = []
        for comparison, clause in facts:
            operator, left, right = _upwards(comparison)
            low, high = self._number(left), self._number(right)
            if operator == "!=":
                self._unequal.append((low, high, clause))
                continue
            self._up[low].append((high, operator == "<", clause))
            if operator == "=":
                self._up[high].append((low, False, clause))
        self._constants = [c for c in self._numbers if isinstance(c, Constant)]
        ordered = sorted(filter(_is_number, self._constants), key=lambda c: float(c.value))
        for smaller, larger in itertools.pairwise(ordered):
            self._up[self._numbers[smaller]].append((self._numbers[larger], True, None))
        #: Expression → its equivalence class; classes are numbered from top to bottom.
        self._class, self._members = _components(self._up)
        self._value = {self._class[self._numbers[c]]: c for c in self._constants}
        #: Class → its number, of classes that are equal to one.
        self._fixed = {here: float(c.value) for here, c in self._value.items() if _is_number(c)}
        self._ceilings, self._floors = self._bounds()

    def _number(self, expression: Expression) -> int:
        if expression not in self._numbers:
            self._numbers[expression] = len(self._up)
            self._up.append([])
        return self._numbers[expression]

    # -- contradictions -------------------------------------------------------------------------

    def contradiction(self) -> list[Clause]:
        """Clauses that cannot all hold; none if the facts are consistent."""
        if self._never:
            return self._never[:1]
        for low, steps in enumerate(self._up):
            for high, strict, why in steps:
                if strict and self._class[low] == self._class[high]:
                    return [*self._path(high, low), *([] if why is None else [why])]
        for one, other, clause in self._unequal:
            if self._class[one] == self._class[other]:
                return [*self._path(one, other), *self._path(other, one), clause]
        for constant in self._constants:
            here = self._numbers[constant]
            value = self._value[self._class[here]]
            if value != constant:
                there = self._numbers[value]
                return [*self._path(here, there), *self._path(there, here)]
        return []

    def _path(self, start: int, end: int) -> list[Clause]:
        """The clauses on a path from ``start`` to ``end``, both of one class."""
        came_from: dict[int, tuple[int, Clause | None]] = {start: (start, None)}
        waiting = deque([start])
        while end not in came_from:
            here = waiting.popleft()
            for there, _, why in self._up[here]:
                if there not in came_from and self._class[there] == self._class[start]:
                    came_from[there] = (here, why)
                    waiting.append(there)
        found = []
        while end != start:
            end, why = came_from[end]
            if why is not None:
                found.append(why)
        return found

    # -- exclusion ------------------------------------------------------------------------------

    def excludes(self, comparison: Comparison) -> bool:
        """Whether ``comparison`` is known to contradict the facts, which must be consistent."""
        if _has_nan(comparison):
            return True
        operator, left, right = _upwards(comparison)
        match operator:
            case "<":
                return self._is_below(right, left, strict=False)
            case "<=":
                return self._is_below(right, left, strict=True)
            case "!=":
                return self._are_equal(left, right)
        values = self._value_of(left), self._value_of(right)
        return (
            (None not in values and values[0] != values[1])
            or self._is_below(right, left, strict=True)
            or self._is_below(left, right, strict=True)
        )

    # -- implication ----------------------------------------------------------------------------

    def implies(self, comparison: Comparison) -> bool:
        """Whether ``comparison`` is known to hold wherever all the facts do.

        A fact also says that the values on both its sides are not missing, without which no
        comparison holds.
        """
        operator, left, right = comparison.operator, comparison.left, comparison.right
        if _has_nan(comparison) or not all(
            side in self._numbers or isinstance(side, Constant) for side in (left, right)
        ):
            return False
        if operator == "!=":
            here = {self._class_of(left), self._class_of(right)}
            if any({self._class[a], self._class[b]} == here for a, b, _ in self._unequal):
                return True
        return self.excludes(Comparison(OPPOSITE[operator], left, right))

    def _is_below(self, low: Expression, high: Expression, *, strict: bool) -> bool:
        if self._are_equal(low, high):
            return not strict
        ceiling, floor = self._bound_of(low, self._ceilings), self._bound_of(high, self._floors)
        if (
            ceiling is not None
            and floor is not None
            and (ceiling[0], not (ceiling[1] or floor[1]) and strict) <= (floor[0], False)
        ):
            return True
        start, end = self._class_of(low), self._class_of(high)
        return start is not None and end is not None and self._reaches(start, end, strict=strict)

    def _are_equal(self, left: Expression, right: Expression) -> bool:
        here = self._class_of(left)
        return left == right or (here is not None and here == self._class_of(right))

    def _reaches(self, start: int, end: int, *, strict: bool) -> bool:
        """Whether a path leads up from one class to another without passing a number."""
        # Classes above have smaller indices, see _components.
        seen = {(start, False)}
        waiting = [(start, False)]
        while waiting and self.steps_left > 0:
            here, was_strict = waiting.pop()
            for member in self._members[here]:
                for there, is_strict, _ in self._up[member]:
                    self.steps_left -= 1
                    state = (self._class[there], was_strict or is_strict)
                    if state[0] == end and (state[1] or not strict):
                        return True
                    if state[0] > end and state not in seen and state[0] not in self._fixed:
                        seen.add(state)
                        waiting.append(state)
        return False

    def _class_of(self, expression: Expression) -> int | None:
        number = self._numbers.get(expression)
        return None if number is None else self._class[number]

    def _value_of(self, expression: Expression) -> Constant | None:
        """The constant that an expression is known to equal."""
        if isinstance(expression, Constant):
            return expression
        here = self._class_of(expression)
        return None if here is None else self._value.get(here)

    def _bound_of(self, expression: Expression, bounds: Sequence[_Bound | None]) -> _Bound | None:
        if isinstance(expression, Constant):
            return (float(expression.value), False) if _is_number(expression) else None
        here = self._class_of(expression)
        return None if here is None else bounds[here]

    def _bounds(self) -> tuple[list[_Bound | None], list[_Bound | None]]:
        """For each class its least upper and its greatest lower constant bound."""
        classes = range(len(self._members))
        ceilings: list[_Bound | None] = [None for _ in classes]
        floors: list[_Bound | None] = [None for _ in classes]
        for here, value in self._fixed.items():
            ceilings[here] = floors[here] = (value, False)
        for here in classes:
            for there, strict in self._steps_from(here):
                bound = ceilings[there]
                if bound is not None:
                    found = (bound[0], bound[1] or strict)
                    now = ceilings[here]
                    if now is None or (found[0], not found[1]) < (now[0], not now[1]):
                        ceilings[here] = found
        for here in reversed(classes):
            bound = floors[here]
            if bound is not None:
                for there, strict in self._steps_from(here):
                    found, now = (bound[0], bound[1] or strict), floors[there]
                    if now is None or found > now:
                        floors[there] = found
        return ceilings, floors

    def _steps_from(self, here: int) -> Iterable[tuple[int, bool]]:
        """The classes one edge above ``here``, and whether strictly."""
        for member in self._members[here]:
            for there, strict, _ in self._up[member]:
                if self._class[there] != here:
                    yield self._class[there], strict


def _components(
    up: Sequence[Sequence[tuple[int, bool, Clause | None]]],
) -> tuple[list[int], list[list[int]]]:
    """The component of each node, and Tarjan's strong components in reverse topological order."""
    component = [-1] * len(up)
    members: list[list[int]] = []
    index = [-1] * len(up)
    lowest = [0] * len(up)
    count = 0
    stack: list[int] = []
    for root in range(len(up)):
        if index[root] >= 0:
            continue
        path = [(root, iter(up[root]))]
        index[root] = lowest[root] = count
        count += 1
        stack.append(root)
        while path:
            node, steps = path[-1]
            for there, _, _ in steps:
                if index[there] < 0:
                    index[there] = lowest[there] = count
                    count += 1
                    stack.append(there)
                    path.append((there, iter(up[there])))
                    break
                if component[there] < 0:
                    lowest[node] = min(lowest[node], index[there])
            else:
                path.pop()
                if path:
                    below = path[-1][0]
                    lowest[below] = min(lowest[below], lowest[node])
                if lowest[node] == index[node]:
                    own: list[int] = []
                    while not own or own[-1] != node:
                        own.append(stack.pop())
                        component[own[-1]] = len(members)
                    members.append(own)
    return component, members


def _is_number(constant: Constant) -> bool:
    return not isinstance(constant.value, str) and not math.isnan(constant.value)


def _has_nan(comparison: Comparison) -> bool:
    return any(
        isinstance(side, Constant) and not isinstance(side.value, str) and math.isnan(side.value)
        for side in (comparison.left, comparison.right)
    )


def _upwards(comparison: Comparison) -> tuple[str, Expression, Expression]:
    operator = comparison.operator
    if operator in (">", ">="):
        return MIRRORED[operator], comparison.right, comparison.left
    return operator, comparison.left, comparison.right
