"""The folders in which compiled kernels are cached.

Each package of kernels has a folder named by the digest of its own sources, of those of the packages
that it imports from, and of the modules that all packages use, so that an edit recompiles only what
it may change.
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
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

#: Folders of other versions are removed after this time without use.
KEPT_SECONDS = 30 * 24 * 3600.0

_ROOT = Path(__file__).parents[1]
#: The kernels that all packages use.
_GROUND = "kernels"
_IMPORTED = re.compile(r"^from cepbench\.((?:\w+\.)*kernels(?:\.\w+)*) import", re.MULTILINE)
_NAME = re.compile(r"kernels(-[a-z_]+)?-[0-9a-f]{16}")
#: A file whose modification time is the last use of its folder.
_STAMP = "used"
_DAY = 24 * 3600.0


def package_of(function: Callable[..., Any]) -> str:
    """The package of kernels that a function is in, such as ``"engines/joins/kernels"``; else ``""``."""
    folder = Path(function.__code__.co_filename).parent
    inside = folder.relative_to(_ROOT).as_posix() if folder.is_relative_to(_ROOT) else ""
    return inside if inside != _GROUND and _GROUND in inside.split("/") else ""


def cache_folder(package: str) -> Path | None:
    """The first writable folder for a package's compiled kernels; None if there is none.

    It is in the user's cache folder, otherwise in a temporary folder. Kernels found in a read-only
    folder, as in an image with a read-only disk, are copied from there.

    Parameters
    ----------
    package : str
        Such as ``"engines/joins/kernels"``; ``""`` for the kernels that all packages use, and user-defined ones.
    """
    own = "_".join(part for part in package.split("/") if part != _GROUND)
    name = "-".join(part for part in (_GROUND, own, digest_of(package)) if part)
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


def digest_of(package: str) -> str:
    """The digest of all sources that a package's kernels may include, and of the compiler."""
    # Numba would overwrite the cache of another version.
    digest = hashlib.sha256(f"{sys.version} {version('numba')}".encode())
    for path in sorted({p for name in _included(package) for p in (_ROOT / name).glob("*.py")}):
        digest.update(path.relative_to(_ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _included(package: str) -> list[str]:
    """The kernels that all packages use, a package, and those that it imports from, directly or not."""
    found = [_GROUND, *([package] if package else [])]
    for name in found:
        for path in (_ROOT / name).glob("*.py"):
            for imported in _IMPORTED.findall(path.read_text(encoding="utf-8")):
                other = imported.replace(".", "/")
                other = other if (_ROOT / other).is_dir() else other.rpartition("/")[0]
                if other not in found:
                    found.append(other)
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

    Raises
    ------
    OSError
        If it cannot be created, or belongs to another user.
    """
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Code in it is executed, so nobody else may write to it.
    if not _is_ours(base):
        base.chmod(0o700)  # owned by the user, but writable by others
        if not _is_ours(base):
            raise PermissionError(f"{base} belongs to another user")
    return base


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
