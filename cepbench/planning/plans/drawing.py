"""A tree plan as a diagram: leaves on one line, each parent above the middle of its children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cepbench.diagram import Box, Diagram, Line, Text, text_width
from cepbench.markup import Html, shortened
from cepbench.planning.plans.tree import Tree, post_order

#: A drawing below its caption.
FIGURE = Html(
    '<figure class="cep-plan"><figcaption>{{ caption }}</figcaption>{{ drawing }}</figure>'
)

_MOST_LEAVES = 20  # the numbers of larger trees are only in tooltips
_LEAST_ROW, _HEIGHT = 12.0, 640.0  # of a level, and of a large tree
_LINE = 15.0  # height of a line of text


class Mark(NamedTuple):
    """The shape at a node and its size, for a :class:`~cepbench.diagram.Box`."""

    shape: str = "circle"
    size: float = 7.0
    colour: str = "currentColor"


def tree_diagram(
    tree: Tree[str],
    notes: Sequence[Sequence[str]],
    *,
    title: str = "plan tree",
    longest: int = 14,
    marks: Mapping[int, Mark] | None = None,
    lines: Sequence[Mapping[str, Any]] = (),
) -> Diagram:
    """The boxes of the nodes in post-order, and two lines of each inner node, to the left and the right.

    Parameters
    ----------
    notes : sequence of sequence of str
        Lines of text beside each node.
    longest : int
        Letters of a name that are shown; the whole name is in the tooltip.
    marks : mapping of int to Mark, optional
        Nodes that are no points.
    lines : sequence of mapping
        SVG attributes of the line above each node.
    """
    nodes = list(post_order(tree))
    names = ["" if isinstance(node, tuple) else node for node in nodes]
    is_roomy = sum(map(bool, names)) <= _MOST_LEAVES
    shown_notes = notes if is_roomy else [()] * len(nodes)
    leaves = [
        [text_width(shortened(name, longest), is_bold=True), *(text_width(n) for n in its)]
        for name, its in zip(names, shown_notes, strict=True)
        if name
    ]
    column = max(36.0, 10 + max(max(widths) for widths in leaves))
    x: list[float] = []
    height: list[int] = []
    side: dict[int, str] = {}
    edges: list[tuple[int, int]] = []
    pending: list[int] = []
    for number, name in enumerate(names):
        if name:
            x.append(column * height.count(0))
            height.append(0)
        else:
            right, left = pending.pop(), pending.pop()
            edges += [(number, left), (number, right)]
            # Away from the line to the parent, which would cross the text.
            side |= {left: "end", right: "start"}
            x.append((x[left] + x[right]) / 2)
            height.append(1 + max(height[left], height[right]))
        pending.append(number)
    most = max((len(its) for its, name in zip(notes, names, strict=True) if not name), default=0)
    row = _LINE * most + 32 if is_roomy else max(_LEAST_ROW, min(46.0, _HEIGHT / height[-1]))
    boxes = []
    for number, (name, its) in enumerate(zip(names, shown_notes, strict=True)):
        at, y = x[number], -row * height[number]
        anchor = "middle" if name else side.get(number, "start")
        near = at + {"end": -11, "start": 11, "middle": 0}[anchor]
        texts = [Text(at, y + 18, shortened(name, longest), is_bold=True)] if name else []
        for k, note in enumerate(its):
            # Below a leaf, and upwards from another node.
            base = y + 34 + _LINE * k if name else y - 2 - _LINE * (len(its) - 1 - k)
            texts.append(Text(near, base, note, anchor, opacity=0.8))
        mark = (marks or {}).get(number, Mark())
        tip = ": ".join(filter(None, (name, "; ".join(notes[number]))))
        look = {"fill": mark.colour}
        boxes.append(Box(at, y, mark.size, mark.size, mark.shape, tuple(texts), tip, look))
    looks = lines or [{"stroke_opacity": 0.45}] * len(boxes)
    drawn = [Line((boxes[p].at(0, 0), boxes[c].at(0, 0)), look=looks[c]) for p, c in edges]
    return Diagram(title, boxes, drawn)
