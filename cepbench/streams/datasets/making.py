"""Data sets generated locally from their parameters, without Java."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from cepbench.errors import DatasetError
from cepbench.files import locked, user_path
from cepbench.streams.dataset_folder import (
    DECLARATION,
    Declaration,
    finish_dataset,
    unfinished_dataset,
    writing,
)
from cepbench.streams.generated import declaration_of, write_file
from cepbench.streams.synthetic import GeneratedStream

#: Delay before a progress bar appears.
_SHORT_SECONDS = 2.0


def in_a_loop(write: Callable[[Any], Any], files: Sequence[Any]) -> list[Any]:
    """Write one file after the other, with a progress bar."""
    bar = tqdm(files, desc="generate", unit=" files", delay=_SHORT_SECONDS)
    return [write(file) for file in bar]


def make_stream(
    path: str | Path,
    stream: GeneratedStream,
    job: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]] = in_a_loop,
) -> Declaration:
    """A synthetic stream as a data set of Parquet files.

    Parameters
    ----------
    path : path
        Folder of the data set.
    stream : GeneratedStream
        One of the streams in :data:`cepbench.streams.generated.GENERATED`.
    job : callable
        (function, items) → the function's values, such as :func:`cepbench.spark.jobs.run_job`.

    Returns
    -------
    Declaration
        With the number of events of each type. A complete data set with the same parameters is
        kept; an incomplete one is generated again.

    Raises
    ------
    DatasetError
        If the folder has other content, or another process writes there.
    """
    path = user_path(path).resolve()
    kind, parameters = stream.kind, stream.parameters
    with unfinished_dataset(path, kind=kind, parameters=parameters) as declaration:
        if declaration is None:
            written = job(partial(write_file, stream, path), list(stream.files().items()))
            declaration = declaration_of(stream, written)
            finish_dataset(path, declaration)
    return declaration


def make_in_one_step(path: Path, stream: GeneratedStream) -> None:
    """Make a data set atomically: in a temporary folder, which is renamed when complete.

    Of two processes that need it at the same time, one makes it and the other waits.

    Raises
    ------
    DatasetError
        If the folder cannot be written, or a job of Spark writes there.
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
