"""By default adapting is a small share of a run: joins of long windows, which take minutes uncompiled."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.adaptation import averages, rounds
from cepbench.engines.adaptation.averages import rounds_of
from cepbench.engines.adaptation.policies import Situation, amortized
from cepbench.kernels.sampling import draw_candidates
from tests.engines.adaptation.drifting import DRIFT, SEGMENT, SIZE, STEADY

pytestmark = pytest.mark.kernel

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


def test_a_short_run_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even sampled, but for its first plan, unless somebody asks for the averages."""
    sampled: list[int] = []

    def counted(codes: np.ndarray, *more: object) -> object:
        sampled.append(len(codes))
        return draw_candidates(codes, *more)

    monkeypatch.setattr(averages, "draw_candidates", counted)
    seen, found = asked(SHORT)
    assert not seen and found.switches.empty
    assert len(sampled) == 1
    by_threshold = cep.adapt(PATTERN.format(SHORT), DRIFT, policy="threshold", **HOW)
    assert not by_threshold.switches.empty
    pd.testing.assert_frame_equal(found.statistics, by_threshold.statistics)
    assert found.metrics.matches == by_threshold.metrics.matches


def test_a_long_run_follows_the_stream() -> None:
    pattern = UNCONDITIONAL
    found, again = (cep.adapt(pattern, DRIFT, **HOW) for _ in range(2))
    assert found.switches["position"].tolist() == again.switches["position"].tolist()
    assert (found.switches["position"] >= SEGMENT).all()
    assert found.plan.order[0] == "c"
    assert found.metrics.matches == cep.evaluate(pattern, DRIFT, found.plan).metrics.matches


@pytest.mark.parametrize("window", [300, 600])
def test_samples_take_a_small_share(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the run by its counted work; ten times the share is asked for more often."""
    seen, found = asked(window, STEADY)
    price = rounds.SAMPLING * rounds.opening_seconds()
    shown = min(rounds_of(SIZE), 2 * SEGMENT // SIZE) if seen else 0
    counted = sum(situation.plans.counted_seconds(found.metrics) for situation in seen[:1])
    assert max(len(seen), shown) * price <= 1.1 * rounds.SAMPLES * counted
    monkeypatch.setattr(rounds, "SAMPLES", 10 * rounds.SAMPLES)
    more, _ = asked(window, STEADY)
    assert len(more) > len(seen)


def test_what_is_spent_is_not_spent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans, in every round that affords one."""

    @cep.adaptation_policy("eager", amortizes=True)
    def eager(situation: Situation) -> str | None:
        return "again"

    made: list[Situation] = []

    @cep.plan_generator("NOTED", kind="order")
    def noted(problem, rng):
        made.append(problem)
        return [0, 1, 2]

    how = {**HOW, "generator": "NOTED"}
    found = cep.adapt(PATTERN.format(LONG), STEADY, policy="eager", **how)
    few = len(made)
    monkeypatch.setattr(rounds, "SHARE", 100.0)
    made.clear()
    cep.adapt(PATTERN.format(LONG), STEADY, policy="eager", **how)
    # Two are made to check the arguments, and for the first round.
    assert 2 < few < len(made), few
    assert found.switches.empty


def test_a_plan_that_only_the_cost_prefers_is_not_installed() -> None:
    @cep.cost_model("UPSIDE DOWN", of="join")
    def upside_down(problem, left, right):
        return 1.0 / problem.partial_matches(left + right) if right else 0.0

    good = cep.OrderPlan(["a", "c", "b"])
    how = {**HOW, "cost": "UPSIDE DOWN", "initial": good}
    stream = STEADY[:SEGMENT]
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
