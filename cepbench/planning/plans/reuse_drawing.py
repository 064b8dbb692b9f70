"""A plan of reused matches as an SVG drawing: a forest of queries, each right of its source."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from cepbench.markup import element, picture, shortened
from cepbench.planning.plans.drawing import BOX_HEIGHT, LETTER, box
from cepbench.planning.plans.reuse import Reuse

_LONGEST = 24  # letters of a name that are shown; the whole name is in the tooltip
_SLOWER = "#d55e00"
_ROW, _GAP = 34.0, 74.0
_NOTE, _SMALL = 14.0, 5.4  # height of a line below a box, and width of one of its letters


def reuse_svg(
    steps: Sequence[Reuse],
    texts: Mapping[str, str],
    virtual: Collection[str] = (),
    *,
    notes: Mapping[str, str] = MappingProxyType({}),
    slower: Collection[str] = (),
) -> str:
    """Draw a box for each query, bold if it is computed from scratch, dashed if it is virtual.

    A line leads from each source of a query, with the method and what changes.

    Steps come after those of their sources; ``texts`` has the patterns, for tooltips, ``notes`` a
    line below the box of a query. Lines of ``slower`` queries, which would be faster from scratch,
    are dashed, in another colour. The ``<svg>`` element is as that of
    :func:`~cepbench.planning.plans.drawing.tree_svg`.
    """
    depths: dict[str, int] = {}
    below: dict[str | None, list[Reuse]] = {}
    for step in steps:
        # Of several sources it is right of the deepest.
        parent = max(step.sources, key=depths.__getitem__, default=None)
        depths[step.query] = 0 if parent is None else depths[parent] + 1
        below.setdefault(parent, []).append(step)
    wide = LETTER * max(3, *(len(shortened(its.query, _LONGEST)) for its in steps)) + 14
    wide = max([wide, *(_SMALL * len(note) + 6 for note in notes.values())])
    row = _ROW + _NOTE * bool(notes)
    place: dict[str, tuple[float, float]] = {}
    rows = 0
    pending = below[None][::-1]
    last: int | None = None
    while pending:
        step = pending.pop()
        depth = depths[step.query]
        # The first query computed from another one is beside it.
        rows += last is not None and depth <= last
        last = depth
        place[step.query] = (14 + depth * (wide + _GAP), 12 + rows * row)
        pending += below.get(step.query, ())[::-1]
    lines = [
        _line(place[one], place[its.query], wide, its, is_slower=its.query in slower)
        for its in steps
        for one in its.sources
    ]
    boxes = [_box(place[its.query], wide, its, texts, its.query in virtual) for its in steps]
    below_boxes = [
        element("text", note, x=place[query][0] + wide / 2, y=place[query][1] + BOX_HEIGHT + 11,
                font_size=9, opacity="0.8")
        for query, note in notes.items()
    ]  # fmt: skip
    width = 28 + wide + max(depths.values()) * (wide + _GAP)
    height = 24 + rows * row + BOX_HEIGHT + _NOTE * bool(notes)
    return picture("workload plan", width, height, *lines, *boxes, *below_boxes)


def _line(
    one: tuple[float, float],
    other: tuple[float, float],
    wide: float,
    step: Reuse,
    *,
    is_slower: bool,
) -> str:
    (x1, y1), (x2, y2) = (
        (one[0] + wide, one[1] + BOX_HEIGHT / 2),
        (other[0], other[1] + BOX_HEIGHT / 2),
    )
    tip = f"{step.query} {step}" + ("" if math.isnan(step.cost) else f", cost {step.cost:.4g}")
    path = f"M{x1:.1f},{y1:.1f}L{x1 + 12:.1f},{y1:.1f} {x1 + 12:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    label = f"{step.method}, {step.change}"
    look = (
        {"stroke": _SLOWER, "stroke_dasharray": "4 3"} if is_slower else {"stroke": "currentColor"}
    )
    return element(
        "g",
        element("title", tip),
        element("path", d=path, fill="none", stroke_opacity="0.6", **look),
        element("text", label, x=(x1 + 12 + x2) / 2, y=y2 - 4, font_size=9, opacity="0.8"),
    )


def _box(
    at: tuple[float, float], wide: float, step: Reuse, texts: Mapping[str, str], is_virtual: bool
) -> str:
    is_scratch = step.source is None
    frame, name = box(
        at, wide, shortened(step.query, _LONGEST), is_bold=is_scratch, is_dashed=is_virtual
    )
    tip = f"{step.query}: {texts[step.query]}; {step}{', virtual' if is_virtual else ''}"
    return element("g", element("title", tip), frame, name)
