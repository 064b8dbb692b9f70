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

from cepbench.experiments.sweeps.configuration import SweepConfig, identity_of
from cepbench.experiments.sweeps.estimate import (
    Timing,
    choose_sample,
    estimate_table,
    read_estimate,
    time_pattern,
    write_estimate,
)
from cepbench.experiments.sweeps.on_spark.job import (
    SweepJob,
    Task,
    cardinalities_by_stream,
    drawn_workload,
    most_of,
    own_stream,
    pickled,
    resolved,
    tasks_of,
)
from cepbench.experiments.sweeps.store import ResultsStore, of_stream
from cepbench.experiments.sweeps.warm_up import compile_kernels
from cepbench.files import write_json
from cepbench.spark.jobs import run_job
from cepbench.spark.statistics import GROUP


def estimate_sweep(
    spark: SparkSession, config: SweepConfig, path: str | Path, *, progress: bool = True
) -> pd.DataFrame:
    """Estimate the duration of :func:`cepbench.experiments.sweeps.on_spark.job.run_sweep`.

    A sample of the patterns is read, planned, and run on parts of its events, one pattern a core.
    The estimate is stored in the folder of the sweep and reused. User-defined generators that are
    measured beside the sweep are not included.

    The table is that of :func:`cepbench.experiments.sweeps.estimate.estimate_table`.

    ``path``: folder of results, on a file system that all workers share.

    An ExperimentError if the folder belongs to another sweep or is in use.
    """
    config, generators = resolved(config)
    identity = identity_of(config, generators)
    cores = spark.sparkContext.defaultParallelism
    with ResultsStore(path, identity) as store:
        found = read_estimate(store.path)
        if found is not None:
            return found
        cardinalities = cardinalities_by_stream(spark, config, store.kept)
        specs = drawn_workload(spark, config, store.kept)
        sample = choose_sample(specs, most_of(cardinalities), seed=config.seed)
        began = time.perf_counter()
        tasks = tasks_of(
            spark, config, [each.spec for each in sample], lambda _, make: make(), progress=progress
        )
        groups = math.ceil(len(specs) / GROUP) / math.ceil(len(sample) / GROUP)
        measuring = cores * (time.perf_counter() - began) * groups
        compile_kernels()
        parts = pickled(config, generators)
        job = SweepJob(config, json.dumps(identity), store.path.resolve(), parts)
        kept = store.path / "estimate"
        kept.mkdir(exist_ok=True)
        timings = run_job(
            spark,
            partial(_time_one, job, kept),
            tasks,
            name="estimate",
            unit="pattern",
            partitions=len(tasks),
            finished=lambda: sum(1 for _ in kept.glob("*.json")),
            progress=progress,
        )
        table = estimate_table(sample, timings, cores, measuring=measuring, seed=config.seed)
        write_estimate(store.path, table)
    return table


def _time_one(job: SweepJob, kept: Path, task: Task) -> Timing:
    """Time one sampled pattern in a Spark worker, unless a killed estimate already has."""
    spec = task.spec
    path = kept / f"{of_stream(spec.pattern_id, task.stream)}.json"
    if path.exists():
        return Timing(**json.loads(path.read_text(encoding="utf-8")))
    began = time.process_time()
    stream = own_stream(job.config.data_of[task.stream], spec, job.config)
    reading = time.process_time() - began
    timing = time_pattern(spec, stream, task.measured(), job.grid(task.stream), reading=reading)
    write_json(path, asdict(timing))
    return timing
