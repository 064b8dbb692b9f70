"""Rewriting: what each rule makes of a pattern, and the same matches before and after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PatternError
from cepbench.patterns.model import Pattern
from cepbench.patterns.rewriting import RULES, Rewriting
from tests.budgets import examples
from tests.engines.detection.checks import found_in
from tests.engines.detection.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    branch_plans,
    construct_cases,
)
from tests.engines.detection.strategies import TYPES, Case, affordable_events, clauses, event_frames
from tests.naive.matcher import naive_matches

#: Rule → patterns that it applies to at once; types are drawn.
EXAMPLES = {
    "single": [
        "SEQ({} a, GROUP({} b, 1), {} c)",
        "SEQ(GROUP({} b, 1), AND({} a, {} c))",
        "OR(SEQ({} a, NOT({} n), GROUP(B b, 1)), SEQ({} c, GROUP(B b, 1)))",
    ],
    "flatten": [
        "SEQ({} a, SEQ({} b, NOT({} n)), {} c)",
        "AND({} a, AND({} b, KL({} c)))",
        "OR({} a, OR({} b, SEQ({} c, {} d)))",
        "SEQ(AND({} a, {} b))",
        "SEQ(SEQ(NOT({} n), {} a), SEQ({} b))",
    ],
    "negations": [
        "SEQ({} a, AND(NOT({} n), NOT({} m)), {} b)",
        "SEQ(AND(NOT({} n), NOT({} m)), OR({} a, {} b))",
    ],
    "alternatives": ["OR(A a, A a, {} b)", "SEQ({} a, OR(B b, B b), {} c)"],
    "repeated negations": [
        "SEQ({} a, NOT(B n), NOT(B m), {} b)",
        "SEQ(NOT(B n), NOT({} k), NOT(B m), {} a)",
        "AND(NOT(B n), {} a, NOT(B m), {} b)",
    ],
    "common item": [
        "OR(SEQ({} a, C c), SEQ({} b, C c))",
        "OR(SEQ(C c, {} a), SEQ(C c, NOT({} n), {} b), {} d)",
        "OR(AND({} a, C c), AND(C c, {} b))",
        "OR(SEQ({} a, NOT(C n)), SEQ({} d, {} b, NOT(C n)))",
    ],
    "order": [
        "AND({} a, {} b)",
        "AND({} b, {} a, {} c)",
        "SEQ({} c, AND({} a, {} d, {} b), NOT({} n))",
        "OR(AND(A a, SEQ({} d, B b)), AND(A a, B b))",
    ],
}


def in_time(pattern: Pattern) -> Pattern:
    """The pattern with the condition that a is before b."""
    before = cep.parse("PATTERN AND(A a, B b) WHERE a.ts < b.ts WITHIN 1 units").conditions
    return replace(pattern, conditions=(*before, *pattern.conditions))


@st.composite
def cases(draw: st.DrawFn, rule: str) -> Case:
    text = draw(st.sampled_from(EXAMPLES[rule]))
    types = draw(st.lists(st.sampled_from(TYPES[:3]), min_size=8, max_size=8))
    window = draw(st.sampled_from([2, 4, 8, 12]))
    pattern = cep.parse(f"PATTERN {text.format(*types)} WITHIN {window} units")
    names = [
        v.name for v in pattern.variables if rule != "repeated negations" or v.name not in "nm"
    ]
    mates = {*names}.intersection(*(branch.names for branch in pattern.branches()))
    if len({*mates} - {v.name for v in pattern.negated}) > 1:
        conditions = draw(st.lists(clauses(sorted(mates)), max_size=2))
        negated = {v.name for v in pattern.negated}
        conditions = [c for c in conditions if not negated.issuperset(c.variables[1:])]
        pattern = replace(pattern, conditions=tuple(conditions))
    if rule == "order":
        pattern = in_time(pattern)
    events = draw(event_frames(TYPES[:3], most=14))
    return Case(pattern, affordable_events(pattern, events.assign(ts=events["time"])))


def same_matches(case: Case, found: Rewriting) -> None:
    """The twin finds the same before and after, whatever the order of columns."""
    assert as_sets(found.pattern, case) == as_sets(case.pattern, case)


def as_sets(pattern: Pattern, case: Case) -> set[frozenset[tuple[str, Any]]]:
    """The bound variables of each match; a group of one is bound to a position."""
    single = {v.name for v in case.pattern.groups if v.size == 1}
    names = pattern.positive_names
    return {
        frozenset(
            (name, value[0] if name in single and isinstance(value, tuple) else value)
            for name, value in zip(names, row, strict=True)
            if value is not None
        )
        for row in naive_matches(pattern, case.events)
    }


@pytest.mark.parametrize("rule", EXAMPLES)
@given(data=st.data())
def test_a_rule_keeps_the_matches(rule: str, data: st.DataObject) -> None:
    case = data.draw(cases(rule))
    (its,) = (each for each in RULES if each.name == rule)
    candidates = list(its.candidates(case.pattern, "ts"))
    assert candidates
    for candidate in candidates:
        assert as_sets(candidate, case) == as_sets(case.pattern, case)
        assert cep.parse(str(candidate)) == candidate


@pytest.mark.kernel
@pytest.mark.parametrize("rule", EXAMPLES)
@given(data=st.data())
@examples(4)
def test_an_engine_runs_what_is_left(rule: str, data: st.DataObject) -> None:
    case = data.draw(cases(rule))
    pattern = cep.rewrite(case.pattern, time="ts").pattern
    assert pattern != case.pattern
    plan = data.draw(branch_plans("lazy-nfa", pattern))
    matches = cep.evaluate(pattern, case.stream, plan, evaluator="lazy-nfa").matches
    assert {row for _, row in found_in(pattern, matches)} == naive_matches(pattern, case.events)


@pytest.mark.parametrize("family", ["everything", *GROUP_FAMILIES])
@given(data=st.data())
@examples(5)
def test_any_pattern_keeps_its_matches(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases((FAMILIES | GROUP_FAMILIES)[family]))
    found = cep.rewrite(case.pattern)
    same_matches(case, found)
    assert cep.rewrite(found.pattern) == Rewriting(found.pattern, ())
    assert [step.before for step in found.steps[1:]] == [step.after for step in found.steps[:-1]]


def rewritten(text: str, time: str | None = None) -> str:
    return str(cep.rewrite(f"PATTERN {text} WITHIN 9 units", time=time).pattern)[8:-15]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SEQ(A a, AND(NOT(B b), NOT(C c)), D d)", "SEQ(A a, NOT(B b), NOT(C c), D d)"),
        ("OR(SEQ(A a, C c), SEQ(B b, C c))", "SEQ(OR(A a, B b), C c)"),
        ("OR(SEQ(C c, A a), D d, SEQ(C c, B b))", "OR(SEQ(C c, OR(A a, B b)), D d)"),
        ("OR(AND(A a, C c), AND(B b, C c))", "AND(OR(A a, B b), C c)"),
        (
            "OR(SEQ(A a, B b, X x, Y y), SEQ(C c, D d, X x, Y y))",
            "SEQ(OR(SEQ(A a, B b), SEQ(C c, D d)), X x, Y y)",
        ),
        (
            "SEQ(A a, GROUP(B b, 1), C c) WHERE sum(b.x) > b[1].y AND b.x > b[i-1].x",
            "SEQ(A a, B b, C c) WHERE b.x > b.y",
        ),
        (
            "SEQ(A a, NOT(B n), NOT(B m), C c) WHERE n.x = a.x AND m.x = a.x",
            "SEQ(A a, NOT(B n), C c) WHERE n.x = a.x",
        ),
        # What stays as it is: another meaning, or no fewer operators.
        *(
            (text, text)
            for text in (
                "SEQ(A a, NOT(B n), C c, NOT(B m), D d)",
                "SEQ(A a, NOT(B n), NOT(B m), C c) WHERE n.x = a.x",
                "OR(SEQ(NOT(A n), C c), SEQ(B b, C c))",
                "OR(SEQ(A a, C c), SEQ(B b, C c2))",
                "OR(SEQ(A a, C c), AND(B b, C c))",
                "SEQ(AND(A a, NOT(B n)), C c)",
                "SEQ(A a, GROUP(B b, 1), C c) WHERE count(b[].x) = 1",
                "SEQ(A a, GROUP(B b, 2), C c)",
                "AND(SEQ(A a, GROUP(B b, 1), C c), SEQ(D d, GROUP(B e, +), E f))",
            )
        ),
    ],
)
def test_examples(before: str, after: str) -> None:
    assert rewritten(before) == after


@pytest.mark.parametrize(
    "structure",
    [
        "AND(A a, OR(B x, C y), A b)",
        "AND(A a, SEQ(OR(B x, C y), A c), A b)",
        "AND(A a, SEQ(C c, AND(OR(B x, A y), B d)), A b)",
        "AND(A a, NOT(B x), C c, A b)",
    ],
)
@given(events=event_frames(TYPES[:3], most=12))
def test_times_of_what_may_be_unbound_order_nothing_else(
    structure: str, events: pd.DataFrame
) -> None:
    """Without x, nothing says that a is before b."""
    pattern = cep.parse(f"PATTERN {structure} WHERE a.ts < x.ts AND x.ts < b.ts WITHIN 6 units")
    case = Case(pattern, affordable_events(pattern, events.assign(ts=events["time"])))
    same_matches(case, cep.rewrite(pattern, time="ts"))


def test_order_in_time() -> None:
    assert rewritten("AND(A a, B b) WHERE b.ts > a.ts", "ts") == "SEQ(A a, B b)"
    assert (
        rewritten("AND(C c, B b, A a) WHERE a.ts < b.ts AND b.ts < c.ts AND a.ts < c.ts", "ts")
        == "SEQ(A a, B b, C c)"
    )
    for condition, time in (("a.ts <= b.ts", "ts"), ("a.ts < b.ts", None), ("a.x < b.x", "ts")):
        text = f"AND(A a, B b) WHERE {condition}"
        assert rewritten(text, time) == text
    # Of a trailing NOT the sequence would say something else.
    text = "AND(SEQ(A a, NOT(C c)), B b) WHERE a.ts < b.ts"
    assert rewritten(text, "ts") == text
    # Under this order a sequence may be of one time, which the condition forbids.
    text = "A a, B b) WHERE a.ts < b.ts ORDER BY arrival"
    assert rewritten(f"AND({text}", "ts") == f"SEQ({text}"
    # These prefer matches by the order of the variables.
    for chosen in ("STRATEGY consuming", "OUTPUT non_overlap"):
        text = f"AND(B b, A a) WHERE a.ts < b.ts {chosen}"
        assert rewritten(text, "ts") == text
    with pytest.raises(PatternError, match="time"):
        cep.rewrite("PATTERN AND(A a, B b) WITHIN 1 units", time=3)  # type: ignore[arg-type]


def test_a_group_that_is_returned_stays() -> None:
    text = "PATTERN SEQ(A a, GROUP(B b, 1), C c) WITHIN 9 units RETURN b"
    assert cep.rewrite(text).steps == ()


def test_every_rule_is_tested() -> None:
    assert [rule.name for rule in RULES] == [*EXAMPLES]


def test_what_is_shown() -> None:
    found = cep.rewrite("PATTERN OR(SEQ(A a, C c), SEQ(B b, C c)) WITHIN 9 units")
    assert found.describe().splitlines() == [
        "PATTERN OR(SEQ(A a, C c), SEQ(B b, C c)) WITHIN 9 units",
        "  common item: (A;C)|(B;C) is (A|B);C, on either side, and for &",
        "PATTERN SEQ(OR(A a, B b), C c) WITHIN 9 units",
    ]
    page = found._repr_html_()
    assert "on either side, and for &amp;" in page and page.count("<tr>") == 3
    assert cep.rewrite(found.pattern).describe() == str(found.pattern)
