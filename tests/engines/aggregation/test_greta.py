"""GRETA: conditions between neighbouring events, without matches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.aggregation import event_graphs
from cepbench.engines.aggregation.agreement import difference
from cepbench.engines.aggregation.protocol import SCOPES
from cepbench.errors import EvaluationError, PartialMatchLimitError
from tests.budgets import only_compiled
from tests.drawn_events import drawn_events, uniform
from tests.engines.detection.strategies import stream_of

pytestmark = pytest.mark.kernel


def trades(events: int, types: str, seed: int) -> cep.EventStream:
    rng = np.random.default_rng(seed)
    return stream_of(
        pd.DataFrame(
            {
                "type": rng.choice([*types], events),
                "time": np.sort(rng.integers(0, 2 * events, events)),
                "x": rng.integers(-4, 5, events) / 4,
                "k": rng.integers(0, 3, events),
            }
        )
    )


@pytest.mark.parametrize("scope", SCOPES)
def test_windows_that_move_over_a_long_stream(scope: str) -> None:
    """Rows and nodes are compacted many times, also within a batch."""
    pattern = (
        "PATTERN SEQ(NOT(D m), A a, KL(B b), NOT(D n), C c) WHERE [k] AND a.x < b[1].x "
        "AND b[i].x >= b[i-1].x AND b[last].x != c.x AND b[last].x < 1 AND a.x <= c.x "
        "AGG COUNT, SUM(b.x), MAX(c.x), AVG(a.k) WITHIN 60 units"
    )
    stream = trades(600, "ABBCCD", 5)
    expected = cep.aggregate(pattern, stream, "two-step", scope=scope)
    found = cep.aggregate(pattern, stream, "greta", scope=scope)
    assert difference(found.values, expected.values, found.pattern) is None
    assert (found.values["COUNT"] > 10).any()
    live = cep.Aggregator(pattern, "greta", scope=scope)
    rows = [row for batch in stream.batches(160) for row in live.take(batch)]
    assert rows == found.rows


def test_counts_beyond_64_bits() -> None:
    """2^k - 1 sets of non-decreasing values, counted by event."""
    k = 140
    frame = pd.DataFrame({"type": [*"A" + "B" * k + "C"], "time": range(k + 2), "w": 1})
    query = (
        "PATTERN SEQ(A a, KL(B b), C c) WHERE b[i].w >= b[i-1].w "
        "AGG COUNT, SUM(b.w) WITHIN 999 units"
    )
    (row,) = cep.aggregate(query, stream_of(frame), "greta").rows
    assert row.values == (2**k - 1, k * 2 ** (k - 1))
    assert cep.Aggregator(query).method == "greta"


def test_metrics() -> None:
    frame = pd.DataFrame({"type": [*"AABBC"], "time": range(5), "x": [1, 2, 3, 4, 5]})
    query = "PATTERN SEQ(A a, B b, C c) WHERE b.x < c.x AGG COUNT WITHIN 9 units"
    metrics = cep.aggregate(query, stream_of(frame), "greta").metrics
    # Two events before each b, and both b before c, of two starts each; four nodes.
    assert (metrics.updates, metrics.peak_objects) == (1 + 2 + 1 + 2 + 2 * 2, 4)
    assert metrics.peak_counters == (4 + 1) * 2


def test_first_events_of_one_timestamp_share_counters() -> None:
    """Unless a condition reads their values."""
    types = "AB" * 300
    frame = pd.DataFrame({"type": [*types, "B"], "time": [3] * len(types) + [4], "x": 0})
    query = "PATTERN SEQ(A a, B b, C c) WHERE {} = c.x AGG COUNT WITHIN 9 units"
    peaks = {}
    for read in "ab":
        live = cep.Aggregator(query.format(f"{read}.x"), "greta")
        for batch in stream_of(frame).batches(100):
            live.push(batch)
        peaks[read] = live.metrics.peak_counters
        # Each node has a counter of each row, and so have the matches.
        assert live.metrics.peak_objects == 601
    assert peaks == {"a": 602 * 300, "b": 602}


@only_compiled
def test_a_window_of_too_many_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before the memory is taken; those that leave the window make room."""
    pattern = "PATTERN SEQ(A a, B b) WHERE a.x <= b.x AGG COUNT WITHIN 300 units"
    monkeypatch.setattr(event_graphs, "COUNTER_LIMIT", 600 * 600)
    events = drawn_events(3000, "AB", seed=3, x=uniform)
    stream = stream_of(events)
    found = cep.aggregate(pattern, stream, "greta").values
    pd.testing.assert_frame_equal(found, cep.aggregate(pattern, stream, "two-step").values)
    crowd = stream_of(events.assign(time=events["time"] // 10))
    live = cep.Aggregator(pattern, "greta")
    with pytest.raises(PartialMatchLimitError, match="choose method='two-step'"):
        live.push(crowd)
    with pytest.raises(EvaluationError, match="make a new one"):
        live.push(crowd)
