"""Detection on a stream of Structured Streaming: the matches of one pass, and late events aside."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import cepbench as cep
from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    PlanError,
    SnapshotError,
    SparkSetupError,
    StreamError,
    UnsupportedPatternError,
)
from cepbench.spark.session import STATE_STORE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLAN = cep.OrderPlan(["a", "b"])
OPTIONS = {"time": "ts", "type": "ven.type", "id": "no"}
SECOND = 1_000_000


def events(
    *rows: tuple[int | None, str, int | None, float | None], zone: str | None = "UTC"
) -> pa.Table:
    """Events by time in seconds, type, number and lot."""
    seconds, types, numbers, lots = zip(*rows, strict=True)
    return pa.table(
        {
            "ts": pa.array([its and SECOND * its for its in seconds], pa.timestamp("us", zone)),
            "ven.type": list(types),
            "no": list(numbers),
            "lot": pa.array(lots, pa.float64()),
        }
    )


#: Micro-batches: event 4 comes in time, 5 too late; −0 is 0, and a missing lot is no lot. Three events
#: are broken: no time, no identifier, and a time which would make all others late.
BATCHES = [
    events((10, "A", 0, 0.0), (12, "B", 1, -0.0), (12, "A", 2, None)),
    events(
        (20, "A", 3, 7.0),
        (11, "B", 4, 0.0),
        (None, "A", 9, 0.0),
        (20, "B", None, 7.0),
        (200_000_000_000, "B", 10, 7.0),
    ),
    events((14, "B", 5, 0.0), (24, "B", 6, 7.0), (24, "B", 7, None)),
    events((500, "other", 8, None)),
]


@pytest.fixture(scope="module")
def df(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    return stream_of(spark, tmp_path_factory.mktemp("stream"), BATCHES)


def stream_of(spark: SparkSession, folder: Path, batches: list[pa.Table]) -> DataFrame:
    folder.mkdir(exist_ok=True)
    for number, batch in enumerate(batches):
        path = folder / f"{number}.parquet"
        pq.write_table(batch, path)
        os.utime(path, (number, number))  # Spark takes files in the order of their times
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(found: DataFrame, folder: Path) -> list[Any]:
    """Write a stream to a file sink, and return the progress of its micro-batches."""
    with cep.spark.watched(found.sparkSession, "live"):
        query = (
            found.writeStream.format("parquet")
            .option("path", str(folder / "found"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return query.recentProgress


@pytest.mark.usefixtures("one_task")
def test_matches_and_late_and_broken_events(spark: SparkSession, tmp_path: Path) -> None:
    df = stream_of(spark, tmp_path / "events", BATCHES)
    text = "PATTERN SEQ(A a, KL(B b), NOT(D n)) WHERE [lot] WITHIN 5 seconds RETURN a, b, a.lot"
    found = cep.spark.detect_stream(df, text, PLAN, **OPTIONS, key="lot", detectors=2, slack=5)
    assert found.columns == ["a", "b", "a.lot", "late", "reason"]
    progress = run(found.observe("found", F.count("late").alias("late")), tmp_path)
    rows = df.sparkSession.read.parquet(str(tmp_path / "found")).toArrow().to_pylist()
    matches = sorted((row["a"], *row["b"], row["a.lot"]) for row in rows if row["late"] is None)
    assert matches == [(0, 1, 0.0), (0, 4, 0.0), (0, 4, 1, 0.0), (3, 6, 7.0)]
    aside = {row["reason"]: row["late"] for row in rows if row["late"] is not None}
    assert aside == {
        "late": BATCHES[2].to_pylist()[0],
        "no value in column 'ts'": BATCHES[1].to_pylist()[2],
        "no value in column 'no'": BATCHES[1].to_pylist()[3],
        "a time out of range in column 'ts'": BATCHES[1].to_pylist()[4],
    }
    assert {row["reason"] is None for row in rows if row["late"] is None} == {True}
    assert sum(its["observedMetrics"]["found"]["late"] for its in progress) == 4
    # No event is held, only what is detected: another pattern is refused.
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] == 1
    pq.write_table(events((900, "other", 11, None)), tmp_path / "events" / "more.parquet")
    other = text.replace("5 seconds", "6 seconds")
    found = cep.spark.detect_stream(df, other, PLAN, **OPTIONS, key="lot", detectors=2, slack=5)
    with pytest.raises(SnapshotError, match=r"^detector 0 of 2: .* with another pattern"):
        run(found, tmp_path)


@pytest.mark.parametrize(
    ("text", "options", "kind", "words"),
    [
        ("SEQ(A a, B b)", {"key": "lot"}, UnsupportedPatternError, r"WHERE \[lot\]"),
        (
            "SEQ(A a, B b) STRATEGY strict_contiguity",
            {"key": "lot"},
            UnsupportedPatternError,
            "strict",
        ),
        ("SEQ(A a, B b) WHERE [lot]", {"detectors": 0, "key": "lot"}, EvaluationError, "detectors"),
        ("SEQ(A a, B b)", {"slack": "3 units"}, EvaluationError, "of another kind"),
        ("SEQ(A a, B b)", {"id": "trade"}, StreamError, "no column 'trade'"),
        ("SEQ(A a, B b)", {"plan": None}, PlanError, "neither a plan nor an evaluator"),
        ("SEQ(A a, B b)", {"evaluator": "mine"}, EvaluationError, "did you mean|unknown|no "),
        ("SEQ(A late, B b)", {"plan": cep.OrderPlan(["late", "b"])}, EvaluationError, "'late'"),
    ],
)
def test_mistakes_are_found_before_the_stream_starts(
    df: DataFrame, text: str, options: dict[str, Any], kind: type[CepbenchError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        cep.spark.detect_stream(
            df, f"PATTERN {text} WITHIN 5 seconds", **{"plan": PLAN} | OPTIONS | options
        )


def test_streams_and_tables_are_not_mixed_up(spark: SparkSession, df: DataFrame) -> None:
    text = "PATTERN SEQ(A a, B b) WITHIN 5 seconds"
    with pytest.raises(StreamError, match=r"cep\.spark\.detect_stream"):
        cep.spark.detect(df, text, PLAN, **OPTIONS)
    with pytest.raises(StreamError, match="not a stream"):
        cep.spark.detect_stream(spark.createDataFrame(BATCHES[0]), text, PLAN, **OPTIONS)
    with pytest.raises(StreamError, match="watermark of column 'ts'"):
        cep.spark.detect_stream(df.withWatermark("ts", "1 second"), text, PLAN, **OPTIONS)


def test_another_state_store_is_refused(spark: SparkSession, df: DataFrame) -> None:
    name, ours = STATE_STORE
    spark.conf.set(name, ours.replace("RocksDB", "HDFSBacked"))
    try:
        with pytest.raises(SparkSetupError, match=name):
            cep.spark.detect_stream(df, "PATTERN SEQ(A a, B b) WITHIN 5 seconds", PLAN, **OPTIONS)
    finally:
        spark.conf.set(name, ours)
