"""Files that are there either whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Let a file be written under a hidden name beside ``path``, then give it that name.

    The content is on the disk before the name is: neither a killed process nor a machine that loses
    its power leaves half a file under it. If an error is raised, what was written is removed.

    Parameters
    ----------
    path : Path
        Its folder is made if it does not exist.

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


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk; those of a new file are not yet."""
    if os.name != "nt":  # which opens no folders
        _sync(path, os.O_RDONLY)


def _sync(path: Path, access: int) -> None:
    handle = os.open(path, access)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
