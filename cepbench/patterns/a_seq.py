"""A-Seq's queries as printed [qi2014]_: clauses in brackets, and parts that a query leaves out."""

from __future__ import annotations

import re

_CLAUSE = r"(?:where|group\s+by|agg|within)(?!\w)"
_PART = re.compile(
    rf"""
    '[^']*' | "[^"]*" | “[^”]*”  # texts and names in quotes stay as they are
    # "<" where no comparison can be: after a keyword, a bracket, a comma, or = and !=
    | (?: (?<!\w)(?:pattern|{_CLAUSE}) | [(,=] )\s*(?P<less><)(?=\s*[\w"([])
    | (?P<greater>>)(?=[\s\]]*\[?\s*(?:{_CLAUSE}|\Z))
    | (?P<opening>\[)(?P<clause>(?=\s*{_CLAUSE}))?
    | (?P<closing>\])
    """,
    re.IGNORECASE | re.VERBOSE,
)


def without_clause_brackets(text: str) -> str:
    """The text with blanks for the brackets ``[…]`` and ``<…>`` around and in its clauses.

    ``[id]`` in a condition stays. Positions do not change.
    """
    kept = list(text)
    opened: list[int | None] = []
    for part in _PART.finditer(text):
        for name in ("less", "greater"):
            if part[name]:
                kept[part.start(name)] = " "
        if part["opening"]:
            opened.append(part.start() if part["clause"] is not None else None)
        elif part["closing"] and opened:
            start = opened.pop()
            if start is not None:
                kept[start] = kept[part.start()] = " "
    return "".join(kept)
