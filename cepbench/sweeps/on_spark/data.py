"""The data that a sweep file names: generated, from the catalogue, or at a path."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from cepbench.spark.generate import generate_nasdaq_style
from cepbench.sweeps.sweep_file import Sweep, data_paths


def sweep_data(
    spark: SparkSession, sweep: Sweep, root: str | Path, *, progress: bool = True
) -> dict[str, Path]:
    """Where the data of each stream of a sweep lies, generated first if it is not there.

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
    dict of str to Path
        As :func:`cepbench.sweeps.sweep_file.data_paths`, with the errors that it raises.
    """
    found = data_paths(sweep, root)
    for name, data in sweep.data.items():
        if not isinstance(data, str):
            parameters = {"seed": sweep.seed, **data}
            generate_nasdaq_style(spark, found[name], progress=progress, **parameters)
    return found
