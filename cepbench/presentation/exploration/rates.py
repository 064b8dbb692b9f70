"""Arrival rates of event types over time."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from cepbench.arguments import shown, texts
from cepbench.errors import StreamError, did_you_mean
from cepbench.patterns.durations import window_of
from cepbench.patterns.model import Window
from cepbench.streams.event_stream import EventStream
from cepbench.streams.given import stream_from

#: Target number of intervals without ``every``, and the maximum number.
_AIMED_AT, _MOST = 80, 200_000

#: Number of types counted by default: the most frequent ones.
MOST_TYPES = 8

#: Default lengths of an interval in seconds.
_ROUND = (
    1e-3, 1e-2, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14_400,
    28_800, 43_200, 86_400, 604_800,
)  # fmt: skip


def rates_over_time(
    stream: EventStream,
    types: Iterable[str] | None = None,
    every: float | str | Window | None = None,
) -> pd.DataFrame:
    """Count arrivals per type and time interval.

    Parameters
    ----------
    types : iterable of str, optional
        By default the eight most frequent ones.
    every : float, str or Window, optional
        Length of an interval: seconds (or ticks), or a text such as ``"20 minutes"``; by default
        a round length with which there are about 80. Intervals start at multiples of it.

    Returns
    -------
    DataFrame
        One row per interval and type: ``time`` (the start), ``type``, ``events`` and ``rate``, in
        events per second (or tick). The first and the last interval are clipped to the stream's
        first and last event. The rate is NaN in intervals without any event of the whole stream,
        such as those between two trading days; a chart has a gap there.

    Raises
    ------
    StreamError
        If the stream is empty or lacks a type, or ``every`` is invalid or results in too many
        intervals.
    """
    stream = stream_from(stream)
    if not len(stream):
        raise StreamError("an empty stream has no rates over time")
    names = _chosen(stream, types)
    first, last = int(stream.timestamps[0]), int(stream.timestamps[-1])
    step = _step(stream, last - first, every)
    start = first // step * step
    intervals = (last - start) // step + 1
    if intervals > _MOST:
        raise StreamError(
            f"every = {every!r} cuts the stream into {intervals:,} intervals, more than {_MOST:,}; "
            "choose a longer interval, or a slice of the stream"
        )
    number = (stream.timestamps - start) // step
    silent = np.bincount(number, minlength=intervals) == 0
    begins = start + step * np.arange(intervals, dtype=np.int64)
    covered = np.minimum(begins + step, last) - np.maximum(begins, first)
    lengths = np.where(covered > 0, covered, np.nan) / (1e9 if stream.is_datetime else 1.0)
    codes = {name: code for code, name in enumerate(stream.type_names)}
    times = begins.view("datetime64[ns]") if stream.is_datetime else begins
    frames = []
    for name in names:
        events = np.bincount(number[stream.type_codes == codes[name]], minlength=intervals)
        rate = np.where(silent, np.nan, events / lengths)
        frames.append(pd.DataFrame({"time": times, "type": name, "events": events, "rate": rate}))
    return pd.concat(frames, ignore_index=True)


def _chosen(stream: EventStream, types: Iterable[str] | None) -> list[str]:
    counts = stream.counts_by_type()
    if types is None:
        return sorted(counts, key=lambda name: -counts[name])[:MOST_TYPES]
    names = [types] if isinstance(types, str) else texts(types, "types", StreamError)
    if not names:
        raise StreamError("types names no type; leave it out for the most frequent ones")
    for name in names:
        if name not in counts:
            raise StreamError(
                f"the stream has no events of type {shown(name)}{did_you_mean(name, counts)}"
            )
    return names


def _step(stream: EventStream, span: int, every: float | str | Window | None) -> int:
    """Length of an interval in nanoseconds (or ticks)."""
    unit = "seconds" if stream.is_datetime else "units"
    if every is None:
        if not stream.is_datetime:
            aimed = max(1.0, span / _AIMED_AT)
            return int(10 ** math.ceil(math.log10(aimed)))
        aimed = span / 1e9 / _AIMED_AT
        return int(1e9 * next((one for one in _ROUND if one >= aimed), _ROUND[-1]))
    window = window_of(every, unit, "every", StreamError)
    if window.is_datetime is not stream.is_datetime:
        time = "a datetime" if stream.is_datetime else "a plain integer"
        raise StreamError(f"every = {window}, but this stream's time is {time}")
    if window.length < 1:
        raise StreamError(f"every = {every!r}; an interval has a length greater than 0")
    return window.length
