"""Values of AGG after every event, by listing the matches and aggregating them each time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pandas as pd

from cepbench.patterns.model import Grouping, Kind, MatchAggregate, Pattern
from tests.naive.automaton import automaton_matches
from tests.naive.concepts import TYPES, path_of_type, rows_with_types
from tests.naive.matcher import naive_matches
from tests.naive.values import Event, clause_true, in_window, missing

Key = tuple[Any, ...]


class Match(NamedTuple):
    """The events of a match by variable, and its group."""

    events: dict[str, list[int]]
    positions: list[int]
    key: Key


class Row(NamedTuple):
    """The values of a group after an event, or at a time."""

    position: int | None
    time: int
    key: Key
    values: tuple[Any, ...]  # None where missing; sums of floats as fractions


def naive_rows(
    pattern: Pattern, events: pd.DataFrame, *, emit: str = "trigger", scope: str = "window"
) -> set[Row]:
    """The rows of ``emit`` over a whole stream.

    ``events`` has the columns ``type``, ``time`` (integers) and the attributes.
    """
    rows = rows_with_types(events, pattern.hierarchy)
    matches = list(_matches(pattern, events))
    found: set[Row] = set()
    seen: dict[Key, None] = {}
    nothing = _values(pattern, [], rows)
    before: dict[Key, tuple[Any, ...]] = {}
    for position, row in enumerate(rows):
        seen |= dict.fromkeys(m.key for m in matches if max(m.positions) == position)
        keys = _groups_of_trigger(pattern, row, seen) if emit == "trigger" else list(seen)
        for key in keys:
            counted = [
                match
                for match in matches
                if match.key == key and _counts(pattern, match, position, scope, rows)
            ]
            values = _values(pattern, counted, rows)
            if emit == "trigger" or values != before.get(key, nothing):
                found.add(Row(position, row["time"], key, values))
            before[key] = values
    return found


def naive_values(
    pattern: Pattern, events: pd.DataFrame, time: int, *, scope: str = "window"
) -> set[Row]:
    """The value of each group at a time."""
    rows = [row for row in rows_with_types(events, pattern.hierarchy) if row["time"] <= time]
    matches = [m for m in _matches(pattern, events) if max(m.positions) < len(rows)]
    seen: dict[Key, None] = dict.fromkeys(match.key for match in matches)
    if not pattern.group_by:
        seen[()] = None
    for row in rows:
        _groups_of_trigger(pattern, row, seen)
    return {
        Row(
            None,
            time,
            key,
            _values(
                pattern,
                [
                    match
                    for match in matches
                    if match.key == key
                    and (scope == "stream" or _is_active(pattern, match, time, rows))
                ],
                rows,
            ),
        )
        for key in seen
    }


def _matches(pattern: Pattern, events: pd.DataFrame) -> Iterator[Match]:
    """All matches but those without a group."""
    rows = rows_with_types(events, pattern.hierarchy)
    plain = pattern.without_aggregate()
    listed = (
        {found for _, found in automaton_matches(plain, events)}
        if pattern.strategy.name == "next"
        else naive_matches(plain, events)
    )
    for found in listed:
        bound: dict[str, list[int]] = {}
        for variable, value in zip(plain.positive, found, strict=True):
            if value is not None:
                bound[variable.name] = list(value) if isinstance(value, tuple) else [value]
        positions = [position for its in bound.values() for position in its]
        key = tuple(
            value_of_key(
                each,
                rows[positions[0] if each.variable is None else bound[each.variable][0]],
                pattern,
            )
            for each in pattern.group_by
        )
        if not any(map(missing, key)):
            yield Match(bound, positions, key)


def value_of_key(key: Grouping, row: Event, pattern: Pattern) -> Any:
    """The value of a key of GROUP BY at an event."""
    if isinstance(key.attribute, str):
        return row[key.attribute]
    path = path_of_type(row["type"], pattern.hierarchy)
    return path[-1] if key.attribute.level is None else path[: key.attribute.level + 1][-1]


def _groups_of_trigger(pattern: Pattern, row: Event, seen: dict[Key, None]) -> list[Key]:
    """The groups of which an event gives the value; those that it alone determines become seen."""
    found: dict[Key, None] = {}
    for branch in pattern.structure.alternatives():
        last = [v for v in branch.variables() if v.kind is not Kind.NEGATED][-1]
        bound = {last.name: [row] if last.is_set else row}
        if last.type not in row[TYPES] or not all(
            clause_true(clause, bound)
            for clause in pattern.conditions
            if clause.variables == (last.name,) and clause.is_elementwise
        ):
            continue
        own = [
            value_of_key(each, row, pattern) if each.variable in (None, last.name) else ...
            for each in pattern.group_by
        ]
        if any(value is not ... and missing(value) for value in own):
            continue
        if ... not in own:
            seen[tuple(own)] = None
        found |= {
            key: None
            for key in seen
            if all(mine in (..., its) for mine, its in zip(own, key, strict=True))
        }
    return list(found)


def _counts(pattern: Pattern, match: Match, position: int, scope: str, rows: list[Event]) -> bool:
    """Whether a match counts in the value after an event."""
    if scope == "trigger":
        return max(match.positions) == position
    return max(match.positions) <= position and (
        scope == "stream" or _is_active(pattern, match, rows[position]["time"], rows)
    )


def _is_active(pattern: Pattern, match: Match, time: int, rows: list[Event]) -> bool:
    return in_window([*(rows[p]["time"] for p in match.positions), time], pattern.window)


def _values(pattern: Pattern, matches: Sequence[Match], rows: list[Event]) -> tuple[Any, ...]:
    return tuple(_value(aggregate, matches, rows) for aggregate in pattern.aggregates)


def _value(aggregate: MatchAggregate, matches: Sequence[Match], rows: list[Event]) -> Any:
    if aggregate.variable is None:
        return len(matches)
    bound = [rows[p] for match in matches for p in match.events.get(aggregate.variable, ())]
    if aggregate.attribute is None:
        return len(bound)
    values = [row[aggregate.attribute] for row in bound if not missing(row[aggregate.attribute])]
    if aggregate.function == "COUNT":
        return len(values)
    return _total(aggregate.function, map(Fraction, values)) if values else None


def _total(function: str, given: Iterable[Fraction]) -> Fraction | float:
    values = list(given)
    if function == "AVG":
        return float(sum(values, Fraction(0)) / len(values))
    return {"SUM": sum, "MIN": min, "MAX": max}[function](values)  # type: ignore[return-value]
