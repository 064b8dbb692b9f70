"""An explanation in a notebook: a picture of each branch's tree, and the table.

The picture reads well on light and on dark pages: everything is in the colour of the text around
it but two marks, which differ in shape too, so that they need no colours to be told apart.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from cepbench.explainer.columns import (
    MISSING,
    Column,
    Row,
    is_more,
    off_by,
    severity,
    short,
)
from cepbench.explainer.text import groups_of, labelled
from cepbench.plans.drawing import placed_nodes
from cepbench.plans.notes import shown_log
from cepbench.plans.tree import Tree

_LETTER = 7.8  # pixels of a letter of a name, generous
_MOST_LEAVES = 14  # beyond it the picture is squeezed, and numbers are in the tooltips alone
_THINNEST, _THICKEST = 1.0, 11.0
_DECADES = 3.0  # from the thickest line down to the thinnest


@dataclass(frozen=True)
class _Room:
    """Pixels for a leaf, for a level, for the root's text above and to its right, below leaves."""

    column: float
    row: float
    top: float
    beside: float
    below: float


_LARGE = _Room(118.0, 78.0, 46.0, 150.0, 74.0)
_SMALL = _Room(54.0, 34.0, 16.0, 54.0, 42.0)  # for many pictures side by side
_SQUEEZED = _Room(40.0, 16.0, 46.0, 150.0, 30.0)

#: There was more than expected: a triangle that points up; less: one that points down.
_MORE, _LESS = "#d55e00", "#3b8ed0"

#: What the picture of a plan that was run means.
LEGEND = (
    "Lines: the thicker, the more partial matches are handed up (logarithmic). "
    "▲ more, ▼ fewer than expected."
)


def as_figure(tree: Tree[str], table: Sequence[Row], caption: str, *, measured: bool) -> str:
    """The tree of one branch as an inline SVG, partial matches beside its nodes.

    Parameters
    ----------
    tree : str or pair of trees
    table : sequence of mapping
        The rows of the branch; see :class:`~cepbench.explainer.explanation.Explanation`.
    caption : str
        May be empty.
    measured : bool
        Whether the plan was run.
    """
    heading = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return f'<figure style="margin:0.5em 0">{heading}{tree_picture(tree, table, measured=measured)}</figure>'


def tree_picture(
    tree: Tree[str],
    table: Sequence[Row],
    *,
    measured: bool,
    small: bool = False,
    largest: float | None = None,
    colour: str = "currentColor",
) -> str:
    """An ``<svg>`` element without ids, styles or scripts.

    Parameters
    ----------
    tree, table, measured
        As for :func:`as_figure`.
    small : bool
        Whether many of them stand side by side.
    largest : float, optional
        Logarithm of the partial matches of the thickest line; by default the most of this tree.
        Trees with the same one can be compared by their lines.
    colour : str
        Of the lines.
    """
    placed, edges = placed_nodes(tree)
    leaves = sum(bool(node.name) for node in placed)
    levels = placed[-1].height
    roomy = leaves <= _MOST_LEAVES
    room = (_SMALL if small else _LARGE) if roomy else _SQUEEZED
    # The root's text stands to its right, and a small tree is narrower than that.
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
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-opacity="{0.35 if colour == "currentColor" else 0.6}" '
            'stroke-linecap="round" '
            f'stroke-width="{widths[child]:.1f}"/>'
        )
    beside = {child: ("end", "start")[place % 2] for place, (_, child) in enumerate(edges)}
    for number, node in enumerate(placed):
        x, y = at(number)
        cells = table[number]
        lines = [*_lines(cells, measured=measured), *checked.get(number, ())]
        tip = "; ".join([cells["variables"], *lines])
        texts = []
        if node.name:
            texts.append(
                _text(x, y + 20, _shortened(node.name, int(room.column / _LETTER)), bold=True)
            )
            if roomy:
                texts += [_text(x, y + 36 + 14 * k, line) for k, line in enumerate(lines)]
        elif roomy:
            side = beside.get(number, "start")
            shift = -14 if side == "end" else 14
            texts += [
                _text(x + shift, y - 2 - 13 * k, line, side)
                for k, line in enumerate(reversed(lines))
            ]
        parts.append(
            f"<g><title>{html.escape(tip)}</title>{_mark(x, y, cells, measured)}{''.join(texts)}</g>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" style="max-width:100%;height:auto;overflow:visible" fill="currentColor" '
        'font-family="sans-serif" font-size="12" text-anchor="middle">'
        f"<title>plan tree with partial matches</title>{''.join(parts)}</svg>"
    )


def as_table(branches: Sequence[Sequence[Row]], columns: Sequence[Column]) -> str:
    """The same rows and columns as in the text, as an HTML table."""
    groups = "".join(
        f'<th colspan="{last - first}" style="text-align:right">{columns[first].group}</th>'
        for first, last in groups_of(columns)
    )
    heads = "".join(
        f'<th style="text-align:right;padding-left:1em">{column.name}</th>' for column in columns
    )
    rows = []
    for number, table in enumerate(branches):
        if len(branches) > 1:
            rows.append(
                f'<tr><th colspan="{len(columns) + 1}" style="text-align:left">'
                f"branch {number}</th></tr>"
            )
        for node, rail, label in labelled(table):
            cells = "".join(_cell(column, table[node]) for column in columns)
            rows.append(
                '<tr><td style="text-align:left;white-space:pre;font-family:monospace">'
                f"{html.escape(rail + label)}</td>{cells}</tr>"
            )
    return (
        f'<table class="dataframe"><thead><tr><th></th>{groups}</tr>'
        f'<tr><th style="text-align:left">node</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _cell(column: Column, row: Row) -> str:
    style = "text-align:right;padding-left:1em"
    if column.name == "off by" and severity(row):
        style += f";font-weight:bold;border-right:4px solid {_MORE if is_more(row) else _LESS}"
    if column.name in ("cost", "time"):
        share = row[f"{column.name}_share"]
        if not math.isnan(share):
            # A bar behind the number, so that the eye finds the large ones.
            bar = f"rgba(127,127,127,.35) {100 * share:.1f}%,transparent 0"
            style += f";background:linear-gradient(to left,{bar})"
    return f'<td style="{style}">{html.escape(column.shown(row))}</td>'


def _lines(row: Row, *, measured: bool) -> list[str]:
    """What stands beside a node."""
    estimate = MISSING if math.isnan(row["log_estimated"]) else shown_log(row["log_estimated"])
    if estimate != MISSING and row["estimated"] < math.inf:
        estimate = short(row["estimated"])
    if not measured:
        return [estimate]
    if row["parent"] < 0:
        # Its rows are matches, which are not kept.
        lines = [f"{short(row['created'])} rows measured"]
        if not math.isnan(row["estimated_created"]):
            lines.insert(0, f"{short(row['estimated_created'])} rows expected")
    elif math.isnan(row["measured"]):
        return [f"{estimate} expected"]
    else:
        lines = [f"{estimate} expected", f"{short(row['measured'])} measured"]
    return [*lines, off_by(row)] if severity(row) else lines


def _mark(x: float, y: float, row: Row, measured: bool) -> str:
    """A point; where the estimate is bad a triangle up for more, down for less than expected."""
    marks = severity(row) if measured else 0
    if not marks:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    size = 5.0 + 3.0 * marks
    way, colour = (-1, _MORE) if is_more(row) else (1, _LESS)
    corners = (
        f"{x - size:.1f},{y - way * size * 0.6:.1f} {x + size:.1f},{y - way * size * 0.6:.1f} "
        f"{x:.1f},{y + way * size:.1f}"
    )
    return f'<polygon points="{corners}" fill="{colour}"/>'


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
    """What each node checks, a line for each negated variable."""
    found: dict[int, list[str]] = {}
    for row in table:
        if row["kind"] == "negated":
            found.setdefault(row["parent"], []).append(f"no {row['variables']}")
    return found


def _text(x: float, y: float, text: str, anchor: str = "middle", *, bold: bool = False) -> str:
    look = 'font-weight="600" font-size="13"' if bold else 'opacity="0.85"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look} text-anchor="{anchor}">{html.escape(text)}</text>'


def _shortened(name: str, longest: int) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
