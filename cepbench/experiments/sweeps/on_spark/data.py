"""The data that a sweep file names: generated, from the catalogue, or at a path."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from cepbench.experiments.sweeps.sweep_file import Sweep, data_paths
from cepbench.spark.generate import generate_stream


def sweep_data(
    spark: SparkSession, sweep: Sweep, root: str | Path, *, progress: bool = True
) -> dict[str, Path]:
    """The path of each stream of a sweep; streams that are missing are generated first.

    See :func:`cepbench.experiments.sweeps.sweep_file.data_paths`, also for errors.

    ``root``: folder for generated streams, which all sweeps share. ``progress``: whether to show a
    progress bar after a few seconds.
    """
    found = data_paths(sweep, root)
    for name, stream in sweep.generated.items():
        generate_stream(spark, found[name], stream, progress=progress)
    return found
