"""Patterns that can have no match are refused, and no others."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import UnsatisfiablePatternError, UnsupportedPatternError
from cepbench.patterns.contradictions import check_satisfiable
from cepbench.patterns.expressions import Attribute, Clause, Comparison, Constant
from cepbench.patterns.model import Kind, Operator, Pattern, Structure, Variable, Window
from cepbench.patterns.parse import parse, reread
from tests.budgets import examples

ITEMS = "SEQ(A a, B b, C c, KL(K k), NOT(N n))"


def asked(where: str) -> str:
    return f"PATTERN {ITEMS} WHERE {where} WITHIN 5 s"


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("a.x < a.x", "condition a.x < a.x is never true"),
        ("a.x != a.x", "condition a.x != a.x is never true"),
        ("a.x < 0 / 0", "condition a.x < 0 / 0 is never true"),
        ("b.y = 1 AND a.x < b.x AND b.x < a.x", "a.x < b.x and b.x < a.x contradict"),
        ("a.x < b.x AND a.x = b.x", "a.x < b.x and a.x = b.x contradict"),
        ("a.x > b.x AND b.x >= c.x AND c.x = a.x", "a.x > b.x, b.x >= c.x and c.x = a.x"),
        ("a.x < 3 AND a.x > 5", "a.x < 3 and a.x > 5 contradict"),
        ("3 > a.x AND a.x >= 2 + 1", "3 > a.x and a.x >= 2 + 1 contradict"),
        ("a.x <= 3 AND a.x >= 3 AND a.x != 3", "a.x <= 3, a.x >= 3 and a.x != 3"),
        ("a.x = b.x AND b.x = c.x AND c.x != a.x", "a.x = b.x, b.x = c.x and c.x != a.x"),
        ("a.x + b.x < 1 AND a.x + b.x > 1", "a.x + b.x < 1 and a.x + b.x > 1"),
        ("a.s = 'p' AND a.s = 'q'", "a.s = 'p' and a.s = 'q'"),
        ("a.s = 'p' AND a.s = b.s AND b.s != 'p'", "a.s = 'p', a.s = b.s and b.s != 'p'"),
        ("a.s = 'p' AND a.s = 3", "a.s = 'p' and a.s = 3"),
        ("a.x < 3 AND (a.x > 5 OR a.x = 4)", "a.x < 3 and (a.x > 5 OR a.x = 4) contradict"),
        (
            "a.x < 3 AND (a.x > 5 OR b.x < 1) AND b.x > 2",
            "a.x < 3, (a.x > 5 OR b.x < 1) and b.x > 2",
        ),
        ("k.x < 3 AND k[1].x > 4", "k.x < 3 and k[1].x > 4"),
        ("k.x < k[last].x", "condition k.x < k[last].x is never true"),
        ("k.x < a.x AND a.x < k.x", "k.x < a.x and a.x < k.x"),
        ("sum(k[].x) > 3 AND sum(k.x) < 2", "sum(k[].x) > 3 and sum(k[].x) < 2"),
    ],
)
def test_contradictions_name_their_conditions(where: str, named: str) -> None:
    with pytest.raises(UnsatisfiablePatternError) as refused:
        parse(asked(where))
    assert named in str(refused.value)
    assert refused.value.column is not None
    assert refused.value.column > len(f"PATTERN {ITEMS} WHERE ")


@pytest.mark.parametrize(
    "where",
    [
        "a.x <= 3 AND a.x >= 3",
        "a.x < b.x AND b.x < c.x AND a.x < c.x",
        "a.x <= b.x AND b.x <= c.x AND c.x <= a.x",
        "a.x < 3 AND (a.x > 5 OR a.x = 2)",
        "a.x < b.x OR b.x < a.x",
        "a.s = 'p' AND b.s = 'q' AND a.s != b.s",
        # Whatever is asked of neighbours is true of a set of one event.
        "k[i].x < k[i-1].x AND k[i].x > k[i-1].x",
        # A negated event that cannot be there never forbids a match.
        "n.x < n.x",
        "n.x < a.x AND n.x > a.x",
        # Of different events of a set.
        "k[1].x < 3 AND k[last].x > 4",
    ],
)
def test_what_can_be_true_is_let_through(where: str) -> None:
    parse(asked(where))


@pytest.mark.parametrize(
    "text",
    [
        "AND(A a, B b) WITHIN 0 units",
        "SEQ(A a, NOT(B b)) WITHIN 0 units",
        "SEQ(A a, NOT(N n), B b, C c) WITHIN 2 units",
        "OR(SEQ(A a, B b), C c) WITHIN 0 units",
        "OR(A a, B b) WHERE a.x < a.x WITHIN 1 s",
    ],
)
def test_windows_and_branches_that_leave_something(text: str) -> None:
    parse(f"PATTERN {text}")


def test_patterns_by_hand_are_checked_on_demand() -> None:
    never = Clause((Comparison("<", Attribute("a", "x"), Attribute("a", "x")),))
    structure = Structure(Operator.AND, (Variable("a", "A"),))
    pattern = Pattern(structure, (never,), Window(1, "units"))
    assert reread(str(pattern)) == pattern
    with pytest.raises(UnsatisfiablePatternError):
        check_satisfiable(pattern)


NAMES = ("a", "b", "c")
sides = st.sampled_from([*(Attribute(name, "x") for name in NAMES), Constant(0), Constant(1)])
comparisons = st.builds(
    Comparison, st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), sides, sides
)
#: Between, below and above the two constants, as many values as there are variables.
VALUES = (-3, -2, -1, 0, 0.2, 0.4, 0.6, 1, 2, 3, 4)
HOLDS = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right and not math.isnan(left + right),
}


def holds(comparison: Comparison, row: dict[str, float]) -> bool:
    def value(side: Any) -> float:
        return row[side.variable] if isinstance(side, Attribute) else side.value

    return HOLDS[comparison.operator](value(comparison.left), value(comparison.right))


def is_refused(clauses: list[list[Comparison]]) -> bool:
    kept = [Clause(tuple(c)) for c in clauses if Clause(tuple(c)).variables]
    items = tuple(Variable(name, name.upper(), Kind.PLAIN) for name in NAMES)
    pattern = Pattern(Structure(Operator.AND, items), tuple(kept), Window(1, "units"))
    try:
        check_satisfiable(pattern)
    except UnsatisfiablePatternError:
        return True
    return False


def some_values_fit(clauses: list[list[Comparison]]) -> bool:
    return any(
        all(any(holds(part, row) for part in clause) for clause in clauses)
        for values in itertools.product(VALUES, repeat=len(NAMES))
        for row in [dict(zip(NAMES, values, strict=True))]
    )


@examples(75)
@given(st.lists(comparisons.filter(lambda c: any(c.attributes())), max_size=6))
def test_orders_are_refused_exactly_where_no_values_fit(found: list[Comparison]) -> None:
    clauses = [[comparison] for comparison in found]
    assert is_refused(clauses) == (not some_values_fit(clauses))


@examples(50)
@given(
    st.lists(
        st.lists(comparisons.filter(lambda c: any(c.attributes())), min_size=1, max_size=2),
        max_size=5,
    )
)
def test_with_disjunctions_nothing_that_fits_is_refused(clauses: list[list[Comparison]]) -> None:
    try:
        refused = is_refused(clauses)
    except UnsupportedPatternError:
        return
    if refused:
        assert not some_values_fit(clauses)
