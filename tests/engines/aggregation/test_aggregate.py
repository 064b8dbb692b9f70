"""cep.aggregate and cep.Aggregator: tables, metrics, arguments, snapshots."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.aggregation.aggregate import AggregateResult
from cepbench.engines.aggregation.protocol import AggregateMetrics, Row
from cepbench.engines.aggregation.rows import Rows
from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    PatternError,
    StreamError,
    UnsupportedPatternError,
)

FRAME = pd.DataFrame(
    {
        "kind": list("ABABB"),
        "at": [1, 2, 3, 4, 9],
        "venue": ["u", "u", "v", "u", None],
        "price": [1.0, np.nan, 2.0, 4.5, 3.0],
        "volume": [5, 6, 7, 8, 9],
    }
)
STREAM = cep.EventStream.from_pandas(FRAME, type="kind", time="at")
DATED = cep.EventStream.from_pandas(
    FRAME.assign(at=pd.Timestamp("2026-01-05 09:30") + pd.to_timedelta(FRAME["at"], unit="s")),
    type="kind",
    time="at",
)
TEXT = (
    "PATTERN SEQ(A a, B b) GROUP BY a.venue "
    "AGG COUNT, SUM(b.price), MAX(b.volume), AVG(a.volume) WITHIN {}"
)


def test_a_table_of_values() -> None:
    result = cep.aggregate(TEXT.format("6 units"), STREAM)
    expected = pd.DataFrame(
        {
            "position": [1, 3, 3, 4, 4],
            "time": [2, 4, 4, 9, 9],
            "a.venue": list("uuvuv"),
            "COUNT": [1, 2, 1, 0, 2],
            "SUM(b.price)": [np.nan, 4.5, 4.5, np.nan, 7.5],
            "MAX(b.volume)": pd.array([6, 8, 8, None, 9], "Int64"),
            "AVG(a.volume)": [5.0, 5.0, 7.0, np.nan, 7.0],
        }
    )
    pd.testing.assert_frame_equal(result.values, expected)
    assert result.arrow.column("MAX(b.volume)").to_pylist() == [6, 8, 8, None, 9]
    assert result.arrow.column("SUM(b.price)").to_pylist() == [None, 4.5, 4.5, None, 7.5]
    assert result.method == "two-step"
    assert "5 values by two-step over 5 events" in repr(result)
    assert "<table" in result._repr_html_()


def test_times_are_those_of_the_stream() -> None:
    result = cep.aggregate(TEXT.format("6 s"), DATED)
    assert result.values["time"].tolist() == [
        pd.Timestamp("2026-01-05 09:30") + pd.Timedelta(seconds=s) for s in (2, 4, 4, 9, 9)
    ]
    at = [pd.Timestamp("2026-01-05 09:31"), np.datetime64("2026-01-05T09:30:04")]
    asked = cep.aggregate(TEXT.format("6 s"), DATED, at=at)
    assert asked.values.columns[0] == "time"
    assert asked.values["COUNT"].tolist() == [0, 0, 2, 1]
    assert asked.arrow.column("time").to_pylist() == [at[0], at[0], *[pd.Timestamp(at[1])] * 2]


def test_integers_of_any_size() -> None:
    large = cep.EventStream.from_pandas(
        FRAME.assign(volume=2**62), type="kind", time="at", attributes=["volume"]
    )
    result = cep.aggregate(
        "PATTERN SEQ(A a, B b) AGG SUM(a.volume), MIN(b.volume) WITHIN 9 units", large
    )
    assert result.values["SUM(a.volume)"].tolist() == [2**62, 3 * 2**62, 5 * 2**62]
    assert result.arrow.column("SUM(a.volume)").to_pylist() == [str(n * 2**62) for n in (1, 3, 5)]
    assert result.values["MIN(b.volume)"].tolist() == [2**62] * 3


def test_more_digits_than_python_writes() -> None:
    pattern = cep.parse("PATTERN SEQ(A a) AGG COUNT WITHIN 9 units")
    rows = [Row(0, 0, (), (25 * 10**4998,)), Row(1, 0, (), (3,))]
    result = AggregateResult(pattern, "two-step", AggregateMetrics(), Rows.of(rows, [False]), False)
    assert result.values["COUNT"].tolist() == [25 * 10**4998, 3]
    assert result.arrow.column("COUNT").to_pylist() == ["25" + "0" * 4998, "3"]
    shown = result._repr_html_()
    assert "<td>2.5000 × 10⁴⁹⁹⁹</td>" in shown and "<td>3</td>" in shown


def test_the_last_count_of_the_whole_stream_is_that_of_evaluate() -> None:
    counted = cep.evaluate("PATTERN SEQ(A a, B b) WITHIN 6 units", STREAM, evaluator="stack-nfa")
    values = cep.aggregate(
        "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 6 units", STREAM, scope="stream"
    ).values
    assert values["COUNT"].iloc[-1] == len(counted.matches) == 4


def test_metrics() -> None:
    metrics = cep.aggregate(
        "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 6 units", STREAM, "two-step"
    ).metrics
    assert (metrics.events, metrics.updates) == (5, 4)
    assert metrics.peak_counters == 2  # STARTs
    assert metrics.peak_objects >= 3  # matches that count, and events
    assert metrics.seconds_per_slide == pytest.approx(metrics.seconds / 5)


def test_values_between_pushes() -> None:
    live = cep.Aggregator("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 6 units")
    with pytest.raises(EvaluationError, match="no event yet; give the time"):
        live.value()
    assert live.value(0)["COUNT"].tolist() == [0]
    assert live.push(STREAM[:4])["COUNT"].tolist() == [1, 3]
    assert live.value()["COUNT"].tolist() == live.value(7)["COUNT"].tolist() == [3]
    assert live.value(8)["COUNT"].tolist() == [1]
    assert live.value(5)["COUNT"].tolist() == [3]  # asking changes nothing
    with pytest.raises(EvaluationError, match="a value at 3 is asked for after the event at 4"):
        live.value(3)
    with pytest.raises(StreamError, match="starts at 1, before the last event pushed"):
        live.push(STREAM[:1])
    assert live.push(STREAM[4:])["COUNT"].tolist() == [2]
    assert live.flush().columns.tolist() == ["position", "time", "COUNT"]
    with pytest.raises(EvaluationError, match="was flushed"):
        live.push(STREAM)


@pytest.mark.parametrize(
    ("pattern", "options", "kind", "words"),
    [
        ("SEQ(A a, B b) WITHIN 6 units", {}, PatternError, "the pattern has no AGG"),
        ("SEQ(A a) AGG SUM(a.venue) WITHIN 6 units", {}, StreamError, "AGG SUM(a.venue): venue is a text"),
        ("SEQ(A a) AGG MIN(a.nothing) WITHIN 6 units", {}, StreamError, "AGG MIN(a.nothing): the stream has no attribute 'nothing'"),
        ("SEQ(A a) GROUP BY vnue AGG COUNT WITHIN 6 units", {}, StreamError, "did you mean 'venue'"),
        ("SEQ(A a, C c) AGG COUNT WITHIN 6 units", {"missing_types": "error"}, StreamError, "no event of type 'C'"),
        ("SEQ(A a) AGG COUNT WITHIN 6 s", {}, StreamError, "needs a datetime column"),
        ("SEQ(A a) GROUP BY time AGG COUNT WITHIN 6 units", {}, EvaluationError, "two columns named 'time'"),
        ("SEQ(A a) AGG COUNT WITHIN 6 units", {"method": "two-stop"}, EvaluationError, "did you mean 'two-step'"),
        ("SEQ(A a) AGG COUNT WITHIN 6 units", {"emit": "always"}, EvaluationError, "emit is one of trigger, change"),
        ("SEQ(A a) AGG COUNT WITHIN 6 units", {"scope": "all"}, EvaluationError, "scope is one of window, trigger, stream"),
        ("SEQ(A a) AGG COUNT WITHIN 6 units", {"at": [3], "scope": "trigger"}, EvaluationError, "no event that completes matches"),
        ("SEQ(A a) AGG COUNT WITHIN 6 units", {"at": [3], "emit": "change"}, EvaluationError, "leave out emit, or at"),
        ("SEQ(A a) AGG COUNT WITHIN 6 units", {"at": ["noon"]}, EvaluationError, "the time of a value is an integer"),
        ("SEQ(A a) AGG COUNT WITHIN 6 units", {"at": 3}, EvaluationError, "at must be a list"),
        ("SEQ(A a, KL(B b)) AGG COUNT WITHIN 6 units", {"evaluator": "stack-nfa"}, UnsupportedPatternError, "cannot run KL"),
        ("SEQ(A a) AGG COUNT WITHIN 6 units", {"evaluator": "steck-nfa"}, EvaluationError, "did you mean 'stack-nfa'"),
    ],
)  # fmt: skip
def test_errors(pattern: str, options: dict, kind: type[CepbenchError], words: str) -> None:
    with pytest.raises(kind) as refused:
        cep.aggregate(f"PATTERN {pattern}", STREAM, **options)
    assert words in str(refused.value)


def test_triggers_satisfy_conditions_on_single_events_only() -> None:
    found = cep.aggregate(
        "PATTERN SEQ(A a, KL(B b)) WHERE b.volume > 6 AND b[1].price > 3 AGG COUNT WITHIN 9 units",
        STREAM,
    )
    # The last one cannot be the first of its set.
    assert found.values[["position", "COUNT"]].to_numpy().tolist() == [[3, 2], [4, 4]]


def test_texts_are_counted() -> None:
    values = cep.aggregate("PATTERN SEQ(A a, B b) AGG COUNT(b.venue) WITHIN 9 units", STREAM).values
    assert values["COUNT(b.venue)"].tolist() == [1, 3, 3]


def test_streams_without_events() -> None:
    for options in ({}, {"emit": "change"}):
        result = cep.aggregate(TEXT.format("6 units"), STREAM[:0], **options)
        assert result.values.empty
        assert result.arrow.num_rows == 0
    counted = cep.aggregate("PATTERN SEQ(A a) AGG COUNT WITHIN 6 units", STREAM[:0], at=[5]).values
    assert counted["COUNT"].tolist() == [0]
