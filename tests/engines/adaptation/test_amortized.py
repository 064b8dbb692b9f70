"""By default adapting is a small share of a run: joins of long windows, which take minutes uncompiled."""

from __future__ import annotations

import numpy as np
import pandas as pd

import cepbench as cep
from cepbench.engines.adaptation.averages import rounds_of
from cepbench.engines.adaptation.policies import Situation, amortized
from cepbench.engines.adaptation.rounds import SAMPLES, SAMPLING, SHARE
from cepbench.planning.costs.engine_work import opening_seconds
from tests.engines.adaptation.drifting import DRIFT, SEGMENT, SIZE, STEADY
from tests.engines.detection.strategies import stream_of

PATTERN = "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN {} units"

#: Its best order begins with the rarest event.
UNCONDITIONAL = "PATTERN SEQ(A a, B b, C c) WITHIN 600 units"

#: Windows in which a run takes a few milliseconds, and some tenths of a second.
SHORT, LONG = 20, 600

HOW = {
    "generator": "DP-LD",
    "batch_size": SIZE,
    "output": "count",
    "evaluator": "lazy-nfa-instances",
}


def asked(window: int, stream: cep.EventStream = DRIFT) -> tuple[list[Situation], cep.Result]:
    """The situations in which the default policy was asked, and what was found."""
    seen: list[Situation] = []

    @cep.adaptation_policy("as by default", amortizes=True)
    def as_by_default(situation: Situation) -> str | None:
        seen.append(situation)
        return amortized(situation)

    found = cep.adapt(PATTERN.format(window), stream, policy="as by default", **HOW)
    return seen, found


def test_a_short_run_is_left_alone() -> None:
    """Its averages are there for whoever asks for them."""
    seen, found = asked(SHORT)
    assert not seen and found.switches.empty
    by_threshold = cep.adapt(PATTERN.format(SHORT), DRIFT, policy="threshold", **HOW)
    assert not by_threshold.switches.empty
    pd.testing.assert_frame_equal(found.statistics, by_threshold.statistics)
    assert found.metrics.matches == by_threshold.metrics.matches


def test_a_long_run_follows_the_stream() -> None:
    pattern = UNCONDITIONAL
    found = cep.adapt(pattern, DRIFT, **HOW)
    assert not found.switches.empty
    assert (found.switches["position"] >= SEGMENT).all()
    assert found.plan.order[0] == "c"
    assert found.metrics.matches == cep.evaluate(pattern, DRIFT, found.plan).metrics.matches


def test_samples_take_a_small_share() -> None:
    """Of the run by its counted work, so that a longer one is asked for more often."""
    often = [0]
    for window in (SHORT, LONG // 2, LONG):
        seen, found = asked(window, STEADY)
        samples = len(seen) and len(seen) + rounds_of(SIZE) - 1
        counted = sum(situation.plans.counted_seconds(found.metrics) for situation in seen[:1])
        assert samples * SAMPLING * opening_seconds() <= 1.1 * SAMPLES * counted
        often.append(len(seen))
    assert often[1] == 0 < often[2] < often[3]


def test_plans_take_a_small_share() -> None:
    """And no more than one a round, where they do not."""
    made: list[object] = []
    plans = []

    @cep.plan_generator("NOTED", kind="order")
    def noted(problem, rng):
        made.append(problem)
        return [0, 1, 2]

    @cep.adaptation_policy("always")
    def always(situation: Situation) -> str | None:
        return "again"

    @cep.adaptation_policy("eager", amortizes=True)
    def eager(situation: Situation) -> str | None:
        plans.append(situation.plans)
        return "again"

    how = {**HOW, "generator": "NOTED"}
    found = cep.adapt(PATTERN.format(LONG), STEADY, policy="eager", **how)
    # Two are made to check the arguments, and for the first round.
    few = len(made) - 2
    counted = plans[0].counted_seconds(found.metrics)
    assert 0 < few * plans[0].planning_seconds <= SHARE * counted
    assert found.switches.empty
    made.clear()
    cep.adapt(PATTERN.format(LONG), STEADY, policy="always", **how)
    assert few < len(made) - 2 == len(STEADY) // SIZE


def test_a_plan_that_only_the_cost_prefers_is_not_installed() -> None:
    @cep.cost_model("UPSIDE DOWN", of="join")
    def upside_down(problem, left, right):
        return 1.0 / problem.partial_matches(left + right) if right else 0.0

    good = cep.OrderPlan(["a", "c", "b"])
    how = {**HOW, "cost": "UPSIDE DOWN", "initial": good}
    stream = STEADY
    by_threshold = cep.adapt(PATTERN.format(600), stream, policy="threshold", **how)
    assert not by_threshold.switches.empty
    found = cep.adapt(PATTERN.format(600), stream, **how)
    assert found.plan == good
    assert found.metrics.matches == by_threshold.metrics.matches
    # But one that takes less time is.
    bad = cep.OrderPlan(["b", "c", "a"])
    (switch,) = cep.adapt(PATTERN.format(600), stream, **HOW, initial=bad).switches.itertuples()
    assert switch.reason == "the running plan was made without statistics"


def test_a_snapshot_keeps_what_was_spent() -> None:
    pattern = UNCONDITIONAL
    one, restored = (cep.AdaptiveDetector(pattern, **HOW) for _ in range(2))
    for batch in DRIFT.batches(SIZE // 2):
        assert one.push(batch) == restored.push(batch)
        restored = cep.AdaptiveDetector.restore(restored.snapshot())
    columns = ["position", "old", "new", "predicted_gain", "reason"]
    assert not one.switches.empty
    pd.testing.assert_frame_equal(restored.switches[columns], one.switches[columns])


def test_a_stream_that_swings_is_not_followed() -> None:
    """A change has to last; each plan that comes back doubles how long."""
    segment = 2 * rounds_of(SIZE) * SIZE
    parts = [DRIFT[:segment], DRIFT[SEGMENT : SEGMENT + segment]] * 3
    codes = np.concatenate([part.type_codes for part in parts])
    times, x = np.arange(len(codes)), np.zeros(len(codes))
    events = {"type": np.take(DRIFT.type_names, codes), "time": times, "x": x}
    stream = stream_of(pd.DataFrame(events))
    found = cep.adapt(UNCONDITIONAL, stream, **HOW)
    eager = cep.adapt(UNCONDITIONAL, stream, policy="threshold", **HOW)
    assert len(found.switches) < len(eager.switches)
    assert found.metrics.matches == eager.metrics.matches
