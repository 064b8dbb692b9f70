"""Time of an event by the number of active first events, with each of which matches expire.

[qi2014]_, section 3.2, states that A-Seq takes a time that is linear in that number; its experiments
have few of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from cepbench.engines.aggregation.live import Aggregator
from cepbench.errors import EvaluationError
from cepbench.experiments.studies.runs import number, sized
from cepbench.streams.event_stream import EventStream
from cepbench.streams.ticker_trades import TICKERS, WINDOW, TickerTrades

#: Methods that forget expired events.
METHODS = ("two-step", "a-seq", "window-product")

#: Items of the sequence, each a ticker of the stream, which has no others.
LENGTHS = (3, 5, 10, 20)

#: Expected numbers of active first events: the rate is fixed and the window grows.
ACTIVE = (10, 100, 1_000, 10_000, 100_000)

#: Events of a run, which is timed by itself.
EVENTS = 2_000

#: Profile → runs, and the longest time in seconds that those of a method may be expected to take.
PROFILES = {
    "quick": {"repetitions": 5, "longest": 1.0},
    "full": {"repetitions": 20, "longest": 20.0},
}


def expected_seconds(method: str, length: int, active: int, events: int) -> float:
    """Roughly how long a method takes for some events at most, a microsecond for each match or event.

    Of a sequence of ``length`` items, with so many active first events.
    """
    if method == "two-step":
        each = active ** (length - 1) / math.factorial(length - 1) / length  # matches
    else:
        each = 1 + 5e-4 * active * (method == "a-seq")
    return 1e-6 * events * each


def expiry_runs(
    profile: str,
    *,
    seed: int = 0,
    lengths: Sequence[int] = LENGTHS,
    active: Sequence[int] = ACTIVE,
    repetitions: int = 0,
    longest: float | None = None,
    methods: Sequence[str] = METHODS,
) -> pd.DataFrame:
    """Measure methods in windows that are full: a run is :data:`EVENTS` further events.

    The methods take turns on the same events. Without them, the number of ``repetitions`` and the
    most seconds that the runs of a method may be expected to take, ``longest``, are those of the
    profile.

    A row a run, as :func:`cepbench.experiments.studies.runs.figure_runs` takes it: ``size``
    (length), ``active``, ``plan_log_cost`` (its logarithm), ``series`` (the method), ``regime``
    (the length in words), ``repetition``, ``seconds``, ``seconds_per_slide``, ``updates`` (of an
    event), ``peak_objects``, ``digits`` (of the largest count).

    Raises EvaluationError if the values of two methods differ.
    """
    sizes = sized(PROFILES, profile, {"repetitions": repetitions})
    longest = sizes["longest"] if longest is None else longest
    rows = [
        row
        for length in lengths
        for count in active
        for row in _cell(length, count, sizes["repetitions"], longest, seed, methods)
    ]
    return pd.DataFrame(rows)


def _cell(
    length: int, active: int, repetitions: int, longest: float, seed: int, methods: Sequence[str]
) -> Iterator[dict[str, object]]:
    """The runs of one length and number of active first events."""
    expected = length * active  # in the window, with a standard deviation of the root
    made = TickerTrades(expected + 10 * math.isqrt(expected) + EVENTS * repetitions, seed, length)
    table = made.table(0, made.events).select(["symbol", "ts"])
    stream = EventStream.from_arrow(table, type="symbol", time="ts")
    window = round(active * WINDOW / made.per_window)
    end = stream.timestamps[0] + window * 1_000_000
    filled = int(np.searchsorted(stream.timestamps, end))
    items = ", ".join(f"{ticker} i{place}" for place, ticker in enumerate(TICKERS[:length]))
    pattern = f"PATTERN SEQ({items}) AGG COUNT WITHIN < {window} milliseconds"
    events = filled + EVENTS * repetitions
    live = {
        method: Aggregator(pattern, method)
        for method in methods
        if expected_seconds(method, length, active, events) <= longest
    }
    for each in live.values():
        each.push(stream[:filled])
    for run in range(repetitions):
        batch = stream[filled + run * EVENTS : filled + (run + 1) * EVENTS]
        counts: list[list[int]] = []
        for method, each in live.items():
            before = each.metrics
            counts.append(each.push(batch)["COUNT"].tolist())
            after = each.metrics
            seconds = after.seconds - before.seconds
            yield {
                "size": length,
                "active": active,
                "plan_log_cost": math.log(active),
                "series": method,
                "regime": f"length {length}",
                "repetition": run,
                "seconds": seconds,
                "seconds_per_slide": seconds / EVENTS,
                "updates": (after.updates - before.updates) / EVENTS,
                "peak_objects": after.peak_objects,
                "digits": len(str(max(counts[-1], default=0))),
            }
        if any(its != counts[0] for its in counts):
            raise EvaluationError(
                f"{' and '.join(live)} differ at length {length} with {active:,} active events"
            )


def growth(runs: pd.DataFrame) -> str:
    """By what factor the time of an event grows with the active first events, for each method."""
    text = []
    for method in METHODS:
        own = runs[runs["generator"] == method]
        found: list[tuple[float, int, int, str]] = []
        for length, part in own.groupby("size"):
            times = part.groupby("active")["seconds"].median()
            few, most = int(times.index[0]), int(times.index[-1])
            found.append((float(times.max() / times.iloc[0]), few, most, str(length)))
        factor, few, most, length = max(found, default=(1.0, 0, 0, ""))
        if most > few:
            text.append(
                f"{method} takes at most {number(factor)} times as long with up to {most:,} active "
                f"first events as with {few:,} (length {length})"
            )
    return f"An event of {'; one of '.join(text)}."
