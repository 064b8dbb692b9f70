"""``njit`` with a disk cache that is never stale; kernels use no other interface of Numba.

A kernel is compiled twice at most: for the kernels that call it, in which its code is included (see
:mod:`cepbench.kernels.pipelines`), and for Python, if Python calls it. Only the latter is cached.

Numba keys its cache by the file of the compiled function alone, so after an edit of a helper in
another file, the old machine code of its callers would silently remain in use; and modules with
cached functions fail to import where no cache can be written. Here the kernels of a module are cached
in a folder named by the digest of all sources that they may include, in the first writable place; see
:mod:`cepbench.kernels.cache_folder`. All installations with equal sources share them.

If several processes need the same kernel at once, one compiles it and the others wait, since
processes that write to the same index concurrently could corrupt it.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

import numba
from filelock import FileLock, Timeout

# Numba has no public interface to any of these, nor to a dispatcher's `_cache` and the option
# `_nrt`. Its public NUMBA_CACHE_DIR names folders by the path of the checkout, and takes no lock.
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock

from cepbench.kernels.cache_folder import cache_folder, expected_seconds, label_of, remove_old
from cepbench.kernels.garbage import collecting_later

_for_callers: Any = Compiler
_for_python: Any = Compiler
with suppress(ImportError):  # another version of Numba
    from cepbench.kernels import pipelines

    _for_callers, _for_python = pipelines.ForCallers, pipelines.ForPython

#: Typed as Any, because type checkers know neither all options nor all attributes of these.
_numba_njit: Any = numba.njit
_settings: Any = numba.config

_folder_of = cache(cache_folder)

_COMPILING = "cepbench: compiling the kernels of {} (about {:.0f} s, once per installation) ..."
_COMPILING_EACH_TIME = (
    "cepbench: compiling its kernels (a minute or two), and again in each process, since there is "
    "no folder to cache them in; set XDG_CACHE_HOME to one that can be written ..."
)
_WAITING = "cepbench: another process is compiling the kernels of {}; waiting for it ..."

#: Nothing is said of kernels that are compiled faster.
_SHORT_SECONDS = 2.0
_logged: set[str] = set()


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
    options |= {"nogil": True, "no_cfunc_wrapper": True}
    kernel = _numba_njit(pipeline_class=_for_python, **options)(function)
    if _settings.DISABLE_JIT:
        return kernel
    included = _numba_njit(no_cpython_wrapper=True, pipeline_class=_for_callers, **options)(
        function
    )
    kernel.get_call_template = included.get_call_template
    kernel.get_overload = included.get_overload
    compile_it = kernel.compile

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock, collecting_later():
            if not kernel.signatures:
                if _folder_of(_file_of(function)) is None:
                    _log(_COMPILING_EACH_TIME)
                else:
                    kernel._cache = _SharedCache(function)
            try:
                return compile_it(signature)
            finally:
                _unlock()

    kernel.compile = compile_once
    return kernel


def _file_of(function: Callable[..., Any]) -> Path:
    return Path(function.__code__.co_filename)


class _OfTheseSources(_CacheLocator):
    """The cache location of a kernel: a folder named by the digest of its sources."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._folder = _folder_of(Path(file))
        self._name = f"{function.__code__.co_firstlineno}"

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Self:
        return cls(function, file)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return self._name


class _Cached(CompileResultCacheImpl):
    _locator_classes: Any = (_OfTheseSources,)


class _SharedCache(FunctionCache):
    """Numba's cache of one function; it locks the folder before anything is compiled."""

    _impl_class = _Cached

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._file = _file_of(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._cached(sig, target_context)
        if found is None:
            label = label_of(self._file)
            if _lock(self.cache_path, label):
                # The process that held the lock may have compiled this kernel.
                found = self._cached(sig, target_context)
            if found is None:
                seconds = expected_seconds(self._file)
                if seconds >= _SHORT_SECONDS and _log(_COMPILING.format(label, seconds)):
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


#: The lock that is held while a kernel is compiled. None is compiled within another one.
_held: list[FileLock] = []


def _lock(folder: str, label: str) -> bool:
    """Hold a folder's lock until a kernel is compiled; whether it was acquired.

    The lock avoids duplicate work and protects the folder's index. If it cannot be acquired, for
    example because the folder was removed, this process compiles without it.
    """
    lock = _lock_of(folder)
    with suppress(OSError):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            _log(_WAITING.format(label))
            lock.acquire()
        _held.append(lock)
        return True
    return False


def _unlock() -> None:
    while _held:
        _held.pop().release()


def _log(line: str) -> bool:
    """Log a line once; not in tests, which check stderr."""
    if line in _logged:
        return False
    _logged.add(line)
    if sys.stderr is not None and "PYTEST_CURRENT_TEST" not in os.environ:
        print(line, file=sys.stderr, flush=True)
    return True
