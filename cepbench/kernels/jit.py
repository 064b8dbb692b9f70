"""The one way into Numba: ``njit`` with a disk cache that can be neither stale nor missing.

Numba keys its cache by the file of the compiled function alone, so an edited helper in another
file would silently leave its callers' old machine code in use; and it refuses to import from a
place where it can write no cache at all. Both are settled here: the cache lies in a folder named
by the hash of all kernel sources, in the first writable place. All installations with the same
sources share it, wherever they are.

Of several processes that need the same kernel at once, one compiles it and the others wait: two
that write to the same index could also lose, or mix up, each other's entries.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    UserProvidedCacheLocator,
    _CacheLocator,
)
from numba.core.compiler_lock import global_compiler_lock

from cepbench.kernels.cache_folder import cache_folder, remove_old
from cepbench.kernels.compile_lock import CompileLock

#: Its attributes are made at run time, which type checkers cannot see.
_settings: Any = numba.config
#: Some of its options are not known to type checkers either.
_numba_njit: Any = numba.njit

_FOLDER = cache_folder()
_LOCK = None if _FOLDER is None else CompileLock(_FOLDER / "compiling")

_COMPILING = (
    "cepbench: compiling its kernels, once per installation (a minute or two) ..."
    if _FOLDER is not None
    else "cepbench: compiling its kernels (a minute or two), and again in each process, since there "
    "is no folder to keep them in; set XDG_CACHE_HOME to one that can be written ..."
)
_WAITING = "cepbench: another process is compiling the kernels; waiting for it ..."
_said: set[str] = set()


def njit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first call without the GIL, or load it from the disk cache."""
    # Said, or else a function takes over from its caller that it can make no arrays.
    return _compiled(function, _nrt=True)


def njit_in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """As :func:`njit`, for functions that neither make arrays nor return any.

    Numba counts a reference, with an atomic instruction, whenever an array is sliced, bound to a
    name or taken from a tuple. In loops that do little else this is most of the time. Who only
    writes in place can do without: the caller holds the arrays.

    They become part of whoever calls them. An array is passed as seven numbers, so that handing on
    a few tables took longer than what many a short step has to join.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    # Nobody calls a kernel from C; without an entry for that, compiling takes less time.
    kernel = _numba_njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if _settings.DISABLE_JIT:
        return kernel
    if _FOLDER is not None:
        # A function's cache is located when it is made; other people's stay where they were.
        theirs = _settings.CACHE_DIR
        _settings.CACHE_DIR = str(_FOLDER)
        try:
            kernel._cache = _SharedCache(function)
        finally:
            _settings.CACHE_DIR = theirs
    compile_it = kernel.compile

    def compile_once(signature: Any) -> Any:
        # It is called again for each kernel that a kernel calls, and the first call ends last.
        with global_compiler_lock:
            first = not _at_work
            _at_work.append(kernel)
            try:
                if _FOLDER is None and not kernel.signatures:
                    _say(_COMPILING)
                return compile_it(signature)
            finally:
                _at_work.pop()
                if first and _LOCK is not None:
                    _LOCK.release()

    kernel.compile = compile_once
    return kernel


#: The kernels that are being compiled or loaded, each called by the one before.
_at_work: list[Any] = []


class _OfTheseSources(_CacheLocator):
    """Where a kernel of this package is kept: the folder says which sources it was made of."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Self | None:
        return cls(function) if Path(__file__).parent in Path(file).parents else None

    def get_cache_path(self) -> str:
        return str(_FOLDER)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Kept(CompileResultCacheImpl):
    # Numba names the folder of a function by where its file lies, and compares when that changed.
    _locator_classes: Any = (_OfTheseSources, UserProvidedCacheLocator)


class _SharedCache(FunctionCache):
    """Numba's cache of one function, which has the lock before anything is compiled."""

    _impl_class = _Kept

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._kept(sig, target_context)
        if found is None and _LOCK is not None and not _LOCK.is_held:
            _LOCK.acquire(told=lambda: _say(_WAITING))
            # Whoever had it may have made just this.
            found = self._kept(sig, target_context)
        if found is None:
            _say(_COMPILING)
        return found

    def _kept(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None  # a damaged file is written anew

    def save_overload(self, sig: Any, data: Any) -> None:
        if _LOCK is not None:
            _LOCK.renew()
        try:
            super().save_overload(sig, data)
        except OSError:
            return  # a full disk is no reason not to go on with what is compiled
        except (EOFError, pickle.UnpicklingError):
            self.flush()  # a damaged index
            super().save_overload(sig, data)


def _say(line: str) -> None:
    """Tell whoever waits, once; tests compare what is written with what they expect."""
    if line in _said:
        return
    _said.add(line)
    if line == _COMPILING and _FOLDER is not None:
        remove_old(_FOLDER)
    if sys.stderr is not None and "PYTEST_CURRENT_TEST" not in os.environ:
        print(line, file=sys.stderr, flush=True)
