"""Small source files as streams, without Spark; large ones are ingested."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.streams.sources import (
    FORMATS,
    LOBSTER,
    decimal_differences,
    lobster_day,
    read_rows,
)


@lru_cache(maxsize=8)
def read_source(file: Path, kind: str) -> tuple[pa.Table, pd.DataFrame]:
    """The events of a source file, and its malformed rows.

    Parameters
    ----------
    file : Path
    kind : str
        A key of :data:`cepbench.streams.sources.FORMATS`.

    Returns
    -------
    events : pyarrow.Table
        With the columns and order of :mod:`cepbench.spark.ingest`, without ``sequence``.
    bad : DataFrame
        ``file``, ``row`` (from 1), ``text``, ``reason``.

    Raises
    ------
    DatasetError
        If the file cannot be read.
    """
    form = FORMATS[kind]
    day = lobster_day(file) if form is LOBSTER else None
    pieces = list(read_rows(file, form, day=day))
    empty = form.schema.empty_table()
    events = pa.concat_tables([empty, *(piece.events for piece in pieces)]).drop_columns(["row"])
    events = events.append_column("difference", _differences(events))
    bad = pd.concat([piece.bad.to_pandas() for piece in pieces], ignore_index=True)
    bad.insert(0, "file", file.name)
    return events, bad


def _differences(events: pa.Table) -> pa.Array:
    """Each price minus the previous one of the same symbol; missing for the first."""
    prices = events.column("price").to_numpy()
    symbols = events.column("symbol").to_pandas().to_numpy()
    order = np.argsort(pd.factorize(symbols)[0], kind="stable")
    before = np.append(np.nan, prices[order])[:-1]
    steps = decimal_differences(prices[order], before)
    steps[1:][symbols[order][1:] != symbols[order][:-1]] = np.nan
    found = np.empty(len(prices))
    found[order] = steps
    return pa.array(found, from_pandas=True)
