"""Examples of every construct worked by hand, for every evaluator along every plan there is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
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

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from tests.engines.detection.checks import Plan, found_in
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import PLANNED, events_of, stream_of
from tests.engines.detection.test_semantics_examples import every_tree

pytestmark = pytest.mark.kernel


def every_plan(pattern: Pattern) -> Iterator[tuple[str, Plan | None]]:
    """All plans of one branch, or of all branches together, each with every evaluator it is for."""
    yield from ((evaluator, None) for evaluator in able(pattern) if evaluator not in PLANNED)
    names = [branch.planned_names for branch in pattern.branches()]
    for orders in itertools.product(*map(itertools.permutations, names)):
        plans = [OrderPlan(order) for order in orders]
        for evaluator in filter(PLANNED.__contains__, able(pattern)):
            yield evaluator, plans[0] if len(plans) == 1 else UnionPlan(tuple(plans))
    for trees in itertools.product(*map(every_tree, names)):
        shaped = [TreePlan(tree) for tree in trees]
        for evaluator in able(pattern):
            if "tree" in EVALUATORS[evaluator].kinds:
                yield evaluator, shaped[0] if len(shaped) == 1 else UnionPlan(tuple(shaped))


def check(text: str, events: pd.DataFrame, expected: set[tuple[int, Any]]) -> None:
    pattern = parse(f"PATTERN {text}")
    for evaluator, plan in every_plan(pattern):
        result = evaluate(pattern, stream_of(events), plan, evaluator=evaluator)
        assert set(found_in(pattern, result.matches)) == expected, (evaluator, plan)


@pytest.mark.parametrize("text", ONE_BRANCH)
def test_one_branch(text: str) -> None:
    check(text, STREAM, {(0, match) for match in ONE_BRANCH[text]})


@pytest.mark.parametrize(("text", "events"), GROUPS)
def test_groups(text: str, events: str) -> None:
    within = "" if "WITHIN" in text else " WITHIN 10 units"
    check(f"{text}{within}", events_of(events), {(0, match) for match in GROUPS[text, events]})


@pytest.mark.parametrize(("size", "condition"), OF_A_GROUP)
def test_conditions_on_groups(size: str, condition: str) -> None:
    expected = {(0, (0, group, 3)) for group in OF_A_GROUP[size, condition]}
    text = f"SEQ(A a, GROUP(B b, {size}), C c) WHERE {condition} WITHIN 9 units"
    check(text, GROUP_VALUES, expected)


@pytest.mark.parametrize("text", SEVERAL_BRANCHES)
def test_several_branches(text: str) -> None:
    check(text, STREAM, SEVERAL_BRANCHES[text])


@pytest.mark.parametrize("condition", OF_A_SET)
def test_conditions_on_sets(condition: str) -> None:
    expected = {(0, (0, tuple(map(int, members)), 4)) for members in OF_A_SET[condition]}
    check(f"SEQ(A a, KL(B b), C c) WHERE {condition} WITHIN 9 units", VALUES, expected)


@pytest.mark.parametrize("condition", NEGATED)
def test_conditions_on_what_is_negated(condition: str) -> None:
    expected = {(0, match) for match in NEGATED[condition]}
    check(f"SEQ(A a, NOT(B n), C c) WHERE {condition} WITHIN 9 units", VALUES, expected)


@pytest.mark.parametrize("text", IN_PARTITIONS)
def test_partitions(text: str) -> None:
    check(text, PARTITIONS, {(0, match) for match in IN_PARTITIONS[text]})
