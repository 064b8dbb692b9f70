"""An explanation in a notebook: a picture of each branch's tree, and the table.

The picture works on light and dark pages: everything has the colour of the surrounding text, except
two marks, which differ in shape as well as in colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from cepbench.markup import Html, element, picture, shortened
from cepbench.planning.plans.drawing import placed_nodes
from cepbench.planning.plans.notes import shown_log
from cepbench.planning.plans.tree import Tree
from cepbench.presentation.explainer.columns import (
    MISSING,
    NodeColumn,
    Row,
    is_more,
    off_by,
    severity,
    short,
)
from cepbench.presentation.explainer.text import groups_of, labelled

_LETTER = 7.8  # upper estimate of the pixels of a letter
_MOST_LEAVES = 14  # larger trees are drawn smaller, with numbers only in tooltips
_THINNEST, _THICKEST = 1.0, 11.0
_DECADES = 3.0  # orders of magnitude between the thickest and the thinnest line


class _Spacing(NamedTuple):
    """Pixels per leaf, per level, above the root and to its right, and below the leaves."""

    column: float
    row: float
    top: float
    beside: float
    below: float


_LARGE = _Spacing(118.0, 78.0, 46.0, 150.0, 74.0)
_SMALL = _Spacing(54.0, 34.0, 16.0, 54.0, 42.0)  # for many pictures side by side
_DENSE = _Spacing(40.0, 16.0, 46.0, 150.0, 30.0)

#: Colours of the triangles for more (up) and less (down) than expected.
_MORE, _LESS = "#d55e00", "#3b8ed0"

#: Legend of the picture of a plan that was run.
LEGEND = "Thicker lines carry more partial matches (logarithmic). ▲ more, ▼ fewer than expected."


def tree_picture(
    tree: Tree[str],
    table: Sequence[Row],
    *,
    measured: bool,
    small: bool = False,
    largest: float | None = None,
    colour: str = "currentColor",
) -> str:
    """The tree of one branch, whose rows are ``table``, as an ``<svg>`` without ids, styles or scripts.

    With ``small`` it is one of many pictures side by side. ``largest`` is the ln of the partial matches of
    the thickest line, by default the maximum of this tree: the lines of trees with an equal one are
    comparable. The lines have the ``colour``.
    """
    placed, edges = placed_nodes(tree)
    leaves = sum(bool(node.name) for node in placed)
    levels = placed[-1].height
    roomy = leaves <= _MOST_LEAVES
    room = (_SMALL if small else _LARGE) if roomy else _DENSE
    # The root's text is to its right and may be wider than the tree.
    width = max(room.column * leaves, room.column * (placed[-1].x + 0.5) + room.beside)
    height = room.top + room.row * levels + room.below
    checked = _checked_at(table)

    def at(number: int) -> tuple[float, float]:
        node = placed[number]
        return room.column * (node.x + 0.5), room.top + room.row * (levels - node.height)

    widths = _widths(table, measured=measured, largest=largest)
    parts = []
    for parent, child in edges:
        (x1, y1), (x2, y2) = at(parent), at(child)
        parts.append(
            element(
                "line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour,
                stroke_opacity="0.35" if colour == "currentColor" else "0.6",
                stroke_linecap="round", stroke_width=widths[child],
            )
        )  # fmt: skip
    beside = {child: ("end", "start")[place % 2] for place, (_, child) in enumerate(edges)}
    for number, node in enumerate(placed):
        x, y = at(number)
        cells = table[number]
        operator = [cells["operator"]] if cells["operator"] else []
        lines = [*operator, *_lines(cells, measured=measured), *checked.get(number, ())]
        tip = "; ".join([cells["variables"], *lines])
        texts = []
        if node.name:
            name = shortened(node.name, int(room.column / _LETTER))
            texts.append(
                element("text", name, x=x, y=y + 20, font_weight=600, font_size=13,
                        text_anchor="middle")
            )  # fmt: skip
            if roomy:
                texts += [_line(x, y + 36 + 14 * k, line) for k, line in enumerate(lines)]
        elif roomy:
            side = beside.get(number, "start")
            shift = -14 if side == "end" else 14
            texts += [
                _line(x + shift, y - 2 - 13 * k, line, side)
                for k, line in enumerate(reversed(lines))
            ]
        parts.append(element("g", element("title", tip), _mark(x, y, cells, measured), *texts))
    return picture(
        "plan tree with partial matches", width, height, *parts, style=";overflow:visible"
    )


def as_table(branches: Sequence[Sequence[Row]], columns: Sequence[NodeColumn]) -> str:
    """The rows and columns of the text as an HTML table."""
    return _TABLE(
        columns=columns,
        groups=[(columns[first].group, last - first) for first, last in groups_of(columns)],
        branches=[
            [
                (
                    rail + label,
                    [(_cell_style(c, table[node]), c.shown(table[node])) for c in columns],
                )
                for node, rail, label in labelled(table)
            ]
            for table in branches
        ],
    )


_TABLE = Html(
    """<table class="dataframe"><thead><tr><th></th>
{% for group, columns in groups %}
<th colspan="{{ columns }}" style="text-align:right">{{ group }}</th>
{% endfor %}
</tr><tr><th style="text-align:left">node</th>
{% for column in columns %}
<th style="text-align:right;padding-left:1em">{{ column.name }}</th>
{% endfor %}
</tr></thead><tbody>
{% for rows in branches %}
{% if branches | length > 1 %}
<tr><th colspan="{{ columns | length + 1 }}" style="text-align:left">branch {{ loop.index0 }}</th></tr>
{% endif %}
{% for label, cells in rows %}
<tr><td style="text-align:left;white-space:pre;font-family:monospace">{{ label }}</td>
{% for style, text in cells %}
<td style="{{ style }}">{{ text }}</td>
{% endfor %}
</tr>
{% endfor %}
{% endfor %}
</tbody></table>"""
)


def _cell_style(column: NodeColumn, row: Row) -> str:
    style = "text-align:right;padding-left:1em"
    if column.name == "off by" and severity(row):
        style += f";font-weight:bold;border-right:4px solid {_MORE if is_more(row) else _LESS}"
    if column.name in ("cost", "time"):
        share = row[f"{column.name}_share"]
        if not math.isnan(share):
            # A bar behind the number makes large ones easy to find.
            bar = f"rgba(127,127,127,.35) {100 * share:.1f}%,transparent 0"
            style += f";background:linear-gradient(to left,{bar})"
    return style


def _lines(row: Row, *, measured: bool) -> list[str]:
    """The lines of text beside a node."""
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


def _mark(x: float, y: float, row: Row, measured: bool) -> str:
    """A point, or for a marked estimate a triangle: up for more, down for less than expected."""
    marks = severity(row) if measured else 0
    if not marks:
        return element("circle", cx=x, cy=y, r=3.5)
    size = 5.0 + 3.0 * marks
    way, colour = (-1, _MORE) if is_more(row) else (1, _LESS)
    corners = (
        f"{x - size:.1f},{y - way * size * 0.6:.1f} {x + size:.1f},{y - way * size * 0.6:.1f} "
        f"{x:.1f},{y + way * size:.1f}"
    )
    return element("polygon", points=corners, fill=colour)


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


def _line(x: float, y: float, text: str, anchor: str = "middle") -> Markup:
    return element("text", text, x=x, y=y, opacity="0.85", text_anchor=anchor)
