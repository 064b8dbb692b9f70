"""A plan of a workload as a diagram: tables of segments, and the connections of the queries."""

from __future__ import annotations

from collections.abc import Sequence

from cepbench.diagram import Box, Diagram, Line, Text, curved, framed, text_width
from cepbench.errors import shortened as cut
from cepbench.markup import shortened
from cepbench.planning.plans.segments import SegmentTable, Step

_LONGEST = 16  # letters of an item that are shown; the whole text is in the tooltip
_ROW, _GAP = 46.0, 26.0

#: A column of the table of some number.
_Node = tuple[int, tuple[Step, ...]]


def workload_diagram(tables: Sequence[SegmentTable]) -> Diagram:
    """The tables as trees of items, from left to right by the cuts of their queries.

    The name of a query is above its last item. An item that several queries use has a bold frame; a
    dashed line connects the segments of a query.
    """
    levels: dict[int, list[int]] = {}
    for number, table in enumerate(tables):
        levels.setdefault(max(its.number for its in table.segments), []).append(number)
    shown = (shortened(str(c[-1]), _LONGEST) for t in tables for c in t.columns)
    wide = max(20.0, *map(text_width, shown)) + 14
    ends = {
        (its.query, its.number): (number, its.steps)
        for number, table in enumerate(tables)
        for its in table.segments
    }
    boxes: dict[_Node, Box] = {}
    left = 0.0
    for _, numbers in sorted(levels.items()):
        row = 0
        for number in numbers:
            table = tables[number]
            rows = _rows(table)
            for column, place in rows.items():
                users = table.users(column)
                x, y = left + (len(column) - 1) * (wide + _GAP), (row + place) * _ROW
                text = str(column[-1])
                box = framed(
                    x, y, shortened(text, _LONGEST), wide,
                    stroke_width=2.5 if len(users) > 1 else 1,
                    tip=f"{text}: {', '.join(dict.fromkeys(its.query for its in users))}",
                )  # fmt: skip
                done = [
                    its.query
                    for its in users
                    if its.steps == column and (its.query, its.number + 1) not in ends
                ]
                if done:
                    names = cut(", ".join(done), 24)
                    box = box.with_text(Text(x, y - 17, names, is_bold=True))
                boxes[number, column] = box
            row += max(rows.values()) + 1
        deepest = max(len(column) for n in numbers for column in tables[n].columns)
        left += deepest * (wide + _GAP) + _GAP
    lines = [
        Line((boxes[number, column[:-1]].at(1, 0), box.at(-1, 0)), look={"stroke_opacity": 0.6})
        for (number, column), box in boxes.items()
        if len(column) > 1
    ]
    connected: dict[tuple[_Node, _Node], list[str]] = {}
    for (query, number), (of, steps) in ends.items():
        if number:
            edge = (ends[query, number - 1], (of, steps[:1]))
            connected.setdefault(edge, []).append(query)
    floor = max(box.y for box in boxes.values()) + _ROW / 2
    for (one, other), queries in connected.items():
        begin, end = boxes[one].at(1, 0), boxes[other].at(-1, 0)
        passed = any(
            begin[0] < its.x < end[0] and abs(its.y - begin[1]) < _ROW for its in boxes.values()
        )
        if begin[0] < end[0] and not passed:
            points, bend = curved([begin, end]), "C"
        else:  # below all items
            floor += 10
            (x1, y1), (x2, y2) = (begin[0] + 9, begin[1]), (end[0] - 12, end[1])
            points, bend = [begin, (x1, y1), (x1, floor), (x2, floor), (x2, y2), end], "L"
        look = {"stroke_dasharray": "4 3", "stroke_opacity": 0.8}
        lines.append(Line(points, bend, tip=f"connected for {', '.join(queries)}", look=look))
    return Diagram("workload plan", [*boxes.values()], lines)


def _rows(table: SegmentTable) -> dict[tuple[Step, ...], int]:
    """The row of each column: the first that continues another one is beside it."""
    children: dict[tuple[Step, ...], list[tuple[Step, ...]]] = {}
    for column in table.columns:
        children.setdefault(column[:-1], []).append(column)
    rows: dict[tuple[Step, ...], int] = {}
    row = 0
    pending = children[()][::-1]
    while pending:
        column = pending.pop()
        rows[column] = row
        row += column not in children
        pending += children.get(column, [])[::-1]
    return rows
