"""E-Cube's graph of event types by its rules, and its stacks, event by event."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pandas as pd

from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Kind, Pattern
from tests.naive.concepts import types_of_event


def naive_edges(
    patterns: Mapping[str, Pattern], hierarchy: ConceptHierarchy | None
) -> set[tuple[str, str, str, int, int]]:
    """The edges (later type, earlier type, query, later place, earlier place) of sequences."""
    nodes = {v.type for pattern in patterns.values() for v in pattern.variables}
    return {
        (later, earlier, name, after, before)
        for name, pattern in patterns.items()
        for before, after in _in_sequence(pattern)
        for later, earlier in itertools.product(nodes, nodes)
        if pattern.variables[after].type in types_of_event(later, hierarchy)
        and pattern.variables[before].type in types_of_event(earlier, hierarchy)
    }


def _in_sequence(pattern: Pattern) -> Iterator[tuple[int, int]]:
    """Places of items without a positive one between them, of which not both are negated."""
    negated = [variable.kind is Kind.NEGATED for variable in pattern.variables]
    for before, after in itertools.combinations(range(len(negated)), 2):
        if not (negated[before] and negated[after]) and all(negated[before + 1 : after]):
            yield before, after


def naive_stacks(
    patterns: Mapping[str, Pattern], hierarchy: ConceptHierarchy | None, events: pd.DataFrame
) -> list[tuple[int, str, dict[str, int | None]]]:
    """The position, stack and pointers of each event that is stored at the end.

    Each event purges those that are too old before it is stored itself.
    """
    window = max(pattern.window.length for pattern in patterns.values())
    nodes = {v.type for pattern in patterns.values() for v in pattern.variables}
    edges = {edge[:2] for edge in naive_edges(patterns, hierarchy)}
    stored: list[tuple[int, int, str]] = []
    found = []
    for position, (own, time) in enumerate(zip(events["type"], events["time"], strict=True)):
        stored = [each for each in stored if time - each[1] <= window]
        types = types_of_event(own, hierarchy) & nodes
        if not types:
            continue
        # All others are above the most specific one.
        stack = max(types, key=lambda name: len(types_of_event(name, hierarchy)))
        pointers: dict[str, int | None] = {
            earlier: max((p for p, t, s in stored if s == earlier and t < time), default=None)
            for later, earlier in edges
            if later == stack
        }
        found.append((position, stack, pointers))
        stored.append((position, time, stack))
    kept = {position for position, _, _ in stored}
    return [
        (position, stack, {at: last if last in kept else None for at, last in pointers.items()})
        for position, stack, pointers in found
        if position in kept
    ]
