"""Concept hierarchies: encoding, queries about names, and refused ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import HierarchyError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.parse import parse
from tests.naive.concepts import types_of_event

NASDAQ = ConceptHierarchy(
    {"Company": {"Computer": ["INTC", "MSFT", "DELL"], "Finance": ["QQQ", "FCF"]}, "AMAT": []}
)


def test_names_and_their_relatives() -> None:
    assert NASDAQ.names == (
        *("Company", "Computer", "INTC", "MSFT", "DELL", "Finance", "QQQ", "FCF"),
        "AMAT",
    )
    assert NASDAQ.roots == ("Company", "AMAT")
    assert NASDAQ.interval("Company") == (0, 7)
    assert NASDAQ.interval("Finance") == (5, 7)
    assert NASDAQ.interval("AMAT") == (8, 8)
    assert NASDAQ.parent("DELL") == "Computer"
    assert NASDAQ.parent("AMAT") is None
    assert NASDAQ.children("Company") == ("Computer", "Finance")
    assert NASDAQ.ancestors("DELL") == ("Computer", "Company")
    assert NASDAQ.leaves("Company") == ("INTC", "MSFT", "DELL", "QQQ", "FCF")
    assert NASDAQ.leaves("AMAT") == ("AMAT",)
    assert NASDAQ.below("Computer") == ("Computer", "INTC", "MSFT", "DELL")
    assert [NASDAQ.level(name) for name in ("Company", "Finance", "QQQ")] == [0, 1, 2]
    assert "QQQ" in NASDAQ
    assert "GOOG" not in NASDAQ
    assert not NASDAQ.is_a("GOOG", "Company")
    assert NASDAQ.is_a("GOOG", "GOOG")
    assert not NASDAQ.is_a("Company", "GOOG")


def test_equal_hierarchies_have_the_same_parents() -> None:
    same = ConceptHierarchy(
        {
            "AMAT": (),
            "Finance": ["FCF", "QQQ"],
            "Computer": ["INTC", "MSFT", "DELL"],
            "Company": ["Computer", "Finance"],
        }
    )
    assert same == NASDAQ
    assert hash(same) == hash(NASDAQ)
    assert same.names[:2] == ("AMAT", "Company")
    assert same != ConceptHierarchy({"Company": ["Computer"]})
    assert eval(repr(NASDAQ), {"ConceptHierarchy": ConceptHierarchy}) == NASDAQ


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"A": ["C"], "B": ["C"]}, "'C' has two parents, 'A' and 'B'"),
        ({"A": ["C", "C"]}, "'C' is listed twice below 'A'"),
        ({"A": {"B": ["A"]}}, "a circle: 'A' below 'B' below 'A'; no name may be below itself"),
        ({"A": ["A"]}, "a circle: 'A' below 'A'; no name"),
        ({"R": ["X"], "B": ["A", "C"], "C": ["B"]}, "a circle: 'B' below 'C' below 'B'; no name"),
        ({"A": "BC"}, r"the names below 'A' must be a list such as \[\"INTC\"\]"),
        ({"A": None}, "the names below 'A' must be a list"),
        ({"A": [1]}, "each name of a hierarchy must be a text"),
        ({"": []}, "each name of a hierarchy must be a text"),
        (["A"], "a concept hierarchy is a mapping"),
    ],
)
def test_refused_hierarchies(mapping: object, message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        ConceptHierarchy(mapping)  # type: ignore[arg-type]


def test_unknown_names() -> None:
    with pytest.raises(HierarchyError, match="no 'Compny'; did you mean 'Company'"):
        NASDAQ.interval("Compny")
    for method in ("parent", "children", "ancestors", "leaves", "below", "level"):
        with pytest.raises(HierarchyError, match="has no 'X'"):
            getattr(NASDAQ, method)("X")


@st.composite
def hierarchies(draw: st.DrawFn) -> ConceptHierarchy:
    """Hierarchies of up to seven names, whose parents are among the names before them."""
    names = draw(st.permutations("ABCDEFG"))[: draw(st.integers(0, 7))]
    mapping: dict[str, list[str]] = {name: [] for name in names}
    for place, name in enumerate(names):
        parent = draw(st.none() | st.integers(0, place - 1)) if place else None
        if parent is not None:
            mapping[names[parent]].append(name)
    return ConceptHierarchy(mapping)


@given(hierarchies())
def test_intervals_are_the_relation_that_climbing_gives(hierarchy: ConceptHierarchy) -> None:
    for name in (*hierarchy.names, "Z"):
        of = types_of_event(name, hierarchy)
        assert {c for c in (*hierarchy.names, "Z") if hierarchy.is_a(name, c)} == of - {None}
    assert ConceptHierarchy(hierarchy.mapping) == hierarchy


def test_patterns_under_a_hierarchy() -> None:
    pattern = parse("PATTERN AND(Company a, INTC b, QQQ c) WITHIN 5 units")
    under = pattern.with_hierarchy(NASDAQ)
    company, intel, qqq = under.variables
    assert under.overlap(company, intel)
    assert not under.overlap(intel, qqq)
    assert not pattern.overlap(company, intel)
    assert under.types == NASDAQ.below("Company")
    assert under != pattern
    assert under.with_hierarchy(None) == pattern
    assert str(under) == str(pattern)
    assert all(branch.hierarchy == NASDAQ for branch in under.branches())
    both = parse("PATTERN OR(Company a, AND(Finance b, AMAT c)) WITHIN 5 units")
    assert [b.hierarchy for b in both.with_hierarchy(NASDAQ).branches()] == [NASDAQ] * 2
    # Types with nothing below them mean the same without the hierarchy, which is kept all the same:
    # it knows types without events, and must not be another one than the stream's.
    leaves = parse("PATTERN SEQ(INTC a, AMAT b, X c) WITHIN 5 units")
    assert leaves.with_hierarchy(NASDAQ).hierarchy == NASDAQ
    assert not leaves.with_hierarchy(NASDAQ).reads_hierarchy and under.reads_hierarchy
    with pytest.raises(HierarchyError, match="must be a ConceptHierarchy, not a dict"):
        pattern.with_hierarchy({"A": ["B"]})  # type: ignore[arg-type]
