"""Synthetic streams: from parameters and a seed, in files that are written independently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cepbench.arguments import choice
from cepbench.errors import DatasetError, did_you_mean
from cepbench.streams.company_trades import CompanyTrades
from cepbench.streams.dataset_folder import Declaration, type_column
from cepbench.streams.evacuation import Evacuation
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.parquet_files import write_table
from cepbench.streams.stock_rates import StockRates
from cepbench.streams.stock_ticker import StockTicker
from cepbench.streams.synthetic import GeneratedStream
from cepbench.streams.ten_symbols import TenSymbols
from cepbench.streams.ticker_trades import TickerTrades
from cepbench.streams.web_log import WebLog

#: Kind of data set -> the stream that it is generated from.
GENERATED: Mapping[str, type[GeneratedStream]] = {
    stream.kind: stream
    for stream in (
        CompanyTrades,
        Evacuation,
        NasdaqStyle,
        StockRates,
        StockTicker,
        TenSymbols,
        TickerTrades,
        WebLog,
    )
}


def parameters_of(kind: str) -> list[str]:
    """The names of the parameters of a kind of stream.

    Raises
    ------
    DatasetError
        If there is no such kind.
    """
    stream = GENERATED[choice(kind, "kind", GENERATED, DatasetError)]
    return [each.name for each in fields(stream)]


def stream_of(kind: str, parameters: Mapping[str, Any]) -> GeneratedStream:
    """A stream of a kind in :data:`GENERATED` from its parameters.

    Raises
    ------
    DatasetError
        If there is no such kind, or a parameter is unknown, missing or out of range.
    """
    known = parameters_of(kind)
    for name in parameters:
        if name not in known:
            raise DatasetError(
                f"a {kind} stream has no parameter {name!r}; there are {', '.join(known)}"
                f"{did_you_mean(name, known)}"
            )
    for name in GENERATED[kind].required:
        if name not in parameters:
            raise DatasetError(f"a {kind} stream needs {' and '.join(GENERATED[kind].required)}")
    return GENERATED[kind](**parameters)


def write_file(
    stream: GeneratedStream, path: Path, file: tuple[str, tuple[Any, ...]]
) -> tuple[dict[str, int], pa.Schema]:
    """Write one file, an item of :meth:`GeneratedStream.files`.

    Returns
    -------
    counts : dict of str to int
        Events of every type of the stream, also of those without an event in the file.
    schema : pyarrow.Schema
    """
    name, part = file
    table = stream.table(*part)
    write_table(table, path / name)
    types = table.column(type_column(stream.kind)).combine_chunks()
    counts = np.bincount(types.indices, minlength=len(types.dictionary))
    return dict(zip(types.dictionary.to_pylist(), counts.tolist(), strict=True)), table.schema


def declaration_of(
    stream: GeneratedStream, written: Iterable[tuple[Mapping[str, int], pa.Schema]]
) -> Declaration:
    """The declaration of the data set, from what :func:`write_file` returned for its files."""
    every, schemas = zip(*written, strict=True)
    counts = {name: sum(counts[name] for counts in every) for name in every[0]}
    return Declaration(
        kind=stream.kind,
        parameters=stream.parameters,
        events=sum(counts.values()),
        counts=counts,
        columns={field.name: str(field.type) for field in schemas[0]},
        notes=stream.notes,
    )
