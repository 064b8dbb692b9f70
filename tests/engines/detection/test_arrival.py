"""ORDER BY arrival: every engine and entrance finds what the twin does, in which positions order items."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.detection.evaluate import evaluate
from cepbench.errors import PatternError, StreamError, UnsatisfiablePatternError
from cepbench.patterns.parse import parse
from cepbench.planning.workloads.model import Workload
from cepbench.planning.workloads.refinement import embeddings
from cepbench.streams.event_stream import EventStream
from tests.engines.detection.strategies import events_of, stream_of

pytestmark = pytest.mark.kernel


def test_a_pattern_that_has_no_time_to_match_can_match_by_arrival() -> None:
    with pytest.raises(UnsatisfiablePatternError, match="or ORDER BY arrival"):
        parse("PATTERN SEQ(A a, B b) WITHIN 0 units")
    stream = stream_of(events_of("A@1 B@1"))
    found = evaluate(
        "PATTERN SEQ(A a, B b) ORDER BY arrival WITHIN 0 units", stream, evaluator="sase"
    )
    assert found.metrics.matches == 1


def test_the_default_is_not_written() -> None:
    pattern = parse("PATTERN SEQ(A a, B b) ORDER BY TIME WITHIN 4 units")
    assert pattern == parse("PATTERN SEQ(A a, B b) WITHIN 4 units")
    assert "ORDER" not in str(pattern)
    by_arrival = replace(pattern, order="arrival")
    assert parse(str(by_arrival)) == by_arrival != pattern
    with pytest.raises(PatternError, match="the order"):
        replace(pattern, order="position")


def test_queries_of_another_order_are_neither_together_nor_above_each_other() -> None:
    texts = [f"PATTERN SEQ(A a, B b) {order} WITHIN 4 units" for order in ("", "ORDER BY arrival")]
    with pytest.raises(
        PatternError, match="query 'q1' has ORDER BY arrival and query 'q0' has not"
    ):
        Workload({f"q{k}": text for k, text in enumerate(texts)})
    assert embeddings(parse(texts[0]), parse(texts[1])) == ()
    assert embeddings(parse(texts[1]), parse(texts[1]))


def test_neighbours_of_minute_bars_are_those_of_rows(real_data: Path) -> None:
    """What SQL says by lead(): three rising bars, one after the other in the file."""
    names = ["symbol", "at", "open", "high", "low", "close", "volume"]
    bars = pd.read_csv(real_data / "nasdaq_minute_bars.txt", header=None, names=names)
    bars["at"] = pd.to_datetime(bars["at"].astype(str), format="%Y%m%d%H%M")
    bars = bars.sort_values("at", kind="stable", ignore_index=True)
    stream = EventStream.from_pandas(bars, type="symbol", time="at", attributes=["close"])
    text = (
        "PATTERN SEQ(ANY a, ANY b, ANY c) WHERE a.close < b.close AND b.close < c.close {} "
        "STRATEGY strict_contiguity WITHIN 5 minutes"
    )
    close, at = bars["close"], bars["at"]
    rising = (close < close.shift(-1)) & (close.shift(-1) < close.shift(-2))
    near = at.shift(-2) - at <= pd.Timedelta(minutes=5)
    found = evaluate(text.format("ORDER BY arrival"), stream, evaluator="sase")
    assert found.matches["a"].tolist() == (rising & near).to_numpy().nonzero()[0].tolist()
    apart = (at < at.shift(-1)) & (at.shift(-1) < at.shift(-2))
    found = evaluate(text.format(""), stream, evaluator="sase")
    assert found.matches["a"].tolist() == (rising & near & apart).to_numpy().nonzero()[0].tolist()


_IN_SECONDS = "PATTERN SEQ(A a, B b) ORDER BY arrival {}WITHIN 1 seconds"


def queries_of(between: str = "") -> Workload:
    text = _IN_SECONDS.format(between)
    return Workload({"first": text, "second": text.replace("B b)", "B b, A c)")})


def plan_of(workload: Workload, *, reuses: bool) -> cep.WorkloadPlan:
    source = "first" if reuses else None
    return cep.WorkloadPlan(workload, sources={"first": None, "second": source})


def reusing(workload: Workload) -> cep.WorkloadPlan:
    return plan_of(workload, reuses=True)


_QUERIES, _VALUES = queries_of(), queries_of("AGG COUNT ")

LIVE: dict[str, Callable[[], Any]] = {
    "detector": lambda: cep.Detector(_IN_SECONDS.format(""), cep.OrderPlan(["a", "b"])),
    "output": lambda: cep.Detector(_IN_SECONDS.format("OUTPUT non_overlap "), evaluator="sase"),
    "adaptive": lambda: cep.AdaptiveDetector(_IN_SECONDS.format(""), batch_size=2),
    "workload": lambda: cep.Detector(_QUERIES, reusing(_QUERIES)),
    "shared stacks": lambda: cep.Detector(_QUERIES, evaluator="hierarchical-stacks"),
    "adaptive workload": lambda: cep.AdaptiveDetector(_QUERIES, batch_size=2),
    "aggregator": lambda: cep.Aggregator(_IN_SECONDS.format("AGG COUNT ")),
    "values": lambda: cep.Aggregator(_VALUES),
    "counters": lambda: cep.Aggregator(
        _VALUES, sharing=cep.WorkloadPlan(_VALUES, cuts={"first": [1], "second": [1]})
    ),
    "values of matches": lambda: cep.Aggregator(_VALUES, sharing=reusing(_VALUES)),
}


@pytest.mark.parametrize("kind", LIVE)
def test_a_batch_that_cannot_be_stamped_changes_nothing(kind: str) -> None:
    """Times of the first batch are whole microseconds, so that finer ones are refused."""
    live = LIVE[kind]()
    live.push(timed_events(["A"], [0]))
    # With an adaptive run also in a later round of the batch.
    with pytest.raises(StreamError, match="not in whole units of 1000"):
        live.push(timed_events(["A", "B", "B"], [1000, 1000, 1500]))
    assert rows_of_first(live.push(timed_events(["B"], [2000]))) == 1


@pytest.mark.parametrize("evaluator", ["stack-nfa", "hierarchical-stacks"])
@pytest.mark.parametrize("at", range(5))
def test_a_workload_changes_its_plan_among_ties(evaluator: str, at: int) -> None:
    live = cep.AdaptiveDetector(
        _QUERIES,
        initial=plan_of(_QUERIES, reuses=False),
        evaluator=evaluator,
        output="count",
        batch_size=3,
    )
    stream = timed_events(["A", "B", "A", "B", "A"], [0, 0, 0, 0, 1000])
    found = {"first": 0, "second": 0}
    for row in range(len(stream)):
        if row == at:
            live.switch(plan_of(_QUERIES, reuses=True))
        if row == at + 1:
            live.switch(plan_of(_QUERIES, reuses=False))
        for query, number in live.push(stream[row : row + 1]).items():
            found[query] += number
    assert found == {"first": 3, "second": 4}


def test_a_detector_resumes_where_events_were_stamped_otherwise() -> None:
    """The first batch of each says how many events may share a timestamp."""
    pattern = "PATTERN SEQ(A a, B b) ORDER BY arrival WITHIN 1 units"

    def detector() -> cep.Detector:
        return cep.Detector(pattern, evaluator="stack-nfa", output="count")

    few, many = detector(), detector()
    few.push(ticks("A", 0, 1))
    many.push(ticks("C", 0, 3000))
    many.resume_from(few.snapshot())
    assert [many.push(ticks("B", 1, 1)), many.push(ticks("B", 2, 1))] == [1, 0]


@pytest.mark.parametrize("kind", ["detector", "output", "workload", "aggregator", "counters"])
def test_what_is_live_is_pickled_as_in_the_order_of_time(kind: str) -> None:
    live = LIVE[kind]()
    live.push(timed_events(["A"], [0]))
    again = pickle.loads(pickle.dumps(live))
    assert rows_of_first(again.push(timed_events(["B"], [0]))) == 1


def rows_of_first(found: Any) -> int:
    """The rows of a pattern, or of the first query of a workload."""
    if isinstance(found, dict):
        return len(found["first"])
    return len(found) if "query" not in found else int((found["query"] == "first").sum())


def ticks(type_name: str, time: int, number: int) -> EventStream:
    frame = pd.DataFrame({"type": [type_name] * number, "time": time})
    return EventStream.from_pandas(frame, type="type", time="time")


def timed_events(types: list[str], times: list[int]) -> EventStream:
    frame = pd.DataFrame({"type": types, "time": np.array(times).astype("datetime64[ns]")})
    return EventStream.from_pandas(frame, type="type", time="time")
