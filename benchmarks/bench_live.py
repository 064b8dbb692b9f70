"""A stream on Spark: ``python benchmarks/bench_live.py``.

Events of 10 and of 1,000 keys in few large micro-batches and in many small ones, through
``cep.spark.detect_stream`` into a file sink, with one detector and by key, beside ``cep.Detector`` alone in
this process. Per run: events per second of both, seconds of the median micro-batch, and of the sums of all
tasks those of Python and of saving state.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import cepbench as cep
from cepbench.spark.session import spark_session

PATTERN = cep.parse(
    "PATTERN SEQ(A a, KL(B b), NOT(D n), C c) WHERE [lot] AND a.value < c.value WITHIN 12 seconds"
)
PLAN = cep.OrderPlan(["a", "b", "c"])
COLUMNS = {"time": "time", "type": "type"}

#: Keys, events, micro-batches.
RUNS = ((10, 2000, 2), (10, 1_000_000, 2), (10, 20_000, 20), (1000, 20_000, 20))


def events_of(keys: int, number: int) -> pa.Table:
    """Half an event a second for each key, and a last one that completes all before it."""
    rng = np.random.default_rng(0)
    micros = np.sort(rng.integers(0, 2_000_000 * number // keys, number))
    micros[-1] += 10**9
    return pa.table(
        {
            "time": pa.array(micros, pa.timestamp("us", "UTC")),
            "type": rng.choice(list("ABCD"), number),
            "lot": rng.integers(0, keys, number),
            "value": rng.integers(0, 9, number),
            "no": np.arange(number),
        }
    )


def seconds_alone(events: pa.Table) -> float:
    stream = cep.EventStream.from_arrow(events, **COLUMNS, attributes=("lot", "value"))
    detector = cep.Detector(PATTERN, PLAN)
    began = time.perf_counter()
    detector.take(stream)
    return time.perf_counter() - began


def run(spark: SparkSession, events: pa.Table, batches: int, key: str | None) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "events").mkdir()
        size = len(events) // batches
        for number in range(batches):
            path = folder / "events" / f"{number:05}.parquet"
            pq.write_table(events.slice(number * size, size), path)
            os.utime(path, (number, number))  # Spark takes files in the order of their times
        files = str(folder / "events")
        df = spark.readStream.schema(spark.read.parquet(files).schema)
        found = cep.spark.detect_stream(
            df.option("maxFilesPerTrigger", 1).parquet(files),
            PATTERN, PLAN, **COLUMNS, id="no", key=key, slack=1,
        )  # fmt: skip
        began = time.perf_counter()
        query = (
            found.writeStream.format("parquet")
            .option("path", str(folder / "found"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        seconds = time.perf_counter() - began
    progress = query.recentProgress
    median = statistics.median(its["durationMs"]["triggerExecution"] for its in progress)
    states = [its["stateOperators"][0] for its in progress]
    python = sum(its["allUpdatesTimeMs"] for its in states)
    saving = sum(its["commitTimeMs"] for its in states)
    return (
        f"{len(events) / seconds:11,.0f}/s  median {median / 1000:.2f} s of {len(progress)}, "
        f"Python {python / 1000:.1f} s, saving {saving / 1000:.1f} s"
    )


def main() -> None:
    spark = spark_session(memory="2g", settings={"spark.sql.shuffle.partitions": "2"})
    for keys, number, batches in RUNS:  # the first run warms up Java
        events = events_of(keys, number)
        alone = min(seconds_alone(events) for _ in range(3))
        print(f"{keys} keys, {number:,} events in {batches}: alone {number / alone:,.0f}/s")
        for key in (None, "lot"):
            print(f"  key {key}: {run(spark, events, batches, key)}", flush=True)


if __name__ == "__main__":
    main()
