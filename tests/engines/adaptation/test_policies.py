"""When plans are made anew, what they are made from, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.adaptation.policies import ADAPTATION_POLICIES, Situation
from cepbench.errors import (
    AdaptationError,
    CepbenchError,
    EvaluationError,
    SnapshotError,
    StreamError,
    UnsupportedTaskError,
)
from cepbench.planning.planners.greedy import greedy
from tests.contract.snapshots import header_of, with_digest, with_header
from tests.engines.adaptation.drifting import DRIFT, SEGMENT, SIZE, STEADY

PATTERN = cep.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 20 units")

#: The paper's policy plans whatever that costs.
HOW = {"generator": "DP-LD", "batch_size": SIZE, "policy": "threshold"}


def adapted(stream: cep.EventStream = DRIFT, **more: object) -> object:
    return cep.adapt(PATTERN, stream, **HOW | more)


@pytest.mark.parametrize("policy", ["threshold", "bound", "clairvoyant"])
def test_a_plan_is_replaced_when_the_stream_changes(policy: str) -> None:
    result = adapted(policy=policy)
    first, last = (
        cep.plan(PATTERN, cep.measure_statistics(PATTERN, DRIFT[:SIZE]), "DP-LD"),
        cep.plan(PATTERN, cep.measure_statistics(PATTERN, DRIFT[-SEGMENT:]), "DP-LD"),
    )
    assert first.order[0] == "a" and last.order[0] == "c"
    # The averages are over many of these rounds.
    assert len(result.switches) <= 3
    assert result.switches["position"].iloc[0] >= SEGMENT
    assert result.switches["old"].iloc[0].startswith("a")
    assert result.plan.order[0] == "c"
    assert (result.switches["predicted_gain"] > 0.1).all()
    assert (result.switches["seconds"] > 0).all()
    expected = cep.evaluate(PATTERN, DRIFT, last)
    pd.testing.assert_frame_equal(result.matches, expected.matches)
    assert result.metrics.matches == len(expected.matches)
    assert result.metrics.events == len(DRIFT)
    assert result.metrics.partial_matches_created > 0


@pytest.mark.parametrize("what", ["the same plan", "a plan that gains too little"])
def test_a_kept_plan_has_the_statistics_of_the_last_planning(what: str) -> None:
    """Or one change of the stream would be a reason to plan in every round after it."""
    seen: list[Situation] = []

    @cep.adaptation_policy("every-second")
    def every_second(situation: Situation) -> str | None:
        seen.append(situation)
        return "again" if situation.round % 2 else None

    @cep.plan_generator("MINE", kind="order")
    def mine(problem: object, rng: object) -> list[int]:
        return [0, 1, 2] if what == "the same plan" or len(seen) % 4 else [1, 0, 2]

    result = adapted(policy="every-second", generator="MINE", gain=1e9)
    assert result.switches.empty and len(seen) == 2 * SEGMENT // SIZE > 9
    for number, situation in enumerate(seen[2:], 2):
        # Those of the last round with an odd number, which was planned for.
        assert situation.planned is seen[number - 1 - number % 2].averages


def test_nothing_changes_where_nothing_does() -> None:
    assert adapted(STEADY).switches.empty
    result = adapted(policy="static")
    assert result.switches.empty
    assert list(result.switches) == [
        "position", "time", "old", "new", "predicted_gain", "reason", "seconds",
    ]  # fmt: skip


def test_a_given_plan_is_replaced_if_it_is_bad() -> None:
    bad = cep.OrderPlan(["b", "c", "a"])
    assert adapted(STEADY, initial=bad, policy="static").plan == bad
    result = adapted(STEADY, initial=bad)
    assert result.switches["reason"].tolist() == ["the running plan was made without statistics"]
    assert result.plan.order[0] == "a"
    # A plan has to be so much better.
    assert adapted(STEADY, initial=bad, gain=1000.0).switches.empty


def test_statistics_are_those_of_the_last_rounds() -> None:
    found = adapted().statistics
    assert found["position"].unique().tolist() == [*range(SIZE - 1, len(DRIFT), SIZE)]
    assert found["time"].tolist() == found["position"].tolist()
    rates = found[found["quantity"] == "events per second"].pivot(
        index="position", columns="variables", values="value"
    )
    assert rates["a"].iloc[0] == pytest.approx(0.02, abs=0.02)
    assert rates["a"].is_monotonic_increasing or rates["a"].iloc[-1] > 5 * rates["a"].iloc[0]


def test_bound_does_not_search_in_vain() -> None:
    """It asks for a plan only when the running one is far from the least cost there may be."""
    calls = []

    @cep.plan_generator("COUNTED", kind="order")
    def counted(problem, rng):
        calls.append(problem)
        return greedy(problem, rng)

    how = {"generator": "COUNTED", "batch_size": SIZE, "threshold": 0.0, "gain": 0.5}
    cep.adapt(PATTERN, STEADY, policy="bound", **how)
    # Without statistics, to check the arguments; and for the first round.
    assert len(calls) == 2
    calls.clear()
    found = cep.adapt(PATTERN, DRIFT, policy="bound", **how)
    assert len(calls) > 2
    assert len(found.switches) == 1


def test_user_defined_policies() -> None:
    seen: list[Situation] = []

    @cep.adaptation_policy("third")
    def third(situation):
        """Every third round."""
        seen.append(situation)
        return "the third round" if situation.round % 3 == 2 else None

    assert ADAPTATION_POLICIES["third"].description == "Every third round."
    result = adapted(policy="Third", gain=0.0)
    assert set(result.switches["reason"]) == {"the third round"}
    assert set(result.switches["position"] // SIZE % 3) == {2}
    assert [situation.round for situation in seen] == [*range(len(DRIFT) // SIZE)]
    assert all(situation.log_bound <= situation.log_cost + 1e-9 for situation in seen)
    assert {situation.pattern for situation in seen} == {PATTERN}
    assert {situation.cost.name for situation in seen} == {"throughput"}
    assert all(len(situation.problems) == 1 for situation in seen)


def test_wrong_policies_are_named() -> None:
    @cep.adaptation_policy("fails")
    def fails(situation):
        raise KeyError("x")

    @cep.adaptation_policy("wrong")
    def wrong(situation):
        return True

    with pytest.raises(AdaptationError, match=r"the policy fails failed: KeyError\('x'\)"):
        adapted(policy="fails")
    with pytest.raises(
        AdaptationError, match="the policy wrong returned True; it returns the reas"
    ):
        adapted(policy="wrong")
    with pytest.raises(AdaptationError, match="no adaptation policy 'treshold'"):
        adapted(policy="treshold")
    with pytest.raises(AdaptationError, match="the name of a built-in adaptation policy"):
        cep.adaptation_policy("static")(wrong)
    with pytest.raises(AdaptationError, match="an adaptation policy is a function"):
        cep.adaptation_policy("mine")(3)


def test_what_cannot_adapt_is_refused() -> None:
    @cep.plan_evaluator("whole")
    def whole(pattern, stream, plan):
        return cep.evaluate(pattern, stream, plan).matches

    refusals: dict[str, tuple[dict[str, object], type[CepbenchError]]] = {
        "the evaluator whole cannot take a stream in batches": (
            {"evaluator": "whole"}, UnsupportedTaskError,
        ),
        "is one of the tree plans and DP-LD makes order plans, whose costs are not comparable": (
            {"initial": cep.TreePlan(("a", ("b", "c")))}, AdaptationError,
        ),
        "does not run all tree plans, so it may not run the next one of ZSTREAM; tree": (
            {"generator": "ZSTREAM", "evaluator": "lazy-nfa"}, AdaptationError,
        ),
        "the evaluator stack-nfa cannot run order plans": (
            {"evaluator": "stack-nfa"}, UnsupportedTaskError,
        ),
        "threshold must be at least 0": ({"threshold": -1}, AdaptationError),
        "gain must be a number": ({"gain": "c"}, AdaptationError),
        "batch_size must be at least 1": ({"batch_size": 0}, AdaptationError),
        "seed must be": ({"seed": -1}, AdaptationError),
    }  # fmt: skip
    for message, (argument, error) in refusals.items():
        with pytest.raises(error, match=message):
            cep.adapt(PATTERN, DRIFT, **{"generator": "DP-LD", **argument})
    with pytest.raises(AdaptationError, match="a window of length 0 has no arrival rates"):
        cep.adapt("PATTERN AND(A a, B b) WITHIN 0 units", DRIFT)
    with pytest.raises(StreamError, match="no event of type 'D'"):
        cep.adapt("PATTERN SEQ(A a, D d) WITHIN 1 units", DRIFT, missing_types="error")


def test_returned_columns() -> None:
    pattern = f"{PATTERN} RETURN b, c.x"
    detector = cep.AdaptiveDetector(pattern, **HOW)
    pushed = pd.concat([detector.push(batch) for batch in DRIFT.batches(2700)])
    result = cep.adapt(pattern, DRIFT, **HOW)
    expected = cep.evaluate(pattern, DRIFT, result.plan).matches
    assert len(result.switches) >= 1 and len(expected) > 100
    pd.testing.assert_frame_equal(result.matches, expected)
    assert sorted(map(tuple, pushed.to_numpy())) == sorted(map(tuple, expected.to_numpy()))


def test_snapshots_resume_and_are_checked() -> None:
    detector = cep.AdaptiveDetector(PATTERN, **HOW)
    unstarted = cep.AdaptiveDetector.restore(detector.snapshot())
    for batch in DRIFT.batches(2700):
        detector.push(batch)
        unstarted.push(batch)
        unstarted = cep.AdaptiveDetector.restore(unstarted.snapshot())
    columns = ["position", "old", "new", "predicted_gain", "reason"]
    assert len(detector.switches) >= 1
    pd.testing.assert_frame_equal(unstarted.switches[columns], detector.switches[columns])
    assert unstarted.statistics == detector.statistics
    assert unstarted.plan.text == detector.plan.text
    snapshot = detector.snapshot()
    assert detector.metrics() == cep.AdaptiveDetector.restore(snapshot).metrics()
    with pytest.raises(SnapshotError, match="that of an adaptive detector"):
        cep.Detector.restore(snapshot)
    with pytest.raises(SnapshotError, match="that of a detector with one plan"):
        cep.AdaptiveDetector.restore(cep.Detector(PATTERN, detector.plan).snapshot())
    header = header_of(snapshot)
    header["adaptation"]["policy"] = "gone"
    with pytest.raises(SnapshotError, match="no adaptation policy 'gone'"):
        cep.AdaptiveDetector.restore(with_header(snapshot, header))
    for damage in (b"{}", b"[]"):
        damaged = with_digest(snapshot | {"known": np.frombuffer(damage, np.uint8)})
        with pytest.raises(SnapshotError):
            cep.AdaptiveDetector.restore(damaged)
    lacking = with_digest({k: v for k, v in snapshot.items() if k != "run/taken"})
    with pytest.raises(SnapshotError, match="no array 'run/taken'"):
        cep.AdaptiveDetector.restore(lacking)


def test_a_snapshot_keeps_its_generator_whatever_the_default_is() -> None:
    """As those do that were made when ZSTREAM was the default."""
    detector = cep.AdaptiveDetector(PATTERN, **HOW | {"generator": "ZSTREAM"})
    first, *others = DRIFT.batches(2700)
    detector.push(first)
    default = cep.AdaptiveDetector(PATTERN)
    default.push(first)
    assert default.plan.generator == "DP-B"
    restored = cep.AdaptiveDetector.restore(detector.snapshot())
    for batch in others:
        pd.testing.assert_frame_equal(restored.push(batch), detector.push(batch))
    columns = ["position", "old", "new", "predicted_gain", "reason"]
    assert len(detector.switches) >= 1
    pd.testing.assert_frame_equal(restored.switches[columns], detector.switches[columns])
    assert restored.plan.generator == detector.plan.generator == "ZSTREAM"


def test_a_requested_switch_is_checked() -> None:
    detector = cep.AdaptiveDetector(PATTERN, generator="DP-LD", evaluator="lazy-nfa")
    detector.push(DRIFT[:SIZE])
    detector.switch(cep.OrderPlan(["c", "b", "a"]), "because")
    assert detector.switches["reason"].tolist() == ["because"]
    with pytest.raises(AdaptationError, match="is one of the tree plans and DP-LD makes order"):
        detector.switch(cep.TreePlan((("a", "b"), "c")))
    with pytest.raises(CepbenchError, match="lacks variable 'c'"):
        detector.switch(cep.OrderPlan(["a", "b"]))
    with pytest.raises(UnsupportedTaskError, match="plans have different ones"):
        detector.node_metrics()
    with pytest.raises(UnsupportedTaskError, match=r"use cep\.evaluate or cep\.Detector"):
        _ = adapted(STEADY).nodes
    detector.flush()
    with pytest.raises(EvaluationError, match="was flushed"):
        detector.switch(cep.OrderPlan(["a", "b", "c"]))
