"""What a match returns, column by column, from its events as plain dictionaries."""

from __future__ import annotations

from typing import Any

from cepbench.patterns.model import Aggregate, Attribute, Pattern
from tests.naive.values import Event, missing, value_of


def returned_row(
    pattern: Pattern, positions: tuple[Any, ...], rows: list[Event]
) -> tuple[Any, ...]:
    """The values of the RETURN clause for one match; None where one is missing.

    Parameters
    ----------
    positions : tuple
        Of the positive variables: a number, a tuple of them, or None where the branch has no such
        variable.
    rows : list of dict
        The events of the whole stream.
    """
    at = dict(zip(pattern.positive_names, positions, strict=True))
    bound = {
        name: [rows[p] for p in place] if isinstance(place, tuple) else rows[place]
        for name, place in at.items()
        if place is not None
    }
    return tuple(
        _value(column.value, at, bound) if set(column.variables) <= set(bound) else None
        for column in pattern.returns
    )


def _value(value: Any, at: dict[str, Any], bound: dict[str, Any]) -> Any:
    match value:
        case str():
            return at[value]
        case Attribute(variable, name, "each"):
            events = bound[variable]
            if isinstance(events, list):
                return tuple(_known(event[name]) for event in events)
            return _known(events[name])
        case Attribute(variable, name, "first" | "last" as element):
            events = bound[variable]
            return _known(events[0 if element == "first" else -1][name]) if events else None
        case Aggregate("count", attribute):
            return len(bound[attribute.variable])
    return _known(value_of(value, bound, {}))


def _known(value: Any) -> Any:
    return None if missing(value) else value
