"""The one way into Numba: ``njit`` with a disk cache that can be neither stale nor missing.

Numba keys its cache by the file of the compiled function alone, so an edited helper in another
file would silently leave its callers' old machine code in use; and it refuses to import from a
place where it can write no cache at all. Both are settled here: the cache lies in a folder named
by the hash of all kernel sources, in the first writable place.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

#: Its attributes are made at run time, which type checkers cannot see.
_settings: Any = numba.config
#: Some of its options are not known to type checkers either.
_numba_njit: Any = numba.njit


def _sources_hash() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _writable_cache() -> Path:
    """The first place that can be written: beside the user's other caches, else a temporary one."""
    name = f"kernels-{_sources_hash()}"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    # The user's number keeps a shared temporary folder from handing out another user's code.
    user = os.getuid() if hasattr(os, "getuid") else "user"
    for base in (Path(home) / "cepbench", Path(tempfile.gettempdir()) / f"cepbench-{user}"):
        try:
            folder = base / name
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="cepbench-kernels-"))


_CACHE = str(_writable_cache())


def njit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first call without the GIL, or load it from the disk cache."""
    return _compiled(function)


def njit_in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """As :func:`njit`, for functions that neither make arrays nor return any.

    Numba counts a reference, with an atomic instruction, whenever an array is sliced, bound to a
    name or taken from a tuple. In loops that do little else this is most of the time. Who only
    writes in place can do without: the caller holds the arrays.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    # A function's cache is located when it is decorated; other people's stay where they were.
    theirs = _settings.CACHE_DIR
    _settings.CACHE_DIR = _CACHE
    try:
        # Nobody calls a kernel from C; without an entry for that, compiling takes less time.
        return _numba_njit(cache=True, nogil=True, no_cfunc_wrapper=True, **options)(function)
    finally:
        _settings.CACHE_DIR = theirs
