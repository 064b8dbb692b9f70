"""A plan of a workload as an SVG drawing: tables of segments, and the connections of the queries."""

from __future__ import annotations

from collections.abc import Sequence

from cepbench.errors import shortened as cut
from cepbench.markup import element, picture, shortened
from cepbench.planning.plans.drawing import BOX_HEIGHT, LETTER, box
from cepbench.planning.plans.segments import Segment, SegmentTable, Step

_LONGEST = 16  # letters of an item that are shown; the whole text is in the tooltip
_ROW, _GAP = 46.0, 26.0

#: A column of the table of some number.
_Node = tuple[int, tuple[Step, ...]]


def workload_svg(tables: Sequence[SegmentTable]) -> str:
    """Draw the tables as trees of items, from left to right by the cuts of their queries.

    The name of a query is above its last item. An item that several queries use has a bold frame; a
    dashed line connects the segments of a query.

    The ``<svg>`` element is as that of :func:`~cepbench.planning.plans.drawing.tree_svg`.
    """
    levels: dict[int, list[int]] = {}
    for number, table in enumerate(tables):
        levels.setdefault(max(its.number for its in table.segments), []).append(number)
    place: dict[_Node, tuple[float, float]] = {}
    left, height = 20.0, 0.0
    letters = max(len(shortened(str(c[-1]), _LONGEST)) for t in tables for c in t.columns)
    wide = LETTER * max(letters, 3) + 10
    for level in sorted(levels):
        row = 0
        for number in levels[level]:
            row = _place(tables[number], number, row, left, wide + _GAP, place)
        deepest = max(len(column) for n in levels[level] for column in tables[n].columns)
        left += deepest * (wide + _GAP) + _GAP
        height = max(height, row * _ROW)
    lines, boxes = [], []
    ends = {
        (its.query, its.number): (number, its.steps)
        for number, table in enumerate(tables)
        for its in table.segments
    }
    connected: dict[tuple[_Node, _Node], list[str]] = {}
    for number, table in enumerate(tables):
        for column in table.columns:
            node = (number, column)
            if len(column) > 1:
                lines.append(_line(place[number, column[:-1]], place[node], wide))
            users = table.users(column)
            done = [u.query for u in users if u.steps == column and _is_last(u, ends)]
            boxes.append(_box(place[node], wide, column, users, done))
        for its in table.segments:
            if its.number:
                edge = (ends[its.query, its.number - 1], (number, its.steps[:1]))
                connected.setdefault(edge, []).append(its.query)
    floor = height
    for (one, other), queries in connected.items():
        (x1, y1), (x2, y2) = place[one], place[other]
        begin, end = (x1 + wide, y1 + BOX_HEIGHT / 2), (x2, y2 + BOX_HEIGHT / 2)
        if begin[0] < x2:
            path = _path(begin, "C", (begin[0] + 30, begin[1]), (x2 - 30, end[1]), end)
        else:  # back, below all items
            floor += 14
            out, back = begin[0] + 9, x2 - 12
            path = _path(
                begin, "L", (out, begin[1]), (out, floor), (back, floor), (back, end[1]), end
            )
        lines.append(_dashed(path, queries))
    return picture("workload plan", left, floor + 8, *lines, *boxes)


def _place(
    table: SegmentTable,
    number: int,
    row: int,
    left: float,
    step: float,
    place: dict[_Node, tuple[float, float]],
) -> int:
    """Place the columns of a table from a row on; returns the row after them."""
    children: dict[tuple[Step, ...], list[tuple[Step, ...]]] = {}
    for column in table.columns:
        children.setdefault(column[:-1], []).append(column)

    def put(column: tuple[Step, ...], row: int) -> int:
        place[number, column] = (left + (len(column) - 1) * step, 26 + row * _ROW)
        below = row
        for child in children.get(column, ()):
            below = put(child, below)
        return max(below, row + 1)

    for root in children[()]:
        row = put(root, row)
    return row


def _is_last(segment: Segment, ends: dict[tuple[str, int], _Node]) -> bool:
    return (segment.query, segment.number + 1) not in ends


def _line(one: tuple[float, float], other: tuple[float, float], wide: float) -> str:
    half = BOX_HEIGHT / 2
    return element(
        "line", x1=one[0] + wide, y1=one[1] + half, x2=other[0], y2=other[1] + half,
        stroke="currentColor", stroke_opacity="0.6",
    )  # fmt: skip


def _path(begin: tuple[float, float], command: str, *points: tuple[float, float]) -> str:
    listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f"M{begin[0]:.1f},{begin[1]:.1f}{command}{listed}"


def _dashed(path: str, queries: Sequence[str]) -> str:
    return element(
        "path", element("title", f"connected for {', '.join(queries)}"), d=path, fill="none",
        stroke="currentColor", stroke_dasharray="4 3", stroke_opacity="0.8",
    )  # fmt: skip


def _box(
    at: tuple[float, float],
    wide: float,
    column: tuple[Step, ...],
    users: Sequence[Segment],
    done: Sequence[str],
) -> str:
    """An item, and above it the queries that end with it."""
    (x, y), text = at, str(column[-1])
    tip = f"{text}: {', '.join(dict.fromkeys(u.query for u in users))}"
    parts = [*box(at, wide, shortened(text, _LONGEST), is_bold=len(users) > 1)]
    if done:
        names = cut(", ".join(done), 24)
        parts.append(element("text", names, x=x + wide / 2, y=y - 5, font_size=10, font_weight=600))
    return element("g", element("title", tip), *parts)
