"""The groups of a match, formed from the events bound to its plain variables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from cepbench.patterns.model import Pattern, Variable
from tests.naive.concepts import TYPES
from tests.naive.values import Event, clause_true, in_window, share


def with_groups(
    pattern: Pattern,
    groups: list[Variable],
    binding: dict[str, Any],
    rows: list[Event],
    in_order: Callable[[dict[str, Any]], bool],
) -> Iterator[dict[str, Any]]:
    """The binding of the plain variables, with every choice of groups added.

    Parameters
    ----------
    groups : list of Variable
        Those of the branch.
    in_order : callable
        Whether a binding is in the order that the branch asks for.
    """
    choices = [
        [(group.name, chosen) for chosen in _choices(group, _fitting(group, pattern, binding, rows, in_order))]
        for group in groups
    ]  # fmt: skip
    for chosen in itertools.product(*choices):
        events = [position for _, positions in chosen for position in positions]
        if len(set(events)) == len(events):
            yield {**binding, **dict(chosen)}


def _choices(group: Variable, fitting: list[int]) -> list[tuple[int, ...]]:
    if isinstance(group.size, int):
        runs = range(len(fitting) - group.size + 1)
        return [tuple(fitting[i : i + group.size]) for i in runs]
    return [tuple(fitting)] if fitting or group.size == "*" else []


def _fitting(
    group: Variable,
    pattern: Pattern,
    binding: dict[str, Any],
    rows: list[Event],
    in_order: Callable[[dict[str, Any]], bool],
) -> list[int]:
    """The events that a group is made of, whatever its size."""
    bound = {name: rows[position] for name, position in binding.items()}
    times = [event["time"] for event in bound.values()]
    choosing = [
        clause
        for clause in pattern.conditions
        if clause.is_elementwise
        and group.name in clause.variables
        and set(clause.variables) <= {group.name, *binding}
    ]
    return [
        position
        for position, row in enumerate(rows)
        if group.type in row[TYPES]
        and position not in binding.values()
        and in_order({**binding, group.name: position})
        and in_window([*times, row["time"]], pattern.window)
        and share([*bound.values(), row], pattern.equivalences)
        and all(clause_true(clause, {**bound, group.name: [row]}) for clause in choosing)
    ]
