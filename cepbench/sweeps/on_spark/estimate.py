"""Estimating the duration of a sweep before it starts, on the machines that it will run on."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession

from cepbench.files import whole_file
from cepbench.spark.jobs import run_job
from cepbench.spark.statistics import GROUP
from cepbench.sweeps.configuration import SweepConfig, identity_of
from cepbench.sweeps.estimate import (
    Timing,
    choose_sample,
    estimate_table,
    read_estimate,
    time_pattern,
    write_estimate,
)
from cepbench.sweeps.on_spark.job import (
    SweepJob,
    Task,
    drawn_workload,
    kept_cardinalities,
    measured_statistics,
    most_of,
    own_stream,
    pickled,
    resolved,
)
from cepbench.sweeps.store import ResultsStore, of_stream
from cepbench.sweeps.warm_up import compile_kernels


def estimate_sweep(
    spark: SparkSession, config: SweepConfig, path: str | Path, *, progress: bool = True
) -> pd.DataFrame:
    """How long :func:`cepbench.sweeps.on_spark.job.run_sweep` of the same arguments will take.

    A sample of the patterns is read, planned, and run on parts of its events, as many patterns at
    a time as there are cores. The result is kept in the folder of the sweep; if there is one
    already it is returned. User-defined generators, if the configuration names none, are measured
    beside the sweep and are not in its estimate.

    Parameters
    ----------
    spark : SparkSession
    config : SweepConfig
    path : path
        Folder of results, on a file system that all workers share.
    progress : bool

    Returns
    -------
    DataFrame
        See :func:`cepbench.sweeps.estimate.estimate_table`.

    Raises
    ------
    ExperimentError
        If the folder belongs to another sweep or is in use.
    """
    config, generators = resolved(config)
    identity = identity_of(config, generators)
    cores = spark.sparkContext.defaultParallelism
    with ResultsStore(path, identity) as store:
        found = read_estimate(store.path)
        if found is not None:
            return found
        cardinalities = kept_cardinalities(spark, config, store.kept)
        specs = drawn_workload(spark, config, store.kept)
        sample = choose_sample(specs, most_of(cardinalities), seed=config.seed)
        sampled = [each.spec for each in sample]
        began = time.perf_counter()
        tasks = []
        for stream, data in config.data_of.items():
            statistics = measured_statistics(spark, config, data, sampled, progress=progress)
            tasks += [Task.of(config, spec, stream, statistics) for spec in sampled]
        groups = math.ceil(len(specs) / GROUP) / math.ceil(len(sample) / GROUP)
        measuring = cores * (time.perf_counter() - began) * groups
        compile_kernels()
        parts = pickled(config, generators)
        job = SweepJob(config, json.dumps(identity), store.path.resolve(), parts)
        kept = store.path / "estimate"
        kept.mkdir(exist_ok=True)
        timings: dict[str, Timing] = {}
        for timing in run_job(
            spark,
            partial(_time_one, job, kept),
            tasks,
            name="estimate",
            unit="pattern",
            partitions=len(tasks),
            finished=lambda: sum(1 for _ in kept.glob("*.json")),
            progress=progress,
        ):
            known = timings.get(timing.pattern_id)
            timings[timing.pattern_id] = timing if known is None else known + timing
        table = estimate_table(
            sample, list(timings.values()), cores, measuring=measuring, seed=config.seed
        )
        write_estimate(store.path, table)
    return table


def _time_one(job: SweepJob, kept: Path, task: Task) -> Timing:
    """Time one sampled pattern, unless a killed estimate did; in a Spark worker."""
    spec = task.spec
    path = kept / f"{of_stream(spec.pattern_id, task.stream)}.json"
    if path.exists():
        return Timing(**json.loads(path.read_text(encoding="utf-8")))
    began = time.process_time()
    stream = own_stream(job.config.data_of[task.stream], spec, job.config)
    reading = time.process_time() - began
    timing = time_pattern(spec, stream, task.measured(), job.grid(), reading=reading)
    with whole_file(path) as unfinished:
        unfinished.write_text(json.dumps(asdict(timing)), encoding="utf-8")
    return timing
