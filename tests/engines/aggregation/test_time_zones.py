"""Times in a zone are those in UTC, wherever a time is given."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import EvaluationError
from cepbench.streams.moments import nanoseconds

SECONDS = pd.to_datetime([f"2024-01-01 00:00:0{second}" for second in range(4)])
STREAM = cep.EventStream.from_pandas(
    pd.DataFrame({"type": list("ABAB"), "ts": SECONDS}), type="type", time="ts"
)
PATTERN = "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 10 s"
EAST = timezone(timedelta(hours=1))

MOMENTS: list[Any] = [
    "2024-01-01 01:00:01+01:00",
    datetime(2024, 1, 1, 1, 0, 1, tzinfo=EAST),
    datetime(2024, 1, 1, 0, 0, 1, tzinfo=UTC),
    datetime(2024, 1, 1, 0, 0, 1),
    pd.Timestamp("2023-12-31 19:00:01", tz="America/New_York"),
    np.datetime64("2024-01-01T00:00:01"),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
def test_the_same_moment_in_every_zone(moment: Any) -> None:
    assert nanoseconds(moment) == int(SECONDS[1].value)
    at = pd.Timestamp(moment)
    assert cep.aggregate(PATTERN, STREAM, at=[at]).values["COUNT"].tolist() == [1]
    live = cep.Aggregator(PATTERN)
    live.push(STREAM[:2])
    assert live.value(at)["COUNT"].tolist() == [1]


@pytest.mark.parametrize("text", ["9:30", "now", "01/02/2024", "NaT", ""])
def test_texts_are_completed_by_nobody(text: str) -> None:
    """By the day of the call, for instance, or months before days, as pandas does."""
    assert nanoseconds("2024-01") == nanoseconds("20240101T00:00Z")
    with pytest.raises(ValueError, match=r"year|NaT"):
        nanoseconds(text)


def test_a_moment_out_of_range() -> None:
    with pytest.raises(EvaluationError, match=r"9999-01-01 .* does not fit nanoseconds"):
        cep.aggregate(PATTERN, STREAM, at=[datetime(9999, 1, 1)])


def test_a_daylight_saving_hour_that_is_there_twice() -> None:
    first = pd.Timestamp("2024-10-27 00:30", tz="UTC").tz_convert("Europe/Berlin")
    assert nanoseconds(first + pd.Timedelta("1h")) - nanoseconds(first) == 3600 * 10**9


def test_parts_of_parquet(tmp_path: Any) -> None:
    path = tmp_path / "events.parquet"
    pd.DataFrame({"type": list("ABAB"), "ts": SECONDS}).to_parquet(path)
    start = datetime(2024, 1, 1, 1, 0, 2, tzinfo=EAST)
    read = cep.EventStream.from_parquet(path, type="type", time="ts", start=start)
    assert len(read) == 2
