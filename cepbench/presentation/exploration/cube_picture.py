"""The cube of a workload as SVG: its queries in layers, the more general ones above."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from types import MappingProxyType

from markupsafe import Markup

from cepbench.markup import element, picture, shortened
from cepbench.planning.workloads.model import Workload

_LETTER, _LONGEST = 7.3, 24  # width of one letter at 12 px, and letters of a name that are shown
_HIGH, _GAP, _BETWEEN = 26.0, 46.0, 26.0  # height of a box, space below it and beside it
_MARGIN = 10.0
_CHOSEN = "#3b8ed0"

#: Dashes of a line by what the more specific query changes; the lines of others are solid.
_DASHES = {"concept": "7 3", "both": "7 3 2 3", "condition": "2 3", "nothing": "1 3"}

#: Key to the picture.
LEGEND = (
    "More general queries are above. Solid lines: the lower query has more items; dashed: lower "
    "concepts; dash-dotted: both; dotted: more conditions or a shorter window. Blue arrows: which "
    "matches are reused."
)


@dataclass(frozen=True)
class CubeLayout:
    """Where queries and lines are, in pixels.

    Attributes
    ----------
    boxes : mapping of str to (float, float)
        Query → left and upper corner; each box is ``wide`` and ``high``.
    lines : mapping of (str, str) to sequence of (float, float)
        General and specific query → the points of the line between them.
    changes : mapping of (str, str) to str
        In what they differ.
    """

    boxes: Mapping[str, tuple[float, float]]
    lines: Mapping[tuple[str, str], Sequence[tuple[float, float]]]
    changes: Mapping[tuple[str, str], str]
    wide: float
    high: float
    width: float
    height: float


def cube_layout(workload: Workload, labels: Mapping[str, str]) -> CubeLayout:
    """Place some queries of a workload in layers, each below all more general ones.

    ``labels`` are the texts of their boxes. Lines are those of direct refinements; of equal queries the
    first is above. Lines that pass a layer have a place of their own in it.
    """
    place = {query: number for number, query in enumerate(workload.patterns)}
    changes = {}
    for general, specific, change, direct in workload.refinements.itertuples(index=False):
        is_second = change == "nothing" and place[general] > place[specific]
        if direct and not is_second and {general, specific} <= labels.keys():
            changes[general, specific] = change
    layer = _layers(labels, changes)
    above: dict[str, list[str]] = {query: [] for query in labels}
    rows: list[list[str]] = [[] for _ in range(max(layer.values()) + 1)]
    for query in labels:
        rows[layer[query]].append(query)
    routes = {}
    for (general, specific), _ in changes.items():
        route = [general]
        for between in range(layer[general] + 1, layer[specific]):
            passing = f"{general}\n{specific}\n{between}"  # no name of a query
            rows[between].append(passing)
            above[passing] = [route[-1]]
            route.append(passing)
        above[specific].append(route[-1])
        routes[general, specific] = [*route, specific]
    order: dict[str, float] = {}
    for row in rows:
        # By the middle of those above, which crosses few lines.
        middle = {
            node: sum(order[it] for it in above[node]) / len(above[node]) if above[node] else 0.5
            for node in row
        }
        row.sort(key=middle.__getitem__)
        order |= {node: (number + 0.5) / len(row) for number, node in enumerate(row)}
    wide = _LETTER * max(4, *(len(shortened(its, _LONGEST)) for its in labels.values())) + 26
    width = 2 * _MARGIN + max(map(len, rows)) * (wide + _BETWEEN) - _BETWEEN
    boxes, points = {}, {}
    for number, row in enumerate(rows):
        step = (width - 2 * _MARGIN + _BETWEEN) / len(row)
        for column, node in enumerate(row):
            x = _MARGIN + (column + 0.5) * step - _BETWEEN / 2
            y = _MARGIN + number * (_HIGH + _GAP)
            points[node] = (x, y)
            if node in labels:
                boxes[node] = (x - wide / 2, y)
    lines = {}
    for pair, route in routes.items():
        (x1, y1), *inner, (x2, y2) = (points[node] for node in route)
        passed = [(x, y + end) for x, y in inner for end in (0.0, _HIGH)]
        lines[pair] = [(x1, y1 + _HIGH), *passed, (x2, y2)]
    height = 2 * _MARGIN + len(rows) * (_HIGH + _GAP) - _GAP
    return CubeLayout(boxes, lines, changes, wide, _HIGH, width, height)


def _layers(queries: Iterable[str], pairs: Collection[tuple[str, str]]) -> dict[str, int]:
    """The length of the longest path from above to each query."""
    above: dict[str, list[str]] = {query: [] for query in queries}
    for general, specific in pairs:
        above[specific].append(general)
    layer: dict[str, int] = {}
    for query in TopologicalSorter(above).static_order():
        layer[query] = 1 + max((layer[it] for it in above[query]), default=-1)
    return layer


def cube_svg(
    layout: CubeLayout,
    labels: Mapping[str, str],
    *,
    sources: Mapping[str, str | None] = MappingProxyType({}),
    tips: Mapping[str, str] = MappingProxyType({}),
    chosen: str | None = None,
) -> str:
    """The picture of a layout, an ``<svg>`` without ids, styles or scripts, in the colour of the text around it.

    Parameters
    ----------
    labels : mapping of str to str
        Query → the text of its box; without any only the lines are drawn.
    sources : mapping of str to (str or None)
        Query → the query whose matches it reuses.
    tips : mapping of str to str
        Query → its tooltip.
    chosen : str, optional
        The query whose box is filled.
    """
    lines = [
        element(
            "path", d=_path(points), fill="none", stroke="currentColor", stroke_opacity="0.5",
            stroke_dasharray=_DASHES.get(layout.changes[pair]),
        )
        for pair, points in layout.lines.items()
    ]  # fmt: skip
    arrows = [
        _arrow(layout, source, query)
        for query, source in sources.items()
        if source in layout.boxes and query in layout.boxes
    ]
    boxes = [
        _box(layout, query, label, tips.get(query, ""), is_chosen=query == chosen)
        for query, label in labels.items()
    ]
    return picture("cube of queries", layout.width, layout.height, *lines, *arrows, *boxes)


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A smooth curve, vertical at each point."""
    (x, y), *others = points
    parts = [f"M{x:.1f},{y:.1f}"]
    for x2, y2 in others:
        middle = (y + y2) / 2
        parts.append(f"C{x:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}")
        x, y = x2, y2
    return "".join(parts)


def _arrow(layout: CubeLayout, source: str | None, query: str) -> Markup:
    """From a query to one that reuses its matches, along their line if there is one."""
    assert source is not None
    points = layout.lines.get((source, query)) or [*layout.lines.get((query, source), ())][::-1]
    if not points:
        # Beside each other, or not direct: a line of its own.
        ends = [layout.boxes[source], layout.boxes[query]]
        is_down = ends[0][1] < ends[1][1]
        points = [
            (x + layout.wide / 2, y + layout.high * (number == (0 if is_down else 1)))
            for number, (x, y) in enumerate(ends)
        ]
    x, y = points[-1]
    towards = 7.0 if points[-2][1] < y else -7.0
    tip = f"{x:.1f},{y:.1f} {x - 4:.1f},{y - towards:.1f} {x + 4:.1f},{y - towards:.1f}"
    return element(
        "g",
        element("title", f"{query} reuses the matches of {source}"),
        element("path", d=_path(points), fill="none", stroke=_CHOSEN, stroke_width=2.5),
        element("polygon", points=tip, fill=_CHOSEN),
    )


def _box(layout: CubeLayout, query: str, label: str, tip: str, *, is_chosen: bool) -> Markup:
    x, y = layout.boxes[query]
    fill = {"fill": _CHOSEN, "fill_opacity": "0.25"} if is_chosen else {"fill": "none"}
    frame = element(
        "rect", x=x, y=y, width=layout.wide, height=layout.high, rx=4, stroke="currentColor", **fill
    )
    text = element("text", shortened(label, _LONGEST), x=x + layout.wide / 2, y=y + 17)
    return element("g", element("title", f"{query}: {tip}"), frame, text)
