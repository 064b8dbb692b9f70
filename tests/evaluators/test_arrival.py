"""ORDER BY arrival: every engine and entrance finds what the twin does, in which positions order items."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.budgets import examples
from tests.evaluators.checks import check, check_in_batches
from tests.evaluators.constructs import (
    AUTOMATA,
    FAMILIES,
    GROUP_FAMILIES,
    NEXT,
    Family,
    able,
    branch_plans,
    construct_cases,
)
from tests.evaluators.strategies import Case, batches_of
from tests.naive.automaton import automaton_matches
from tests.naive.matcher import labelled_matches

pytestmark = pytest.mark.kernel

ALL = FAMILIES | GROUP_FAMILIES | AUTOMATA | {f"next {name}": its for name, its in NEXT.items()}


@st.composite
def arrival_cases(draw: st.DrawFn, family: Family) -> Case:
    case = draw(construct_cases(family, orders=("arrival",)))
    pattern = replace(case.pattern, output=draw(st.sampled_from(_OUTPUTS)))
    return replace(case, pattern=pattern)


_OUTPUTS = ("all", "all", "all", "non_overlap")


def twin(case: Case) -> set[tuple]:
    find = automaton_matches if case.pattern.strategy.name == "next" else labelled_matches
    return find(case.pattern, case.events)


@pytest.mark.parametrize("family", ALL)
@given(data=st.data())
@examples(5)
def test_any_plan(family: str, data: st.DataObject) -> None:
    case = data.draw(arrival_cases(ALL[family]))
    expected = twin(case)
    for evaluator in able(case.pattern):
        check(case, expected, data.draw(branch_plans(evaluator, case.pattern)), evaluator)


@pytest.mark.parametrize("family", ALL)
@given(data=st.data())
@examples(3)
def test_any_batches_any_restorations(family: str, data: st.DataObject) -> None:
    case = data.draw(arrival_cases(ALL[family]))
    expected = twin(case)
    batches = data.draw(batches_of(case.stream))
    restored = data.draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))
    for evaluator in able(case.pattern):
        plan = data.draw(branch_plans(evaluator, case.pattern))
        check_in_batches(case, expected, plan, evaluator, batches, restored)
