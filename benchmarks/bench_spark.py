"""One stream on Spark: ``python benchmarks/bench_spark.py [--data nasdaq-style/full] [--out rows.parquet]``.

Sequences and conjunctions of two to five events are counted, from files to a number, by
``cep.spark.detect`` of the files and of a DataFrame, ``cep.evaluate`` in this process, which reads only
the events of the pattern's types, and the query of ``cep.to_sql`` on DuckDB and on Spark: as it
is, with the cost-based optimizer (its statistics are computed before the clock starts), and with
broadcast joins. All take turns, after one run each, and have to agree.

Then the largest sequence is counted on one core, on two, and on a local cluster of two workers: the
whole job, core seconds per second in its detectors, and the peak memory of a task that has all of the
stream, or the first half or quarter. The model of ``cep.spark.scaling`` is compared with each of these jobs, and
estimates those on more cores.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from command_line import parser_of, write
from pyspark.sql import DataFrame, SparkSession

import cepbench as cep
from cepbench.datasets.dataset import Dataset
from cepbench.evaluators.slices import Slice, SliceDetection
from cepbench.spark.frames import Columns
from cepbench.spark.parquet_slices import ParquetSlices
from cepbench.spark.session import spark_session
from cepbench.streams.dataset_folder import SEQUENCE

COLUMNS: dict[str, Any] = {"time": "ts", "type": "symbol"}

#: Settings of Spark's optimizer under which the query runs.
OPTIMIZERS = {
    "Spark SQL": {},
    "Spark SQL, CBO": {
        "spark.sql.cbo.enabled": "true",
        "spark.sql.cbo.joinReorder.enabled": "true",
        "spark.sql.statistics.histogram.enabled": "true",
    },
    "Spark SQL, broadcast": {"spark.sql.autoBroadcastJoinThreshold": str(1 << 30)},
}

#: Where the model is compared with jobs.
MASTERS = ("local[1]", "local[2]", "local-cluster[2,1,1024]")


@dataclass(frozen=True)
class Contestant:
    """A way to count the matches of a pattern; ``run`` returns how many there are."""

    name: str
    run: Callable[[], int]


def patterns(dataset: Dataset) -> Iterator[tuple[str, cep.Pattern]]:
    """Sequences and conjunctions of the most frequent types, with a condition between neighbours."""
    symbols = dataset.counts.nlargest(5).index
    for operator in ("SEQ", "AND"):
        for size in range(2, 6):
            names = "abcde"[:size]
            items = ", ".join(f"{s} {n}" for s, n in zip(symbols, names, strict=False))
            conditions = " AND ".join(
                f"{one}.difference < {other}.difference" for one, other in itertools.pairwise(names)
            )
            text = f"PATTERN {operator}({items}) WHERE {conditions} WITHIN 5 minutes"
            yield f"{operator} of {size}", cep.parse(text)


def contestants(
    spark: SparkSession, path: Path, pattern: cep.Pattern, plan: Any
) -> Iterator[Contestant]:
    """All ways to count; all with the same plan, but for the optimizers'."""

    def counted(events: DataFrame | Path) -> int:
        slices = cep.spark.slices(events, pattern, plan, **COLUMNS, output="count")
        found = cep.spark.detect(events, pattern, **COLUMNS, output="count", slices=slices)
        return sum(row["matches"] for row in found.collect())

    def evaluated() -> int:
        stream = cep.EventStream.from_parquet(
            path, types=pattern.types, attributes=pattern.attributes
        )
        return cep.evaluate(pattern, stream, plan, output="count").metrics.matches

    yield Contestant("detect, files", partial(counted, path))
    yield Contestant("detect, DataFrame", partial(counted, spark.read.parquet(str(path))))
    yield Contestant("evaluate, one core", evaluated)
    names = {"type_column": "symbol", "time_column": "ts", "position_column": SEQUENCE}
    query = partial(cep.to_sql, pattern, output="count", **names)
    for threads in (1, os.cpu_count() or 1):
        connection = duckdb.connect(config={"threads": threads})
        files = f"{path}/**/*.parquet" if path.is_dir() else str(path)
        connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet('{files}')")
        text = query(plan)
        yield Contestant(
            f"DuckDB, {threads} threads", lambda c=connection, t=text: c.sql(t).fetchone()[0]
        )
    for name, settings in OPTIMIZERS.items():
        yield Contestant(name, partial(queried, spark, query(dialect="spark"), settings))


def queried(spark: SparkSession, query: str, settings: dict[str, str]) -> int:
    """The number that a query counts, under settings."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        return spark.sql(query).collect()[0][0]
    finally:
        for key in settings:
            spark.conf.unset(key)


def competition(spark: SparkSession, dataset: Dataset, repetitions: int) -> pd.DataFrame:
    """One row a pattern, contestant and repetition."""
    path = dataset.path
    spark.sql(f"CREATE TABLE events USING parquet LOCATION '{path}'")
    if path.is_dir():
        spark.sql("MSCK REPAIR TABLE events")
    spark.sql("ANALYZE TABLE events COMPUTE STATISTICS FOR ALL COLUMNS")
    rows = []
    for name, pattern in patterns(dataset):
        plan = cep.spark.plan(path, pattern, **COLUMNS)
        runs = list(contestants(spark, path, pattern, plan))
        found = {run.name: run.run() for run in runs}
        if len(set(found.values())) != 1:
            raise SystemExit(f"{name}: the numbers of matches differ: {found}")
        for repetition in range(repetitions):
            for run in runs:
                before = time.perf_counter()
                run.run()
                seconds = time.perf_counter() - before
                rows.append((name, run.name, repetition, seconds, found[run.name]))
    return pd.DataFrame(rows, columns=["pattern", "name", "repetition", "seconds", "matches"])


# -- how far it scales --------------------------------------------------------------------------


def slice_seconds(files: ParquetSlices, detection: SliceDetection, part: Slice) -> float:
    """The time of a task in this process."""
    before = time.perf_counter()
    detection.count(part, files.batches(detection, (part, 0, 1)))
    return time.perf_counter() - before


def peak_megabytes(files: ParquetSlices, detection: SliceDetection, part: Slice) -> float:
    """The peak memory of a new process that detects in a slice."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (files, detection, part))


def _peak(files: ParquetSlices, detection: SliceDetection, part: Slice) -> float:
    slice_seconds(files, detection, part)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def scale(dataset: Dataset, repetitions: int) -> pd.DataFrame:
    """Rows of a quantity, where it was measured, the number of cores and the value."""
    path, pattern = dataset.path, dict(patterns(dataset))["SEQ of 5"]
    rows: list[tuple[str, str, int, float]] = []
    for master in MASTERS:
        spark = spark_session(master)
        found = cep.spark.scaling(path, pattern, **COLUMNS)
        print(f"{master}\n{found.describe()}")
        detect = partial(cep.spark.detect, path, pattern, **COLUMNS, output="count")
        for _ in range(repetitions):
            before = time.perf_counter()
            inside = sum(row["seconds"] for row in detect(slices=found.slices).collect())
            seconds = time.perf_counter() - before
            rows.append(("seconds", master, found.cores, seconds))
            rows.append(("in detectors", master, found.cores, inside))
        rows.append(("model, its slices", master, found.cores, found.of_measured(found.cores)))
        for row in found.table.to_dict("records"):
            for name in ("seconds", "copied"):
                rows.append((f"model, {name}", master, row["cores"], row[name]))
        spark.stop()
    files = ParquetSlices(path, Columns("ts", "symbol", pattern.attributes), None)
    detection = SliceDetection(pattern, counts=True)
    begin, end = files.extent
    for share in (0.25, 0.5, 1.0):
        part = Slice(0, None, begin + int(share * (end - begin)), found.slices.plans[0])
        peak = peak_megabytes(files, detection, part)
        rows.append((f"peak MB, {share:.0%} of the stream", "alone", 1, peak))
    return pd.DataFrame(rows, columns=["quantity", "master", "cores", "value"])


def main() -> None:
    parser = parser_of(__doc__.splitlines()[0], repetitions=3)
    parser.add_argument("--data", default="nasdaq-style/quick")
    given = parser.parse_args()
    dataset = cep.open_dataset(given.data)
    spark = spark_session()
    competing = competition(spark, dataset, given.repetitions)
    spark.stop()
    table = competing.pivot_table("seconds", "name", "pattern", "median", sort=False)
    print(table.to_string(float_format="{:.2f}".format))
    scaling = scale(dataset, given.repetitions)
    medians = scaling.groupby(["quantity", "master", "cores"], sort=False)["value"].median()
    print(medians.to_string(float_format="{:.3g}".format))
    for (master, cores), seconds in medians["seconds"].items():
        inside = medians["in detectors", master, cores]
        print(f"{master}: {seconds * cores / inside:.2f} core seconds per second in detectors")
        for source in MASTERS:
            name = "model, its slices" if source == master else "model, seconds"
            error = medians[name, source, cores] / seconds - 1
            print(f"{master}: by the model from {source} {error:+.0%}")
    write(pd.concat([competing, scaling]), given.out)


if __name__ == "__main__":
    main()
