"""Every evaluator along every plan finds exactly what trying all combinations finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.errors import EvaluationError
from cepbench.patterns.model import Operator
from cepbench.planning.planners.generate import plan
from cepbench.planning.plans.model import OrderPlan, TreePlan
from tests.budgets import examples
from tests.engines.detection.strategies import PLANNED, Case, cases, plans_for, statistics_for
from tests.generators import UNIVERSAL
from tests.naive.matcher import naive_matches


def check(case: Case, chosen: OrderPlan | TreePlan | None, evaluator: str) -> None:
    """Matches as the naive ones, each once, in the promised order; and as many when counted."""
    expected = naive_matches(case.pattern, case.events)
    result = evaluate(case.pattern, case.stream, chosen, evaluator=evaluator)
    assert list(result.matches.columns) == list(case.pattern.names)
    found = [tuple(row) for row in result.matches.to_numpy().tolist()]
    assert found == sorted(expected, key=lambda match: (max(match), match))
    assert result.metrics.matches == len(expected)
    assert result.metrics.events == len(case.events)
    counted = evaluate(case.pattern, case.stream, chosen, evaluator=evaluator, output="count")
    assert counted.metrics.matches == len(expected)


def joins_partial_matches(tree: Any) -> bool:
    """Whether a tree anywhere joins two pairs, which no order does."""
    if isinstance(tree, str):
        return False
    left, right = tree
    both = not isinstance(left, str) and not isinstance(right, str)
    return both or joins_partial_matches(left) or joins_partial_matches(right)


@pytest.mark.parametrize("generator", UNIVERSAL)
@given(data=st.data(), evaluator=st.sampled_from(PLANNED))
@examples(8)
def test_generated_plan(generator: str, evaluator: str, data: st.DataObject) -> None:
    case = data.draw(cases())
    chosen = plan(
        case.pattern, data.draw(statistics_for(case)), generator, seed=data.draw(st.integers(0, 9))
    )
    if "tree" not in EVALUATORS[evaluator].kinds and joins_partial_matches(chosen.tree):
        with pytest.raises(EvaluationError, match="one event at a time"):
            evaluate(case.pattern, case.stream, chosen, evaluator=evaluator)
    else:
        check(case, chosen, evaluator)


@pytest.mark.kernel
@pytest.mark.parametrize("nested", [False, True], ids=["simple", "nested"])
@pytest.mark.parametrize("evaluator", EVALUATORS)
@given(data=st.data())
@examples(12)
def test_any_plan(evaluator: str, nested: bool, data: st.DataObject) -> None:
    operators = [o for o in (Operator.SEQ, Operator.AND) if o in EVALUATORS[evaluator].constructs]
    case = data.draw(cases(sizes=(3, 5) if nested else (1, 5), nested=nested, operators=operators))
    check(case, data.draw(plans_for(evaluator, case.pattern.names)), evaluator)


@pytest.mark.parametrize("evaluator", [e.name for e in EVALUATORS.values() if e.some_kinds])
@given(data=st.data())
def test_left_deep_tree_by_the_lazy_nfa(evaluator: str, data: st.DataObject) -> None:
    """The lazy NFA runs a tree plan that takes up one event at a time, whichever side it is on."""
    case = data.draw(cases(sizes=(2, 5)))
    names = data.draw(st.permutations(case.pattern.names))
    tree: Any = names[0]
    for name in names[1:]:
        tree = (tree, name) if data.draw(st.booleans()) else (name, tree)
    check(case, TreePlan(tree), evaluator)
