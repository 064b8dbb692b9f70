"""Disjunctions of single leaves in ZStream's trees: joins made once, matches as those of a union."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.zstream.disjunctions import groups_of
from tests.engines.detection.checks import check, check_in_batches
from tests.engines.detection.strategies import Case, batches_of, event_frames, events_of, stream_of
from tests.naive.matcher import labelled_matches

Either = cep.Either

#: Patterns, and the items of their trees.
PATTERNS = (
    ("SEQ(OR(A a, B b), C c, D d)", (Either("a", "b"), "c", "d")),
    ("SEQ(C c, OR(A a, B b), D d)", ("c", Either("a", "b"), "d")),
    ("SEQ(C c, D d, OR(A a, B b))", ("c", "d", Either("a", "b"))),
    ("AND(OR(A a, B b), C c, D d)", (Either("a", "b"), "c", "d")),
    ("SEQ(OR(A a, A b), C c, D d)", (Either("a", "b"), "c", "d")),
    ("SEQ(C c, OR(A a, ANY b, B e), D d)", ("c", Either(Either("a", "b"), "e"), "d")),
    ("SEQ(OR(A a, B b), C c, OR(A d, D e))", (Either("a", "b"), "c", Either("d", "e"))),
    ("SEQ(OR(A a, B b), NOT(D n), C c, D d)", (Either("a", "b"), "c", "d")),
    ("SEQ(C c, NOT(B n), OR(A a, D b), NOT(C m))", ("c", Either("a", "b"))),
    ("AND(NOT(D n), SEQ(OR(A a, B b), C c))", (Either("a", "b"), "c")),
    ("OR(A a, B b)", (Either("a", "b"),)),
    ("SEQ(OR(A a, B b), C c, D d, C e)", (Either("a", "b"), "c", "d", "e")),
    ("SEQ(C c, D d, OR(A a, ANY b), C e)", ("c", "d", Either("a", "b"), "e")),
    ("SEQ(C c, OR(A a, A b), NOT(D n), B d, NOT(B m), C e)", ("c", Either("a", "b"), "d", "e")),
    ("SEQ(OR(A a, B b), C c, OR(A d, D e), C f)", (Either("a", "b"), "c", Either("d", "e"), "f")),
    ("AND(OR(A a, B b), SEQ(C c, D d), D e)", (Either("a", "b"), "c", "d", "e")),
)  # fmt: skip

CONDITIONS = (
    "c.x < d.x", "a.x > 0", "b.x > 0.5", "a.x < c.x AND b.x < c.x", "a.x < c.x",
    "a.y = c.y AND b.y = c.y", "n.x > c.x", "n.x > a.x AND n.x > b.x", "a.s = c.s AND b.s = c.s",
    "a.x + a.y < c.x + c.y AND b.x + b.y < c.x + c.y", "c.x > 0",
)  # fmt: skip


@st.composite
def disjunctions(draw: st.DrawFn) -> tuple[Case, Any]:
    """A pattern with a disjunction of leaves, a stream, and a tree."""
    text, items = draw(st.sampled_from(PATTERNS))
    known = {name for name in "abcdemn" if f" {name}" in text}
    able = [
        clause
        for clause in CONDITIONS
        if {name for name in "abcdemn" if f"{name}." in clause} <= known
    ]
    chosen = draw(st.lists(st.sampled_from(able), max_size=3, unique=True)) if able else []
    where = f"WHERE {' AND '.join(chosen)} " if chosen else ""
    window = draw(st.sampled_from([4, 8, 2, 20]))
    case = Case(
        cep.parse(f"PATTERN {text} {where}WITHIN {window} units"), draw(event_frames(most=20))
    )

    def over(part: list[Any]) -> Any:
        if len(part) == 1:
            return part[0]
        cut = draw(st.integers(1, len(part) - 1))
        return over(part[:cut]), over(part[cut:])

    return case, over(draw(st.permutations(items)))


@pytest.mark.kernel
@given(drawn=disjunctions(), data=st.data())
def test_the_matches_of_a_union(drawn: tuple[Case, Any], data: st.DataObject) -> None:
    case, tree = drawn
    expected = labelled_matches(case.pattern, case.events)
    plan = cep.TreePlan(tree)
    options = {
        "batch_size": data.draw(st.sampled_from([8192, 1, 3])),
        "hashing": data.draw(st.booleans()),
    }
    check(case, expected, plan, "zstream", options)
    batches = data.draw(batches_of(case.stream))
    restored = data.draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))
    check_in_batches(case, expected, plan, "zstream", batches, restored, options)
    given_by = {
        evaluator: cep.evaluate(
            case.pattern, case.stream, plan, evaluator=evaluator, output="arrow"
        ).matches
        for evaluator in ("zstream", "tree")
    }
    assert given_by["zstream"].equals(given_by["tree"])


def grouped(text: str, *trees: Any) -> list[list[int]]:
    """The groups of the branches of a pattern, by the alternatives of a tree, or by several trees."""
    pattern = cep.parse(f"PATTERN {text} WITHIN 10 units")
    plans = [part for tree in trees for part in cep.TreePlan(tree).alternatives()]
    return groups_of(pattern.branches(), plans)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("", [[0, 1]]),
        ("WHERE a.x < 1 AND c.x < d.x", [[0, 1]]),
        ("WHERE a.x < c.x AND b.x < c.x", [[0, 1]]),
        ("WHERE a.x < c.x", [[0], [1]]),
        ("WHERE a.x < c.x AND b.x <= c.x", [[0], [1]]),
        ("WHERE a.x < c.x AND b.y < c.x", [[0], [1]]),
    ],
)
def test_which_conditions_allow_it(text: str, groups: list[list[int]]) -> None:
    tree = (Either("a", "b"), ("c", "d"))
    assert grouped(f"SEQ(OR(A a, B b), C c, D d) {text}", tree) == groups


def test_which_patterns_and_plans_allow_it() -> None:
    left = ((Either("a", "b"), "c"), "d")
    assert grouped("SEQ(OR(A a, B b), C c, D d)", left) == [[0, 1]]
    # Plans that differ, whether the conditions do or not; plans that do not, of a union.
    assert grouped("SEQ(OR(A a, B b), C c)", ("a", "c"), ("c", "b")) == [[0], [1]]
    assert grouped("SEQ(OR(A a, B b), C c)", ("a", "c"), ("b", "c")) == [[0, 1]]
    # An event that may be at both places is not distinct by its side.
    assert grouped("AND(OR(A a, B b), B c)", (Either("a", "b"), "c")) == [[0], [1]]
    assert grouped("AND(OR(A a, B b), NOT(A n), C c)", (Either("a", "b"), "c")) == [[0], [1]]
    assert grouped("SEQ(OR(A a, B b), NOT(A n), B c)", (Either("a", "b"), "c")) == [[0, 1]]
    # Negations of one branch alone; sub-trees; not all choices.
    inside = "SEQ(OR(A a, SEQ(NOT(D n), B b)), C c)"
    assert grouped(inside, (Either("a", "b"), "c")) == [[0], [1]]
    joined = "SEQ(OR(A a, SEQ(B b, D d)), C c)"
    assert grouped(joined, (Either("a", ("b", "d")), "c")) == [[0], [1]]
    both = "SEQ(OR(A a, B b), OR(C c, D d))"
    tree = (Either("a", "b"), Either("c", "d"))
    assert grouped(both, tree) == [[0, 1, 2, 3]]
    assert grouped(f"{both} WHERE a.x < c.x AND b.x < c.x", tree) == [[0, 2], [1, 3]]
    assert grouped(f"{both} WHERE a.x < c.x", tree) == [[0], [1], [2], [3]]
    assert grouped("SEQ(OR(A a, B b), GROUP(D g, +), C c)", (Either("a", "b"), "c")) == [[0], [1]]


@pytest.mark.kernel
def test_joins_in_common_are_made_once() -> None:
    """Section 4.4.4: the disjunction is no operator that makes records."""
    events = events_of("A@1 B@2 C@3 D@4 C@5 D@6 B@7")
    text = "PATTERN SEQ(OR(A a, B b), C c, D d, B e) WITHIN 10 units"
    plan = cep.TreePlan((Either("a", "b"), (("c", "d"), "e")))
    results = {
        (output, timed): cep.evaluate(
            text, stream_of(events), plan, evaluator="zstream", output=output, node_times=timed
        )
        for output, timed in itertools.product(("count", "matches"), (False, True))
    }
    assert {result.metrics.matches for result in results.values()} == {6}
    for key, result in results.items():
        counted = key == ("count", False)
        assert result.metrics.partial_matches_created == (6 if counted else 12)
        assert result.metrics.peak_buffered_events == (9 if counted else 15)
    found = results["count", False]
    assert found.nodes[["branch", "variables", "created"]].to_numpy().tolist() == [
        [0, "a | b", 3], [0, "c", 2], [0, "d", 2], [0, "e", 2],
        [0, "c, d", 3], [0, "c, d, e", 3], [0, "a | b, c, d, e", 6],
    ]  # fmt: skip
    assert results["matches", False].nodes["branch"].tolist() == [0] * 7 + [1] * 7


@pytest.mark.kernel
@pytest.mark.parametrize("sides", [2, 3, 5])
def test_an_event_on_all_sides_with_little_room(sides: int) -> None:
    """Of one type; the rounds of latencies are longer than a batch."""
    items = ", ".join(f"A a{number}" for number in range(sides))
    pattern = f"PATTERN SEQ(OR({items}), C c, D d, E e) WITHIN 100 units"
    tree: Any = "a0"
    for number in range(1, sides):
        tree = Either(tree, f"a{number}")
    events = pd.DataFrame({"type": list("A" * 40 + "CDE"), "time": [1] * 40 + [2, 3, 4]})
    for latency, size in itertools.product((False, True), (1, 7, 1000)):
        result = cep.evaluate(
            pattern, stream_of(events), cep.TreePlan((tree, (("c", "d"), "e"))), evaluator="zstream",
            latency=latency, output="count", options={"batch_size": size},
        )  # fmt: skip
        assert result.metrics.matches == 40 * sides
