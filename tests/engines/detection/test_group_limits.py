"""What is refused of patterns with groups, by name, and how much is kept of a stream."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PartialMatchLimitError, UnsupportedPatternError
from tests.budgets import examples
from tests.engines.detection.checks import check, check_in_batches, found_in
from tests.engines.detection.constructs import able, branch_plans
from tests.engines.detection.strategies import Case, batches_of, event_frames
from tests.naive.matcher import labelled_matches, naive_matches

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


@pytest.mark.kernel
@pytest.mark.parametrize(
    "structure",
    [
        "OR(SEQ(A a, GROUP(B b, +), C c), SEQ(A a, KL(B k), C c))",
        "OR(SEQ(A a, C c, NOT(B n)), SEQ(B d, GROUP(A b, 2), C c))",
        "OR(SEQ(A a, GROUP(B b, *)), SEQ(GROUP(A g, +), C c), SEQ(C c, B d, NOT(A n)))",
    ],
)
@given(data=st.data())
@examples(4)
def test_branches_consume_each_others_events(structure: str, data: st.DataObject) -> None:
    pattern = cep.parse(f"PATTERN {structure} STRATEGY consuming WITHIN 6 units")
    case = Case(pattern, data.draw(event_frames(("A", "B", "C"), most=14)))
    expected = labelled_matches(pattern, case.events)
    batches = data.draw(batches_of(case.stream))
    for evaluator in able(pattern):
        plan = data.draw(branch_plans(evaluator, pattern))
        check(case, expected, plan, evaluator)
        check_in_batches(case, expected, plan, evaluator, batches, [True] * len(batches))


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


def test_the_state_is_that_of_a_few_windows() -> None:
    pattern = cep.parse(TEXT.replace("NOT(D n)", "NOT(A n)").replace("WITHIN 9", "WITHIN 3"))
    detector = cep.Detector(pattern, cep.OrderPlan(["a", "c"]))
    sizes, found = [], 0
    for batch in stream().batches(10):
        found += len(detector.push(batch))
        sizes.append(sum(array.nbytes for array in detector.snapshot().values()))
    assert found + len(detector.flush()) == 500
    assert max(sizes[100:]) <= 1.2 * max(sizes[10:30])


def test_too_many_matches_that_wait() -> None:
    pattern = cep.parse("PATTERN SEQ(A a, C c, GROUP(B b, *)) WITHIN 1500 units")
    detector = cep.Detector(pattern, cep.OrderPlan(["a", "c"]), partial_match_limit=1_000)
    with pytest.raises(PartialMatchLimitError, match="wait for the end of their window"):
        detector.push(stream())
