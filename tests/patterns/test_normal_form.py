"""Conjunctive normal form against three-valued logic, worked out by a truth table."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.expressions import Conjunct, without_implied
from cepbench.patterns.model import Attribute, Comparison, Constant
from cepbench.patterns.normal_form import (
    Condition,
    Conjunction,
    Disjunction,
    Negation,
    conjunctive_normal_form,
)
from cepbench.patterns.parse import parse
from tests.budgets import examples

X, Y, Z = (Attribute(name, "x") for name in "abc")
VALUES = (None, 0.0, 1.0)


def compare(comparison: Comparison, row: dict[str, float | None]) -> bool | None:
    """What SQL says: unknown (None) when a side is missing."""

    def value(part: object) -> float | None:
        return row[part.variable] if isinstance(part, Attribute) else part.value  # type: ignore

    left, right = value(comparison.left), value(comparison.right)
    if left is None or right is None:
        return None
    return {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "=": left == right,
        "!=": left != right,
    }[comparison.operator]


def truth(condition: Condition, row: dict[str, float | None]) -> bool | None:
    """Kleene's three values: NOT unknown is unknown, AND is the least, OR the greatest."""
    if isinstance(condition, Comparison):
        return compare(condition, row)
    if isinstance(condition, Negation):
        inner = truth(condition.operand, row)
        return None if inner is None else not inner
    parts = [truth(part, row) for part in condition.parts]
    deciding = isinstance(condition, Disjunction)
    if deciding in parts:
        return deciding
    return None if None in parts else not deciding


def holds(conjuncts: tuple[Conjunct, ...], row: dict[str, float | None]) -> bool:
    return all(any(compare(part, row) is True for part in conjunct) for conjunct in conjuncts)


comparisons = st.builds(
    Comparison,
    st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
    st.sampled_from([X, Y, Z, Constant(0), Constant(1)]),
    st.sampled_from([X, Y, Z, Constant(0), Constant(1)]),
)
trees = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(Negation, inner),
        st.builds(Conjunction, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Disjunction, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=7,
)


@examples(100)
@given(trees)
def test_it_holds_exactly_where_the_condition_is_true(condition: Condition) -> None:
    conjuncts = conjunctive_normal_form(condition)
    for values in itertools.product(VALUES, repeat=3):
        row = dict(zip("abc", values, strict=True))
        assert holds(conjuncts, row) == (truth(condition, row) is True)


@examples(50)
@given(trees)
def test_nothing_in_it_repeats_or_follows_from_the_rest(condition: Condition) -> None:
    sets = [frozenset(conjunct) for conjunct in conjunctive_normal_form(condition)]
    assert not any(first <= second for first, second in itertools.permutations(sets, 2))


def test_a_tautology_stays_because_a_missing_value_makes_it_unknown() -> None:
    either = Disjunction((Comparison("<", X, Y), Comparison(">=", X, Y)))
    assert len(conjunctive_normal_form(either)) == 1


def test_weaker_conjuncts_go_and_the_order_stays() -> None:
    p, q, r = (Comparison("<", X, Constant(n)) for n in range(3))
    assert without_implied([(p, q), (r,), (q,), (q, p), (r,)]) == ((r,), (q,))
    assert without_implied([(p,), ()]) == ((),)


def texts(where: str) -> list[str]:
    return [str(c) for c in parse(f"PATTERN AND(A a, B b) WHERE {where} WITHIN 1 s").conditions]


@pytest.mark.parametrize(
    ("where", "conjuncts"),
    [
        ("NOT a.x < b.x", ["a.x >= b.x"]),
        ("NOT NOT a.x = b.x", ["a.x = b.x"]),
        ("NOT (a.x = 1 AND b.x = 2)", ["a.x != 1 OR b.x != 2"]),
        ("NOT (a.x <= 1 OR b.x > 2)", ["a.x > 1", "b.x <= 2"]),
        ("NOT a.x = b.x = 1", ["a.x != b.x OR b.x != 1"]),
        ("a.x = 1 OR a.y = 2 AND b.x = 3", ["a.x = 1 OR a.y = 2", "a.x = 1 OR b.x = 3"]),
        ("(a.x = 1 OR a.y = 2) AND b.x = 3", ["a.x = 1 OR a.y = 2", "b.x = 3"]),
        ("a.x = 1 OR (1 > 2 AND b.x = 3)", ["a.x = 1"]),
        ("a.x = 1 AND a.x = 1", ["a.x = 1"]),
        ("a.x = 1 OR a.x = 1", ["a.x = 1"]),
    ],
)
def test_examples(where: str, conjuncts: list[str]) -> None:
    assert texts(where) == conjuncts


def test_blow_up_is_refused_with_its_place() -> None:
    where = " OR ".join(f"(a.x = {n} AND b.x = {n} AND a.y = {n})" for n in range(9))
    with pytest.raises(UnsupportedPatternError, match="more than 1024 conjuncts") as refused:
        texts(f"a.z = 1 AND ({where})")
    assert refused.value.offending == where
