"""An automaton as an SVG drawing, in the style of Figure 2 of [agrawal2008]_.

Begin and take edges are solid, ignore edges dashed; proceed edges, which consume no event, are
dotted with an open arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cepbench.engines.automata.states import Edge, State
from cepbench.markup import element, picture, shortened

_RADIUS = 22.0
_COLUMN = 150.0
_LINE = 106.0  # height of the states' centres
_LONGEST = 7  # letters of a state's name that are shown; the whole name is in the tooltip

#: Dashes of each kind of edge.
_DASHES = {"ignore": "6 4", "proceed": "1.5 3.5"}


def automaton_svg(
    states: Sequence[State],
    edges: Sequence[Edge],
    notes: Mapping[Edge, str] | None = None,
    contents: Sequence[str] = (),
) -> str:
    """Draw states in a line with their edges, as an ``<svg>`` element in the colour of the text
    around it.

    Formulas are tooltips; notes stand below the kinds of edges, and contents below the names of
    states.
    """
    notes = notes or {}
    parts: list[str] = []
    for number, state in enumerate(states):
        x = _x(number)
        rings = [_circle(x, _RADIUS), *([_circle(x, _RADIUS - 4)] * (state.kind == "final"))]
        within = contents[number] if number < len(contents) else ""
        y = _LINE if within else _LINE + 4
        name = element("text", shortened(state.name, _LONGEST), x=x, y=y, font_weight=600)
        small = element("text", within, x=x, y=_LINE + 12, font_size=9) if within else ""
        parts.append(element("g", element("title", state.name), *rings, name, small))
    # From nowhere to the start state.
    parts.append(_arrow([(_x(0) - _RADIUS - 28, _LINE), (_x(0) - _RADIUS, _LINE)], "begin"))
    parts += (_edge(edge, notes.get(edge, "")) for edge in edges)
    return picture("automaton", _x(len(states) - 1) + _RADIUS + 20, 2 * _LINE, *parts)


def _x(number: int) -> float:
    return 60.0 + _COLUMN * number


def _circle(x: float, radius: float) -> str:
    return element("circle", cx=x, cy=_LINE, r=radius, fill="none", stroke="currentColor")


def _edge(edge: Edge, note: str) -> str:
    """A line to the next state, or a loop: take above its state, ignore below."""
    here = _x(edge.state)
    if edge.target != edge.state:
        points = [(here + _RADIUS, _LINE), (_x(edge.target) - _RADIUS, _LINE)]
        middle, top = here + _COLUMN / 2, _LINE - 8
        bottom = _LINE + 16
    else:
        side = -1.0 if edge.kind == "take" else 1.0
        near, far = _LINE + side * (_RADIUS - 3), _LINE + side * (_RADIUS + 66)
        points = [(here - 10, near), (here - 34, far), (here + 34, far), (here + 10, near)]
        middle, bottom = here, _LINE + (101 if side > 0 else -78)
        top = bottom - 13 if side > 0 or note else bottom
    tip = element("title", f"{edge.kind}: {edge.formula}")
    label = element("text", edge.kind, x=middle, y=top)
    beside = element("text", note, x=middle, y=bottom, font_size=10, opacity="0.75") if note else ""
    opacity = "0.35" if edge.formula.never else None
    return element("g", tip, _arrow(points, edge.kind), label, beside, opacity=opacity)


def _arrow(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A line or, of four points, a curve, with an arrow at its end."""
    (x0, y0), (x1, y1), (x2, y2) = points[0], *points[-2:]
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    along = ((x2 - x1) / length, (y2 - y1) / length)
    # The line ends where the arrow begins.
    base = (x2 - 9 * along[0], y2 - 9 * along[1])
    corners = [
        (x2, y2),
        *((base[0] + side * along[1], base[1] - side * along[0]) for side in (-4.5, 4.5)),
    ]
    joined = " ".join(_point(*point) for point in (*points[1:-1], base))
    look = {"stroke": "currentColor", "stroke_width": 1.3}
    line = element(
        "path",
        d=f"M {_point(x0, y0)} {'C' if len(points) == 4 else 'L'} {joined}",
        fill="none",
        stroke_dasharray=_DASHES.get(kind),
        **look,
    )
    fill = "none" if kind == "proceed" else "currentColor"
    head = element("polygon", points=" ".join(_point(*c) for c in corners), fill=fill, **look)
    return line + head


def _point(x: float, y: float) -> str:
    return f"{x:.1f},{y:.1f}"
