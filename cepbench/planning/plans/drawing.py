"""A tree plan as an SVG drawing that reads well on light and on dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cepbench.markup import Html, element, picture, shortened
from cepbench.planning.plans.tree import Tree, post_order

#: A drawing below its caption.
FIGURE = Html(
    '<figure class="cep-plan"><figcaption>{{ caption }}</figcaption>{{ drawing }}</figure>'
)

LETTER = 7.3  # width of one letter at 12 px, generous
BOX_HEIGHT = 22.0
_LONGEST = 14  # letters of a name that are shown; the whole name is in the tooltip
_HEIGHT_LIMIT = 640.0


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """The position of a node: ``x`` counts leaves, ``height`` levels above the leaves.

    ``name`` is empty for an inner node.
    """

    x: float
    height: int
    name: str


def placed_nodes(tree: Tree[str]) -> tuple[list[PlacedNode], list[tuple[int, int]]]:
    """Leaves on one line, each parent above the middle of its children.

    The nodes in post-order, and the edges from parent to child, the left child's before the right
    one's.
    """
    nodes: list[PlacedNode] = []
    edges: list[tuple[int, int]] = []
    leaf_count = 0
    without_parent: list[int] = []
    for node in post_order(tree):
        if isinstance(node, tuple):
            right, left = without_parent.pop(), without_parent.pop()
            height = 1 + max(nodes[left].height, nodes[right].height)
            edges += [(len(nodes), left), (len(nodes), right)]
            nodes.append(PlacedNode((nodes[left].x + nodes[right].x) / 2, height, ""))
        else:
            nodes.append(PlacedNode(float(leaf_count), 0, node))
            leaf_count += 1
        without_parent.append(len(nodes) - 1)
    return nodes, edges


def tree_svg(tree: Tree[str], labels: Sequence[str]) -> str:
    """Draw nested pairs of names: leaves on one line, each parent above the middle of its children.

    Labels, empty for none, stand beside the nodes, in post-order. The ``<svg>`` element has no ids,
    styles or scripts, and the colour of the text around it.
    """
    placed, edges = placed_nodes(tree)
    shown = [shortened(node.name, _LONGEST) for node in placed]
    longest = max(len(text) for text in (*shown, *labels))
    column = LETTER * max(longest, 3) + 10
    levels = placed[-1].height
    row = min(46.0, max(12.0, _HEIGHT_LIMIT / max(levels, 1)))
    # Labels of inner nodes would overlap in a compressed drawing.
    roomy = row >= 24
    width = column * sum(bool(node.name) for node in placed)
    height = row * levels + 62

    def at(index: int) -> tuple[float, float]:
        node = placed[index]
        return column * (node.x + 0.5), 22 + row * (levels - node.height)

    line = {"stroke": "currentColor", "stroke_opacity": "0.45"}
    parts = []
    for parent, child in edges:
        (x1, y1), (x2, y2) = at(parent), at(child)
        parts.append(element("line", x1=x1, y1=y1, x2=x2, y2=y2, **line))
    # Beside a node, away from the line to its parent, which would cross the text.
    beside = {child: ("end", "start")[number % 2] for number, (_, child) in enumerate(edges)}
    for index, label in enumerate(labels):
        name = placed[index].name
        x, y = at(index)
        described = ": ".join(text for text in (name, label) if text)
        tip = element("title", described) if described else ""
        if name:
            bold = element("text", shown[index], x=x, y=y + 14, font_weight=600)
            parts.append(element("g", tip, bold, _note(x, y + 30, label)))
        else:
            anchor = beside.get(index, "middle")
            shift = {"end": -8, "start": 8, "middle": 0}[anchor]
            near = _note(x + shift, y - (2 if shift else 8), label, anchor) if roomy else ""
            parts.append(element("g", tip, element("circle", cx=x, cy=y, r=3.5), near))
    return picture("plan tree", width, height, *parts)


def box(
    at: tuple[float, float], wide: float, text: str, *, is_bold: bool, is_dashed: bool = False
) -> tuple[str, str]:
    """A frame and the text in it."""
    x, y = at
    frame = element(
        "rect", x=x, y=y, width=wide, height=BOX_HEIGHT, rx=4, fill="none", stroke="currentColor",
        stroke_width=2.5 if is_bold else 1, stroke_dasharray="4 3" if is_dashed else None,
    )  # fmt: skip
    return frame, element("text", text, x=x + wide / 2, y=y + 15)


def _note(x: float, y: float, text: str, anchor: str = "middle") -> str:
    look = {"font_size": 10, "opacity": "0.75", "text_anchor": anchor}
    return element("text", text, x=x, y=y, **look) if text else ""
