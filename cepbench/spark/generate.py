"""Generating a synthetic stream as a Spark job that writes Parquet."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from cepbench.spark.jobs import run_job
from cepbench.streams.dataset_folder import Declaration
from cepbench.streams.generated import make_stream
from cepbench.streams.synthetic import GeneratedStream


def generate_stream(
    spark: SparkSession,
    path: str | Path,
    stream: GeneratedStream,
    *,
    partitions: int | None = None,
    progress: bool = True,
) -> Declaration:
    """The data set of :func:`cepbench.streams.generated.make_stream`, by Spark tasks.

    All workers share the file system of the path. For ``partitions`` and ``progress`` see
    :func:`cepbench.spark.jobs.run_job`; the events do not depend on them.
    """
    job = partial(
        run_job, spark, name="generate", partitions=partitions, progress=progress, one_here=True
    )
    return make_stream(path, stream, job)
