"""The columns of a table of events: its own, and those of attributes."""

from __future__ import annotations

from collections.abc import Collection

#: The columns of ``stream.to_pandas().reset_index()`` that are not attributes.
OWN = ("type", "time", "position")

_PREFIX = "attribute "


def attribute_column(name: str, own: Collection[str] = OWN) -> str:
    """The column of an attribute: no other attribute's, none of the table's own (in lower case)."""
    bare = name
    while bare.startswith(_PREFIX):
        bare = bare.removeprefix(_PREFIX)
    # Names in SQL ignore case.
    return _PREFIX + name if bare.lower() in own else name
