"""Measured detection latency: as many values as matches, in order, and nothing else changed by it.

How long anything takes is not tested here: only what must hold on the slowest machine, too.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pandas as pd
import pytest

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, UnionPlan
from tests.engines.detection.checks import Plan
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import events_of, stream_of

pytestmark = pytest.mark.kernel

PATTERNS = {
    "sequence": "SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 20 units",
    "conjunction": "AND(A a, B b) WHERE a.x < b.x WITHIN 6 units",
    "one variable": "SEQ(A a) WHERE a.x > 0 WITHIN 6 units",
    "negation": "SEQ(A a, NOT(B n), C c) WITHIN 20 units",
    "waiting negation": "SEQ(A a, C c, NOT(B n)) WHERE n.x > a.x WITHIN 20 units",
    "sets": "SEQ(A a, KL(B b), C c) WITHIN 12 units",
    "branches": "OR(SEQ(A a, B b), AND(B b, C c)) WITHIN 6 units",
    "contiguity": "SEQ(A a, B b) STRATEGY strict_contiguity WITHIN 9 units",
    "consuming": "SEQ(A a, B b, C c) STRATEGY consuming WITHIN 20 units",
}
QUANTILES = ("median", "p95", "p99", "maximum")

TIMED = [entry.name for entry in EVALUATORS.values() if entry.latency]
each_evaluator = pytest.mark.parametrize("evaluator", TIMED)


def plan_for(text: str) -> Plan:
    plans = [OrderPlan(b.positive_names[::-1]) for b in parse(f"PATTERN {text}").branches()]
    return plans[0] if len(plans) == 1 else UnionPlan(plans)


@pytest.fixture(scope="module")
def events() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    count = 400
    return pd.DataFrame(
        {
            "type": pd.Categorical(rng.choice(list("ABC"), count), categories=list("ABC")),
            "time": np.cumsum(rng.integers(0, 3, count)),
            "x": rng.normal(size=count),
        }
    )


@pytest.mark.parametrize(
    ("name", "evaluator"),
    [
        (name, evaluator)
        for name in PATTERNS
        for evaluator in able(parse(f"PATTERN {PATTERNS[name]}"))
        if evaluator in TIMED
    ],
)
def test_one_latency_a_match_and_the_same_matches(
    name: str, evaluator: str, events: pd.DataFrame
) -> None:
    pattern, plan = parse(f"PATTERN {PATTERNS[name]}"), plan_for(PATTERNS[name])
    stream = stream_of(events)
    plain = evaluate(pattern, stream, plan, evaluator=evaluator)
    began = time.perf_counter()
    timed = evaluate(pattern, stream, plan, evaluator=evaluator, latency=True)
    passed = time.perf_counter() - began
    pd.testing.assert_frame_equal(timed.matches, plain.matches)
    assert plain.latency is None
    latency = timed.latency
    assert latency is not None
    assert latency.count == timed.metrics.matches == len(timed.matches) > 20
    values = [getattr(latency, quantile) for quantile in QUANTILES]
    assert values[0] >= 0
    assert values == sorted(values)
    assert 0 <= latency.mean <= latency.maximum
    # No match waits longer than the whole run; bins are 1.1 % wide.
    assert latency.maximum <= 1.02 * passed
    for quantile in ("mean", "median", "p95", "p99"):
        assert timed.metrics.to_dict()[f"latency_{quantile}"] == getattr(latency, quantile)
        assert math.isnan(plain.metrics.to_dict()[f"latency_{quantile}"])
    # What an evaluation takes in work does not depend on whether it is timed.
    # (Of ZStream it does: a round of one timestamp discards less before it joins.)
    keys = ["matches", "events"]
    if evaluator != "zstream":
        keys += ["partial_matches_created", "peak_partial_matches"]
    for key in keys:
        assert getattr(timed.metrics, key) == getattr(plain.metrics, key), key
    counted = evaluate(pattern, stream, plan, evaluator=evaluator, output="count", latency=True)
    assert counted.latency is not None
    assert counted.latency.count == counted.metrics.matches == len(timed.matches)
    assert 0 <= counted.latency.median <= counted.latency.maximum


@each_evaluator
def test_no_match_no_latency(evaluator: str) -> None:
    pattern = parse("PATTERN SEQ(A a, B b) WITHIN 9 units")
    for text in ("A@1 A@2", ""):
        stream = stream_of(events_of(text) if text else events_of("A@1").iloc[:0])
        result = evaluate(pattern, stream, OrderPlan(["a", "b"]), evaluator=evaluator, latency=True)
        assert result.latency is not None
        assert result.latency.count == 0
        for field in ("mean", *QUANTILES):
            assert math.isnan(getattr(result.latency, field)), field
        assert result._repr_html_()
        assert result.describe()


@each_evaluator
@pytest.mark.parametrize("name", ["sequence", "waiting negation", "sets", "branches", "consuming"])
def test_a_snapshot_keeps_what_was_measured(
    name: str, evaluator: str, events: pd.DataFrame
) -> None:
    pattern, plan = parse(f"PATTERN {PATTERNS[name]}"), plan_for(PATTERNS[name])
    if evaluator not in able(pattern):
        pytest.skip("it does not run this pattern")
    stream = stream_of(events)
    whole = Detector(pattern, plan, evaluator=evaluator, latency=True)
    whole.push(stream)
    whole.flush()
    detector = Detector(pattern, plan, evaluator=evaluator, latency=True)
    detector.push(stream[:200])
    before = detector.metrics()
    detector = Detector.restore(detector.snapshot())
    after = detector.metrics()
    assert after.to_dict() == pytest.approx(before.to_dict(), nan_ok=True)
    detector.push(stream[200:])
    detector.flush()
    assert detector.metrics().matches == whole.metrics().matches
    assert detector.metrics().to_dict()["latency_median"] >= 0


def test_a_result_tells_its_latency(events: pd.DataFrame) -> None:
    pattern, plan = parse(f"PATTERN {PATTERNS['sequence']}"), plan_for(PATTERNS["sequence"])
    timed = evaluate(pattern, stream_of(events), plan, latency=True)
    assert "latency" in timed.describe()
    assert "latency" in timed._repr_html_()
