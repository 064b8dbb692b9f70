"""A folder that is filled beside its later place, and does not outlive the process that fills it.

Its owner holds a lock on a file beside it, which is the operating system's and goes with the
process, however it ends; so what a killed process left is known from what a living one is at work
on, whatever numbers processes get.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """A new folder with a hidden name beside ``path``; what is left of it afterwards is removed.

    Such folders of the same path whose processes have ended are removed first.

    Yields
    ------
    Path
        Empty, on the same file system, so that it can be renamed to ``path``.

    Raises
    ------
    OSError
        If nothing can be written there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    left = re.compile(rf"(\.{re.escape(path.name)}\.(?:[0-9a-f]{{32}}|\d+))(?:\.lock)?")
    names = {found[1] for each in path.parent.iterdir() if (found := left.fullmatch(each.name))}
    for name in names:
        # If somebody is at work there, or nobody can tell, it stays.
        with suppress(OSError), _removed_in_the_end(path.with_name(name)):
            pass
    folder = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with ExitStack() as held:
        with suppress(OSError):  # a file system without locks: then nobody removes it either
            held.enter_context(_removed_in_the_end(folder))
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir()
        yield folder


@contextmanager
def _removed_in_the_end(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, or raise OSError if another process does; then remove both."""
    file = folder.with_name(f"{folder.name}.lock")
    with FileLock(file, timeout=0, thread_local=False, fallback_to_soft=False):
        try:
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            file.unlink(missing_ok=True)
