"""A graph of matches as a diagram."""

from __future__ import annotations

import pandas as pd

from cepbench.diagram import Box, Diagram, Line, Text, curved, framed, layered

_COLUMN, _ROW = 84.0, 40.0


def graph_diagram(nodes: pd.DataFrame, pointers: pd.DataFrame) -> Diagram:
    """Events as boxes and unions as points, each to the right of what it points to.

    The tables are those of :class:`cepbench.engines.runs.compressed.CompressedMatches`. An event at which
    matches end has their number below it.
    """
    edges = dict.fromkeys(zip(pointers["target"].tolist(), pointers["node"].tolist(), strict=True))
    at, routes = layered(nodes["node"].tolist(), edges)
    boxes = {}
    for row in nodes.to_dict("records"):
        place, depth = at[row["node"]]
        x, y = _COLUMN * depth, _ROW * place
        tip = f"{row['kind']} {row['node']}, latest start {row['start']}"
        if row["kind"] == "union":
            box = Box(x, y, 8.0, 8.0, "circle", tip=tip)
        else:
            box = framed(x, y, f"{row['variable']} {row['position']}", 56.0, tip=tip)
        if row["matches"]:
            box = box.with_text(Text(x, y + 23, f"{row['matches']:,}", size=10, opacity=0.75))
        boxes[row["node"]] = box
    lines = []
    for (target, node), route in routes.items():
        # In a layer that it passes, a line is level with the boxes.
        passed = [
            (_COLUMN * depth + end, _ROW * place)
            for place, depth in route[1:-1]
            for end in (-26, 26)
        ]
        points = [boxes[target].at(1, 0), *passed, boxes[node].at(-1, 0)]
        lines.append(Line(curved(points), "C", look={"stroke_opacity": 0.45}))
    return Diagram("graph of matches", [*boxes.values()], lines)
