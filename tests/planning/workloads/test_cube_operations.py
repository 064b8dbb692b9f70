"""Roll-up and drill-down: the paper's examples, and what they lead to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import cepbench as cep
from cepbench.errors import (
    CepbenchError,
    HierarchyError,
    PatternError,
    PatternNameError,
    PatternSyntaxError,
    UnsupportedPatternError,
)

PLACES = cep.ConceptHierarchy({"USA": {"TX": {"D": ["DBus"]}, "OK": ["T"]}})


def query(text: str) -> cep.Pattern:
    return cep.parse(f"PATTERN {text} WITHIN 48 hours")


Q1 = query("SEQ(TX a, OK b) WHERE [id]")
Q2 = query("SEQ(D a, T b) WHERE [id]")
Q3 = query("SEQ(G g, A a, T t) WHERE [id]")
Q6 = query("SEQ(G g, A a, D d, T t) WHERE [id]")


def test_the_paper_s_examples() -> None:
    assert cep.pattern_drill_down(Q3, 3, "D d") == Q6
    assert cep.pattern_roll_up(Q6, 3) == Q3
    assert cep.concept_roll_up(Q2, PLACES, levels=1) == Q1.with_hierarchy(PLACES)
    assert cep.concept_drill_down(Q1, PLACES, {"a": "D", "b": "T"}) == Q2.with_hierarchy(PLACES)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda: cep.pattern_drill_down(Q3, 2, "NOT(D)"), "SEQ(G g, NOT(D D), A a, T t) WHERE [id]"),
        (lambda: cep.pattern_drill_down(Q3, 4, "¬D d"), "SEQ(G g, A a, T t, NOT(D d)) WHERE [id]"),
        (lambda: cep.pattern_drill_down(Q3, 1, "A"), "SEQ(A A, G g, A a, T t) WHERE [id]"),
        (
            lambda: cep.pattern_drill_down(query("AND(A a, B b) WHERE a.x < b.x"), 3, "KL(C c)"),
            "AND(A a, B b, KL(C c)) WHERE a.x < b.x",
        ),
        (
            lambda: cep.pattern_roll_up(query("SEQ(A a, B b, C c) WHERE a.x < b.x AND c.x > 3"), 2),
            "SEQ(A a, C c) WHERE c.x > 3",
        ),
        (lambda: cep.pattern_roll_up(query("SEQ(A a, !B b, C c)"), 2), "SEQ(A a, C c)"),
        (lambda: cep.concept_roll_up(query("SEQ(DBus, A, T)"), PLACES, 2), "SEQ(TX DBus, A A, USA T)"),
        (lambda: cep.concept_roll_up(query("SEQ(D a, !D n, D b)"), PLACES), "SEQ(TX a, NOT(D n), TX b)"),
        (
            lambda: cep.concept_drill_down(query("SEQ(TX a, !D n, T b)"), PLACES, {"n": "TX", "a": "DBus"}),
            "SEQ(DBus a, NOT(TX n), T b)",
        ),
        (
            lambda: cep.concept_roll_up("PATTERN SEQ(D a) GROUP BY x AGG COUNT WITHIN 48 h", PLACES),
            "SEQ(TX a) GROUP BY x AGG COUNT",
        ),
    ],
)  # fmt: skip
def test_results(change: Callable[[], cep.Pattern], expected: str) -> None:
    assert str(change()) == f"PATTERN {expected} WITHIN 48 hours"


NO_REFINEMENT = "is no refinement of"


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda: cep.pattern_drill_down(query("SEQ(G, !D, T)"), 2, "A"), PatternError, NO_REFINEMENT),
        (lambda: cep.pattern_roll_up(query("SEQ(G, !D, A, T)"), 3), PatternError, NO_REFINEMENT),
        (lambda: cep.pattern_roll_up(query("SEQ(A) STRATEGY next"), 2), PatternError, "place must be at most 1"),
        (lambda: cep.pattern_drill_down(Q3, 5, "D d"), PatternError, "place must be at most 4"),
        (lambda: cep.pattern_drill_down(Q3, 0, "D d"), PatternError, "place must be at least 1"),
        (lambda: cep.pattern_drill_down(Q3, 1, "D a"), PatternNameError, "'a' is already used"),
        (lambda: cep.pattern_drill_down(Q3, 1, "SEQ("), PatternSyntaxError, "line 1"),
        (lambda: cep.pattern_roll_up(query("SEQ(A, !B)"), 1), PatternError, "has only negated items"),
        (lambda: cep.pattern_roll_up(query("SEQ(A, OR(B, C))"), 1), UnsupportedPatternError, "is nested"),
        (lambda: cep.concept_roll_up(query("SEQ(A, !D, USA)"), PLACES), PatternError, "no positive item of"),
        (lambda: cep.concept_roll_up(Q2, PLACES, levels=0), PatternError, "levels must be at least 1"),
        (lambda: cep.concept_roll_up(Q2, None), HierarchyError, "not None"),  # type: ignore[arg-type]
        (lambda: cep.concept_drill_down(Q1, PLACES, {}), PatternError, "types is a mapping"),
        (lambda: cep.concept_drill_down(Q1, PLACES, {"c": "D"}), PatternNameError, "unknown variable 'c'"),
        (lambda: cep.concept_drill_down(Q1, PLACES, {"a": "C"}), HierarchyError, "has no 'C'"),
        (lambda: cep.concept_drill_down(Q1, PLACES, {"a": "T"}), PatternError, "'T' is not below it"),
        (
            lambda: cep.concept_drill_down(query("SEQ(TX a, !TX n, T b)"), PLACES, {"n": "D"}),
            PatternError,
            "'D' is not above it",
        ),
    ],
)  # fmt: skip
def test_errors(change: Callable[[], object], kind: type[CepbenchError], words: str) -> None:
    with pytest.raises(kind, match=words):
        change()
