"""Diagrams: texts have room, boxes are apart, lines lead from box to box, and all is within the picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from cepbench.diagram import Box, Diagram, Line, Text, curved, framed, layered, text_width
from cepbench.markup import Html

HOSTILE = '<script>alert("x")</script>'
FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"


@given(st.text([chr(code) for code in range(33, 127)], min_size=1, max_size=30))
def test_no_text_is_wider_than_its_room(text: str) -> None:
    for name, is_bold in (("DejaVuSans.ttf", False), ("DejaVuSans-Bold.ttf", True)):
        font = FontProperties(fname=str(FONTS / name))
        drawn = TextPath((0, 0), text.replace("$", r"\$"), size=12, prop=font).get_extents().width
        room = text_width(text, is_bold=is_bold)
        assert drawn <= room * 1.1 + 2
        assert is_bold or room <= 1.35 * drawn + 9 * len(text)


def test_room_is_as_wide_as_letters_are() -> None:
    assert text_width("WWWW") > 2 * text_width("illi")
    assert text_width("漢字") > text_width("ab") and text_width("a", 24) == 2 * text_width("a")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    size = draw(st.integers(1, 9))
    pairs = list(combinations(range(size), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return draw(st.permutations(range(size))), edges


@given(graphs())
def test_nodes_and_lines_have_places_of_their_own_in_layers(graph) -> None:
    nodes, edges = graph
    at, routes = layered(nodes, edges)
    assert list(at) == nodes and list(routes) == edges
    taken = defaultdict(list)
    for place, layer in at.values():
        taken[layer].append(place)
    for (one, other), route in routes.items():
        assert (route[0], route[-1]) == (at[one], at[other])
        assert [layer for _, layer in route] == list(range(at[one][1], at[other][1] + 1))
        for place, layer in route[1:-1]:
            taken[layer].append(place)
    assert sorted(taken) == list(range(len(taken)))
    for places in taken.values():
        assert all(other - one >= 1 - 1e-9 for one, other in pairwise(sorted(places)))


def test_a_chain_is_straight_and_a_source_is_in_the_middle_of_what_it_leads_to() -> None:
    at, _ = layered("abcde", [("a", "b"), ("a", "c"), ("c", "d"), ("d", "e")])
    assert at["a"][0] == (at["b"][0] + at["c"][0]) / 2
    assert at["c"][0] == at["d"][0] == at["e"][0]


def test_a_diagram_holds_all_its_parts() -> None:
    assert Diagram("none", []).extent == (-8, -8, 16, 16)
    text = Text(0, 0, "a rather long text", "end")
    box = framed(50, 60, "framed", tip=HOSTILE)
    arc = Line([(0, 0), (50, -100), (100, 0)], "Q")
    left, top, width, height = Diagram(HOSTILE, [box.with_text(text)], [arc]).extent
    assert left == pytest.approx(-text_width(text.text) - 8)
    # The apex of a quadratic curve is halfway to its control point.
    assert top == -58 and top + height == 60 + 12 + 8 and left + width == 108
    page = str(Diagram(HOSTILE, [box.with_text(text)], [arc]))
    root = ET.fromstring(page)
    assert root.attrib["viewBox"].split()[1] == "-58" and "<script" not in page
    assert [e.text for e in root.iter() if e.tag.endswith("}title")] == [HOSTILE, HOSTILE]
    drawing = Diagram(HOSTILE, [box.with_text(text)], [arc])
    assert Html("{{ drawing }}")(drawing=drawing) == str(drawing) and type(str(drawing)) is str


@pytest.mark.parametrize("shape", ["rect", "circle", "double", "up", "down", ""])
def test_shapes_are_within_their_boxes(shape: str) -> None:
    drawn = Box(10, 20, 8, 8, shape).svg()
    names = {"rect": 1, "circle": 1, "double": 2, "up": 1, "down": 1, "": 0}
    assert drawn.count("/>") == names[shape]
    if shape in ("up", "down"):
        corners = [tuple(map(float, it.split(","))) for it in re.findall(r"[\d.]+,[\d.]+", drawn)]
        tip = corners[2]
        assert tip == (10, 16 if shape == "up" else 24)
        assert all(6 <= x <= 14 and 16 <= y <= 24 for x, y in corners)


@pytest.mark.parametrize("head", ["full", "open"])
def test_the_tip_of_an_arrow_is_the_end_of_its_line(head: str) -> None:
    drawn = Line(curved([(0, 0), (50, 30)]), "C", head, look={"stroke_dasharray": "4 3"}).svg()
    (corners,) = re.findall(r'points="([^"]+)"', drawn)
    assert corners.split()[0] == "50.0,30.0"
    assert drawn.count("stroke-dasharray") == 1
    end = drawn.split(' d="')[1].split('"')[0].split()[-1]
    # A curve that is horizontal at its end.
    assert end == ("41.0,30.0" if head == "open" else "48.0,30.0")
