"""Generating a synthetic stream as a Spark job that writes Parquet."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from cepbench.files import user_path
from cepbench.spark.jobs import run_job
from cepbench.streams.dataset_folder import Declaration, finish_dataset, unfinished_dataset
from cepbench.streams.generated import declaration_of, write_file
from cepbench.streams.synthetic import GeneratedStream


def generate_stream(
    spark: SparkSession,
    path: str | Path,
    stream: GeneratedStream,
    *,
    partitions: int | None = None,
    progress: bool = True,
) -> Declaration:
    """A synthetic stream as a data set of Parquet files.

    Parameters
    ----------
    spark : SparkSession
    path : path
        Folder of the data set, on a file system that all workers share.
    stream : GeneratedStream
        One of the streams in :data:`cepbench.streams.generated.GENERATED`.
    partitions : int, optional
        Number of Spark tasks; the events do not depend on it.
    progress : bool
        Whether to show a progress bar after a few seconds.

    Returns
    -------
    Declaration
        With the number of events of each type. A complete data set with the same parameters is
        kept; an incomplete one is generated again.

    Raises
    ------
    DatasetError
        If the folder has other content, or another process writes there.
    """
    path = user_path(path).resolve()
    kind, parameters = stream.kind, stream.parameters
    with unfinished_dataset(path, kind=kind, parameters=parameters) as declaration:
        if declaration is None:
            written = run_job(
                spark,
                partial(write_file, stream, path),
                list(stream.files().items()),
                name="generate",
                unit="file",
                partitions=partitions,
                finished=lambda: sum(1 for _ in path.rglob("part-*.parquet")),
                progress=progress,
            )
            declaration = declaration_of(stream, written)
            finish_dataset(path, declaration)
    return declaration
