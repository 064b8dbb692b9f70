"""Synthetic streams: from parameters and a seed, in files that are written independently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

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
from cepbench.streams.ten_symbols import TenSymbols
from cepbench.streams.ticker_trades import TickerTrades
from cepbench.streams.web_log import WebLog


class GeneratedStream(Protocol):
    """A synthetic stream; a frozen dataclass of its parameters.

    Equal parameters give equal events, whoever writes which file: a loop
    (:func:`cepbench.streams.datasets.making.make_stream`) or Spark tasks
    (:func:`cepbench.spark.generate.generate_stream`).

    Attributes
    ----------
    kind : str
        Of the data sets that are generated, such as ``nasdaq-style``.
    required : tuple of str
        Parameters that have to be given, those that decide the size.
    """

    kind: ClassVar[str]
    required: ClassVar[tuple[str, ...]]

    @property
    def name(self) -> str:
        """Of a folder beside those of other streams, different for other parameters."""

    @property
    def parameters(self) -> dict[str, Any]:
        """All that decides the events, ready for JSON."""

    @property
    def notes(self) -> dict[str, str]:
        """Further information for the declaration."""

    @property
    def expected(self) -> float:
        """The expected number of events."""

    def files(self) -> Mapping[str, tuple[Any, ...]]:
        """Path of each file below the folder of the data set -> its arguments of :meth:`table`."""

    def table(self, *part: Any) -> pa.Table:
        """The events of a part, with a dictionary of all types in :func:`type_column`, and ``ts``."""


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
    return [each.name for each in fields(cast(Any, stream))]


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
