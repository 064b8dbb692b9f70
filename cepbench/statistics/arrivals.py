"""Arrival rates of event types, counted file by file or in a stream."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cepbench.errors import StatisticsError
from cepbench.streams.event_stream import EventStream

_DAY = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Event counts of one part of a data set.

    Attributes
    ----------
    counts : dict of str to int
        Events of each type.
    days : dict of int to (int, int)
        UTC day (since 1970) → first and last time on it, in nanoseconds since 1970.
    """

    counts: dict[str, int] = field(default_factory=dict)
    days: dict[int, tuple[int, int]] = field(default_factory=dict)


def arrivals_in_file(file: Path) -> Arrivals:
    """Count the events of a Parquet file with columns ``symbol`` and ``ts``, batch by batch."""
    counts: Counter[str] = Counter()
    found = Arrivals()
    parquet = pq.ParquetFile(file, read_dictionary=["symbol"])
    for batch in parquet.iter_batches(columns=["symbol", "ts"]):
        for entry in pc.value_counts(batch.column("symbol").cast(pa.string())).to_pylist():
            counts[entry["values"]] += entry["counts"]
        moments = batch.column("ts").cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy()
        _widen(found.days, _ends_of_days(moments))
    found.counts.update(counts)
    return found


def arrivals_in(stream: EventStream) -> Arrivals:
    """Count the events of a stream.

    Raises
    ------
    StatisticsError
        If its times are integers, which have no unit.
    """
    if not stream.is_datetime:
        raise StatisticsError(
            "the times of this stream are integers without a unit, so there are no rates per "
            "second; convert the column to datetimes"
        )
    return Arrivals(stream.counts_by_type(), _ends_of_days(stream.timestamps))


def arrival_table(parts: Iterable[Arrivals], types: Iterable[str] = ()) -> pd.DataFrame:
    """Arrival rates from the counts of all parts of a data set.

    Parameters
    ----------
    parts : iterable of Arrivals
    types : iterable of str
        Types to list even without events.

    Returns
    -------
    DataFrame
        Index ``symbol``, sorted; columns ``events``, ``rate`` (events per second of active time,
        from the first to the last event of any type on each UTC day) and ``standard_error`` (of
        the rate, Poisson).
    """
    events: Counter[str] = Counter(dict.fromkeys(types, 0))
    days: dict[int, tuple[int, int]] = {}
    for part in parts:
        events.update(part.counts)
        _widen(days, part.days)
    active = sum(last - first for first, last in days.values()) / 1e9
    symbols = sorted(events)
    count = np.array([events[name] for name in symbols], dtype=np.int64)
    per_second = 1 / active if active else math.nan
    return pd.DataFrame(
        {
            "events": count,
            "rate": count * per_second,
            "standard_error": np.sqrt(count) * per_second,
        },
        index=pd.Index(symbols, name="symbol", dtype=object),
    )


def _ends_of_days(moments: np.ndarray) -> dict[int, tuple[int, int]]:
    days = moments // _DAY
    found = {}
    for day in np.unique(days).tolist():
        inside = moments[days == day]
        found[day] = int(inside.min()), int(inside.max())
    return found


def _widen(days: dict[int, tuple[int, int]], more: Mapping[int, tuple[int, int]]) -> None:
    for day, (first, last) in more.items():
        have = days.get(day, (first, last))
        days[day] = (min(have[0], first), max(have[1], last))
