"""The cube of a workload as a diagram: its queries in layers, the more general ones above."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cepbench.diagram import BOX_HEIGHT, Diagram, Line, curved, framed, layered, text_width
from cepbench.markup import shortened
from cepbench.planning.workloads.model import Workload

_LONGEST = 24  # letters of a name that are shown; the whole name is in the tooltip
_GAP, _BETWEEN = 46.0, 26.0  # space below a box and beside it
_CHOSEN = "#3b8ed0"

#: Dashes of a line by what the more specific query changes; the lines of others are solid.
_DASHES = {"concept": "7 3", "both": "7 3 2 3", "condition": "2 3", "nothing": "1 3"}

#: Key to the picture.
LEGEND = (
    "More general queries are above. Solid lines: the lower query has more items; dashed: lower "
    "concepts; dash-dotted: both; dotted: more conditions or a shorter window. Blue arrows: which "
    "matches are reused."
)


def cube_diagram(
    workload: Workload,
    labels: Mapping[str, str],
    *,
    sources: Mapping[str, Any] = MappingProxyType({}),
    chosen: str | None = None,
) -> Diagram:
    """Some queries of a workload in layers, each below all more general ones.

    Lines are those of direct refinements; of equal queries the first is above. A line that passes a layer
    has a place of its own in it. ``labels`` are the texts of the boxes by query, in the order of the boxes.
    An arrow leads to each query from its source in ``sources``, whose matches it reuses. The box of the
    ``chosen`` query is filled.
    """
    number = {query: place for place, query in enumerate(workload.patterns)}
    changes = {}
    for general, specific, change, direct in workload.refinements.itertuples(index=False):
        is_second = change == "nothing" and number[general] > number[specific]
        if direct and not is_second and {general, specific} <= labels.keys():
            changes[general, specific] = change
    at, routes = layered(labels, changes)
    shown = {query: shortened(label, _LONGEST) for query, label in labels.items()}
    wide = max(map(text_width, shown.values())) + 26
    column, row = wide + _BETWEEN, BOX_HEIGHT + _GAP
    boxes = {}
    for query, (place, depth) in at.items():
        filled = {"fill": _CHOSEN, "fill_opacity": 0.25} if query == chosen else {}
        tip = f"{query}: {workload.patterns[query]}"
        boxes[query] = framed(column * place, row * depth, shown[query], wide, tip=tip, **filled)
    half = BOX_HEIGHT / 2
    ends = {}
    for (general, specific), route in routes.items():
        passed = [(column * x, row * y + end) for x, y in route[1:-1] for end in (-half, half)]
        ends[general, specific] = [boxes[general].at(0, 1), *passed, boxes[specific].at(0, -1)]
    lines = [
        Line(
            curved(points, is_down=True), "C",
            look={"stroke_opacity": 0.5, "stroke_dasharray": _DASHES.get(changes[pair])},
        )
        for pair, points in ends.items()
    ]  # fmt: skip
    for query, source in sources.items():
        if source not in boxes or query not in boxes:
            continue
        points = ends.get((source, query)) or ends.get((query, source), [])[::-1]
        if not points:
            # Beside each other, or not direct: a line of its own.
            way = 1 if boxes[source].y < boxes[query].y else -1
            points = [boxes[source].at(0, way), boxes[query].at(0, -way)]
        tip = f"{query} reuses the matches of {source}"
        look = {"stroke": _CHOSEN, "stroke_width": 2.5}
        lines.append(Line(curved(points, is_down=True), "C", "full", tip=tip, look=look))
    return Diagram("cube of queries", [*boxes.values()], lines)
