"""A plan of reused matches as a diagram: queries in layers, each right of its sources."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from cepbench.diagram import Diagram, Line, Text, framed, layered, text_width
from cepbench.markup import shortened
from cepbench.planning.plans.reuse import Reuse

_LONGEST = 24  # letters of a name that are shown; the whole name is in the tooltip
_SLOWER = "#d55e00"
_ROW, _NOTE = 34.0, 17.0  # from one box to the next, and the line below a box


def reuse_diagram(
    steps: Sequence[Reuse],
    texts: Mapping[str, str],
    virtual: Collection[str] = (),
    *,
    notes: Mapping[str, str] = MappingProxyType({}),
    slower: Collection[str] = (),
) -> Diagram:
    """A box for each query, bold if it is computed from scratch, dashed if it is virtual.

    A line leads from each source of a query, with the method and what changes. ``texts`` has the
    patterns, for tooltips, ``notes`` a line below the box of a query. Lines of ``slower`` queries, which
    would be faster from scratch, are dashed, in another colour.
    """
    shown = {its.query: shortened(its.query, _LONGEST) for its in steps}
    labels = {its.query: f"{its.method}, {its.change}" for its in steps if its.source is not None}
    widths = [*map(text_width, shown.values()), *(text_width(its) for its in notes.values())]
    wide = max(widths) + 14
    column = wide + 30 + max((text_width(label) for label in labels.values()), default=0.0)
    at, _ = layered(shown, [(source, its.query) for its in steps for source in its.sources])
    boxes = {}
    for step in steps:
        place, depth = at[step.query]
        is_virtual = step.query in virtual
        box = framed(
            column * depth, (_ROW + _NOTE * bool(notes)) * place, shown[step.query], wide,
            stroke_width=2.5 if step.source is None else 1,
            stroke_dasharray="4 3" if is_virtual else None,
            tip=f"{step.query}: {texts[step.query]}; {step}{', virtual' * is_virtual}",
        )  # fmt: skip
        if note := notes.get(step.query):
            box = box.with_text(Text(box.x, box.at(0, 1)[1] + 14, note, opacity=0.8))
        boxes[step.query] = box
    lines = []
    for step in steps:
        tip = f"{step.query} {step}" + ("" if math.isnan(step.cost) else f", cost {step.cost:.4g}")
        look = {"stroke": _SLOWER, "stroke_dasharray": "4 3"} if step.query in slower else {}
        for source in step.sources:
            (x1, y1), (x2, y2) = boxes[source].at(1, 0), boxes[step.query].at(-1, 0)
            label = Text(x2 - 4, y2 - 4, labels[step.query], "end", opacity=0.8)
            ends = [(x1, y1), (x1 + 12, y1), (x1 + 12, y2), (x2, y2)]
            lines.append(Line(ends, texts=(label,), tip=tip, look={"stroke_opacity": 0.6, **look}))
    return Diagram("workload plan", [*boxes.values()], lines)
