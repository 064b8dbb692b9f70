"""The data that a sweep file names: generated, from the catalogue, or at a path."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from cepbench.datasets.opening import open_dataset
from cepbench.errors import DatasetError
from cepbench.spark.generate import generate_nasdaq_style
from cepbench.sweeps.sweep_file import Sweep, data_folder


def sweep_data(
    spark: SparkSession, sweep: Sweep, root: str | Path, *, progress: bool = True
) -> dict[str, Path]:
    """Where the data of each stream of a sweep lies, made first if it is one to generate.

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
        Parquet by the stream's name, ``""`` for a single one. A relative path in a sweep file is
        meant from the working directory or, if there is nothing, from the folder of the file.

    Raises
    ------
    DatasetError
        If there is no such data set or path, it cannot be made, or it is no Parquet.
    """
    found = {}
    for name, data in sweep.data.items():
        if isinstance(data, str):
            found[name] = _named(data, sweep.path.parent)
        else:
            found[name] = data_folder(root, data, sweep.seed)
            parameters = {"seed": sweep.seed, **data}
            generate_nasdaq_style(spark, found[name], progress=progress, **parameters)
    return found


def _named(data: str, folder: Path) -> Path:
    """A path, from here or from the folder of the sweep's file, or a data set of the catalogue."""
    named = Path(data).expanduser()
    found = next((path for path in (named, folder / named) if path.exists()), None)
    if found is None:
        found = open_dataset(data).path
    if found.is_file() and found.suffix != ".parquet":
        raise DatasetError(
            f"{found} is no Parquet, and a sweep reads nothing else; make Parquet of it by "
            "`cepbench data ingest`"
        )
    return found
