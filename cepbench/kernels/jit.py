"""The one way into Numba: ``njit`` with a disk cache that can be neither stale nor missing.

Numba keys its cache by the file of the compiled function alone, so that an edited helper in another
file would silently leave its callers' old machine code in use; and it refuses to import from a
place where it can write no cache at all. Both are settled here: kernels are cached in folders named
by the digest of the sources that they may be made of, in the first writable place; see
:mod:`cepbench.kernels.cache_folder`. All installations with equal sources share them.

Of several processes that need the same kernel at once, one compiles it and the others wait: two
that write to the same index could also lose, or mix up, each other's entries.
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

#: Type checkers do not know all of the options of one, nor the attributes of the other.
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

#: What the kernels hold that are being compiled or loaded, each called by the one before.
_at_work: list[ExitStack] = []


def njit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first call without the GIL, or load it from the disk cache."""
    # Explicit, or else a function inherits from its caller that it can make no arrays.
    return _compiled(function, _nrt=True)


def njit_in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """As :func:`njit`, for functions that neither make arrays nor return any.

    Numba counts a reference, with an atomic instruction, whenever an array is sliced, bound to a
    name or taken from a tuple. In loops that do little else this is most of the time. A function
    that only writes in place can do without: the caller holds the arrays.

    These functions are inlined into their callers. An array is passed as seven numbers, so that
    passing a few tables took longer than what many a short step has to join.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    # Nobody calls a kernel from C; without an entry for that, compiling takes less time.
    kernel = _numba_njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if _settings.DISABLE_JIT:
        return kernel
    is_cached = _folder_of(package_of(function)) is not None
    if is_cached:
        kernel._cache = _SharedCache(function)
    compile_it = kernel.compile

    def compile_once(signature: Any) -> Any:
        # It is called again for each kernel that a kernel calls; the outermost one holds the locks.
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
    """Where a kernel is cached: the name of the folder says which sources it was made of."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._folder = _folder_of(package_of(function))
        # User-defined kernels are in the folder too, maybe of equal names.
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
    """Numba's cache of one function, which takes its folder's lock before anything is compiled."""

    _impl_class = _Cached

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._cached(sig, target_context)
        if found is None and _lock(self.cache_path):
            # Whoever had the lock may have compiled just this.
            found = self._cached(sig, target_context)
        if found is None and _log(_COMPILING):
            remove_old(Path(self.cache_path))
        return found

    def _cached(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None  # a damaged file is written anew

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            return  # a full disk is no reason not to go on with what is compiled
        except (EOFError, pickle.UnpicklingError):
            self.flush()  # a damaged index
            super().save_overload(sig, data)


@cache
def _lock_of(folder: str) -> FileLock:
    return FileLock(Path(folder) / "compiling.lock")


def _lock(folder: str) -> bool:
    """Hold a folder's lock until the outermost kernel is compiled; gives whether it is new.

    The lock saves work and guards the folder's index, and nothing else depends on it: where it
    cannot be had, as in a folder that was removed, this process compiles without.
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
    """Log a line once, except in tests, which compare what is written to stderr."""
    if line in _logged:
        return False
    _logged.add(line)
    if sys.stderr is not None and "PYTEST_CURRENT_TEST" not in os.environ:
        print(line, file=sys.stderr, flush=True)
    return True
