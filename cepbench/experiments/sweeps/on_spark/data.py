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

    Parameters
    ----------
    root : path
        Folder for generated streams, which all sweeps share.
    progress : bool
        Whether to show a progress bar after a few seconds.

    Returns
    -------
    dict of str to Path
        See :func:`cepbench.experiments.sweeps.sweep_file.data_paths`, also for errors.
    """
    found = data_paths(sweep, root)
    for name, stream in sweep.generated.items():
        generate_stream(spark, found[name], stream, progress=progress)
    return found
