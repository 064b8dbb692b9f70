"""Small examples worked by hand, for every evaluator along every plan there is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan
from cepbench.streams.event_stream import EventStream
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import PLANNED, events_of, stream_of
from tests.naive.matcher import naive_matches

pytestmark = pytest.mark.kernel

#: The stream that the definition of a match is explained with.
STREAM = "A@1 B@2 A@3 C@3 B@4 C@5 B@5 C@9"

EXAMPLES = {
    "SEQ of two": (
        "SEQ(A a, B b) WITHIN 4 units",
        STREAM,
        [(0, 1), (0, 4), (0, 6), (2, 4), (2, 6)],
    ),
    "SEQ of three": (
        "SEQ(A a, B b, C c) WITHIN 4 units",
        STREAM,
        [(0, 1, 3), (0, 1, 5), (0, 4, 5), (2, 4, 5)],
    ),
    "AND": (
        "AND(B b, C c) WITHIN 4 units",
        STREAM,
        [(1, 3), (1, 5), (4, 3), (4, 5), (6, 3), (6, 5), (6, 7)],
    ),
    "one variable": ("SEQ(B b) WITHIN 4 units", STREAM, [(1,), (4,), (6,)]),
    "SEQ never at one time": ("SEQ(A a, B b) WITHIN 4 units", "A@1 B@1 A@1 B@1", []),
    "AND at one time": ("AND(A a, B b) WITHIN 0 units", "B@1 A@1 B@1 A@2", [(1, 0), (1, 2)]),
    "the window is closed": ("SEQ(A a, B b) WITHIN 4 units", "A@1 B@5 B@6", [(0, 1)]),
    "the window spans all events": (
        "SEQ(A a, B b, C c) WITHIN 4 units",
        "A@1 B@4 C@5 C@6 A@7",
        [(0, 1, 2)],
    ),
    "AND of one type: both assignments": (
        "AND(A a, A b) WITHIN 1 units",
        "A@1 A@2 A@4",
        [(0, 1), (1, 0)],
    ),
    "SEQ of one type": ("SEQ(A a, A b) WITHIN 9 units", "A@1 A@1 A@3", [(0, 2), (1, 2)]),
    "SEQ inside AND": (
        "AND(SEQ(A a, B b), C c) WITHIN 9 units",
        "A@1 C@2 B@3 B@3 A@4",
        [(0, 2, 1), (0, 3, 1)],
    ),
    "AND inside SEQ": (
        "SEQ(AND(A a, B b), C c) WITHIN 9 units",
        "C@1 B@2 A@3 C@3 C@4",
        [(2, 1, 4)],
    ),
    "negative times": ("SEQ(A a, B b) WITHIN 3 units", "A@-5 B@-2 B@0", [(0, 1)]),
}


def every_tree(names: tuple[str, ...]) -> Iterator[Any]:
    """All trees over the names, in every order of the leaves."""
    if len(names) == 1:
        yield names[0]
        return
    for size in range(1, len(names)):
        for chosen in itertools.combinations(names, size):
            others = tuple(name for name in names if name not in chosen)
            yield from itertools.product(every_tree(chosen), every_tree(others))


def every_plan(pattern: Pattern) -> Iterator[tuple[str, OrderPlan | TreePlan | None]]:
    """All plans, each with every evaluator that runs it."""
    yield from ((evaluator, None) for evaluator in able(pattern) if evaluator not in PLANNED)
    for order in itertools.permutations(pattern.names):
        yield from ((evaluator, OrderPlan(order)) for evaluator in PLANNED)
    for tree in every_tree(pattern.names):
        for evaluator in EVALUATORS.values():
            if "tree" in evaluator.kinds:
                yield evaluator.name, TreePlan(tree)


@pytest.mark.parametrize("example", EXAMPLES)
def test_by_hand(example: str) -> None:
    text, events, expected = EXAMPLES[example]
    pattern = parse(f"PATTERN {text}")
    frame = events_of(events)
    assert naive_matches(pattern, frame) == set(expected)
    for evaluator, plan in every_plan(pattern):
        result = evaluate(pattern, stream_of(frame), plan, evaluator=evaluator)
        found = sorted(map(tuple, result.matches.to_numpy().tolist()))
        assert found == expected, (evaluator, plan)


CONDITIONS = {
    "missing is less than nothing": ("a.x < b.x", {(0, 2)}),
    "missing is greater than nothing": ("a.x > b.x", {(0, 4)}),
    "missing differs from nothing": ("a.x != b.x", {(0, 2), (0, 4)}),
    "missing is not itself": ("a.x = a.x", {(0, 2), (0, 3), (0, 4)}),
    "a disjunct that is missing": ("a.x < b.x OR a.x = 5", {(0, 2), (0, 3), (0, 4)}),
    "missing text": ("a.s = b.s", {(0, 4)}),
    "another text": ("a.s != b.s", {(0, 2)}),
    "a text of no event": ("b.s = 'r'", set()),
    "division by zero is infinite": ("a.x / 0 > b.x", {(0, 2), (0, 4)}),
    "a filter": ("b.x < 5", {(0, 4), (1, 4)}),
}


@pytest.mark.parametrize("example", CONDITIONS)
def test_conditions_by_hand(example: str) -> None:
    text, expected = CONDITIONS[example]
    frame = pd.DataFrame(
        {
            "type": ["A", "A", "B", "B", "B"],
            "time": [1, 2, 3, 4, 5],
            "x": [5.0, float("nan"), 6.0, float("nan"), 4.0],
            "s": ["p", None, "q", None, "p"],
        }
    )
    pattern = parse(f"PATTERN SEQ(A a, B b) WHERE {text} WITHIN 9 units")
    assert naive_matches(pattern, frame) == expected
    for evaluator, plan in every_plan(pattern):
        result = evaluate(pattern, stream_of(frame), plan, evaluator=evaluator)
        assert {tuple(row) for row in result.matches.to_numpy().tolist()} == expected


def test_datetime_window_is_closed_to_the_nanosecond() -> None:
    times = ["2026-01-05 09:30:00", "2026-01-05 09:50:00", "2026-01-05 09:50:00.000000001"]
    frame = pd.DataFrame({"type": ["A", "B", "B"], "time": pd.to_datetime(times, format="ISO8601")})
    stream = EventStream.from_pandas(frame, type="type", time="time")
    pattern = parse("PATTERN SEQ(A a, B b) WITHIN 20 minutes")
    for evaluator, plan in every_plan(pattern):
        result = evaluate(pattern, stream, plan, evaluator=evaluator)
        assert result.matches.to_numpy().tolist() == [[0, 1]]


@pytest.mark.parametrize("y", [-1, -1.0])
def test_a_remainder_of_zero_has_the_sign_of_the_dividend(y: float) -> None:
    """-1 % -1 is -0, so that 1 / (-1 % -1) is less than everything."""
    events = pd.DataFrame({"type": list("AB"), "time": range(2), "x": 1.0, "y": y})
    stream = EventStream.from_pandas(events, type="type", time="time")
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x / (a.y % a.y) < b.x WITHIN 9 units")
    assert evaluate(pattern, stream, evaluator="stack-nfa").metrics.matches == 1
