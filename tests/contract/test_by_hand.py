"""Examples worked by hand: the naive twin, and the evaluators along every plan of every branch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from tests.budgets import SOAK
from tests.contract.cases import twin
from tests.contract.declared import kinds_planned, refused
from tests.contract.hand_examples import worked_by_hand
from tests.engines.detection.checks import Labelled, check_in_batches, found_in
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import Case

pytestmark = pytest.mark.kernel

#: An evaluator takes one in so many examples event by event, restored after every fourth event.
LIVE = 3


def every_tree(names: tuple[str, ...]) -> Iterator[Any]:
    """All trees over the names, in every order of the leaves."""
    if len(names) == 1:
        yield names[0]
        return
    for size in range(1, len(names)):
        for chosen in itertools.combinations(names, size):
            others = tuple(name for name in names if name not in chosen)
            yield from itertools.product(every_tree(chosen), every_tree(others))


def _together(plans: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    if SOAK is not None:
        return itertools.product(*plans)
    return itertools.islice(zip(*map(itertools.cycle, plans), strict=True), max(map(len, plans)))


def every_plan(pattern: cep.Pattern, name: str) -> Iterator[Any]:
    """All plans of one branch that an evaluator runs; of several each one beside some of the others.

    In a soak, all combinations.
    """
    entry = cep.EVALUATORS[name]
    kinds = kinds_planned(entry)
    if not kinds:
        yield None
    names = [branch.planned_names for branch in pattern.branches()]
    ways = {"order": (itertools.permutations, cep.OrderPlan), "tree": (every_tree, cep.TreePlan)}
    for kind in kinds:
        listed, made = ways[kind]
        for parts in _together([[*listed(its)] for its in names]):
            plans = [made(part) for part in parts]
            plan = plans[0] if len(plans) == 1 else cep.UnionPlan(plans)
            if refused(entry, pattern, plan) is None:
                yield plan


@pytest.mark.seeded
@pytest.mark.parametrize(
    ("number", "text", "events", "expected"),
    [(number, *example) for number, example in enumerate(worked_by_hand())],
)
def test_every_plan(number: int, text: str, events: pd.DataFrame, expected: set[Labelled]) -> None:
    """By the evaluators that run it in turn, the first plans by all; in a soak all of it by all."""
    pattern = cep.parse(f"PATTERN {text}")
    assert twin(pattern, events) == expected
    case = Case(pattern, events)
    stream = case.stream
    evaluators = able(pattern)
    assert evaluators
    singly = [*stream.batches(1)]
    restored = [row % 4 == 1 for row in range(len(singly))]
    runners: dict[str, tuple[Any, list[str]]] = {}
    for turn, name in enumerate(evaluators, number):
        plans = [*every_plan(pattern, name)]
        if plans and (SOAK is not None or turn % LIVE == 0):
            check_in_batches(case, expected, plans[0], name, singly, restored)
        for plan in plans:
            runners.setdefault(repr(plan), (plan, []))[1].append(name)
    for turn, (plan, names) in enumerate(runners.values()):
        in_turn = [names[turn % len(names)]]
        for name in in_turn if SOAK is None and turn > 1 else names:
            result = cep.evaluate(pattern, stream, plan, evaluator=name)
            assert set(found_in(pattern, result.matches)) == expected, (name, plan)
