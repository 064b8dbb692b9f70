"""The brute-force twin itself, on examples worked by hand from the definition of a match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.detection.hand_examples import (
    GROUP_VALUES,
    GROUPS,
    IN_PARTITIONS,
    NEGATED,
    OF_A_GROUP,
    OF_A_SET,
    ONE_BRANCH,
    PARTITIONS,
    SEVERAL_BRANCHES,
    STREAM,
    VALUES,
)

from cepbench.errors import UnsatisfiablePatternError
from cepbench.patterns.contradictions import check_satisfiable
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from tests.engines.detection.constructs import FAMILIES, construct_cases
from tests.engines.detection.strategies import Case, events_of
from tests.naive.matcher import labelled_matches, naive_matches


@pytest.mark.parametrize("text", ONE_BRANCH)
def test_by_hand(text: str) -> None:
    assert naive_matches(parse(f"PATTERN {text}"), STREAM) == ONE_BRANCH[text]


@pytest.mark.parametrize(("text", "events"), GROUPS)
def test_groups_by_hand(text: str, events: str) -> None:
    within = "" if "WITHIN" in text else " WITHIN 10 units"
    found = naive_matches(parse(f"PATTERN {text}{within}"), events_of(events))
    assert found == GROUPS[text, events]


@pytest.mark.parametrize(("size", "condition"), OF_A_GROUP)
def test_conditions_on_groups_by_hand(size: str, condition: str) -> None:
    text = f"PATTERN SEQ(A a, GROUP(B b, {size}), C c) WHERE {condition} WITHIN 9 units"
    expected = {(0, group, 3) for group in OF_A_GROUP[size, condition]}
    assert naive_matches(parse(text), GROUP_VALUES) == expected


@pytest.mark.parametrize("text", SEVERAL_BRANCHES)
def test_branches_by_hand(text: str) -> None:
    assert labelled_matches(parse(f"PATTERN {text}"), STREAM) == SEVERAL_BRANCHES[text]


@pytest.mark.parametrize("condition", OF_A_SET)
def test_conditions_on_sets_by_hand(condition: str) -> None:
    pattern = parse(f"PATTERN SEQ(A a, KL(B b), C c) WHERE {condition} WITHIN 9 units")
    found = naive_matches(pattern, VALUES)
    assert found == {(0, tuple(map(int, members)), 4) for members in OF_A_SET[condition]}


@pytest.mark.parametrize("condition", NEGATED)
def test_conditions_on_what_is_negated_by_hand(condition: str) -> None:
    pattern = parse(f"PATTERN SEQ(A a, NOT(B n), C c) WHERE {condition} WITHIN 9 units")
    assert naive_matches(pattern, VALUES) == NEGATED[condition]


@pytest.mark.parametrize("text", IN_PARTITIONS)
def test_partitions_by_hand(text: str) -> None:
    assert naive_matches(parse(f"PATTERN {text}"), PARTITIONS) == IN_PARTITIONS[text]


@given(data=st.data())
def test_the_branches_of_the_model_have_the_matches_of_the_pattern(data: st.DataObject) -> None:
    """Both rewritten by the model and gone through as written."""
    case = data.draw(construct_cases(FAMILIES["everything"]))
    pattern = Pattern(case.pattern.structure, case.pattern.conditions, case.pattern.window)
    branches = pattern.branches()
    expected: dict[tuple, int] = {}
    for number, branch in enumerate(branches):
        assert branch.branches() == (branch,)
        for match in naive_matches(branch, case.events):
            bound = dict(zip(branch.positive_names, match, strict=True))
            expected.setdefault(tuple(map(bound.get, pattern.positive_names)), number)
    assert labelled_matches(pattern, case.events) == {(b, m) for m, b in expected.items()}


@given(case=construct_cases(FAMILIES["everything"], sizes=(1, 3), conditions=(1, 4)))
def test_what_is_refused_as_impossible_has_no_match(case: Case) -> None:
    try:
        check_satisfiable(case.pattern)
    except UnsatisfiablePatternError:
        assert labelled_matches(case.pattern, case.events) == set()
