"""A tree plan as a diagram: leaves on one line, each parent above the middle of its children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cepbench.diagram import Box, Diagram, Line, Text, text_width
from cepbench.markup import Html, shortened
from cepbench.planning.plans.tree import Tree, leaves, post_order

#: A drawing below its caption.
FIGURE = Html(
    '<figure class="cep-plan"><figcaption>{{ caption }}</figcaption>{{ drawing }}</figure>'
)

_MOST_LEAVES = 20  # the numbers of larger trees are only in tooltips
_LEAST_ROW, _HEIGHT = 12.0, 640.0  # of a level, and of a large tree
_LINE = 13.0  # height of a line of text


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
    is_roomy = len(leaves(tree)) <= _MOST_LEAVES
    column, most, texts = 36.0, 0, []
    for node, its in zip(post_order(tree), notes, strict=True):
        shown = "" if isinstance(node, tuple) else shortened(node, longest)
        texts.append(shown)
        if shown:
            beside = [text_width(note, 10) for note in its if is_roomy]
            column = max(column, text_width(shown, is_bold=True) + 10, *(w + 10 for w in beside))
        else:
            most = max(most, len(its))
    x: list[float] = []
    height: list[int] = []
    side: dict[int, str] = {}
    edges: list[tuple[int, int]] = []
    pending: list[int] = []
    for number, node in enumerate(post_order(tree)):
        if isinstance(node, tuple):
            right, left = pending.pop(), pending.pop()
            edges += [(number, left), (number, right)]
            # Away from the line to the parent, which would cross the text.
            side |= {left: "end", right: "start"}
            x.append((x[left] + x[right]) / 2)
            height.append(1 + max(height[left], height[right]))
        else:
            x.append(column * height.count(0))
            height.append(0)
        pending.append(number)
    row = _LINE * most + 32 if is_roomy else max(_LEAST_ROW, min(46.0, _HEIGHT / height[-1]))
    boxes = []
    for number, (node, shown, its) in enumerate(zip(post_order(tree), texts, notes, strict=True)):
        mark = (marks or {}).get(number, Mark())
        at, y = x[number], -row * height[number]
        if shown:
            below = [Text(at, y + 18, shown, is_bold=True)]
            below += [Text(at, y + 32 + _LINE * k, note, size=10, opacity=0.8)
                      for k, note in enumerate(its if is_roomy else ())]  # fmt: skip
        else:
            anchor = side.get(number, "start")
            near = at + (-11 if anchor == "end" else 11)
            below = [Text(near, y - 2 - _LINE * k, note, anchor, size=10, opacity=0.8)
                     for k, note in enumerate(reversed(its if is_roomy else ()))]  # fmt: skip
        name = "" if isinstance(node, tuple) else node
        tip = ": ".join(filter(None, (name, "; ".join(its))))
        box = Box(at, y, mark.size, mark.size, mark.shape, tuple(below), tip, {"fill": mark.colour})
        boxes.append(box)
    looks = lines or [{"stroke_opacity": 0.45}] * len(boxes)
    return Diagram(
        title,
        boxes,
        [
            Line((boxes[parent].at(0, 0), boxes[child].at(0, 0)), look=looks[child])
            for parent, child in edges
        ],
    )
