"""An automaton as a diagram, in the style of Figure 2 of [agrawal2008]_.

Begin and take edges are solid, ignore edges dashed; proceed edges, which consume no event, are
dotted with an open arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from cepbench.diagram import Box, Diagram, Line, Text, text_width
from cepbench.engines.automata.states import Edge, State
from cepbench.markup import shortened

_GAP = 106.0  # between two states
_LONGEST = 7  # letters of a state's name that are shown; the whole name is in the tooltip

#: Dashes of each kind of edge.
_DASHES = {"ignore": "6 4", "proceed": "1.5 3.5"}


def automaton_diagram(
    states: Sequence[State],
    edges: Sequence[Edge],
    notes: Mapping[Edge, str] = MappingProxyType({}),
    contents: Sequence[str] = (),
) -> Diagram:
    """States in a line, and their edges with their formulas as tooltips.

    Notes stand below the kinds of edges, and contents below the names of states.
    """
    names = [shortened(state.name, _LONGEST) for state in states]
    size = max(44.0, *(text_width(name, is_bold=True) + 10 for name in names))
    look = {"fill": "none", "stroke": "currentColor"}
    boxes = []
    for number, (state, name) in enumerate(zip(states, names, strict=True)):
        x = number * (size + _GAP)
        within = contents[number] if number < len(contents) else ""
        texts = [Text(x, 0 if within else 4, name, is_bold=True)]
        texts += [Text(x, 14, within)] * bool(within)
        shape = "double" if state.kind == "final" else "circle"
        boxes.append(Box(x, 0.0, size, size, shape, tuple(texts), state.name, look))
    start = boxes[0].at(-1, 0)
    # From nowhere to the start state.
    lines = [Line([(start[0] - 28, 0.0), start], head="full", look={"stroke_width": 1.3})]
    lines += (_edge(boxes[e.state], boxes[e.target], e, notes.get(e, "")) for e in edges)
    return Diagram("automaton", boxes, lines)


def _edge(here: Box, there: Box, edge: Edge, note: str) -> Line:
    """A line to the next state, or a loop: take above its state, ignore below."""
    if here is not there:
        ends = [here.at(1, 0), there.at(-1, 0)]
        x, top, bottom = (ends[0][0] + ends[1][0]) / 2, -8.0, 16.0
    else:
        side = -1 if edge.kind == "take" else 1
        near, far = side * (here.height / 2 - 3), side * (here.height / 2 + 66)
        x = here.x
        ends = [(x - 10, near), (x - 34, far), (x + 34, far), (x + 10, near)]
        bottom = side * (here.height / 2 + 56) + (23 if side > 0 else 0)
        top = bottom - 13 if side > 0 or note else bottom
    return Line(
        ends,
        "L" if len(ends) == 2 else "C",
        "open" if edge.kind == "proceed" else "full",
        (Text(x, top, edge.kind), *[Text(x, bottom, note, opacity=0.75)] * bool(note)),
        f"{edge.kind}: {edge.formula}",
        {"stroke_width": 1.3, "stroke_dasharray": _DASHES.get(edge.kind)},
        0.35 if edge.formula.never else None,
    )
