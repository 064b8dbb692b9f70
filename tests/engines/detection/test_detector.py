"""Events in batches: whatever the cuts, the same matches; state that can be put away."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cepbench.engines.adaptation.detector import AdaptiveDetector
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.errors import (
    PartialMatchLimitError,
    StreamError,
)
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan
from cepbench.streams.event_stream import EventStream
from tests.engines.detection.strategies import (
    plan_for,
    stream_of,
)

PATTERN = parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x AND b.s = c.s WITHIN 30 units")
PLAN = OrderPlan(["c", "a", "b"])


def random_events(count: int, *, seed: int = 0, types: str = "ABC") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "type": pd.Categorical(rng.choice(list(types), count), categories=list("ABCD")),
            "time": np.sort(rng.integers(0, 2 * count, count)),
            "x": rng.normal(size=count),
            "s": rng.choice(["p", "q", "r"], count),
        }
    )


def rows(matches: pd.DataFrame | int) -> list[tuple[int, ...]]:
    assert isinstance(matches, pd.DataFrame)
    return [tuple(row) for row in matches.to_numpy().tolist()]


CONTINUE = """
import json, pickle, sys
from cepbench.engines.detection.detector import Detector
with open(sys.argv[1], "rb") as file:
    snapshots, batches = pickle.load(file)
told = []
for snapshot in snapshots:
    detector = Detector.restore(snapshot)
    found = [row for batch in batches for row in detector.push(batch).to_numpy().tolist()]
    told.append([found, detector.position, detector.metrics().comparisons])
print(json.dumps(told))
"""


def test_goes_on_in_another_process(tmp_path: Path) -> None:
    stream = stream_of(random_events(150))
    rest = [stream[70:90], stream[90:]]
    detectors = [
        Detector(PATTERN, PLAN, evaluator="lazy-nfa"),
        Detector(PATTERN, TreePlan(("b", ("a", "c"))), evaluator="tree"),
    ]
    before = [rows(detector.push(stream[:70])) for detector in detectors]
    snapshots = [dict(detector.snapshot()) for detector in detectors]
    (tmp_path / "state.pickle").write_bytes(pickle.dumps((snapshots, rest)))
    run = subprocess.run(
        [sys.executable, "-c", CONTINUE, "state.pickle"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    whole = sorted(rows(evaluate(PATTERN, stream, PLAN).matches))
    told = json.loads(run.stdout)
    for detector, first, (after, position, comparisons) in zip(
        detectors, before, told, strict=True
    ):
        assert first
        assert after
        assert sorted([*first, *map(tuple, after)]) == whole
        assert position == len(stream)
        for batch in rest:
            detector.push(batch)
        assert comparisons == detector.metrics().comparisons > 0


def test_partial_match_limit_bounds_memory() -> None:
    """A burst that would make millions of partial matches ends early and small."""
    events = pd.DataFrame({"type": ["A", "B", "C"] * 3000, "time": np.zeros(9000, np.int64)})
    pattern = parse("PATTERN AND(A a, B b, C c) WITHIN 1 units")
    detector = Detector(pattern, OrderPlan(["a", "b", "c"]), partial_match_limit=1000)
    with pytest.raises(PartialMatchLimitError):
        detector.push(stream_of(events))
    assert detector.node_metrics()["peak_stored"].max() <= 9000
    # Leaves of 3 x 3000 events, and rows of at most 1000 partial matches in doubled arrays.
    state = detector._run._engines[0].state
    assert state.ints.nbytes + state.floats.nbytes < 2_000_000


def test_partial_matches_may_be_many_over_time_under_the_limit() -> None:
    """What has expired counts no more."""
    count = 2_000
    events = pd.DataFrame({"type": ["A", "B"] * count, "time": np.arange(2 * count)})
    pattern = parse("PATTERN AND(A a, B b, C c) WITHIN 4 units")
    result = evaluate(
        pattern, stream_of(events.assign(type=pd.Categorical(events["type"], list("ABC")))),
        OrderPlan(["a", "b", "c"]), partial_match_limit=40,
    )  # fmt: skip
    assert result.metrics.partial_matches_created > 1000
    assert result.metrics.peak_partial_matches <= 40


def test_unknown_type_suggests_the_nearest() -> None:
    frame = pd.DataFrame({"type": ["MSFT", "GOOG"], "time": [1, 2]})
    pattern = parse("PATTERN SEQ(MSFT a, GOOGL b) WITHIN 1 units")
    with pytest.raises(StreamError, match=r"'GOOGL'.*'b'.*did you mean 'GOOG'"):
        evaluate(pattern, stream_of(frame), OrderPlan(["a", "b"]), missing_types="error")
    # A batch need not hold every type: the others may come later.
    assert rows(Detector(pattern, OrderPlan(["a", "b"])).push(stream_of(frame))) == []


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("is_datetime", [False, True], ids=["integer", "datetime"])
def test_empty_stream(evaluator: str, is_datetime: bool) -> None:
    unit = "seconds" if is_datetime else "units"
    pattern = parse(f"PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 {unit}")
    empty: EventStream = stream_of(random_events(0), is_datetime=is_datetime)
    plan = plan_for(evaluator, OrderPlan(["a", "b"]))
    result = evaluate(pattern, empty, plan, evaluator=evaluator)
    assert list(result.matches.columns) == ["a", "b"]
    assert len(result.matches) == result.metrics.matches == result.metrics.events == 0


@pytest.mark.parametrize("kind", [Detector, AdaptiveDetector])
def test_help_shows_the_arguments_of_a_detector(kind: type) -> None:
    shown = inspect.signature(kind).parameters
    assert ["self", *shown] == [*inspect.signature(kind.__init__).parameters]
