"""The data that a sweep file names: generated, from the catalogue, or at a path."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from cepbench.spark.generate import generate_nasdaq_style
from cepbench.sweeps.sweep_file import Sweep, data_path


def sweep_data(
    spark: SparkSession, sweep: Sweep, root: str | Path, *, progress: bool = True
) -> Path:
    """Where the data of a sweep lies, made first if it is a stream to generate.

    Parameters
    ----------
    spark : SparkSession
    sweep : Sweep
    root : path
        Folder for generated streams, which all sweeps share.
    progress : bool
        Whether to show a bar if it takes longer than a few seconds.

    Returns
    -------
    Path
        Of Parquet. A relative path in a sweep file is meant from the working directory or, if
        there is nothing, from the folder of the file.

    Raises
    ------
    DatasetError
        If there is no such data set or path, it cannot be made, or it is no Parquet.
    """
    path = data_path(sweep, root)
    if sweep.stream is not None:
        generate_nasdaq_style(
            spark,
            path,
            identifiers=sweep.stream["identifiers"],
            days=sweep.stream["days"],
            seed=sweep.seed,
            progress=progress,
        )
    return path
