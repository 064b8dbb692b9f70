"""The tree of a plan with its partial matches.

The picture works on light and dark pages: everything has the colour of the surrounding text, except
two marks, which differ in shape as well as in colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cepbench.diagram import Diagram
from cepbench.planning.plans.drawing import Mark, tree_diagram
from cepbench.planning.plans.notes import shown_log
from cepbench.planning.plans.tree import Tree, leaves
from cepbench.presentation.explainer.columns import (
    MISSING,
    Row,
    colour_of,
    is_more,
    off_by,
    severity,
    short,
)

_THINNEST, _THICKEST = 1.0, 11.0
_DECADES = 3.0  # orders of magnitude between the thickest and the thinnest line


#: Legend of the picture of a plan that was run.
LEGEND = "Thicker lines carry more partial matches (logarithmic). ▲ more, ▼ fewer than expected."


def tree_picture(
    tree: Tree[str],
    table: Sequence[Row],
    *,
    measured: bool,
    longest: int = 14,
    largest: float | None = None,
    colour: str = "currentColor",
) -> Diagram:
    """The tree of one branch, whose rows are ``table``, with the ``longest`` names of that many letters.

    ``largest`` is the ln of the partial matches of the thickest line, by default the maximum of this tree:
    the lines of trees with an equal one are comparable. The lines have the ``colour``.
    """
    checked = _checked_at(table)
    rows = table[: 2 * len(leaves(tree)) - 1]
    notes = [
        [
            *filter(None, [_type_of(row, longest), row["operator"]]),
            *_lines(row, measured=measured),
            *checked.get(number, ()),
        ]
        for number, row in enumerate(rows)
    ]
    look = {
        "stroke": colour, "stroke_opacity": 0.35 if colour == "currentColor" else 0.6,
        "stroke_linecap": "round",
    }  # fmt: skip
    return tree_diagram(
        tree,
        notes,
        title="plan tree with partial matches",
        longest=longest,
        marks={
            number: Mark(
                "up" if is_more(row) else "down", 10.0 + 6.0 * severity(row), colour_of(row)
            )
            for number, row in enumerate(rows if measured else ())
            if severity(row)
        },
        lines=[
            {**look, "stroke_width": width}
            for width in _widths(table, measured=measured, largest=largest)
        ],
    )


def _type_of(row: Row, longest: int) -> str:
    """The type of a leaf, which its name does not tell."""
    text = row["types"] if row["kind"] == "event" else ""
    return text if len(text) <= longest + 1 else f"{text[:longest]}…"


def _lines(row: Row, *, measured: bool) -> list[str]:
    estimate = MISSING if math.isnan(row["log_estimated"]) else shown_log(row["log_estimated"])
    if estimate != MISSING and row["estimated"] < math.inf:
        estimate = short(row["estimated"])
    if not measured:
        return [estimate]
    if row["parent"] < 0:
        # Its rows are matches, which are not stored.
        lines = [f"{short(row['created'])} rows measured"]
        if not math.isnan(row["estimated_created"]):
            lines.insert(0, f"{short(row['estimated_created'])} rows expected")
    elif math.isnan(row["measured"]):
        return [f"{estimate} expected"]
    else:
        lines = [f"{estimate} expected", f"{short(row['measured'])} measured"]
    return [*lines, off_by(row)] if severity(row) else lines


def _widths(table: Sequence[Row], *, measured: bool, largest: float | None) -> list[float]:
    """Thickness of the line above each node, by the logarithm of its partial matches."""
    logs = [row["log_estimated"] for row in table]
    for number, row in enumerate(table if measured else ()):
        if not math.isnan(row["measured"]):
            logs[number] = math.log(row["measured"]) if row["measured"] > 0 else -math.inf
    known = [log for log in logs if math.isfinite(log)]
    thickest = max(known, default=0.0) if largest is None else largest
    reach = _DECADES * math.log(10.0)
    return [
        _THINNEST
        if math.isnan(log)
        else _THINNEST + (_THICKEST - _THINNEST) * max(0.0, 1 - (thickest - log) / reach)
        for log in logs
    ]


def _checked_at(table: Sequence[Row]) -> dict[int, list[str]]:
    """What is checked and formed at each node, a line for each negated variable and group."""
    words = {"negated": "no", "group": "group"}
    found: dict[int, list[str]] = {}
    for row in table:
        if row["kind"] in words:
            word = row["operator"] or words[row["kind"]]
            found.setdefault(row["parent"], []).append(f"{word} {row['variables']}")
    return found
