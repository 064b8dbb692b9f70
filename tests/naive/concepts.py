"""What an event is of, by climbing from its own type to the root."""

from __future__ import annotations

import pandas as pd

from cepbench.patterns.concepts import ConceptHierarchy
from tests.naive.values import Event

#: Beside the columns of an event: all that it is of.
TYPES = "all its types"


def rows_with_types(events: pd.DataFrame, hierarchy: ConceptHierarchy | None) -> list[Event]:
    """The events, each with what it is of under :data:`TYPES`."""
    rows = events.to_dict("records")
    for row in rows:
        row[TYPES] = types_of_event(row["type"], hierarchy)
    return rows


def types_of_event(own: str, hierarchy: ConceptHierarchy | None) -> set[str | None]:
    """The event's own type, every concept above it, and None for any type."""
    above = {} if hierarchy is None else hierarchy.mapping
    found: set[str | None] = {None}
    here = [own]
    while here:
        found.update(here)
        here = [name for name, below in above.items() if set(below).intersection(here)]
    return found


def path_of_type(own: str, hierarchy: ConceptHierarchy | None) -> list[str]:
    """The concepts above an event's own type, from the root on, and this type."""
    above = {} if hierarchy is None else hierarchy.mapping
    path = [own]
    while parents := [name for name, below in above.items() if path[0] in below]:
        path = parents + path
    return path
