"""Matches as events for the next pattern."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import EvaluationError
from tests.engines.detection.graph_engine import GRAPHS

RISES = (
    "PATTERN SEQ(A a, A b) WHERE b.price > a.price STRATEGY strict_contiguity WITHIN 10 minutes "
    "RETURN a.price AS low, b.price AS high, a.symbol AS symbol"
)
PRICES = [10, 12, 11, 15, 14, 20, 22]


@pytest.fixture(params=[False, True])
def stream(request: pytest.FixtureRequest) -> cep.EventStream:
    """In ticks, or by the minute."""
    ts = np.arange(len(PRICES))
    frame = pd.DataFrame(
        {
            "type": "A",
            "ts": pd.Timestamp("2026-01-05") + pd.to_timedelta(ts, unit="min")
            if request.param
            else ts,
            "price": PRICES,
            "symbol": list("xxyyxxx"),
            "time": -1,
        }
    )
    return cep.EventStream.from_pandas(frame, type="type", time="ts")


def test_matches_are_events_with_the_time_of_their_last_event(stream: cep.EventStream) -> None:
    text = RISES if stream.is_datetime else RISES.replace("minutes", "units")
    pattern = cep.parse(text)
    found = cep.evaluate(pattern, stream, cep.OrderPlan(["b", "a"]))
    trends = found.as_stream("Trend")
    assert trends.timestamps.tolist() == stream.timestamps[[1, 3, 5, 6]].tolist()
    assert trends.is_datetime == stream.is_datetime
    assert trends.type_names == ("Trend",)
    assert trends.to_pandas()[["low", "high"]].values.tolist() == [
        [10, 12], [11, 15], [14, 20], [20, 22],
    ]  # fmt: skip
    assert trends.to_pandas()["symbol"].tolist() == list("xyxx")
    unit = "minutes" if stream.is_datetime else "units"
    higher = cep.parse(
        f"PATTERN SEQ(Trend s, Trend t) WHERE [symbol] AND t.low > s.high WITHIN 9 {unit}"
    )
    pairs = cep.evaluate(higher, trends, cep.OrderPlan(["s", "t"])).matches
    assert pairs.values.tolist() == [[0, 2], [0, 3]]
    assert trends.to_pandas().equals(found.in_whole_stream(stream).as_stream("Trend").to_pandas())


def test_a_stream_without_matches_has_the_type(stream: cep.EventStream) -> None:
    unit = "minutes" if stream.is_datetime else "units"
    pattern = f"PATTERN SEQ(A a, A b) WHERE b.price > 99 WITHIN 9 {unit} RETURN b.price AS p"
    none = cep.evaluate(pattern, stream, cep.OrderPlan(["b", "a"])).as_stream("Trend")
    assert len(none) == 0
    later = cep.parse(f"PATTERN SEQ(Trend s, Trend t) WHERE t.p > s.p WITHIN 9 {unit}")
    assert cep.evaluate(later, none, cep.OrderPlan(["s", "t"])).matches.empty


def test_graphs_are_enumerated(stream: cep.EventStream) -> None:
    unit = "minutes" if stream.is_datetime else "units"
    pattern = f"PATTERN KL(A a) WITHIN 2 {unit} RETURN avg(a.price) AS mean, a[last].price AS last"
    found = cep.evaluate(pattern, stream, evaluator=GRAPHS, output="compressed")
    trends = found.as_stream("Trend")
    assert len(trends) == found.compressed.count() == 1 + 2 + 4 * 5
    assert trends.to_pandas()["mean"][:3].tolist() == [10.0, 11.0, 12.0]


def test_what_is_no_event_is_refused(stream: cep.EventStream) -> None:
    unit = "minutes" if stream.is_datetime else "units"
    plan = cep.OrderPlan(["a"])
    plain = f"PATTERN KL(A a) WITHIN 2 {unit}"
    with pytest.raises(EvaluationError, match="add RETURN"):
        cep.evaluate(plain, stream, plan).as_stream("Trend")
    returning = f"{plain} RETURN a.price AS p"
    with pytest.raises(EvaluationError, match=r"'p'.*an aggregate"):
        cep.evaluate(returning, stream, plan).as_stream("Trend")
    with pytest.raises(EvaluationError, match="only counted"):
        cep.evaluate(returning, stream, plan, output="count").as_stream("Trend")
    with pytest.raises(EvaluationError, match="type must be"):
        cep.evaluate(returning, stream, plan).as_stream(3)  # type: ignore[arg-type]
