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

from cepbench.streams.event_stream import EventStream

_DAY = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Event counts of one part of a data set."""

    counts: dict[str, int] = field(default_factory=dict)
    #: UTC day (since 1970) → first and last time on it, in nanoseconds since 1970. Of integer time
    #: 0 → first and last tick.
    days: dict[int, tuple[int, int]] = field(default_factory=dict)
    is_datetime: bool = True


def arrivals_in_file(file: Path, type: str = "symbol") -> Arrivals:
    """Count the events of a Parquet file with types in a column and times in ``ts``, batch by batch."""
    counts: Counter[str] = Counter()
    parquet = pq.ParquetFile(file, read_dictionary=[type])
    found = Arrivals(is_datetime=pa.types.is_timestamp(parquet.schema_arrow.field("ts").type))
    for batch in parquet.iter_batches(columns=[type, "ts"]):
        for entry in pc.value_counts(batch.column(type).cast(pa.string())).to_pylist():
            counts[entry["values"]] += entry["counts"]
        times = batch.column("ts")
        if found.is_datetime:
            times = times.cast(pa.timestamp("ns"))
        moments = times.cast(pa.int64()).to_numpy()
        _widen(found.days, _ends(moments, by_day=found.is_datetime))
    found.counts.update(counts)
    return found


def arrivals_in(stream: EventStream) -> Arrivals:
    """Count the events of a stream."""
    ends = _ends(stream.timestamps, by_day=stream.is_datetime)
    return Arrivals(stream.counts_by_type(), ends, stream.is_datetime)


def arrival_table(parts: Iterable[Arrivals], types: Iterable[str] = ()) -> pd.DataFrame:
    """Arrival rates from the counts of all parts of a data set, and of ``types`` even without events.

    Index ``symbol``, sorted; columns ``events``, ``rate`` (events per second of active time, from
    the first to the last event of any type on each UTC day; of integer time, per tick) and
    ``standard_error`` (of the rate, Poisson).
    """
    events: Counter[str] = Counter(dict.fromkeys(types, 0))
    days: dict[int, tuple[int, int]] = {}
    unit = 1.0
    for part in parts:
        events.update(part.counts)
        _widen(days, part.days)
        unit = 1e9 if part.is_datetime else 1.0
    active = sum(last - first for first, last in days.values()) / unit
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


def _ends(moments: np.ndarray, *, by_day: bool) -> dict[int, tuple[int, int]]:
    days = moments // _DAY if by_day else np.zeros(len(moments), np.int64)
    found = {}
    for day in np.unique(days).tolist():
        inside = moments[days == day]
        found[day] = int(inside.min()), int(inside.max())
    return found


def _widen(days: dict[int, tuple[int, int]], more: Mapping[int, tuple[int, int]]) -> None:
    for day, (first, last) in more.items():
        have = days.get(day, (first, last))
        days[day] = (min(have[0], first), max(have[1], last))
