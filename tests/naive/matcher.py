"""All matches by trying every combination of events, straight from the definition of a match.

A pattern's structure is gone through as it was written: an OR tries one item after the other, and
what was chosen at each OR says which branch a match is of. Nothing is rewritten beforehand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pandas as pd

from cepbench.patterns.model import Kind, Operator, Pattern, Structure, Variable
from tests.naive.concepts import TYPES, rows_with_types
from tests.naive.groups import with_groups
from tests.naive.selection import non_overlapping, selected
from tests.naive.values import Bound, Event, clause_true, in_window, share

#: Positions of a match by variable: a number, or for Kleene variables and groups a tuple of them.
Binding = dict[str, int | tuple[int, ...]]

#: What was chosen at each OR, in the order in which they were written.
Choices = tuple[int, ...]


class Found(NamedTuple):
    """One way to bind a part of a pattern."""

    choices: Choices
    part: Variable | Structure  # as written, but with one item for each OR
    binding: Binding  # negated variables are not bound, and groups not yet


def naive_matches(pattern: Pattern, events: pd.DataFrame) -> set[tuple]:
    """Positions of every match, in the order of the pattern's positive variables.

    ``events`` has the columns ``type``, ``time`` (integers) and the attributes; positions are row
    numbers, a Kleene variable's are a tuple, and those of a variable that a branch lacks None.
    """
    return {positions for _, positions in labelled_matches(pattern, events)}


def labelled_matches(pattern: Pattern, events: pd.DataFrame) -> set[tuple[int, tuple]]:
    """As :func:`naive_matches`, each with the number of the branch that it is of."""
    rows = rows_with_types(events, pattern.hierarchy)
    branch_of = _branches(pattern.structure)
    found: dict[frozenset, tuple[int, Binding]] = {}
    ways = _ways(pattern.structure, rows, pattern)
    for label, part, plain in sorted(ways, key=lambda way: way.choices):
        groups = [variable for variable in _variables(part) if variable.kind is Kind.GROUP]
        in_order = partial(_in_order, part, rows=rows, order=pattern.order)
        for binding in with_groups(pattern, groups, plain, rows, in_order) if groups else [plain]:
            if _is_match(pattern, part, binding, rows):
                # The same events for the same variables are the same match, whatever the branch.
                found.setdefault(frozenset(binding.items()), (branch_of[label], binding))
    order = list(dict.fromkeys(_positive(pattern.structure)))
    matches = selected(pattern.strategy, order, list(found.values()), rows)
    if pattern.output == "non_overlap":
        matches = non_overlapping(pattern, order, matches, rows)
    return {(branch, tuple(binding.get(name) for name in order)) for branch, binding in matches}


def _branches(structure: Structure) -> dict[Choices, int]:
    """The number of the branch that each choice comes to; equal branches have one number."""
    numbers: dict[Variable | Structure, int] = {}
    branch_of = {}
    for choices, part in _all_choices(structure):
        if isinstance(part, Variable):
            part = Structure(Operator.SEQ, (part,))
        branch_of[choices] = numbers.setdefault(part, len(numbers))
    return branch_of


def _all_choices(part: Variable | Structure) -> list[tuple[Choices, Variable | Structure]]:
    """All that can be chosen at the ORs, the last one changing fastest, and what is left then."""
    if isinstance(part, Variable):
        return [((), part)]
    if part.operator is Operator.OR:
        return [
            ((number, *choices), left)
            for number, item in enumerate(part.items)
            for choices, left in _all_choices(item)
        ]
    return [
        (
            tuple(itertools.chain(*(choices for choices, _ in chosen))),
            Structure(part.operator, tuple(left for _, left in chosen)),
        )
        for chosen in itertools.product(*map(_all_choices, part.items))
    ]


def _variables(part: Variable | Structure) -> Iterator[Variable]:
    if isinstance(part, Structure):
        for item in part.items:
            yield from _variables(item)
    else:
        yield part


def _positive(part: Variable | Structure) -> Iterator[str]:
    return (variable.name for variable in _variables(part) if variable.kind is not Kind.NEGATED)


def _ways(part: Variable | Structure, rows: list[Event], pattern: Pattern) -> Iterator[Found]:
    """All ways to bind distinct events of the right types, in order and within the window."""
    if isinstance(part, Variable):
        fitting = [position for position, row in enumerate(rows) if part.type in row[TYPES]]
        if part.kind in (Kind.NEGATED, Kind.GROUP):
            yield Found((), part, {})
        elif part.kind is Kind.KLEENE:
            for size in range(1, len(fitting) + 1):
                for chosen in itertools.combinations(fitting, size):
                    yield Found((), part, {part.name: chosen})
        else:
            for position in fitting:
                yield Found((), part, {part.name: position})
    elif part.operator is Operator.OR:
        for number, item in enumerate(part.items):
            for choices, chosen, binding in _ways(item, rows, pattern):
                yield Found((number, *choices), chosen, binding)
    else:
        joined: list[tuple[Choices, tuple[Variable | Structure, ...], Binding]] = [((), (), {})]
        for item in part.items:
            ways = list(_ways(item, rows, pattern))
            joined = [
                (choices + way.choices, (*parts, way.part), binding | way.binding)
                for choices, parts, binding in joined
                for way in ways
                if _go_together(part.operator, binding, way.binding, rows, pattern)
            ]
        for choices, parts, binding in joined:
            yield Found(choices, Structure(part.operator, parts), binding)


def _go_together(
    operator: Operator, before: Binding, here: Binding, rows: list[Event], pattern: Pattern
) -> bool:
    """Whether a match may have both: what is too late or too far apart stays so, whatever is added."""
    one, other = _positions(before), _positions(here)
    if not one or not other:
        return True
    if not set(one).isdisjoint(other):
        return False
    if operator is Operator.SEQ and not are_before(one, other, rows, pattern.order):
        return False
    return in_window([rows[position]["time"] for position in [*one, *other]], pattern.window)


def are_before(one: list[int], other: list[int], rows: list[Event], order: str) -> bool:
    """Whether all of some events are before all of others, in time or in the order of arrival."""
    if order == "arrival":
        return max(one) < min(other)
    return max(rows[p]["time"] for p in one) < min(rows[p]["time"] for p in other)


def _is_match(
    pattern: Pattern, part: Variable | Structure, binding: Binding, rows: list[Event]
) -> bool:
    return (
        bool(_positions(binding))
        and _fits(pattern, part, binding, rows, conditions_on=set(binding))
        and not is_forbidden(pattern, part, binding, rows)
    )


def is_forbidden(
    pattern: Pattern, part: Variable | Structure, binding: Binding, rows: list[Event]
) -> bool:
    """Whether an event of a negated item could be added to a match."""
    positions = _positions(binding)
    for negated in (v for v in _variables(part) if v.kind is Kind.NEGATED):
        for position, row in enumerate(rows):
            if negated.type not in row[TYPES] or position in positions:
                continue
            added = {**binding, negated.name: position}
            if _fits(pattern, part, added, rows, conditions_on={negated.name}):
                return True
    return False


def _fits(
    pattern: Pattern,
    part: Variable | Structure,
    binding: Binding,
    rows: list[Event],
    *,
    conditions_on: set[str],
) -> bool:
    """Window, order and those conditions that mention one of the given variables."""
    bound: Bound = {
        name: [rows[p] for p in value] if isinstance(value, tuple) else rows[value]
        for name, value in binding.items()
    }
    times = [rows[position]["time"] for position in _positions(binding)]
    return (
        in_window(times, pattern.window)
        and _in_order(part, binding, rows, pattern.order)
        and share([rows[position] for position in _positions(binding)], pattern.equivalences)
        and all(
            clause_true(clause, bound)
            for clause in pattern.conditions
            if conditions_on & set(clause.variables) and set(clause.variables) <= set(binding)
        )
    )


def _in_order(part: Variable | Structure, binding: Binding, rows: list[Event], order: str) -> bool:
    """Whether each item of a SEQ is after all items before it that are bound."""
    if isinstance(part, Variable):
        return True
    if not all(_in_order(item, binding, rows, order) for item in part.items):
        return False
    if part.operator is not Operator.SEQ:
        return True
    bound = [_positions_of(item, binding) for item in part.items]
    return all(
        are_before(x, y, rows, order) for x, y in itertools.combinations(filter(None, bound), 2)
    )


def _positions_of(part: Variable | Structure, binding: Binding) -> list[int]:
    if isinstance(part, Structure):
        return [position for item in part.items for position in _positions_of(item, binding)]
    return _positions({part.name: binding[part.name]}) if part.name in binding else []


def _positions(binding: Binding) -> list[int]:
    positions: list[int] = []
    for value in binding.values():
        positions += value if isinstance(value, tuple) else (value,)
    return positions
