"""Selection strategies and outputs applied to all matches there are, one match after the other."""

from __future__ import annotations

from typing import Any

from cepbench.patterns.model import Pattern, Strategy
from tests.naive.values import Event, missing


def selected(
    strategy: Strategy,
    order: list[str],
    matches: list[tuple[int, dict[str, Any]]],
    rows: list[Event],
) -> list[tuple[int, dict[str, Any]]]:
    """Those of the any-match matches that the strategy leaves.

    Parameters
    ----------
    order : list of str
        The variables in the order of the pattern.
    matches : list of (branch, binding)
    """
    if strategy.name == "any":
        return matches
    if strategy.name == "consuming":
        return _consuming(order, matches)
    if strategy.name == "strict_contiguity":
        return [match for match in matches if _consecutive(events_of(match[1], order))]
    assert strategy.name == "partition_contiguity"
    return [
        match
        for match in matches
        if _contiguous_in_partition(events_of(match[1], order), strategy.attribute, rows)
    ]


def events_of(binding: dict[str, Any], order: list[str]) -> list[int]:
    """All positions of a match in the order of the pattern, sets written out."""
    found: list[int] = []
    for name in order:
        value = binding.get(name, ())
        found += value if isinstance(value, tuple) else (value,)
    return found


def _consecutive(positions: list[int]) -> bool:
    return sorted(positions) == list(range(min(positions), max(positions) + 1))


def _contiguous_in_partition(positions: list[int], attribute: str, rows: list[Event]) -> bool:
    value = rows[positions[0]][attribute]
    # A missing value equals nothing, so an event that lacks it is in no partition.
    partition = [position for position, row in enumerate(rows) if row[attribute] == value]
    return all(position in partition for position in positions) and _consecutive(
        [partition.index(position) for position in positions]
    )


def _consuming(
    order: list[str], matches: list[tuple[int, dict[str, Any]]]
) -> list[tuple[int, dict[str, Any]]]:
    def rank(match: tuple[int, dict[str, Any]]) -> tuple[int, list[tuple[int, ...]], int]:
        # A set is the tuple of its positions, so (0) comes before (0, 1); one event is a set of one.
        bound = [match[1][name] for name in order if name in match[1]]
        sets = [value if isinstance(value, tuple) else (value,) for value in bound]
        return max(events_of(match[1], order)), sets, match[0]

    used: set[int] = set()
    reported = []
    for match in sorted(matches, key=rank):
        positions = set(events_of(match[1], order))
        if not positions & used:
            used |= positions
            reported.append(match)
    return reported


def non_overlapping(
    pattern: Pattern,
    order: list[str],
    matches: list[tuple[int, dict[str, Any]]],
    rows: list[Event],
) -> list[tuple[int, dict[str, Any]]]:
    """Of matches that overlap in time within a partition the first one."""

    def rank(match: tuple[int, dict[str, Any]]) -> tuple:
        positions = events_of(match[1], order)
        bound = [match[1][name] for name in order if name in match[1]]
        sets = [value if isinstance(value, tuple) else (value,) for value in bound]
        return max(positions), -min(positions), len(positions), sets, match[0]

    names = [*pattern.equivalences]
    if pattern.strategy.name == "partition_contiguity":
        names.append(pattern.strategy.attribute)
    if pattern.strategy.name == "strict_contiguity":
        names = []
    ends: dict[tuple, int] = {}
    reported = []
    for match in sorted(matches, key=rank):
        positions = events_of(match[1], order)
        first = rows[min(positions)]
        partition = tuple("none" if missing(first[name]) else first[name] for name in names)
        if min(positions) > ends.get(partition, -1):
            ends[partition] = max(positions)
            reported.append(match)
    return reported
