"""Changing the plan in mid-stream changes no match: none is reported twice, later, or never."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.adaptation.adapt import adapt
from cepbench.engines.adaptation.detector import AdaptiveDetector
from cepbench.engines.adaptation.policies import adaptation_policy
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.patterns.model import Operator, Pattern
from cepbench.planning.plans.model import AnyPlan, OrderPlan, TreePlan
from tests.budgets import examples, only_compiled
from tests.engines.adaptation.drifting import segments
from tests.engines.detection.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    able,
    branch_plans,
)
from tests.engines.detection.strategies import batches_of, cases, events_of, stream_of
from tests.naive.matcher import naive_matches

pytestmark = pytest.mark.kernel

ALL = FAMILIES | GROUP_FAMILIES


def planned(pattern: Pattern) -> list[str]:
    """The evaluators that run the pattern by plans of generators."""
    return [name for name in able(pattern) if {"order", "tree"} & {*EVALUATORS[name].kinds}]


def generator_of(plan: AnyPlan) -> str:
    """A generator of plans of the same kind."""
    return {"order": "GREEDY", "tree": "ZSTREAM"}[plan.kind]


@pytest.fixture(autouse=True)
def always() -> None:
    """A policy that plans every round anew."""

    @adaptation_policy("always")
    def planned_anew(situation: object) -> str:
        return "again"


@given(data=st.data())
@examples(3)
def test_every_evaluator_whatever_the_rounds(data: st.DataObject) -> None:
    """Which plans run in which rounds does not depend on how the stream is divided."""
    case = data.draw(cases(sizes=(2, 4), operators=(Operator.SEQ,)))
    assume(case.pattern.window.length)
    for evaluator in planned(case.pattern):
        initial = data.draw(branch_plans(evaluator, case.pattern))
        how: dict[str, Any] = {
            "generator": generator_of(initial),
            "evaluator": evaluator,
            "policy": "always",
            "gain": 0.0,
            "batch_size": data.draw(st.integers(1, 9)),
            "initial": initial,
        }
        result = adapt(case.pattern, case.stream, **how)
        expected = evaluate(case.pattern, case.stream, initial, evaluator=evaluator)
        pd.testing.assert_frame_equal(result.matches, expected.matches)
        detector = AdaptiveDetector(case.pattern, **how)
        for batch in data.draw(batches_of(case.stream)):
            detector.push(batch)
        columns = ["old", "new", "predicted_gain", "reason"]
        pd.testing.assert_frame_equal(detector.switches[columns], result.switches[columns])
        rounds = result.switches["position"] // how["batch_size"]
        assert (detector.switches["position"] // how["batch_size"]).tolist() == rounds.tolist()


def test_a_group_with_a_used_event_is_no_smaller_group() -> None:
    """Events used by a match before the switch still fit a group, which then is used up as a whole."""
    stream = stream_of(events_of("A@1 A@1 B@2 C@3 B@4 C@5"))
    pattern = "PATTERN SEQ(A a, GROUP(B b, +), C c) STRATEGY consuming WITHIN 9 units"
    expected = evaluate(pattern, stream, OrderPlan(["a", "c"])).matches
    assert expected.values.tolist() == [[0, (2,), 3]]
    detector = AdaptiveDetector(
        pattern, generator="GREEDY", policy="static", initial=OrderPlan(["a", "c"])
    )
    assert len(detector.push(stream[:4])) == 1
    detector.switch(OrderPlan(["c", "a"]))
    assert detector.push(stream[4:]).empty
    assert detector.flush().empty


def test_a_switch_replays_what_ruled_an_earlier_match_out() -> None:
    """A@5 and B@4 are no match for C@2, or A@5 would be used up; at 10, they are two windows old."""
    events = events_of("A@0 B@0 C@0 B@30 C@31 C@32 B@34 A@35 B@37 B@38 A@40 C@40")
    pattern = cep.parse(
        "PATTERN AND(A a, B b, NOT(C n)) WHERE b.x < 5 STRATEGY consuming WITHIN 3 units"
    )
    events["x"] = [9, 9, 9, 9, 9, 9, 1, 1, 1, 9, 9, 9]
    stream = stream_of(events)
    assert naive_matches(pattern, events) == {(7, 8)}
    for evaluator in planned(pattern):
        is_order = "order" in EVALUATORS[evaluator].kinds
        plans = [OrderPlan([*"ab"]), OrderPlan([*"ba"])]
        if not is_order:
            plans = [TreePlan((*"ab",)), TreePlan((*"ba",))]
        for place in range(3, len(events)):
            detector = AdaptiveDetector(
                pattern, generator=generator_of(plans[0]), evaluator=evaluator, policy="static",
                initial=plans[0],
            )  # fmt: skip
            found = [detector.push(stream[:place])]
            detector.switch(plans[1])
            found += [detector.push(stream[place:]), detector.flush()]
            assert [row for one in found for row in one.values.tolist()] == [[7, 8]]


@only_compiled
def test_a_long_stream_with_a_window_much_shorter_than_a_round() -> None:
    """Events that are no longer needed are dropped, and what is needed is there."""
    stream = segments((0.02, 0.49, 0.49), (0.49, 0.49, 0.02), size=4000)
    for structure in ("A a, B b, C c", "NOT(B n), A a, C c, NOT(A m)", "A a, NOT(B n), B b, C c"):
        pattern = f"PATTERN SEQ({structure}) WHERE c.x < a.x WITHIN 12 units"
        result = adapt(
            pattern, stream, generator="DP-LD", batch_size=500, policy="always", gain=0.0
        )
        assert len(result.switches) >= 1
        expected = evaluate(pattern, stream, result.plan)
        assert len(expected.matches) > 50
        pd.testing.assert_frame_equal(result.matches, expected.matches)
    detector = AdaptiveDetector(pattern, initial=TreePlan((("a", "b"), "c")), batch_size=500)
    kept = []
    for batch in stream.batches(7):
        detector.push(batch)
        if detector.position % 700 == 0:
            kept.append(sum(array.nbytes for array in detector.snapshot().values()))
    assert max(kept[5:]) < 1.5 * max(kept[:5])
