"""A predicate graph as SVG: variables in a row, conditions as arcs above, time as arrows.

Arcs never hide a variable or another arc's label: wider arcs are higher, and arcs of equal width
have their apexes at different places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cepbench.markup import Html, element, picture, shortened
from cepbench.presentation.explainer.columns import Row, short

_COLUMN = 112.0  # pixels from one variable to the next
_RISE, _FALL = 34.0, 20.0  # height of an arc per variable passed, above and below
_CONDITION = "#3b8ed0"
_LONGEST = 14  # maximum length of a name

#: Key to the picture.
LEGEND = (
    "Blue arcs: conditions with their selectivities, the thicker the more selective. Grey arrows: "
    "temporal order. Larger circles: more events; dashed: negated; double: a set of events."
)


def graphs_html(nodes: Sequence[Row], edges: Sequence[Row]) -> str:
    """One picture per branch, and a table of the conditions.

    Parameters
    ----------
    nodes, edges : sequence of mapping
        The rows of :class:`~cepbench.presentation.exploration.predicate_graph.PredicateGraph`.
    """
    branches = sorted({row["branch"] for row in nodes})
    pictures = [
        graph_svg(*([row for row in rows if row["branch"] == branch] for rows in (nodes, edges)))
        for branch in branches
    ]
    filters = dict.fromkeys(
        (row["filter"], row["filter_selectivity"]) for row in nodes if row["filter"]
    )
    conditions = dict.fromkeys(
        (row["condition"], row["selectivity"]) for row in edges if row["kind"] == "condition"
    )
    lines = [(text, short(value)) for text, value in (*filters, *conditions)]
    return str(
        _PAGE(pictures=list(zip(branches, pictures, strict=True)), legend=LEGEND, lines=lines)
    )


_PAGE = Html(
    """<div class="cep-predicate-graph">
{% for branch, picture in pictures %}
<figure style="margin:0.5em 0">
{% if pictures | length > 1 %}<figcaption>branch {{ branch }}</figcaption>{% endif %}
{{ picture }}</figure>
{% endfor %}
<p><small>{{ legend }}</small></p>
{% if lines %}
<table class="dataframe"><thead><tr><th style="text-align:left">condition</th>
<th>selectivity</th></tr></thead><tbody>
{% for condition, selectivity in lines %}
<tr><td style="text-align:left">{{ condition }}</td>
<td style="text-align:right">{{ selectivity }}</td></tr>
{% endfor %}
</tbody></table>
{% else %}
<p>no conditions</p>
{% endif %}
</div>"""
)


def graph_svg(nodes: Sequence[Row], edges: Sequence[Row]) -> str:
    """The graph of one branch, an ``<svg>`` without ids, styles or scripts."""
    place = {row["variable"]: number for number, row in enumerate(nodes)}
    spans = {
        kind: [place[row["second"]] - place[row["first"]] for row in edges if row["kind"] == kind]
        for kind in ("condition", "time order")
    }
    top = 40 + _RISE * max(spans["condition"], default=0)
    lines = max(len(_below(row)) for row in nodes)
    bottom = 34 + 14 * lines
    deepest = max((span for span in spans["time order"] if span > 1), default=0)
    width = _COLUMN * len(nodes)
    height = top + bottom + (12 + _FALL * deepest if deepest else 0) + 8

    def x(name: str) -> float:
        return _COLUMN * (place[name] + 0.5)

    radius = _radii(nodes)
    parts, labels = [], []
    for row in edges:
        first, second = row["first"], row["second"]
        ends = (x(first), x(second))
        if row["kind"] == "condition":
            parts.append(_condition(row, ends, top))
            if not math.isnan(row["selectivity"]):
                shown = short(row["selectivity"])
                labels.append(element("text", shown, x=sum(ends) / 2, y=top - 22 - _rise(ends)))
        elif place[second] - place[first] == 1:
            parts.append(
                _arrow(
                    (ends[0] + radius[first] + 4, top),
                    (ends[1] - radius[second] - 4, top),
                    0.0,
                    row,
                )
            )
        else:
            fall = _FALL * abs(place[second] - place[first])
            parts.append(_arrow((ends[0], top + bottom), (ends[1], top + bottom), fall, row))
    for row in nodes:
        parts.append(_node(row, x(row["variable"]), top, radius[row["variable"]]))
    return picture("predicate graph", width, height, *parts, *labels)


def _rise(ends: tuple[float, float]) -> float:
    return _RISE * (ends[1] - ends[0]) / _COLUMN


def _condition(row: Row, ends: tuple[float, float], y: float) -> str:
    """An arc between two variables, with the condition as tooltip."""
    (x1, x2), rise = ends, _rise(ends)
    value = row["selectivity"]
    tip = f"{row['condition']}: selectivity {short(value)}"
    # The apex of a quadratic curve is halfway to its control point.
    path = (
        f"M{x1:.1f} {y - 17:.1f} Q{(x1 + x2) / 2:.1f} {y - 17 - 2 * rise:.1f} {x2:.1f} {y - 17:.1f}"
    )
    arc = element(
        "path", d=path, fill="none", stroke=_CONDITION, stroke_opacity="0.8",
        stroke_width=_thickness(value),
    )  # fmt: skip
    return element("g", element("title", tip), arc)


def _thickness(selectivity: float) -> float:
    """Line width: 1.5 for selectivity 1, up to 7.5 for 0.001."""
    if math.isnan(selectivity):
        return 1.5
    return 1.5 + 2 * min(3.0, -math.log10(max(selectivity, 1e-3)))


def _arrow(start: tuple[float, float], end: tuple[float, float], fall: float, row: Row) -> str:
    """A dashed arrow; with ``fall`` it is curved, below the variables it passes."""
    (x1, y1), (x2, y2) = start, end
    middle = ((x1 + x2) / 2, (y1 + y2) / 2 + 2 * fall)
    along = (x2 - middle[0], y2 - middle[1])
    length = math.hypot(*along)
    ux, uy = along[0] / length, along[1] / length
    back = (x2 - 8 * ux, y2 - 8 * uy)
    corners = (
        f"{x2:.1f},{y2:.1f} {back[0] - 4 * uy:.1f},{back[1] + 4 * ux:.1f} "
        f"{back[0] + 4 * uy:.1f},{back[1] - 4 * ux:.1f}"
    )
    path = f"M{x1:.1f} {y1:.1f} Q{middle[0]:.1f} {middle[1]:.1f} {back[0]:.1f} {back[1]:.1f}"
    line = element(
        "path", d=path, fill="none", stroke="currentColor", stroke_width="1.5",
        stroke_dasharray="5 3",
    )  # fmt: skip
    tip = element("title", row["condition"])
    return element("g", tip, line, element("polygon", points=corners), opacity="0.55")


def _node(row: Row, x: float, y: float, radius: float) -> str:
    look = {"fill": "currentColor", "fill_opacity": "0.12", "stroke": "currentColor"}
    if row["kind"] == "negated":
        look["stroke_dasharray"] = "3 3"
    radii = [radius, radius - 3] if row["kind"] == "kleene" else [radius]
    circles = [element("circle", cx=x, cy=y, r=r, **look) for r in radii]
    name = shortened(row["variable"], _LONGEST)
    texts = [element("text", name, x=x, y=y + 32, font_weight=600, font_size=13)]
    texts += [
        element("text", line, x=x, y=y + 46 + 14 * number, opacity="0.85")
        for number, line in enumerate(_below(row))
    ]
    tip = "; ".join([row["variable"], *_below(row), row["filter"]]).rstrip("; ")
    return element("g", element("title", tip), *circles, *texts)


def _below(row: Row) -> list[str]:
    """The lines below a variable's name."""
    before = {"negated": "no ", "kleene": "set of "}.get(row["kind"], "")
    lines = [shortened(before + row["type"], _LONGEST)]
    if not math.isnan(row["per_window"]):
        lines.append(f"{short(row['per_window'])} per window")
    if row["filter"]:
        value = row["filter_selectivity"]
        lines.append("filtered" if math.isnan(value) else f"filter passes {short(value)}")
    return lines


def _radii(nodes: Sequence[Row]) -> dict[str, float]:
    """Radii from 7 to 15 pixels, by the logarithm of the events per window."""
    known = [row["per_window"] for row in nodes if row["per_window"] > 0]
    most = max(known, default=1.0)
    found = {}
    for row in nodes:
        events = row["per_window"]
        share = math.log10(most / events) / 2 if events > 0 else 1.0
        found[row["variable"]] = 11.0 if math.isnan(events) else 15 - 8 * min(1.0, share)
    return found
