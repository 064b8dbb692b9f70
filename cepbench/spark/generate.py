"""Generating the NASDAQ-style stream as a Spark job, straight into Parquet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from cepbench.spark.jobs import run_job, write_table
from cepbench.streams.dataset import MONTH, Declaration, begin_dataset, finish_dataset
from cepbench.streams.nasdaq_style import (
    ARITHMETIC,
    MEAN_RATE_PER_WINDOW,
    RATES_PER_WINDOW,
    NasdaqStyle,
)

KIND = "nasdaq-style"

#: Events in one file: enough that there are few of them, few enough that a reader skips most.
_FILE_EVENTS = 400_000
#: A short stream is still cut into some files, so that several cores can make it.
_SMALL_FILE_EVENTS = 20_000
_LEAST_FILES = 8


@dataclass(frozen=True, slots=True)
class _Part:
    """The work of one file: some identifiers over the days of one month."""

    month: str
    number: int
    identifiers: np.ndarray
    first: int
    last: int


def generate_nasdaq_style(
    spark: SparkSession,
    path: str | Path,
    *,
    identifiers: int = 2100,
    days: int = 252,
    seed: int = 0,
    first_day: date = date(2008, 1, 2),
    partitions: int | None = None,
    progress: bool = True,
) -> Declaration:
    """A stream in the style of NASDAQ prices, as Parquet by month.

    Parameters
    ----------
    spark : SparkSession
    path : path
        Folder for the data set, on a file system that all workers share.
    identifiers : int
        How many; the first ones of a longer list, with the same events.
    days : int
        Trading days; 252 are a year.
    seed : int
        The same seed gives the same events, however many tasks make them.
    first_day : date
    partitions : int, optional
        Number of Spark tasks.
    progress : bool
        Whether to show a bar if it takes longer than a few seconds.

    Returns
    -------
    Declaration
        Of the data set, with the number of events of each identifier. If it is there already it
        is left as it is; one that was not finished is made anew.

    Raises
    ------
    DatasetError
        If a number is out of range, or the folder holds something else.

    Notes
    -----
    Arrival rates are 1 to 45 events per *20 minutes*, 7.8 on average over identifiers, where the
    paper prints "per second"; see :mod:`cepbench.streams.nasdaq_style` for the reason and for how
    prices move. Columns: ``symbol``, ``ts`` (UTC, 09:30 to 16:00 on weekdays), ``price``,
    ``difference`` (to the identifier's previous price), ``sector``, ``sequence``.
    Source: [kolchinsky2018]_, section 6.2.
    """
    style = NasdaqStyle(identifiers, days, seed, first_day)
    path = Path(path).resolve()
    parameters = {
        "identifiers": identifiers,
        "days": days,
        "seed": seed,
        "first_day": first_day.isoformat(),
        "arithmetic": ARITHMETIC,
    }
    found = begin_dataset(path, kind=KIND, parameters=parameters)
    if found is not None:
        return found
    made = run_job(
        spark,
        partial(_make, style, path),
        _parts(style),
        name="generate",
        partitions=partitions,
        finished=lambda: sum(1 for _ in path.glob(f"{MONTH}=*/*.parquet")),
        progress=progress,
    )
    totals = np.sum([counts for counts, _ in made], axis=0)
    declaration = Declaration(
        kind=KIND,
        parameters=parameters,
        events=int(totals.sum()),
        counts=dict(zip(style.symbols, totals.tolist(), strict=True)),
        columns={field.name: str(field.type) for field in made[0][1]},
        notes={
            "arrival rates": (
                f"{RATES_PER_WINDOW[0]:g} to {RATES_PER_WINDOW[1]:g} events per identifier and 20 "
                f"minutes, about {MEAN_RATE_PER_WINDOW} on average (the paper prints per second, "
                "which does not fit its number of events)"
            )
        },
    )
    finish_dataset(path, declaration)
    return declaration


def _parts(style: NasdaqStyle) -> list[_Part]:
    """All files, as the stream's parameters alone determine them."""
    alphabetical = np.argsort(np.array(style.symbols), kind="stable")
    months = style.dates.astype("datetime64[M]")
    parts = []
    for month in np.unique(months):
        first, last = np.searchsorted(months, [month, month + 1]).tolist()
        expected = style.expected_events(days=last - first)
        files = max(
            math.ceil(expected / _FILE_EVENTS),
            min(_LEAST_FILES, math.ceil(expected / _SMALL_FILE_EVENTS)),
        )
        for number, some in enumerate(np.array_split(alphabetical, min(files, style.identifiers))):
            parts.append(_Part(str(month), number, some, first, last))
    return parts


def _make(style: NasdaqStyle, path: Path, part: _Part) -> tuple[np.ndarray, pa.Schema]:
    """Write one file; in a Spark worker. How many events of each identifier, and the columns."""
    table = style.table(part.identifiers, part.first, part.last)
    write_table(table, path / f"{MONTH}={part.month}" / f"part-{part.number:05d}.parquet")
    counts = np.bincount(table.column("sequence").to_numpy(), minlength=style.identifiers)
    return counts, table.schema
