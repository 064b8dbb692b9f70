"""Synthetic streams: from parameters and a seed, in files that are written independently."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cepbench.arguments import choice
from cepbench.errors import DatasetError
from cepbench.files import locked, user_path
from cepbench.progress import progress_bar
from cepbench.streams.company_trades import CompanyTrades
from cepbench.streams.dataset_folder import (
    DECLARATION,
    Declaration,
    finish_dataset,
    type_column,
    unfinished_dataset,
    writing,
)
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
    """The names of the parameters of a kind of stream; a DatasetError if there is no such kind."""
    stream = GENERATED[choice(kind, "kind", GENERATED, DatasetError)]
    return [each.name for each in fields(stream)]


def stream_of(kind: str, parameters: Mapping[str, Any]) -> GeneratedStream:
    """A stream of a kind in :data:`GENERATED` from its parameters.

    A DatasetError if there is no such kind, or a parameter is unknown, missing or out of range.
    """
    known = parameters_of(kind)
    for name in parameters:
        choice(name, f"each parameter of a {kind} stream", known, DatasetError)
    for name in GENERATED[kind].required:
        if name not in parameters:
            raise DatasetError(f"a {kind} stream needs {' and '.join(GENERATED[kind].required)}")
    return GENERATED[kind](**parameters)


def in_a_loop(write: Callable[[Any], Any], files: Sequence[Any]) -> list[Any]:
    """Write one file after the other, with a progress bar."""
    return [write(file) for file in progress_bar(files, desc="generate", unit=" files")]


def make_stream(
    path: str | Path,
    stream: GeneratedStream,
    job: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]] = in_a_loop,
) -> Declaration:
    """A synthetic stream as a data set of Parquet files in a folder.

    A complete data set with the same parameters is kept; an incomplete one is generated again. The
    job, such as :func:`cepbench.spark.jobs.run_job`, maps a function to items. A DatasetError if
    the folder has other content, or another process writes there.
    """
    path = user_path(path).resolve()
    kind, parameters = stream.kind, stream.parameters
    with unfinished_dataset(path, kind=kind, parameters=parameters) as declaration:
        if declaration is None:
            written = job(partial(_write_file, stream, path), list(stream.files().items()))
            every, schemas = zip(*written, strict=True)
            counts = {name: sum(counts[name] for counts in every) for name in every[0]}
            declaration = Declaration(
                kind=kind,
                parameters=parameters,
                events=sum(counts.values()),
                counts=counts,
                columns={field.name: str(field.type) for field in schemas[0]},
                notes=stream.notes,
            )
            finish_dataset(path, declaration)
    return declaration


def _write_file(
    stream: GeneratedStream, path: Path, file: tuple[str, tuple[Any, ...]]
) -> tuple[dict[str, int], pa.Schema]:
    """Write an item of :meth:`GeneratedStream.files`; its events of all types, and its columns."""
    name, part = file
    table = stream.table(*part)
    write_table(table, path / name)
    types = table.column(type_column(stream.kind)).combine_chunks()
    counts = np.bincount(types.indices, minlength=len(types.dictionary))
    return dict(zip(types.dictionary.to_pylist(), counts.tolist(), strict=True)), table.schema


def make_in_one_step(path: Path, stream: GeneratedStream) -> None:
    """Make a data set atomically: in a temporary folder, which is renamed when complete.

    Of two processes that need it at the same time, one makes it and the other waits. A DatasetError
    if the folder cannot be written, or a job of Spark writes there.
    """
    beside = path.with_name(f".{path.name}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_name(f".{path.name}.lock")):
            if (path / DECLARATION).exists():
                return
            # Left by a process that was killed, since this one has the lock.
            shutil.rmtree(beside, ignore_errors=True)
            try:
                make_stream(beside, stream)
                with writing(path):
                    shutil.rmtree(path, ignore_errors=True)
                    beside.rename(path)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be written: {error}; set CEPBENCH_DATASETS to a folder with a writable "
            "copy of the catalogue"
        ) from error
