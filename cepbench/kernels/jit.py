"""``njit`` with a disk cache that is never stale; kernels use no other interface of Numba.

Numba keys its cache by the file of the compiled function alone, so after an edit of a helper in
another file, the old machine code of its callers would silently remain in use; and modules with
cached functions fail to import where no cache can be written. Here kernels are cached in folders
named by the digest of all sources that they may include, in the first writable place; see
:mod:`cepbench.kernels.cache_folder`. All installations with equal sources share them.

If several processes need the same kernel at once, one compiles it and the others wait, since
processes that write to the same index concurrently could corrupt it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

import numba
from filelock import FileLock, Timeout

# Numba has no public interface to any of these, nor to a dispatcher's `_cache` and the option
# `_nrt`. Its public NUMBA_CACHE_DIR names folders by the path of the checkout, and takes no lock.
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.compiler_lock import global_compiler_lock

from cepbench.kernels.cache_folder import cache_folder, package_of, remove_old

#: Typed as Any, because type checkers know neither all options nor all attributes of these.
_numba_njit: Any = numba.njit
_settings: Any = numba.config

_folder_of = cache(cache_folder)

_COMPILING = "cepbench: compiling its kernels, once per installation (a minute or two) ..."
_COMPILING_EACH_TIME = (
    "cepbench: compiling its kernels (a minute or two), and again in each process, since there is "
    "no folder to cache them in; set XDG_CACHE_HOME to one that can be written ..."
)
_WAITING = "cepbench: another process is compiling the kernels; waiting for it ..."
_logged: set[str] = set()

#: Locks held by the kernels that are being compiled or loaded, each called by the one before.
_at_work: list[ExitStack] = []


def njit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first call without the GIL, or load it from the disk cache."""
    # Explicit, since a function otherwise inherits from its caller that it allocates no arrays.
    return _compiled(function, _nrt=True)


def njit_in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """As :func:`njit`, for functions that neither allocate nor return arrays.

    Numba updates a reference count, by an atomic instruction, whenever an array is sliced, bound to
    a name or taken from a tuple, which dominates short loops. Functions that only write in place do
    not need reference counts, because the caller holds the arrays.

    These functions are inlined into their callers: an array is passed as seven numbers, and passing
    a few tables took longer than the joins of many short steps.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    # No kernel is called from C; without that entry point, compilation is faster.
    kernel = _numba_njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if _settings.DISABLE_JIT:
        return kernel
    is_cached = _folder_of(package_of(function)) is not None
    if is_cached:
        kernel._cache = _SharedCache(function)
    compile_it = kernel.compile

    def compile_once(signature: Any) -> Any:
        # Called recursively for the kernels that a kernel calls; the outermost one holds the locks.
        with global_compiler_lock, ExitStack() as locks:
            if not is_cached and not kernel.signatures:
                _log(_COMPILING_EACH_TIME)
            _at_work.append(locks)
            try:
                return compile_it(signature)
            finally:
                _at_work.pop()

    kernel.compile = compile_once
    return kernel


class _OfTheseSources(_CacheLocator):
    """The cache location of a kernel: a folder named by the digest of its sources."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._folder = _folder_of(package_of(function))
        # User-defined kernels are in the same folder and may have equal names.
        self._name = f"{function.__code__.co_firstlineno}-{_digest_of(file)}"

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Self:
        return cls(function, file)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return self._name


@cache
def _digest_of(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:8]


class _Cached(CompileResultCacheImpl):
    _locator_classes: Any = (_OfTheseSources,)


class _SharedCache(FunctionCache):
    """Numba's cache of one function; it locks the folder before anything is compiled."""

    _impl_class = _Cached

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._cached(sig, target_context)
        if found is None and _lock(self.cache_path):
            # The process that held the lock may have compiled this kernel.
            found = self._cached(sig, target_context)
        if found is None and _log(_COMPILING):
            remove_old(Path(self.cache_path))
        return found

    def _cached(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None  # a damaged file is overwritten

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            return  # the compiled kernel is usable although, for example, the disk is full
        except (EOFError, pickle.UnpicklingError):
            self.flush()  # a damaged index
            super().save_overload(sig, data)


@cache
def _lock_of(folder: str) -> FileLock:
    return FileLock(Path(folder) / "compiling.lock")


def _lock(folder: str) -> bool:
    """Hold a folder's lock until the outermost kernel is compiled; whether it was acquired now.

    The lock avoids duplicate work and protects the folder's index. If it cannot be acquired, for
    example because the folder was removed, this process compiles without it.
    """
    lock = _lock_of(folder)
    if lock.is_locked:
        return False
    with suppress(OSError):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            _log(_WAITING)
            lock.acquire()
        _at_work[0].callback(lock.release)
        return True
    return False


def _log(line: str) -> bool:
    """Log a line once; not in tests, which check stderr."""
    if line in _logged:
        return False
    _logged.add(line)
    if sys.stderr is not None and "PYTEST_CURRENT_TEST" not in os.environ:
        print(line, file=sys.stderr, flush=True)
    return True
