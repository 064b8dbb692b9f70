"""Negation, Kleene closure, disjunction, nesting, strategies: every plan finds what the twin does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.evaluate import evaluate
from cepbench.planning.planners.generate import plan
from tests.budgets import examples
from tests.engines.detection.checks import check, check_in_batches, found_in
from tests.engines.detection.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    able,
    branch_plans,
    construct_cases,
)
from tests.engines.detection.strategies import batches_of, statistics_for
from tests.generators import UNIVERSAL, affordable
from tests.naive.matcher import labelled_matches

pytestmark = pytest.mark.kernel

ALL = FAMILIES | GROUP_FAMILIES
each_family = pytest.mark.parametrize("family", ALL)


@each_family
@given(data=st.data())
@examples(7)
def test_any_plan(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(ALL[family]))
    expected = labelled_matches(case.pattern, case.events)
    for evaluator in able(case.pattern):
        check(case, expected, data.draw(branch_plans(evaluator, case.pattern)), evaluator)


@each_family
@given(data=st.data())
@examples(4)
def test_any_batches_any_restorations(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(ALL[family]))
    expected = labelled_matches(case.pattern, case.events)
    batches = data.draw(batches_of(case.stream))
    restored = data.draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))
    for evaluator in able(case.pattern):
        plan = data.draw(branch_plans(evaluator, case.pattern))
        check_in_batches(case, expected, plan, evaluator, batches, restored)


@pytest.mark.parametrize("generator", affordable(UNIVERSAL))
@given(data=st.data())
@examples(5)
def test_generated_plan(generator: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(FAMILIES["everything"]))
    chosen = plan(
        case.pattern, data.draw(statistics_for(case)), generator, seed=data.draw(st.integers(0, 9))
    )
    matches = evaluate(case.pattern, case.stream, chosen).matches
    assert set(found_in(case.pattern, matches)) == labelled_matches(case.pattern, case.events)
