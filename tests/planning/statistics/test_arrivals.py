"""Arrival rates counted part by part, against the whole by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cepbench.planning.statistics.arrivals import (
    Arrivals,
    arrival_table,
    arrivals_in,
    arrivals_in_file,
)
from cepbench.streams.event_stream import EventStream

#: Two days, the second one shorter: one file is sorted by type first, and the files overlap.
FILES = (
    [("A", "2024-01-01 10:00:30"), ("A", "2024-01-02 00:00:00"), ("B", "2024-01-01 10:00:10"),
     ("B", "2024-01-01 23:59:59"), ("B", "2024-01-01 12:00:00")],
    [("A", "2024-01-01 10:00:05"), ("C", "2024-01-01 11:00:00"), ("A", "2024-01-02 00:00:20"),
     ("C", "2024-01-02 00:00:10")],
)  # fmt: skip
#: 10:00:05 to 23:59:59, and 00:00:00 to 00:00:20.
ACTIVE = 13 * 3600 + 59 * 60 + 54 + 20


def frame_of(events: list[tuple[str, str]]) -> pd.DataFrame:
    return pd.DataFrame(
        {"symbol": [kind for kind, _ in events], "ts": pd.to_datetime([t for _, t in events])}
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_files_in_any_order_and_of_any_order(tmp_path: Path, order: tuple[int, int]) -> None:
    for number, events in enumerate(FILES):
        frame_of(events).to_parquet(tmp_path / f"{number}.parquet")
    parts = [arrivals_in_file(tmp_path / f"{number}.parquet") for number in order]
    table = arrival_table(parts, types=["Z", "A"])
    assert table.index.tolist() == ["A", "B", "C", "Z"]
    assert table["events"].tolist() == [4, 3, 2, 0]
    assert table["rate"].tolist() == pytest.approx([n / ACTIVE for n in (4, 3, 2, 0)])
    assert table["standard_error"].tolist() == pytest.approx(
        [math.sqrt(n) / ACTIVE for n in (4, 3, 2, 0)]
    )


def test_a_stream_is_counted_like_a_file() -> None:
    events = frame_of([event for file in FILES for event in file]).sort_values("ts")
    found = arrival_table([arrivals_in(EventStream.from_pandas(events, type="symbol", time="ts"))])
    assert found["events"].to_dict() == {"A": 4, "B": 3, "C": 2}
    assert found["rate"].to_dict() == pytest.approx({k: n / ACTIVE for k, n in
                                                    [("A", 4), ("B", 3), ("C", 2)]})  # fmt: skip


def test_no_time_and_no_days() -> None:
    table = arrival_table([Arrivals({"A": 1}, {19_000: (5, 5)})])
    assert table["events"].tolist() == [1] and np.isnan(table["rate"].iloc[0])


def test_integer_time_has_rates_per_tick(tmp_path: Path) -> None:
    # Longer than a day, were it nanoseconds.
    ticks = pd.DataFrame({"symbol": ["A", "B", "A"], "ts": [3, 10**15, 10**15 + 7]})
    ticks[:2].to_parquet(tmp_path / "0.parquet")
    ticks[2:].to_parquet(tmp_path / "1.parquet")
    by_file = arrival_table([arrivals_in_file(tmp_path / f"{n}.parquet") for n in (1, 0)])
    whole = arrival_table([arrivals_in(EventStream.from_pandas(ticks, type="symbol", time="ts"))])
    pd.testing.assert_frame_equal(by_file, whole)
    assert whole["rate"].to_dict() == {"A": 2 / (10**15 + 4), "B": 1 / (10**15 + 4)}
