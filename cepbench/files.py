"""Atomic writes: a file exists with all of its content or not at all."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def user_path(path: str | os.PathLike[str]) -> Path:
    """A path that a user gave; ``~`` is their home folder."""
    return Path(path).expanduser()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Write a file under a hidden name beside ``path``, then rename it.

    The content is synced before it is renamed: neither a killed process nor a power failure leaves
    half a file at ``path``. On an error the unfinished file is removed.

    Parameters
    ----------
    path : Path
        Its folder is created if it does not exist.

    Yields
    ------
    Path
        ``.<name>.<32 hexadecimal digits>``; the file does not exist yet.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield unfinished
        _sync(unfinished, os.O_RDWR)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Write a folder that several processes fill, as :func:`whole_file`; it is not synced.

    Parameters
    ----------
    path : Path
        It must not exist.

    Yields
    ------
    Path

    Raises
    ------
    OSError
        If it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object as a :func:`whole_file`."""
    with whole_file(path) as unfinished:
        unfinished.write_text(json.dumps(content, indent=1), encoding="utf-8")


def sync_folder(path: Path) -> None:
    """Sync the names in a folder to disk; those of new files are not synced with the files."""
    if os.name != "nt":  # where folders cannot be opened
        _sync(path, os.O_RDONLY)


def _sync(path: Path, access: int) -> None:
    handle = os.open(path, access)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
