"""What is refused of patterns with groups, by name, and how much is kept of a stream."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import PartialMatchLimitError, UnsupportedPatternError
from tests.engines.detection.checks import found_in
from tests.naive.matcher import naive_matches

TEXT = "PATTERN SEQ(A a, GROUP(B b, +), C c, NOT(D n)) WITHIN 9 units"
EVENTS = pd.DataFrame({"type": list("ABBC") * 500, "time": np.arange(2_000), "x": 1.0})


def stream() -> cep.EventStream:
    return cep.EventStream.from_pandas(EVENTS, type="type", time="time")


REFUSED: dict[str, tuple[str, Callable[[], object]]] = {
    "Spark's SQL": ("GROUP is not written for spark", lambda: cep.to_sql(TEXT, dialect="spark")),
    "SQL of a group's values": (
        r"RETURN sum\(b\[\].x\) reads values of a group's events",
        lambda: cep.to_sql(f"{TEXT} RETURN sum(b[].x)"),
    ),
    "SQL of a group beside a negated item": (
        "n.x < b.x compares the events of a group with a negated item",
        lambda: cep.to_sql(TEXT.replace("WITHIN", "WHERE n.x < b.x WITHIN")),
    ),
    "SQL of groups that share events": (
        r"GROUP\(B b, \+\) and GROUP\(B d, 2\) may share an event",
        lambda: cep.to_sql(
            "PATTERN AND(SEQ(A a, GROUP(B b, +), C c), SEQ(A e, GROUP(B d, 2), C f)) WITHIN 9 units"
        ),
    ),
    "latency": (
        "latency of matches with groups is not measured",
        lambda: cep.Detector(TEXT, cep.OrderPlan(["a", "c"]), latency=True),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    words, ask = REFUSED[name]
    with pytest.raises(UnsupportedPatternError, match=words):
        ask()


def test_plans_are_over_the_plain_variables() -> None:
    with pytest.raises(cep.errors.PlanError, match="b"):
        cep.Detector(TEXT, cep.OrderPlan(["a", "b", "c"]))


@pytest.mark.parametrize("below", [("c",), ("a", "c")])
def test_a_plan_may_place_negations(below: tuple[str, ...]) -> None:
    text = (
        "PATTERN SEQ(A a, GROUP(B b, +), NOT(B n), C c) WHERE b.x < 1 AND n.x <= c.x WITHIN 9 units"
    )
    events = EVENTS[:40].assign(x=np.arange(40) % 3)
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    plan = cep.TreePlan(("a", "c"), {"n": below})
    pattern = cep.parse(text)
    found = {row for _, row in found_in(pattern, cep.evaluate(text, stream, plan).matches)}
    assert found == naive_matches(pattern, events)
    without = cep.evaluate(text.replace("n.x <= c.x", "n.x < -1"), stream, plan, output="count")
    assert 0 < len(found) < without.metrics.matches


def test_too_many_matches_that_wait() -> None:
    pattern = cep.parse("PATTERN SEQ(A a, C c, GROUP(B b, *)) WITHIN 1500 units")
    detector = cep.Detector(pattern, cep.OrderPlan(["a", "c"]), partial_match_limit=1_000)
    with pytest.raises(PartialMatchLimitError, match="wait for the end of their window"):
        detector.push(stream())
