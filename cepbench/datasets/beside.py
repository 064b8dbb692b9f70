"""Temporary folders beside their target, which are removed when their process has ended.

The process holds an operating system lock on its folder, which is released however it ends; a
folder without a lock is therefore left over.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """A new hidden folder beside ``path``, removed afterwards unless it was renamed.

    Left-over folders of the same path are removed first.

    Yields
    ------
    Path
        Empty, on the same file system as ``path``.

    Raises
    ------
    OSError
        If the folder cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    left = re.compile(rf"\.{re.escape(path.name)}\.([0-9a-f]{{32}}|\d+)")
    for other in path.parent.iterdir():
        if left.fullmatch(other.name):
            _remove_if_left(other)
    folder, handle = _locked_folder(path)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _locked_folder(path: Path) -> tuple[Path, int]:
    while True:
        folder = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        folder.mkdir()
        # Until it is locked, another process may remove it as left over.
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        with suppress(OSError):  # a file system without locks: then nobody removes it either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if folder.exists():
            return folder, handle
        os.close(handle)


def _remove_if_left(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # a file, or already removed
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # somebody is at work there, or nobody can tell
        pass
    finally:
        os.close(handle)
