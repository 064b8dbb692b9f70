"""The cube of a workload: its steps lead to queries whose matches are those found alone; its picture."""

from __future__ import annotations

from itertools import combinations

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import EvaluationError, PatternError
from cepbench.planning.workloads.refinement import embeddings
from cepbench.presentation.exploration.cube import Cube, Move
from cepbench.presentation.exploration.cube_picture import cube_diagram
from tests.drawn_events import drawn_stream, normal
from tests.presentation.reporting.offline import read_page

HIERARCHY = cep.ConceptHierarchy({"All": {"C": ["A", "B"], "D": []}})
WORKLOAD = cep.Workload(
    {
        "q1": "PATTERN SEQ(C c, NOT(A n), D d) WITHIN 5 units",
        "q2": "PATTERN SEQ(A a, D d) WHERE a.x < d.x WITHIN 5 units",
        "q3": "PATTERN SEQ(C c, B b, D d) AGG COUNT WITHIN 5 units",
        "q4": "PATTERN SEQ(C c, KL(B k), D d) WITHIN 3 units",
        "q5": "PATTERN OR(A a, D d) WITHIN 5 units",
    },
    hierarchy=HIERARCHY,
)


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    return drawn_stream(200, "ABD", seed=3, x=normal)


def alone(cube: Cube, query: str) -> list[str]:
    only = cep.Workload({query: cube.workload.patterns[query]}, hierarchy=HIERARCHY)
    found = cep.evaluate(only, cube.stream, evaluator="lazy-nfa-instances")
    return sorted(map(str, found[query].arrow.to_pylist()))


def kept(cube: Cube, query: str) -> list[str]:
    return sorted(map(str, cube.results[query].arrow.to_pylist()))


def test_every_step_leads_to_a_query_with_its_own_matches(stream) -> None:
    cube = Cube(WORKLOAD, stream)
    seen = set()
    for query in ("q1", "q2", "q3", "q4"):
        assert kept(cube, query) == alone(cube, query) != []
        own = cube.workload.patterns[query]
        for move in cube.moves(query):
            seen.add((query, move.direction, move.label))
            taken = cube.take(query, move)
            other = cube.workload.patterns[taken]
            pair = (other, own) if move.direction == "roll up" else (own, other)
            assert embeddings(*pair, HIERARCHY)
            assert kept(cube, taken) == alone(cube, taken)
            assert move.matches in (None, len(kept(cube, taken)))
            # It is there now, and leads to itself.
            assert cube.take(query, move) == taken
    assert {
        ("q2", "roll up", "without A a"), ("q2", "roll up", "one level up"),
        ("q1", "roll up", "without NOT(A n)"), ("q1", "drill down", "c: A"),
        ("q1", "drill down", "n: C"), ("q3", "drill down", "c: B"),
    } <= seen  # fmt: skip
    assert ("q1", "roll up", "without C c") not in seen  # the gap without A would be wider
    assert cube.moves("q5") == []
    assert "q2.1" in cube.origins and cube.origins["q2.1"].startswith("q2, ")


def test_equal_queries_are_one(stream) -> None:
    """Whatever their variables are called."""
    cube = Cube(WORKLOAD, stream)
    (without_x,) = [m for m in cube.moves("q3") if m.label == "without B b"]
    first = cube.take("q3", without_x)
    same = cep.pattern_roll_up(cube.workload.patterns["q1"], 2)
    assert embeddings(same, without_x.pattern, HIERARCHY)
    assert cube.take("q1", Move("roll up", "by hand", same)) == first
    # As a neighbour it is offered once.
    labels = [move.label for move in cube.moves("q1")]
    assert first in labels and "without NOT(A n)" not in labels


def test_an_item_is_inserted(stream) -> None:
    cube = Cube(WORKLOAD, stream)
    added = cube.insert("q2", 2, "B b")
    assert str(cube.workload.patterns[added]).startswith("PATTERN SEQ(A a, B b, D d)")
    assert kept(cube, added) == alone(cube, added) != []
    with pytest.raises(PatternError, match="is no refinement"):
        cube.insert("q1", 2, "D e")
    with pytest.raises(EvaluationError, match="has no query 'q9'; it has q1, "):
        cube.insert("q9", 1, "B b")


def test_details(stream) -> None:
    cube = Cube(WORKLOAD, stream)
    for query in WORKLOAD.patterns:
        html = cube.details(query)
        read_page(html)
        assert f"{cube.results[query].metrics.matches:,} matches" in html
    first = cube.results["q2"].arrow.slice(0, 1).to_pylist()[0]
    assert f"<td>A {first['a']}</td><td>D {first['d']}</td>" in cube.details("q2")
    assert "The first 8." in cube.details("q2")
    days = cep.EventStream.from_pandas(
        pd.DataFrame(
            {"type": ["T", "D"], "time": pd.to_datetime(["2026-01-05 10:00:00.5", "2026-01-05 10:01:00.0"])}
        ),
        type="type", time="time",
    )  # fmt: skip
    timed = Cube(cep.Workload({"q": "PATTERN SEQ(T t, D d) WITHIN 5 minutes"}), days)
    assert "<td>T 2026-01-05 10:00:00.500</td><td>D 2026-01-05 10:01:00</td>" in timed.details("q")


def cube_of_types() -> cep.Workload:
    """Two items of five types in a hierarchy, with and without a third one."""
    types = ("All", "C", "A", "B", "D")
    return cep.Workload(
        {
            f"{one}{other}{more}": f"PATTERN SEQ({one} a, {other} b{more}) WITHIN 5 units"
            for one in types
            for other in types[:3]
            for more in ("", ", D z")
        },
        hierarchy=HIERARCHY,
    )


def test_the_picture_of_a_cube() -> None:
    workload = cube_of_types()
    labels = {query: f"{query}: 1" for query in workload.patterns}
    drawn = cube_diagram(workload, labels)
    boxes = dict(zip(labels, drawn.boxes, strict=True))
    for general, specific in workload.embeddings:
        assert boxes[general].y < boxes[specific].y
    for one, other in combinations(drawn.boxes, 2):
        assert abs(one.x - other.x) >= one.width or abs(one.y - other.y) >= one.height
    direct = workload.refinements.query("direct")
    pairs = zip(direct["general"], direct["specific"], strict=True)
    ends = {(boxes[one].at(0, 1), boxes[other].at(0, -1)) for one, other in pairs}
    assert {(line.ends[0], line.ends[-1]) for line in drawn.lines} == ends
    for line in drawn.lines:
        # Where it passes a layer, no box is.
        for x, y in line.ends[3:-1:3]:
            for box in drawn.boxes:
                assert abs(x - box.x) > box.width / 2 or abs(y - box.y) > box.height / 2


def test_the_picture() -> None:
    workload = cep.Workload(
        {
            "one": "PATTERN SEQ(A a, D d) WITHIN 5 units",
            "<same>": "PATTERN SEQ(A x, D y) WITHIN 5 units",
            "up": "PATTERN SEQ(C a, D d) WITHIN 5 units",
            "far": "PATTERN SEQ(D d) WITHIN 5 units",
            "other": "PATTERN SEQ(B b) WITHIN 5 units",
        },
        hierarchy=HIERARCHY,
    )
    labels = {query: query for query in workload.patterns}
    sources = {"one": "up", "<same>": "one", "up": "far", "far": None, "other": "gone"}
    drawn = cube_diagram(workload, labels, sources=sources, chosen="one")
    assert [box.texts[0].text for box in drawn.boxes] == list(labels)
    one, same, up, far, _ = drawn.boxes
    # Of equal queries the first is above, once.
    lines = [(line.ends[0], line.ends[-1]) for line in drawn.lines if not line.head]
    assert (one.at(0, 1), same.at(0, -1)) in lines and len(lines) == 4
    arrows = [(line.ends[0], line.ends[-1]) for line in drawn.lines if line.head]
    assert arrows == [
        (it.at(0, 1), its.at(0, -1)) for it, its in ((up, one), (one, same), (far, up))
    ]
    assert [box.tip for box in drawn.boxes if box.look["fill"] != "none"] == [
        f"one: {workload.patterns['one']}"
    ]


def test_of_many_queries_those_related_to_the_chosen_one(stream) -> None:
    """Up to 60 queries are drawn."""
    windows = {f"w{n}": f"PATTERN SEQ(A a, D d) WHERE a.x > {n} WITHIN 5 units" for n in range(55)}
    patterns = {**WORKLOAD.patterns, **windows}
    assert len(patterns) == 60
    for more in ({}, {"last": "PATTERN SEQ(B b, B e) WITHIN 1 units"}):
        cube = Cube(cep.Workload({**patterns, **more}, hierarchy=HIERARCHY), stream)
        embeddings = cube.workload.embeddings
        for chosen in ("q5", "q2"):
            related = {chosen} | {its for pair in embeddings if chosen in pair for its in pair}
            assert len(related) < 60
            assert set(cube.labels(chosen)) == (related if more else set(patterns))
    assert set(cube.labels("q5")) == {"q5"}
    read_page(cube._repr_html_())


def test_the_hierarchy_is_that_of_workload_or_stream(stream) -> None:
    plain = cep.Workload({"q": "PATTERN SEQ(C c, D d) WITHIN 5 units"})
    cube = Cube(plain, stream.with_hierarchy(HIERARCHY))
    assert "c: A" in [move.label for move in cube.moves("q")]
    with pytest.raises(cep.CepbenchError, match="another concept hierarchy"):
        Cube(WORKLOAD, stream.with_hierarchy(cep.ConceptHierarchy({"C": ["A"]})))
    with pytest.raises(cep.CepbenchError, match="no event of type 'C'"):
        Cube(plain, stream)
