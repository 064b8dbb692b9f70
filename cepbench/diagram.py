"""Diagrams of boxes and lines as SVG, and layouts for them.

A diagram is as large as its contents, is scaled down on a narrower page, has no ids, styles or
scripts, and the colour of the text around it, so that it reads well on light and on dark pages.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any, TypeVar
from unicodedata import east_asian_width

from markupsafe import Markup

from cepbench.markup import element

Point = tuple[float, float]
Node = TypeVar("Node", bound=Hashable)

#: Height of a framed box.
BOX_HEIGHT = 24.0

_MARGIN = 8.0
_HEAD = 9.0  # length of an arrow's head

#: Widths of characters, as parts of the font size, in DejaVu Sans: other common fonts are narrower.
_WIDTHS = {
    letter: width
    for width, letters in {
        0.3: "'IJijl", 0.35: " ,./:;\\|", 0.4: "()-[]ft", 0.45: "!r", 0.5: '"*_`–', 0.55: "?csz",
        0.6: "FLkvxy", 0.7: "ABCKRVXZ", 0.75: "NU", 0.8: "&DGHOQ", 0.85: "#+<=>^w~×÷→∞", 0.9: "M",
        1.0: "%@Wm…",
    }.items()
    for letter in letters
}  # fmt: skip


def text_width(text: str, size: float = 12.0, *, is_bold: bool = False) -> float:
    """Pixels that a text takes in a common sans-serif font, at most."""
    parts = (_WIDTHS.get(c, 1.0 if east_asian_width(c) in "FW" else 0.65) for c in text)
    return size * sum(parts) * (1.15 if is_bold else 1.0)


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text at a point of its base line; ``anchor`` is ``start``, ``middle`` or ``end``."""

    x: float
    y: float
    text: str
    anchor: str = "middle"
    size: int = 12
    is_bold: bool = False
    opacity: float | None = None

    @property
    def points(self) -> tuple[Point, Point]:
        """Opposite corners."""
        width = text_width(self.text, self.size, is_bold=self.is_bold)
        left = self.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        return (left, self.y - 0.8 * self.size), (left + width, self.y + 0.25 * self.size)

    def svg(self) -> Markup:
        return element(
            "text", self.text, x=self.x, y=self.y,
            text_anchor=None if self.anchor == "middle" else self.anchor,
            font_size=None if self.size == 12 else self.size,
            font_weight=600 if self.is_bold else None,
            opacity=None if self.opacity is None else str(self.opacity),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Box:
    """A shape around a point with texts in or beside it.

    ``shape`` is ``rect``, ``circle``, ``double`` (a circle in another one), ``up`` or ``down`` (a
    triangle), or empty for an invisible one; ``look`` has its SVG attributes, ``tip`` is its tooltip.
    """

    x: float
    y: float
    width: float
    height: float
    shape: str = "rect"
    texts: tuple[Text, ...] = ()
    tip: str = ""
    look: Mapping[str, Any] = field(default_factory=dict)

    def at(self, across: float, down: float) -> Point:
        """A point of it: (-1, -1) is its left and upper corner, (1, 0) the middle of its right side."""
        return self.x + across * self.width / 2, self.y + down * self.height / 2

    def with_text(self, text: Text) -> Box:
        """The box with another text."""
        return replace(self, texts=(*self.texts, text))

    @property
    def points(self) -> list[Point]:
        """Points that enclose the shape and its texts."""
        return [self.at(-1, -1), self.at(1, 1), *(p for text in self.texts for p in text.points)]

    def svg(self) -> Markup:
        (left, top), radius = self.at(-1, -1), self.width / 2
        match self.shape:
            case "rect":
                size = {"width": self.width, "height": self.height}
                parts = [element("rect", x=left, y=top, **size, rx=4, **self.look)]
            case "circle" | "double":
                radii = [radius, radius - 4] if self.shape == "double" else [radius]
                parts = [element("circle", cx=self.x, cy=self.y, r=r, **self.look) for r in radii]
            case "up" | "down":
                way = -1 if self.shape == "up" else 1
                corners = [self.at(-1, -way), self.at(1, -way), self.at(0, way)]
                parts = [element("polygon", points=_listed(corners), **self.look)]
            case _:
                parts = []
        return _group(self.tip, *parts, *(text.svg() for text in self.texts))


def framed(x: float, y: float, text: str, width: float = 0.0, **others: Any) -> Box:
    """A frame around a text; without a ``width`` it fits the text. Others are SVG attributes, or ``tip``."""
    tip = others.pop("tip", "")
    look = {"fill": "none", "stroke": "currentColor", **others}
    width = width or text_width(text) + 14
    return Box(x, y, width, BOX_HEIGHT, "rect", (Text(x, y + 4, text),), tip, look)


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; the texts beside it, its tooltip and its SVG attributes.

    ``bend`` is the letter of SVG's path commands: ``L`` straight, ``Q`` and ``C`` with one and two
    control points before each further point. ``head`` is that of an arrow: ``full``, ``open``, or none.
    """

    ends: Sequence[Point]
    bend: str = "L"
    head: str = ""
    texts: tuple[Text, ...] = ()
    tip: str = ""
    look: Mapping[str, Any] = field(default_factory=dict)
    opacity: float | None = None

    @property
    def points(self) -> list[Point]:
        """Points along it, and those that enclose its texts."""
        degree = {"L": 1, "Q": 2, "C": 3}[self.bend]
        found = [self.ends[0], *(p for text in self.texts for p in text.points)]
        for first in range(0, len(self.ends) - 1, degree):
            for step in range(1, 9):
                part = list(self.ends[first : first + degree + 1])
                while len(part) > 1:  # de Casteljau
                    part = [_between(*pair, step / 8) for pair in pairwise(part)]
                found += part
        return found

    def svg(self) -> Markup:
        look = {"stroke": "currentColor", **self.look}
        ends, parts = list(self.ends), []
        if self.head:
            (x1, y1), (x2, y2) = ends[-2:]
            length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
            ux, uy = (x2 - x1) / length, (y2 - y1) / length
            x, y = x2 - _HEAD * ux, y2 - _HEAD * uy
            # The line ends where an open head begins, and behind the tip of a full one.
            ends[-1] = (x, y) if self.head == "open" else (x2 - 2 * ux, y2 - 2 * uy)
            corners = [(x2, y2), (x + 4.5 * uy, y - 4.5 * ux), (x - 4.5 * uy, y + 4.5 * ux)]
            fill = look["stroke"] if self.head == "full" else "none"
            plain = {**look, "stroke_dasharray": None, "stroke_width": 1.3}
            parts.append(element("polygon", points=_listed(corners), **plain | {"fill": fill}))
        if self.bend == "L" and len(ends) == 2:
            (x1, y1), (x2, y2) = ends
            parts.insert(0, element("line", x1=x1, y1=y1, x2=x2, y2=y2, **look))
        else:
            path = f"M{_listed(ends[:1])}{self.bend}{_listed(ends[1:])}"
            parts.insert(0, element("path", d=path, fill="none", **look))
        texts = (text.svg() for text in self.texts)
        return _group(self.tip, *parts, *texts, opacity=self.opacity)


@dataclass(frozen=True)
class Diagram:
    """Boxes, and lines behind them; ``str`` is the ``<svg>``, whose accessible name is the title."""

    title: str
    boxes: Sequence[Box]
    lines: Sequence[Line] = ()

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left and upper corner, width and height, with a margin."""
        parts: list[Box | Line] = [*self.boxes, *self.lines]
        points = [point for part in parts for point in part.points] or [(0.0, 0.0)]
        xs, ys = zip(*points, strict=True)
        left, top = min(xs) - _MARGIN, min(ys) - _MARGIN
        return left, top, max(xs) + _MARGIN - left, max(ys) + _MARGIN - top

    def __str__(self) -> str:
        return str(self.__html__())

    def __html__(self) -> Markup:
        """The ``<svg>`` for templates, which do not escape it."""
        left, top, width, height = self.extent
        return element(
            "svg", element("title", self.title), *(part.svg() for part in self.lines),
            *(part.svg() for part in self.boxes), xmlns="http://www.w3.org/2000/svg", role="img",
            viewBox=f"{left:.0f} {top:.0f} {width:.0f} {height:.0f}", width=f"{width:.0f}",
            style="max-width:100%;height:auto", fill="currentColor", font_family="sans-serif",
            font_size=12, text_anchor="middle",
        )  # fmt: skip


def layered(
    nodes: Iterable[Node], edges: Collection[tuple[Node, Node]]
) -> tuple[dict[Node, Point], dict[tuple[Node, Node], list[Point]]]:
    """Place the nodes of an acyclic graph in layers, each behind all that lead to it.

    Points are (place in the layer, layer), places at least 1 apart. Each edge has the points of both its
    nodes, and between them one in each layer that it passes, which has a place for it.
    """
    given = list(nodes)
    before: dict[Any, list[Any]] = {node: [] for node in given}
    for one, other in edges:
        before[other].append(one)
    layer: dict[Any, int] = {}
    for node in TopologicalSorter(before).static_order():
        layer[node] = 1 + max((layer[it] for it in before[node]), default=-1)
    layers: list[list[Any]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node in given:
        layers[layer[node]].append(node)
    before = {node: [] for node in given}
    routes = {}
    for one, other in edges:
        route: list[Any] = [one]
        for depth in range(layer[one] + 1, layer[other]):
            route.append((one, other, depth))
            layers[depth].append(route[-1])
        for last, its in pairwise([*route, other]):
            before.setdefault(its, []).append(last)
        routes[one, other] = [*route, other]
    at: dict[Any, Point] = {}
    for depth, row in enumerate(layers):
        # In the middle of those before it, which crosses few lines, and beside each other.
        wanted = {it: sum(at[b][0] for b in before[it]) / (len(before[it]) or 1) for it in row}
        row.sort(key=wanted.__getitem__)
        places: list[float] = []
        for node in row:
            places.append(max(wanted[node], places[-1] + 1) if places else wanted[node])
        shift = (sum(wanted.values()) - sum(places)) / len(row) if depth else 0.0
        at |= {node: (place + shift, depth) for node, place in zip(row, places, strict=True)}
    return {it: at[it] for it in given}, {e: [at[it] for it in r] for e, r in routes.items()}


def curved(points: Sequence[Point], *, is_down: bool = False) -> list[Point]:
    """The control points of a smooth curve, horizontal (or vertical) at each point."""
    found = [points[0]]
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (x1 + x2) / 2, (y1 + y2) / 2
        both = [(x1, middle[1]), (x2, middle[1])] if is_down else [(middle[0], y1), (middle[0], y2)]
        found += [*both, (x2, y2)]
    return found


def _between(one: Point, other: Point, share: float) -> Point:
    return one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1])


def _listed(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _group(tip: str, *parts: Markup, opacity: float | None = None) -> Markup:
    """The parts as one element, with a tooltip if there is one."""
    if not tip and opacity is None:
        return Markup("").join(parts)
    title = element("title", tip) if tip else ""
    return element("g", title, *parts, opacity=None if opacity is None else str(opacity))
