"""The folders in which compiled kernels are cached.

Each module of kernels has a folder named by the digest of its own source, of those of the modules
that it imports from, directly or not, and of the compiler, so that an edit recompiles only what it
may change.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path

#: How much source is compiled in a second, on a common processor.
_BYTES_PER_SECOND = 6_000.0

#: Folders of other versions are removed after this time without use.
KEPT_SECONDS = 30 * 24 * 3600.0

_ROOT = Path(__file__).parents[1]
_IMPORT = re.compile(r"^ *from (cepbench(?:\.\w+)+) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_NAME = re.compile(r"kernels(-.+)?-[0-9a-f]{16}")
#: A file whose modification time is the last use of its folder.
_STAMP = "used"
_DAY = 24 * 3600.0


def label_of(file: Path) -> str:
    """What a module of kernels is for, such as ``"joins"``: an engine, or the module's own name."""
    parts = file.with_suffix("").parts
    return parts[-3] if parts[-2:-1] == ("kernels",) and parts[-4:-3] == ("engines",) else file.stem


def cache_folder(file: Path) -> Path | None:
    """The first writable folder for the compiled kernels of a module; None if there is none.

    It is in the user's cache folder, otherwise in a temporary folder. Kernels found in a read-only
    folder, as in an image with a read-only disk, are copied from there.
    """
    name = f"kernels-{label_of(file)}-{digest_of(file)}"
    built = None
    for base in private_folders():
        folder = base / name
        try:
            with tempfile.TemporaryFile(dir=made_private(base)):
                pass
            if built is not None and not folder.exists():
                _copy(built, folder)
            folder.mkdir(exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError:
            if built is None and folder.is_dir() and _is_ours(base):
                built = folder
            continue
        _stamp(folder)
        return folder
    return None


def digest_of(file: Path) -> str:
    """The digest of all sources that a module's kernels may include, and of the compiler."""
    # Numba would overwrite the cache of another version.
    digest = hashlib.sha256(f"{sys.version} {version('numba')}".encode())
    for path in sorted(_included(file)):
        name = path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else path.name
        digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def expected_seconds(file: Path) -> float:
    """Roughly how long a module's kernels take to compile, by the size of what they include."""
    sources = (path.read_bytes() for path in _included(file))
    return sum(len(source) for source in sources if b"@njit" in source) / _BYTES_PER_SECOND


def _included(file: Path) -> set[Path]:
    """A module, and those of cepbench that it imports from, directly or not."""
    found = {file}
    pending = [file]
    while pending:
        for module, names in _IMPORT.findall(pending.pop().read_text(encoding="utf-8")):
            path = _ROOT.parent.joinpath(*module.split("."))
            inside = [path / f"{name}.py" for name in re.findall(r"\w+", names)]
            for one in (path.with_suffix(".py"), *inside):
                if one not in found and one.is_file():
                    found.add(one)
                    pending.append(one)
    return found


def remove_old(folder: Path) -> None:
    """Remove other cache folders that were not used for :data:`KEPT_SECONDS`."""
    for other in folder.parent.iterdir():
        if other == folder or not _NAME.fullmatch(other.name) or other.is_symlink():
            continue
        # Another process may be removing it too.
        with suppress(OSError):
            stamp = other / _STAMP
            last = (stamp if stamp.exists() else other).stat().st_mtime
            if time.time() - last > KEPT_SECONDS:
                shutil.rmtree(other, ignore_errors=True)


def private_folders() -> Iterator[Path]:
    """Folders for generated programs: the user's cache folder, then a temporary one.

    Yields
    ------
    Path
        To be passed to :func:`made_private`, which creates it or raises an error.
    """
    with suppress(RuntimeError):  # no home
        yield user_cache_path("cepbench", appauthor=False)
    with suppress(FileNotFoundError):  # no temporary folder either
        # By user, so that nobody runs another user's code from a shared temporary folder.
        user = os.getuid() if hasattr(os, "getuid") else "user"
        yield Path(tempfile.gettempdir()) / f"cepbench-{user}"


def made_private(base: Path) -> Path:
    """A folder that only the user can write to, created if it does not exist.

    An OSError if it cannot be created, or belongs to another user.
    """
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Code in it is executed, so nobody else may write to it.
    if not _is_ours(base):
        base.chmod(0o700)  # owned by the user, but writable by others
        if not _is_ours(base):
            raise PermissionError(f"{base} belongs to another user")
    return base


def cache_file(name: str) -> Path | None:
    """A file of that name in the first of :func:`private_folders` that can be written; None without any."""
    for base in private_folders():
        with suppress(OSError), tempfile.TemporaryFile(dir=made_private(base)):
            return base / name
    return None


def _is_ours(base: Path) -> bool:
    if not hasattr(os, "getuid"):
        return True
    found = base.stat()
    return found.st_uid in (os.getuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _copy(built: Path, folder: Path) -> None:
    """Copy atomically, so that no other process reads an incomplete file."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        copied = Path(temporary) / folder.name
        shutil.copytree(built, copied)
        with suppress(OSError):  # another process was faster
            copied.rename(folder)


def _stamp(folder: Path) -> None:
    stamp = folder / _STAMP
    with suppress(OSError):
        if not stamp.exists() or time.time() - stamp.stat().st_mtime > _DAY:
            stamp.touch()
