"""One stream on Spark: ``python benchmarks/bench_spark.py [--data nasdaq-style/full] [--months 1] [--limit 60]``.

Sequences and conjunctions of two to five events are counted by ``cep.spark.detect`` of the files and of a
DataFrame of them, by ``cep.evaluate`` in this process, which reads only the events of the pattern's types,
and by the query of ``cep.to_sql`` on DuckDB and on Spark: with the joins of the same plan, over
buckets of time, on Spark as it is, with the cost-based optimizer, and with broadcast joins; and with
the joins that the engine chooses. The queries read a table of the pattern's columns and of the five types alone,
sorted by time and with its statistics, that is made before the clock starts (its seconds are shown);
the others read the files. All take turns, after one run each, and have to agree. A query that takes longer
than the limit is stopped, and not repeated.

Then the largest sequence is counted on one core, on two, and on a local cluster of two workers: the
whole job, core seconds per second in its detectors, and the peak memory of a task that has all of the
stream, or the first half or quarter. The model of ``cep.spark.scaling`` is compared with each of these jobs, and
estimates those on more cores.
"""

from __future__ import annotations

import itertools
import multiprocessing
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from command_line import parser_of, write
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import cepbench as cep
from cepbench.engines.detection.slices import SliceDetection
from cepbench.engines.runs.slices import Slice
from cepbench.spark.frames import Columns
from cepbench.spark.parquet_slices import ParquetSlices
from cepbench.spark.session import spark_session
from cepbench.streams.dataset_folder import DECLARATION, MONTH, SEQUENCE
from cepbench.streams.datasets.dataset import Dataset

COLUMNS: dict[str, Any] = {"time": "ts", "type": "symbol"}

#: Settings of Spark's optimizer under which the query runs.
OPTIMIZERS = {
    "": {},
    ", CBO": {
        "spark.sql.cbo.enabled": "true",
        "spark.sql.cbo.joinReorder.enabled": "true",
        "spark.sql.statistics.histogram.enabled": "true",
    },
    ", broadcast": {"spark.sql.autoBroadcastJoinThreshold": str(1 << 30)},
}

#: Where the model is compared with jobs.
MASTERS = ("local[1]", "local[2]", "local-cluster[2,1,1024]")

#: How long a stopped query is waited for.
_IDLE_SECONDS = 60.0


@dataclass(frozen=True)
class Contestant:
    """A way to count the matches of a pattern; ``run`` returns how many there are, ``stop`` ends it."""

    name: str
    run: Callable[[], int]
    stop: Callable[[], object] | None = None

    def within(self, limit: float) -> tuple[float, int | None]:
        """The seconds that it takes, and what it counts; None if it was stopped."""
        stopped = threading.Event()

        def stop() -> None:
            assert self.stop is not None
            stopped.set()
            self.stop()

        timer = threading.Timer(limit if self.stop else threading.TIMEOUT_MAX, stop)
        timer.start()
        before = time.perf_counter()
        try:
            found = self.run()
        except (PySparkException, Py4JError, duckdb.Error):
            if not stopped.is_set():
                raise
            return limit, None
        finally:
            timer.cancel()
        return time.perf_counter() - before, found


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
    spark: SparkSession,
    duck: duckdb.DuckDBPyConnection,
    path: Path,
    pattern: cep.Pattern,
    plan: Any,
) -> Iterator[Contestant]:
    """All ways to count."""

    def counted(events: DataFrame | Path) -> int:
        slices = cep.spark.slices(events, pattern, plan, **COLUMNS, output="count")
        found = cep.spark.detect(events, pattern, **COLUMNS, output="count", slices=slices)
        return sum(row["matches"] for row in found.collect())

    def evaluated() -> int:
        stream = cep.EventStream.from_parquet(
            path, types=pattern.types, attributes=pattern.attributes
        )
        return cep.evaluate(pattern, stream, plan, output="count").metrics.matches

    def duck_query(name: str, text: str) -> Contestant:
        return Contestant(name, lambda: duck.execute(text).fetchall()[0][0], duck.interrupt)

    def spark_query(name: str, text: str, settings: dict[str, str]) -> Contestant:
        stop = spark.sparkContext.cancelAllJobs
        return Contestant(name, partial(queried, spark, text, settings), stop)

    yield Contestant("detect, files", partial(counted, path))
    yield Contestant("detect, DataFrame", partial(counted, spark.read.parquet(str(path))))
    yield Contestant("evaluate, one core", evaluated)
    names = {"type_column": "symbol", "time_column": "ts", "position_column": SEQUENCE}
    query = partial(cep.to_sql, pattern, output="count", **names)
    yield duck_query("DuckDB, plan", query(plan))
    yield duck_query("DuckDB", query())
    for name, settings in OPTIMIZERS.items():
        yield spark_query(f"Spark SQL, plan{name}", query(plan, dialect="spark"), settings)
    yield spark_query("Spark SQL, CBO", query(dialect="spark"), OPTIMIZERS[", CBO"])


@contextmanager
def set_for(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Settings of Spark in a block."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def queried(spark: SparkSession, query: str, settings: dict[str, str]) -> int:
    """The number that a query counts, under settings."""
    try:
        with set_for(spark, settings):
            return spark.sql(query).collect()[0][0]
    finally:
        # Tasks of a cancelled query still run until they notice it.
        status = spark.sparkContext._jsc.sc().statusTracker()
        end = time.monotonic() + _IDLE_SECONDS
        while any(its.numRunningTasks() for its in status.getExecutorInfos()):
            if time.monotonic() > end:
                print("tasks of a stopped query still run, which slows the next ones")
                break
            time.sleep(0.1)


def months_of(path: Path, months: int, folder: Path) -> Path:
    """A data set of the first months of another one."""
    for month in sorted(path.glob(f"{MONTH}=*"))[:months]:
        (folder / month.name).mkdir()
        for file in month.iterdir():
            (folder / month.name / file.name).symlink_to(file)
    (folder / DECLARATION).symlink_to(path / DECLARATION)
    return folder


def competition(
    spark: SparkSession, dataset: Dataset, path: Path, repetitions: int, limit: float
) -> pd.DataFrame:
    """One row a pattern, contestant and repetition; no matches where it was stopped."""
    columns = ", ".join([*COLUMNS.values(), "difference", SEQUENCE])
    types = ", ".join(f"'{name}'" for name in dataset.counts.nlargest(5).index)
    sort = f"WHERE symbol IN ({types}) ORDER BY ts, {SEQUENCE}"
    duck = duckdb.connect()
    before = time.perf_counter()
    files = f"read_parquet('{path}/**/*.parquet')"
    duck.execute(f"CREATE TABLE events AS SELECT {columns} FROM {files} {sort}")
    print(f"DuckDB makes its table in {time.perf_counter() - before:.1f} s")
    before = time.perf_counter()
    spark.read.parquet(str(path)).createOrReplaceTempView("files")
    spark.sql(f"CREATE TABLE events USING parquet AS SELECT {columns} FROM files {sort}")
    with set_for(spark, OPTIMIZERS[", CBO"]):
        spark.sql("ANALYZE TABLE events COMPUTE STATISTICS FOR ALL COLUMNS")
    print(f"Spark makes its table, with statistics, in {time.perf_counter() - before:.1f} s")
    rows = []
    for name, pattern in patterns(dataset):
        plan = cep.spark.plan(path, pattern, **COLUMNS)
        runs = {its.name: its for its in contestants(spark, duck, path, pattern, plan)}
        first = {its.name: its.within(limit) for its in runs.values()}
        found = {its: matches for its, (_, matches) in first.items() if matches is not None}
        if len(set(found.values())) != 1:
            raise SystemExit(f"{name}: the numbers of matches differ: {found}")
        rows += [(name, its, 0, s, None) for its, (s, _) in first.items() if its not in found]
        for repetition in range(repetitions):
            for its in found:
                rows.append((name, its, repetition, *runs[its].within(limit)))
        shown = ", ".join(f"{row[1]} {row[3]:.1f}" for row in rows if row[0] == name)
        print(f"{name}: {next(iter(found.values())):,} matches; seconds: {shown}", flush=True)
    table = pd.DataFrame(rows, columns=["pattern", "name", "repetition", "seconds", "matches"])
    return table.astype({"matches": "Int64"})


# -- how far it scales --------------------------------------------------------------------------


def peak_megabytes(files: ParquetSlices, detection: SliceDetection, part: Slice) -> float:
    """The peak memory of a new process that detects in a slice."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (files, detection, part))


def _peak(files: ParquetSlices, detection: SliceDetection, part: Slice) -> float:
    detection.count(part, files.batches(detection, part))
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
    files = ParquetSlices(path, Columns("ts", "symbol", pattern.attributes), pattern.types)
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
    parser.add_argument("--months", type=int, default=12, help="the first months of a year")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a query")
    given = parser.parse_args()
    dataset = cep.open_dataset(given.data)
    spark = spark_session()
    with tempfile.TemporaryDirectory() as folder:
        path = months_of(dataset.path, given.months, Path(folder))
        competing = competition(spark, dataset, path, given.repetitions, given.limit)
    spark.stop()
    table = competing.pivot_table("seconds", "name", "pattern", "median", sort=False)
    done = competing.groupby(["name", "pattern"])["matches"].count().unstack() > 0
    shown = table.map("{:.2f}".format).where(done.reindex_like(table), f"> {given.limit:g}")
    print(shown.to_string())
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
