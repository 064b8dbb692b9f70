"""Conditions measured together against probabilities that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cepbench.errors import StatisticsError
from cepbench.patterns.parse import parse
from cepbench.planning.statistics.joint import JointConditions, measure_joint
from cepbench.streams.event_stream import EventStream
from tests.drawn_events import drawn_events, uniform


@pytest.fixture(scope="module")
def stream() -> EventStream:
    """x of one law for all types, but for D, whose x is always larger."""
    events = drawn_events(40_000, "ABCD", seed=3, x=uniform)
    events["x"] += events["type"] == "D"
    return EventStream.from_pandas(events, type="type", time="time")


def factor(stream: EventStream, conditions: str, names: str = "abcd", **more: int) -> float:
    pattern = parse(f"PATTERN AND(A a, B b, C c, D d) WHERE {conditions} WITHIN 9 units")
    return math.exp(measure_joint(pattern, stream, **more).log_factor(names))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ("a.x < b.x AND b.x < c.x", (1 / 6) / (1 / 4)),
        ("a.x < b.x AND c.x < b.x", (1 / 3) / (1 / 4)),
        ("a.x < b.x AND a.x < 0.5", (3 / 8) / (1 / 4)),  # a filter shares its variable too
        ("a.x < b.x AND c.x < d.x", 1),  # no variable in common
        ("a.x < b.x AND b.x > a.x + 0.5", 1),  # one pair, one selectivity
        ("a.x < b.x AND b.x < d.x", 1),  # the second always holds
    ],
)
def test_the_factor_of_known_laws(stream: EventStream, conditions: str, expected: float) -> None:
    assert factor(stream, conditions) == pytest.approx(expected, rel=0.02)


def test_only_conditions_among_the_given_variables_count(stream: EventStream) -> None:
    conditions = "a.x < b.x AND b.x < c.x AND c.x < d.x"
    assert factor(stream, conditions, "ab") == factor(stream, conditions, "acd") == 1
    assert factor(stream, conditions, "abc") == pytest.approx(2 / 3, rel=0.02)


def test_what_never_holds_together_counts_as_half_a_draw(stream: EventStream) -> None:
    found = factor(stream, "a.x < b.x AND b.x + 0.4 < c.x AND a.x > c.x - 0.2", draws=10_000)
    assert 0 < found < 0.02
    # A condition that never holds alone has selectivity 0 already.
    assert factor(stream, "a.x > d.x AND a.x < b.x") == 1


def test_the_same_seed_gives_the_same_and_another_one_nearly(stream: EventStream) -> None:
    conditions = "a.x < b.x AND b.x < c.x"
    first, again, other = (factor(stream, conditions, seed=seed) for seed in (1, 1, 2))
    assert first == again != other == pytest.approx(first, rel=0.03)


def test_conditions_on_sets_are_left_out(stream: EventStream) -> None:
    pattern = parse(
        "PATTERN SEQ(A a, KL(B b), C c) WHERE a.x < b.x AND b.x < c.x AND a.x < c.x WITHIN 9 units"
    )
    assert measure_joint(pattern, stream).variables == (frozenset("ac"),)


def test_what_cannot_be_drawn(stream: EventStream) -> None:
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9 units")
    with pytest.raises(StatisticsError, match="must be at least 1"):
        measure_joint(pattern, stream, draws=0)
    none_of_b = stream.of_types(["A"])
    with pytest.raises(StatisticsError, match="no event of type B"):
        measure_joint(pattern, none_of_b)


def test_variables_of_one_type_are_drawn_apart(stream: EventStream) -> None:
    pattern = parse("PATTERN AND(A a, A b, A c) WHERE a.x < b.x AND b.x < c.x WITHIN 9 units")
    found = measure_joint(pattern, stream)
    assert found.held.mean(axis=1) == pytest.approx([0.5, 0.5], abs=0.01)
    assert math.exp(found.log_factor("abc")) == pytest.approx(2 / 3, rel=0.02)


def test_half_a_draw_is_what_is_counted() -> None:
    held = np.zeros((2, 10), dtype=bool)
    held[0, :4] = held[1, 4:9] = True
    found = JointConditions((frozenset("ab"), frozenset("bc")), held)
    assert math.exp(found.log_factor("abc")) == pytest.approx((0.5 / 10) / (0.4 * 0.5))
    held[1, 3] = True
    assert math.exp(found.log_factor("abc")) == pytest.approx((1 / 10) / (0.4 * 0.6))
