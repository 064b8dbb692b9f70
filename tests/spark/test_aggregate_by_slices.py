"""Aggregates by Spark: the same as in one pass, however the work is divided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.aggregation.aggregate import AggregateResult
from cepbench.engines.aggregation.slices import SliceAggregation
from cepbench.errors import (
    CepbenchError,
    DatasetError,
    EvaluationError,
    MissingTypeWarning,
    StreamError,
)
from cepbench.spark.aggregation import aggregate, even_slices
from cepbench.spark.frames import Columns
from cepbench.spark.generate import generate_stream
from cepbench.spark.parquet_slices import ParquetSlices
from cepbench.streams.nasdaq_style import NasdaqStyle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTED = "PATTERN SEQ(MSFT a, NOT(ORCL n), INTC c) AGG COUNT, MAX(c.price) WITHIN 5 minutes"


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Days of two months."""
    path = tmp_path_factory.mktemp("aggregate") / "data"
    generate_stream(spark, path, NasdaqStyle(identifiers=12, days=23, seed=5))
    return path


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Integer times with many ties, in one row group, out of order."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "symbol": rng.choice(list("ABC"), 3000),
            "ts": rng.integers(0, 900, 3000),
            "venue": rng.choice(["x", "y", None], 3000),
            "lot": rng.integers(1, 4, 3000),
        }
    )
    path = tmp_path_factory.mktemp("aggregate") / "ticks.parquet"
    frame.to_parquet(path)
    return path


def in_one_pass(path: Path, text: str, **options: Any) -> AggregateResult:
    return cep.aggregate(text, cep.EventStream.from_parquet(path, sort=True), **options)


@pytest.mark.parametrize("emit", ["trigger", "change"])
def test_a_data_set_in_slices_is_one_pass(spark: SparkSession, data: Path, emit: str) -> None:
    found = aggregate(data, COUNTED, emit=emit, slices=5)
    expected = in_one_pass(data, COUNTED, emit=emit)
    assert found.rows == expected.rows
    pd.testing.assert_frame_equal(found.values, expected.values)
    assert (found.method, found.metrics.events) == (expected.method, expected.metrics.events)
    # Only the events before slices are processed twice.
    assert 1 <= found.metrics.updates / expected.metrics.updates < 1.05


def test_slices_have_about_as_many_events_each(data: Path) -> None:
    task = SliceAggregation(cep.parse(COUNTED))
    files = ParquetSlices(data, Columns("ts", "symbol", ()))
    slices = even_slices(files, task, 5).all_parts()
    times = cep.EventStream.from_parquet(data).timestamps
    cuts = np.searchsorted(times, [its.start for its in slices[1:]])
    counts = np.diff([0, *cuts, len(times)])
    assert len(slices) == 5 and max(counts) < 1.3 * min(counts)
    assert [its.end for its in slices] == [*(its.start for its in slices[1:]), None]
    # No slice is shorter than its lead.
    weeks = cep.parse(COUNTED.replace("5 minutes", "240 hours"))
    assert even_slices(files, SliceAggregation(weeks), 5).tasks == 3


@pytest.mark.parametrize(
    ("text", "slices"),
    [
        ("PATTERN SEQ(A a, B b) GROUP BY a.venue, b.lot AGG COUNT, SUM(a.lot) WITHIN < 3 units", 7),
        # Of 900 ticks, two slices: further tasks divide the venues.
        ("PATTERN SEQ(A a, KL(B b), C c) GROUP BY venue AGG COUNT, MIN(b.lot) WITHIN 450 units", 5),
        ("PATTERN SEQ(NOT(C n), A a, B b) GROUP BY lot AGG AVG(a.lot) WITHIN 300 units", 4),
        ("PATTERN SEQ(A a, NOT(C n), B b) ORDER BY arrival AGG COUNT WITHIN 20 units", 4),
    ],
)
def test_ties_and_groups(spark: SparkSession, ticks: Path, text: str, slices: int) -> None:
    found = aggregate(ticks, text, slices=slices)
    assert found.rows == in_one_pass(ticks, text).rows
    assert len(found.rows) > 600


def test_an_identifier_orders_ties_of_files(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "symbol": rng.choice(list("AB"), 300),
            "ts": rng.integers(0, 60, 300),
            "lot": rng.integers(1, 4, 300),
            "no": [f"{number:03}" for number in rng.permutation(300)],
        }
    )
    frame.to_parquet(tmp_path / "events.parquet")
    text = "PATTERN SEQ(A a, B b) AGG COUNT, SUM(a.lot) WITHIN 3 units"
    found = cep.spark.aggregate(tmp_path, text, id="no", slices=4, emit="change")
    expected = {}
    for keys in (["ts", "no"], ["ts"]):
        ordered = frame.sort_values(keys, kind="stable")
        stream = cep.EventStream.from_pandas(ordered, type="symbol", time="ts")
        expected[len(keys)] = cep.aggregate(text, stream, emit="change").rows
    assert found.rows == expected[2] != expected[1]
    with pytest.raises(StreamError, match="did you mean 'no'"):
        cep.spark.aggregate(tmp_path, text, id="noo")


def test_a_data_frame_in_slices_is_one_pass(spark: SparkSession, ticks: Path) -> None:
    text = "PATTERN SEQ(A a, NOT(C n), B b) GROUP BY b.lot AGG COUNT, SUM(a.lot) WITHIN 20 units"
    frame = pd.read_parquet(ticks).sort_values("ts", kind="stable")
    frame = frame[(frame["ts"] < 300) | (frame["ts"] > 800)]
    frame = frame.assign(number=np.arange(len(frame)))
    df = spark.createDataFrame(frame.sample(frac=1, random_state=0)).repartition(3)
    found = cep.spark.aggregate(df, text, id="number", slices=6)
    stream = cep.EventStream.from_pandas(frame, type="symbol", time="ts")
    expected = cep.aggregate(text, stream)
    assert found.rows == expected.rows and len(found.rows) > 200
    assert found.metrics.events == len(frame)
    with pytest.raises(StreamError, match="did you mean 'lot'"):
        cep.spark.aggregate(df, text.replace("a.lot", "a.lto"))


def test_a_type_without_events_is_reported_once(spark: SparkSession, ticks: Path) -> None:
    text = "PATTERN SEQ(A a, X x) AGG COUNT WITHIN 20 units"
    for events in (ticks, spark.read.parquet(str(ticks))):
        with pytest.warns(MissingTypeWarning, match="no event of type 'X'") as reported:
            found = cep.spark.aggregate(events, text, slices=2)
        assert len(reported) == 1 and not found.rows


@pytest.mark.parametrize(
    ("text", "options", "kind", "words"),
    [
        (COUNTED, {"scope": "stream"}, EvaluationError, "add up the values of scope='trigger'"),
        (COUNTED.replace("INTC", "ITNC"), {}, DatasetError, "did you mean 'INTC'"),
        (COUNTED.replace("c.price", "c.prize"), {}, StreamError, "did you mean 'price'"),
        (COUNTED.replace("5 minutes", "5 units"), {}, StreamError, "time is a datetime"),
        (COUNTED, {"slices": -1}, EvaluationError, "slices"),
    ],
)
def test_mistakes_are_found_before_the_job(
    spark: SparkSession, data: Path, text: str, options: dict[str, Any],
    kind: type[CepbenchError], words: str,
) -> None:  # fmt: skip
    with pytest.raises(kind, match=words):
        aggregate(data, text, **options)
