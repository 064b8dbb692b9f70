"""Stamps: times of events by which those of one timestamp follow each other, and windows are the same."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.detection.arrival import by_arrival
from cepbench.engines.detection.tasks import task_for
from cepbench.engines.runs.protocol import Arguments
from cepbench.errors import StreamError
from cepbench.streams.arrival import ArrivalClock, in_time
from tests.engines.detection.strategies import batches_of


def stream_of(times: list[int], *, is_datetime: bool = False) -> cep.EventStream:
    codes = np.zeros(len(times), np.int32)
    array = np.array(times, np.int64)
    return cep.EventStream(codes, ("A",), array, is_datetime, {}, {}, range(len(times)))


def pattern_of(window: str) -> cep.Pattern:
    return cep.parse(f"PATTERN SEQ(A a, A b) ORDER BY arrival WITHIN {window}")


@st.composite
def streams(draw: st.DrawFn) -> tuple[cep.EventStream, cep.Pattern]:
    """Many ties, in units that are wide or narrow, and times that are far apart."""
    unit = draw(st.sampled_from([1, 7, 1000, 10**9]))
    start = draw(st.sampled_from([0, -5, 10**18, -(10**18)])) // unit * unit
    steps = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 5]), min_size=1, max_size=20))
    window = unit * draw(st.integers(0, 6)) + draw(st.sampled_from([0, 0, 1]))
    is_datetime = draw(st.booleans())
    less = draw(st.sampled_from(["", "< "])) if window else ""
    within = f"{less}{window} units"
    pattern = pattern_of(within)
    if is_datetime:
        window = window // 10**6 * 10**6
        less = less if window else ""
        pattern = pattern_of(f"{less}{window // 10**6} ms")
    return stream_of((start + unit * np.cumsum(steps)).tolist(), is_datetime=is_datetime), pattern


@given(streams(), st.booleans(), st.data())
def test_windows_of_stamps_are_those_of_timestamps(case, whole, data) -> None:
    stream, pattern = case
    times, length = stream.timestamps, pattern.window.length
    clock = ArrivalClock.of(stream, [pattern])
    if not whole:
        first = stream[: data.draw(st.integers(1, len(stream)))]
        clock = ArrivalClock.live([pattern], first)
    stamps = []
    for batch in data.draw(batches_of(stream)):
        stamped, clock = clock.stamped(batch)
        assert not stamped.is_datetime
        stamps.append(stamped.timestamps)
        clock = ArrivalClock(*astuple(clock))
    its = np.concatenate(stamps)
    window = clock.pattern(pattern).window
    assert (np.diff(its) > 0).all()
    assert (clock.times(its) == times).all()
    apart, stamps_apart = (np.subtract.outer(x, x) for x in (times, its))
    assert ((stamps_apart <= window.length) == (apart <= length)).all()
    asked = int(times[-1]) + data.draw(st.integers(0, 10**10) | st.integers(0, 10))
    stamp = clock.asked(asked, pattern.window)
    assert stamp >= its[-1]
    assert ((stamp - its <= window.length) == (asked - times <= length)).all()


def test_a_stream_that_is_long_and_tied_is_counted_in_larger_units() -> None:
    day = 86_400 * 10**9
    stream = stream_of([0, day * 19_999] + [day * 20_000] * 9_000, is_datetime=True)
    pattern = pattern_of("3 days")
    assert ArrivalClock.of(stream, [pattern]).unit == day
    found = cep.evaluate(pattern, stream, evaluator="stack-nfa", output="count").metrics.matches
    assert found == 9_000 + 9_000 * 8_999 // 2


def test_what_does_not_fit_is_an_error_with_the_numbers() -> None:
    times = [0, 1, 2**61]
    with pytest.raises(StreamError, match=r"2,305,843,009,213,693,952 ticks .* round the"):
        in_time(pattern_of("5 units"), stream_of(times))


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([2_000_500], "2000500 is not in whole units of 1000 nanoseconds"),
        ([2_000_000] * 2_049, "2000000 has more than 2,048 events"),
        ([20 * 366 * 86_400 * 10**9], "ticks after the first event, the most for integers of 64"),
    ],
)
def test_a_batch_that_does_not_fit_the_first_one_is_refused_before_anything_moves(
    times, words
) -> None:
    asked = Arguments(evaluator="stack-nfa", options=None, output="matches", partial_match_limit=9)
    task = task_for(pattern_of("1 ms"), None, asked)
    run = by_arrival(task)
    assert run.push(stream_of([1_000_000, 1_000_000], is_datetime=True)).number == 1
    before = {name: its.copy() for name, its in run.snapshot().items()}
    with pytest.raises(StreamError, match=words):
        run.push(stream_of(times, is_datetime=True))
    after = run.snapshot()
    assert after.keys() == before.keys()
    assert all(np.array_equal(after[name], its) for name, its in before.items())


def test_the_first_batch_says_how_fine_times_are_and_how_many_events_share_one() -> None:
    for times in ([1_000_500] * 2, [1_000_000] * 3_000):
        detector = cep.Detector(pattern_of("1 ms"), evaluator="stack-nfa", output="count")
        pushed = detector.push(stream_of(times, is_datetime=True))
        again = [times[0] + 1] * 2 if times[0] % 1000 else [2_000_000] * 12_000
        pushed += detector.push(stream_of(again, is_datetime=True))
        assert pushed == (len(times) + len(again)) * (len(times) + len(again) - 1) // 2


def test_values_of_windows_that_do_not_fit_are_refused() -> None:
    live = cep.Aggregator("PATTERN SEQ(A a, A b) ORDER BY arrival AGG COUNT WITHIN 9 days")
    with pytest.raises(StreamError, match=r"WITHIN 9 days is longer than the .* ticks"):
        live.push(stream_of([1], is_datetime=True))


def test_times_are_shown_as_timestamps() -> None:
    events = pd.DataFrame({"type": ["A"] * 3, "time": pd.to_datetime(["2026-01-05 09:30"] * 3)})
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    query = "PATTERN SEQ(A a, A b) ORDER BY arrival AGG COUNT WITHIN 1 minute"
    values = cep.aggregate(query, stream).values
    assert values["time"].tolist() == events["time"].tolist()
    assert values["COUNT"].tolist() == [0, 1, 3]
    at = cep.aggregate(query, stream, at=events["time"][:1]).values
    assert at.to_numpy().tolist() == [[events["time"][0], 3]]
    pattern = pattern_of("1 minute")
    graph = cep.evaluate(pattern, stream, evaluator="sase", output="compressed").compressed
    assert graph.last_events()["ts"].tolist() == events["time"].tolist()[1:]
    detector = cep.Detector(pattern, evaluator="sase", output="compressed")
    assert detector.push(stream).last_events()["ts"].tolist() == events["time"].tolist()[1:]
