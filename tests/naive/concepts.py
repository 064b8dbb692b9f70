"""What an event is of, by climbing from its own type to the root."""

from __future__ import annotations

from cepbench.patterns.concepts import ConceptHierarchy


def types_of_event(own: str, hierarchy: ConceptHierarchy | None) -> set[str | None]:
    """The event's own type, every concept above it, and None for any type."""
    above = {} if hierarchy is None else hierarchy.mapping
    found: set[str | None] = {None}
    here = [own]
    while here:
        found.update(here)
        here = [name for name, below in above.items() if set(below).intersection(here)]
    return found
