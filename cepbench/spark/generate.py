"""Generating the NASDAQ-style stream as a Spark job that writes Parquet."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cepbench.spark.jobs import run_job
from cepbench.streams.dataset_folder import MONTH, Declaration, begin_dataset, finish_dataset
from cepbench.streams.nasdaq_files import KIND, declaration_of, parameters_of, parts_of, write_part
from cepbench.streams.nasdaq_style import NasdaqStyle


def generate_nasdaq_style(
    spark: SparkSession,
    path: str | Path,
    *,
    partitions: int | None = None,
    progress: bool = True,
    **parameters: Any,
) -> Declaration:
    """Generate a stream in the style of NASDAQ prices, as Parquet by month.

    Parameters
    ----------
    spark : SparkSession
    path : path
        Folder of the data set, on a file system that all workers share.
    partitions : int, optional
        Number of Spark tasks; the events do not depend on it.
    progress : bool
        Whether to show a progress bar after a few seconds.
    **parameters
        Of :class:`cepbench.streams.nasdaq_style.NasdaqStyle`: ``identifiers``, ``days``, ``seed``,
        bounds of the rates, drift.

    Returns
    -------
    Declaration
        With the number of events of each identifier. A complete data set with the same parameters
        is kept; an incomplete one is generated again.

    Raises
    ------
    DatasetError
        If a parameter is out of range, or the folder has other content.

    Notes
    -----
    Arrival rates are 1 to 45 events per *20 minutes*, 7.8 on average over identifiers, where the
    paper prints "per second"; see :mod:`cepbench.streams.nasdaq_style` for the reason and for the
    price model. Columns: ``symbol``, ``ts`` (UTC, 09:30 to 16:00 on weekdays), ``price``,
    ``difference`` (to the identifier's previous price), ``sector``, ``sequence``.
    Source: [kolchinsky2018]_, section 6.2.
    """
    style = NasdaqStyle(**parameters)
    path = Path(path).resolve()
    made_from = parameters_of(style)
    found = begin_dataset(path, kind=KIND, parameters=made_from)
    if found is not None:
        return found
    made = run_job(
        spark,
        partial(write_part, style, path),
        parts_of(style),
        name="generate",
        partitions=partitions,
        finished=lambda: sum(1 for _ in path.glob(f"{MONTH}=*/*.parquet")),
        progress=progress,
    )
    declaration = declaration_of(style, made, made_from)
    finish_dataset(path, declaration)
    return declaration
