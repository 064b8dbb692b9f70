"""Data sets generated locally from their parameters, without Java."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from filelock import FileLock
from tqdm import tqdm

from cepbench.errors import DatasetError
from cepbench.streams import nasdaq_files
from cepbench.streams.dataset_folder import DECLARATION, Declaration, begin_dataset, finish_dataset
from cepbench.streams.nasdaq_files import declaration_of, parameters_of, parts_of, write_part
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.parquet_files import write_table
from cepbench.streams.ten_symbols import RATES, ten_symbols

TEN_SYMBOLS = "ten-symbols"

#: Delay before a progress bar appears.
_SHORT_SECONDS = 2.0


def make_nasdaq_style(
    path: str | Path, *, identifiers: int, days: int, seed: int = 0
) -> Declaration:
    """The data set of :func:`cepbench.spark.generate.generate_nasdaq_style`, generated in a loop.

    Parameters
    ----------
    path : path
    identifiers, days, seed : int
        See :class:`cepbench.streams.nasdaq_style.NasdaqStyle`.

    Returns
    -------
    Declaration

    Raises
    ------
    DatasetError
        If a number is out of range, or the folder has other content.
    """
    style = NasdaqStyle(identifiers, days, seed)
    target = Path(path)
    parameters = parameters_of(style)
    found = begin_dataset(target, kind=nasdaq_files.KIND, parameters=parameters)
    if found is not None:
        return found
    parts = tqdm(parts_of(style), desc="generate", unit=" parts", delay=_SHORT_SECONDS)
    made = [write_part(style, target, part) for part in parts]
    declaration = declaration_of(style, made, parameters)
    finish_dataset(target, declaration)
    return declaration


def make_ten_symbols(path: str | Path, *, events: int, seed: int = 0) -> Declaration:
    """The stream of :mod:`cepbench.streams.ten_symbols`, with times as datetimes from 1970.

    Parameters
    ----------
    path : path
    events, seed : int

    Returns
    -------
    Declaration

    Raises
    ------
    DatasetError
        If ``events`` or ``seed`` is out of range, or the folder has other content.
    """
    target = Path(path)
    parameters = {"events": events, "seed": seed}
    table = ten_symbols_table(events, seed)
    found = begin_dataset(target, kind=TEN_SYMBOLS, parameters=parameters)
    if found is not None:
        return found
    write_table(table, target / "part-00000.parquet")
    counts = table.column("symbol").to_pandas().value_counts(sort=False)
    declaration = Declaration(
        kind=TEN_SYMBOLS,
        parameters=parameters,
        events=len(table),
        counts=counts.to_dict(),
        columns={field.name: str(field.type) for field in table.schema},
        notes={"arrival rates": f"{RATES.min():g} to {RATES.max():g} events per symbol and minute"},
    )
    finish_dataset(target, declaration)
    return declaration


def ten_symbols_table(events: int, seed: int) -> pa.Table:
    """The events of ten symbols, with times as datetimes.

    Raises
    ------
    DatasetError
        If ``events`` is below 1, or ``seed`` negative.
    """
    if events < 1 or seed < 0:
        raise DatasetError(
            f"events must be at least 1 and seed at least 0, not {events} and {seed}"
        )
    frame = ten_symbols(events, seed)
    frame["ts"] = frame["ts"].to_numpy().astype("datetime64[ms]")
    return pa.Table.from_pandas(frame, preserve_index=False)


#: Kind of data set → the function that makes it without Java.
MAKERS: Mapping[str, Callable[..., Declaration]] = {
    nasdaq_files.KIND: make_nasdaq_style,
    TEN_SYMBOLS: make_ten_symbols,
}


def make_in_one_step(kind: str, path: Path, parameters: Mapping[str, Any]) -> None:
    """Make a data set atomically: in a temporary folder, which is renamed when complete.

    Of two processes that need it at the same time, one makes it and the other waits.

    Raises
    ------
    DatasetError
        If the parameters do not fit, or the folder cannot be written.
    """
    maker = MAKERS[kind]
    try:
        inspect.signature(maker).bind(path, **parameters)
    except TypeError as error:
        raise DatasetError(f"{path} cannot be made from {dict(parameters)}: {error}") from None
    beside = path.with_name(f".{path.name}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            if (path / DECLARATION).exists():
                return
            # Left by a process that was killed, since this one has the lock.
            shutil.rmtree(beside, ignore_errors=True)
            try:
                maker(beside, **parameters)
                shutil.rmtree(path, ignore_errors=True)
                beside.rename(path)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be written: {error}; set CEPBENCH_DATASETS to a folder with a writable "
            "copy of the catalogue"
        ) from error
