"""Which events of a stream a match depends on: in time, and by an attribute that all of them share."""

from __future__ import annotations

from cepbench.patterns.equivalences import equated
from cepbench.patterns.expressions import Attribute
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
    only ``[attr]`` does: other equalities may be tested when a run has ended its loop, with events
    of other values in it. Strict contiguity has none: events of other values come between.
    ``OUTPUT non_overlap`` selects within the values of all ``[attr]`` and of the attribute of
    partition contiguity, so only these divide it.
    """
    strategy = pattern.strategy
    if strategy.name == "strict_contiguity":
        return ()
    if strategy.name == "partition_contiguity":
        # What is adjacent depends on all events of a partition.
        candidates = [strategy.attribute]
    elif strategy.name == "next" or pattern.output != "all":
        candidates = list(pattern.equivalences)
    else:
        candidates = list(pattern.attributes)
    branches = [branch.with_partition() for branch in pattern.branches()]
    return tuple(
        name
        for name in candidates
        if name is not None and all(_ties(branch, name) for branch in branches)
    )


def _ties(branch: Pattern, attribute: str) -> bool:
    """Whether equalities make an attribute equal all over a match of a pattern without OR."""
    equal = [
        sides
        for sides in map(equated, branch.conditions)
        if {its.name for its in sides} == {attribute}
    ]
    edges = [
        {its.variable for its in sides}
        for sides in equal
        if {its.element for its in sides} == {"each"}
    ]
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
        and (len(planned) > 1 or kinds[first] is Kind.PLAIN or in_set in equal)
        and all(
            any(name in edge and edge & planned for edge in edges) for name in {*kinds} - planned
        )
    )
