"""A detector's snapshot: a header, the arrays of its run, and a digest of both."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cepbench.arguments import kind_of
from cepbench.errors import CepbenchError, SnapshotError
from cepbench.files import user_path, whole_file

_VERSION = 20

#: Read once: a stream's state is saved many times a second.
_CEPBENCH = version("cepbench")

#: Kinds of NumPy arrays that a snapshot may hold: their bytes are their values.
_KINDS = "biufU"

_TAKE_ANOTHER = "restore another copy of it, or push the stream again from its beginning"


def sealed(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A snapshot: a header, arrays, and the digest of both.

    A SnapshotError if a user-defined run has given something else than arrays.
    """
    for name, array in arrays.items():
        if why := _unsaved(array):
            raise SnapshotError(
                f"the state cannot be saved: {name!r} is {why}; the snapshot() of a user-defined run "
                "returns NumPy arrays of numbers, booleans or texts by name"
            )
    whole_header = {"version": _VERSION, "cepbench": _CEPBENCH, **header}
    # As bytes, because NumPy's texts take four bytes per character.
    written = np.frombuffer(json.dumps(whole_header).encode(), np.uint8)
    snapshot = {"header": written, **arrays}
    return {**snapshot, "digest": digest_of(snapshot)}


def unsealed(snapshot: Any, of: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and arrays of a snapshot of a detector or an aggregator, each read once.

    A SnapshotError if it is not a snapshot, cannot be read, is not what its digest was taken of, or
    has another version.
    """
    face = of.capitalize()
    taken = f"what {face}.snapshot() returned or numpy.load gave, or the path of a file to {face}.load(path)"
    if not isinstance(snapshot, Mapping):
        raise SnapshotError(f"this is no snapshot of a {of}, but {kind_of(snapshot)}; give {taken}")
    arrays = _read(snapshot)
    if "header" not in arrays:
        raise SnapshotError(f"this is no snapshot of a {of}, for it has no header; give {taken}")
    digest = arrays.pop("digest", None)
    if digest is None:
        raise SnapshotError(
            "the snapshot has no digest: snapshot() did not return it, it lacks a part, or was "
            f"taken by a cepbench before version {_VERSION} of the format; restore it with the "
            "version that took it, or push the stream again from its beginning"
        )
    due = digest_of(arrays)
    if (digest.dtype.str, digest.shape) != (due.dtype.str, due.shape) or (digest != due).any():
        raise SnapshotError(
            "the snapshot is damaged: it is not what its digest was taken of (a bit or array "
            f"changed, is missing or was added); {_TAKE_ANOTHER}"
        )
    return _header(arrays.pop("header")), arrays


@contextmanager
def restoring(failing: str = "the snapshot is damaged") -> Iterator[None]:
    """What is made of the parts of a verified snapshot, which may have been changed before sealing.

    Any error becomes a SnapshotError: parts that do not belong together fail in a dozen ways.
    """
    try:
        yield
    except SnapshotError:
        raise
    except Exception as error:
        what = error if isinstance(error, CepbenchError) else _shown(error)
        raise SnapshotError(f"{failing}: {what}") from error


def write_snapshot(snapshot: Mapping[str, np.ndarray], path: str | Path) -> None:
    """Write a snapshot atomically; if that fails, it is a SnapshotError."""
    path = _path(path)
    try:
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **snapshot)  # type: ignore[arg-type]
    except (OSError, ValueError) as error:
        raise SnapshotError(
            f"the snapshot cannot be written to {path}: {_shown(error)}; give the path of a file "
            "in a folder where there is room and you may write"
        ) from error


def read_snapshot(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of a file, as they are; if they cannot be read, it is a SnapshotError."""
    path = _path(path)
    try:
        with path.open("rb") as file, np.load(file) as found:
            return dict(found)
    except FileNotFoundError:
        raise SnapshotError(f"there is no snapshot {path}") from None
    # Damaged files fail in zipfile, zlib, NumPy and in what these call, in a dozen ways.
    except Exception as error:
        raise SnapshotError(
            f"{path} cannot be read as a snapshot ({_shown(error)}); {_TAKE_ANOTHER}"
        ) from error


def snapshot_bytes(snapshot: Mapping[str, np.ndarray]) -> bytes:
    """A snapshot as the bytes of a file."""
    file = io.BytesIO()
    np.savez(file, **snapshot)  # type: ignore[arg-type]
    return file.getvalue()


def snapshot_of_bytes(written: bytes) -> dict[str, np.ndarray]:
    """The snapshot that :func:`snapshot_bytes` returned."""
    with np.load(io.BytesIO(written)) as found:
        return dict(found)


def _path(given: Any) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise SnapshotError(f"a snapshot needs the path of a file, not {kind_of(given)}")
    return user_path(given)


def _read(snapshot: Mapping[Any, Any]) -> dict[str, np.ndarray]:
    """All arrays of a snapshot; those of an open file are read once, here."""
    arrays = {}
    try:
        for name in snapshot:
            arrays[name] = snapshot[name]
    # Damaged files fail in zipfile, zlib, NumPy and in what these call, in a dozen ways.
    except Exception as error:
        raise SnapshotError(
            f"the snapshot is damaged: it cannot be read ({_shown(error)}); {_TAKE_ANOTHER}"
        ) from error
    for name, array in arrays.items():
        if why := _unsaved(array) or ("" if isinstance(name, str) else "without a name"):
            raise SnapshotError(f"this is no snapshot: {str(name)[:40]!r} is {why}")
    return arrays


def _unsaved(array: Any) -> str:
    """What an object is that a snapshot may not hold; nothing for one that it may."""
    if not isinstance(array, np.ndarray):
        return f"{type(array).__name__}, no array"
    if array.dtype.kind not in _KINDS or not array.dtype.itemsize:
        return f"an array of {str(array.dtype)[:40]}, which snapshots do not have"
    return ""


def digest_of(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """BLAKE2b over the names, types, shapes and values of arrays, independent of their order."""
    taken = hashlib.blake2b(digest_size=32)
    for name in sorted(arrays):
        array = arrays[name]
        # Includes lengths, so that different snapshots are different bytes.
        shape = [*array.shape]
        taken.update(f'[{json.dumps(name)}, "{array.dtype.str}", {shape}]\n'.encode())
        taken.update(np.ascontiguousarray(array).data)
    return np.frombuffer(taken.digest(), np.uint8)


def _header(written: np.ndarray) -> dict[str, Any]:
    try:
        header = dict(json.loads(written.tobytes()))
        number, taken_by = header["version"], header["cepbench"]
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(f"this is no snapshot: {_shown(error)}") from error
    if number != _VERSION:
        raise SnapshotError(
            f"the snapshot has version {number}, this cepbench reads {_VERSION}; "
            f"restore it with the version that took it, cepbench {taken_by}"
        )
    return header


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
