"""Which events of a stream a match depends on: in time, and by an attribute that all of them share."""

from __future__ import annotations

from dataclasses import replace

from cepbench.patterns.equivalences import equated
from cepbench.patterns.expressions import Attribute, Clause
from cepbench.patterns.model import Kind, Pattern


def looks_back(pattern: Pattern) -> bool:
    """Whether a NOT or a group may have events before a match's first other item.

    A match then depends on the events from a window before its last event on, and otherwise on none
    before its first event. No match depends on events later than a window after its first one.
    """
    return any(branch.open_items(at_start=True) for branch in pattern.structure.alternatives())


def shared_keys(pattern: Pattern) -> tuple[str, ...]:
    """The attributes by whose values a stream can be divided, so that each part has its own matches.

    Equalities tie all variables to such an attribute, negated ones included. Under ``STRATEGY next``
    an event is to be compared when a run takes it: by ``[attr]``, or with an item before it if the first
    one is plain. A set that is compared when its loop has ended may have events of other values. Strict
    contiguity has none: events of other values come between. ``OUTPUT non_overlap`` selects within the
    values of all ``[attr]`` and of the attribute of partition contiguity, so only these divide it.
    """
    strategy = pattern.strategy
    if strategy.name == "strict_contiguity":
        return ()
    branches = [branch.with_partition() for branch in pattern.branches()]
    if strategy.name == "partition_contiguity":
        # What is adjacent depends on all events of a partition.
        candidates = [strategy.attribute]
    elif pattern.output != "all":
        candidates = list(pattern.equivalences)
    elif strategy.name == "next":
        candidates = [
            name
            for name in pattern.attributes
            if name in pattern.equivalences or all(_ties_in_order(its, name) for its in branches)
        ]
    else:
        candidates = list(pattern.attributes)
    return tuple(
        name
        for name in candidates
        if name is not None and all(_ties(branch, name) for branch in branches)
    )


def with_shared_keys(pattern: Pattern) -> Pattern:
    """A pattern without OR that has ``[attr]`` for the equalities that tie all its variables to attributes.

    Its matches are the same, under ``STRATEGY any`` and ``next``; else the pattern is returned as it is.
    """
    if pattern.strategy.name not in ("any", "next"):
        return pattern
    names = [name for name in shared_keys(pattern) if name not in pattern.equivalences]
    if not names:
        return pattern
    conditions = tuple(c for c in pattern.conditions if not any(_tied(c, name) for name in names))
    return replace(pattern, conditions=conditions, equivalences=(*pattern.equivalences, *names))


def _tied(clause: Clause, attribute: str) -> set[str]:
    """The two variables of whose events a condition equates an attribute; none for another condition."""
    sides = equated(clause)
    if any((its.name, its.element) != (attribute, "each") for its in sides):
        return set()
    return {its.variable for its in sides}


def _ties(branch: Pattern, attribute: str) -> bool:
    """Whether equalities make an attribute equal all over a match of a pattern without OR."""
    edges = [edge for clause in branch.conditions if (edge := _tied(clause, attribute))]
    planned = set(branch.planned_names)
    first = branch.planned_names[0]
    in_set = {Attribute(first, attribute, "previous"), Attribute(first, attribute)}
    connected = {first}
    for _ in planned:
        # Not through a negated variable or a group, of which a match may have no event.
        connected.update(*(edge for edge in edges if edge <= planned and edge & connected))
    kinds = {variable.name: variable.kind for variable in branch.variables}
    return (
        connected == planned
        and (
            len(planned) > 1
            or kinds[first] is Kind.PLAIN
            or in_set in map(equated, branch.conditions)
        )
        and all(
            any(name in edge and edge & planned for edge in edges) for name in {*kinds} - planned
        )
    )


def _ties_in_order(branch: Pattern, attribute: str) -> bool:
    """Whether the first item is plain, and an attribute of each further one is equal to that of one before it."""
    names = branch.planned_names
    edges = [_tied(clause, attribute) for clause in branch.conditions]
    first = next(variable for variable in branch.positive if variable.name == names[0])
    return first.kind is Kind.PLAIN and all(
        any({name, before} in edges for before in names[:place])
        for place, name in enumerate(names)
        if place
    )
