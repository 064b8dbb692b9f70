"""Data sets generated locally from their parameters, without Java."""

from __future__ import annotations

import shutil
from pathlib import Path

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


def make_stream(path: str | Path, stream: GeneratedStream) -> Declaration:
    """The data set of :func:`cepbench.spark.generate.generate_stream`, in a plain loop.

    Parameters
    ----------
    path : path
    stream : GeneratedStream

    Returns
    -------
    Declaration

    Raises
    ------
    DatasetError
        If the folder has other content, or another process writes there.
    """
    target = user_path(path)
    kind, parameters = stream.kind, stream.parameters
    with unfinished_dataset(target, kind=kind, parameters=parameters) as declaration:
        if declaration is None:
            files = tqdm(
                stream.files().items(), desc="generate", unit=" files", delay=_SHORT_SECONDS
            )
            written = [write_file(stream, target, file) for file in files]
            declaration = declaration_of(stream, written)
            finish_dataset(target, declaration)
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
