"""Atomic writes, and locks: a file exists with all of its content or not at all, written by one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from cepbench.errors import CepbenchError


def user_path(path: str | os.PathLike[str]) -> Path:
    """A path that a user gave; ``~`` is their home folder, ``~x`` that of user x, if there is one."""
    return Path(os.path.expanduser(path))


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Write a file under a hidden name beside ``path``, which is yielded, then rename it.

    The content is synced before it is renamed: neither a killed process nor a power failure leaves
    half a file at ``path``. On an error the unfinished file is removed. The folder is created if it
    does not exist. An OSError with the name of ``path`` if the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield unfinished
        _sync(unfinished, os.O_RDWR)
        unfinished.replace(path)
    except OSError as error:
        if error.errno is None or Path(error.filename or path).parent != path.parent:
            raise
        # A full disk is an error without a name, and of Arrow also without the system's message.
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        unfinished.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Write a new folder that several processes fill, as :func:`whole_file`; it is not synced."""
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


@contextmanager
def locked(path: Path, timeout: float = -1) -> Iterator[None]:
    """Hold a lock of the operating system, which releases it when the process ends.

    The file at ``path`` is removed at the end of the block. A ``filelock.Timeout`` if another
    process holds it for more than ``timeout`` seconds; by default it is waited for.
    """
    with FileLock(path, timeout=timeout, thread_local=False):
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()


@contextmanager
def held(folder: Path, name: str, what: str, error: type[CepbenchError]) -> Iterator[None]:
    """Keep other processes from writing to a folder; the ``error`` they get names this one.

    ``<name>.lock`` in the folder is locked, and ``<name>.pid`` has the number of the process, when
    it began and its command. ``what`` the process does is in the message, as in "runs a sweep".
    """
    holder = folder / f"{name}.pid"
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / f"{name}.lock", timeout=0))
        except Timeout:
            raise error(
                f"{_holder_in(holder)} already {what} in {folder}; wait for it, stop it, or use "
                "another folder"
            ) from None
        program, *arguments = sys.argv or [sys.executable]
        command = shlex.join([Path(program).name, *arguments])
        since = datetime.now().isoformat(" ", "seconds")
        holder.write_text(f"{os.getpid()}\n{since}\n{command}\n", encoding="utf-8")
        stack.callback(holder.unlink, missing_ok=True)
        yield


def _holder_in(file: Path) -> str:
    """The process that holds a folder, from the file that it wrote."""
    try:
        process, since, *command = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # it has just begun
        return "another process"
    return f"process {process} ({' '.join(command)[:200]}, since {since})"


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
