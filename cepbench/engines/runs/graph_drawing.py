"""A graph of matches as an SVG drawing."""

from __future__ import annotations

import pandas as pd

from cepbench.markup import element, picture

_COLUMN, _ROW, _RADIUS, _BEND = 74.0, 40.0, 4.0, 44.0


def graph_svg(nodes: pd.DataFrame, pointers: pd.DataFrame) -> str:
    """Draw events as boxes and unions as dots, each to the right of what it points to.

    The tables are those of :class:`cepbench.engines.runs.compressed.CompressedMatches`. An event at which
    matches end has their number below it. The ``<svg>`` element has the colour of the text around it.
    """
    targets: dict[int, list[int]] = {node: [] for node in nodes["node"].tolist()}
    for node, target in zip(pointers["node"].tolist(), pointers["target"].tolist(), strict=True):
        targets[node].append(target)
    columns: dict[int, int] = {}
    rows: list[int] = []
    at: dict[int, tuple[float, float]] = {}
    for node, its in targets.items():
        # Whatever a node points to comes before it.
        column = columns[node] = 1 + max((columns[target] for target in its), default=-1)
        rows += [0] * (column + 1 - len(rows))
        at[node] = (_COLUMN * (column + 0.5), 24 + _ROW * rows[column])
        rows[column] += 1
    line = {"stroke": "currentColor", "stroke_opacity": "0.45", "fill": "none"}
    parts = []
    for node, its in targets.items():
        for target in its:
            (x1, y1), (x2, y2) = at[node], at[target]
            # A longer line bends, so that it does not seem to go through the nodes on its way.
            bend = _BEND * (columns[node] - columns[target] - 1)
            path = f"M{x1:.1f} {y1:.1f}Q{(x1 + x2) / 2:.1f} {(y1 + y2) / 2 + bend:.1f} {x2:.1f} {y2:.1f}"
            parts.append(element("path", d=path, **line))
    for row in nodes.to_dict("records"):
        x, y = at[row["node"]]
        tip = element("title", f"{row['kind']} {row['node']}, latest start {row['start']}")
        if row["matches"]:
            number = f"{row['matches']:,}"
            parts.append(element("text", number, x=x, y=y + 22, font_size=10, opacity="0.75"))
        if row["kind"] == "union":
            parts.append(element("g", tip, element("circle", cx=x, cy=y, r=_RADIUS)))
            continue
        box = element(
            "rect", x=x - 26, y=y - 11, width=52.0, height=22.0, rx=4, fill="Canvas",
            stroke="currentColor",
        )  # fmt: skip
        name = element("text", f"{row['variable']} {row['position']}", x=x, y=y + 4)
        parts.append(element("g", tip, box, name))
    width, height = _COLUMN * len(rows), _ROW * max(rows, default=0) + 20
    return picture("graph of matches", width, height, *parts)
