"""Data sets on disk: Parquet files by month, and a declaration that is written last.

<path>/_dataset.json             kind, parameters and size; marks the data set as complete
<path>/_unfinished.json          present while it is being written, and after a crash
<path>/_quarantine/*.parquet     malformed rows of source files, with the reason
<path>/month=YYYY-MM/*.parquet   events, sorted by symbol, then time, within each file

Only the declaration makes folders named ``month=…`` ours; in other folders ``month`` is a column.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cepbench.errors import DatasetError
from cepbench.files import held, user_path, write_json

DECLARATION = "_dataset.json"
UNFINISHED = "_unfinished.json"
QUARANTINE = "_quarantine"
STAGING = "_staging"

#: The names of the lock of a data set that is being written, and of the file with its holder.
_WRITER = "_dataset"
_LOCKS = (f"{_WRITER}.lock", f"{_WRITER}.pid")

#: The column that breaks ties of time, so that time and sequence order the data set.
SEQUENCE = "sequence"

#: The partition, present only in the names of folders; not a column.
MONTH = "month"

_FORMAT = 1

#: Kinds of data whose events have an attribute ``symbol``, so that their types are in ``type``.
_WITH_SYMBOLS = frozenset({"stock-ticker"})


def type_column(kind: str) -> str:
    """The column with the types of events in data of a kind."""
    return "type" if kind in _WITH_SYMBOLS else "symbol"


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The description of a complete data set, ``_dataset.json``."""

    #: Its origin, such as ``nasdaq-style``.
    kind: str
    #: Parameters of its generation; equal kind and parameters give equal events.
    parameters: Mapping[str, Any]
    events: int
    #: Events of each type.
    counts: Mapping[str, int]
    #: Arrow type of each column.
    columns: Mapping[str, str]
    #: Further information, such as the number of quarantined rows.
    notes: Mapping[str, Any] = field(default_factory=dict)
    #: Of Python and the libraries that wrote it.
    versions: Mapping[str, str] = field(default_factory=lambda: _versions())


def is_declared(path: Path) -> bool:
    """Whether a path is a complete data set of cepbench."""
    return (path / DECLARATION).exists()


def read_declaration(path: str | Path) -> Declaration | None:
    """The declaration of a complete data set; None for any other folder or file.

    A DatasetError if the path does not exist, or the data set is incomplete.
    """
    path = user_path(path)
    if not path.exists():
        raise DatasetError(f"there is no data set or Parquet file {path}; check the path")
    file = path / DECLARATION
    if file.exists():
        content = _read_json(file)
        if content.pop("format", None) != _FORMAT:
            raise DatasetError(
                f"{file} was written by another version of cepbench; delete {path} and make it again"
            )
        try:
            return Declaration(**content)
        except TypeError as error:
            raise DatasetError(f"{file} does not declare a data set: {error}") from error
    if (path / UNFINISHED).exists():
        raise DatasetError(
            f"the data set {path} is incomplete: the job that writes it was interrupted or is still "
            "running. Run the same generation or ingest again"
        )
    return None


def begin_dataset(
    path: str | Path, *, kind: str, parameters: Mapping[str, Any]
) -> Declaration | None:
    """Prepare a folder for writing a data set; returns its declaration if it is already complete.

    Files of an interrupted writer are deleted. A DatasetError if the folder has another data set,
    or other files.
    """
    path = user_path(path)
    wanted = json.loads(json.dumps({"kind": kind, "parameters": dict(parameters)}))
    if (path / DECLARATION).exists():
        found = read_declaration(path)
        assert found is not None
        have = {"kind": found.kind, "parameters": dict(found.parameters)}
        if have == wanted:
            return found
        raise DatasetError(
            f"{path} has a data set with other parameters ({_differences(have, wanted)}); "
            "choose another path, or delete that folder"
        )
    if path.exists():
        if not path.is_dir():
            raise DatasetError(f"{path} is a file; a data set needs a folder")
        others = (p for p in path.iterdir() if not _is_left(p) and p.name not in _LOCKS)
        if not (path / UNFINISHED).exists() and any(others):
            raise DatasetError(
                f"{path} is not empty and not a cepbench data set; choose another path"
            )
        for folder in (*path.glob(f"{MONTH}=*"), path / QUARANTINE, path / STAGING):
            shutil.rmtree(folder, ignore_errors=True)
        for part in path.iterdir():
            if part.suffix == ".parquet" or _is_left(part):
                part.unlink()
    path.mkdir(parents=True, exist_ok=True)
    write_json(path / UNFINISHED, wanted)
    return None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Keep other processes from writing a data set in a folder, which is created if need be.

    A DatasetError if another process does; it is named.
    """
    path.mkdir(parents=True, exist_ok=True)
    with held(path, _WRITER, "writes a data set", DatasetError):
        yield


@contextmanager
def unfinished_dataset(
    path: Path, *, kind: str, parameters: Mapping[str, Any]
) -> Iterator[Declaration | None]:
    """:func:`begin_dataset`, and until the end of the block no other process writes there.

    A data set that is complete is not locked. For errors see :func:`begin_dataset` and
    :func:`writing`.
    """
    if (path / DECLARATION).exists() or path.is_file():
        yield begin_dataset(path, kind=kind, parameters=parameters)
        return
    with writing(path):
        # Another process may have finished it meanwhile.
        yield begin_dataset(path, kind=kind, parameters=parameters)


def discard_unfinished(path: Path) -> None:
    """Remove what was begun in a folder, and the folder if nothing else is in it."""
    for folder in (QUARANTINE, STAGING):
        shutil.rmtree(path / folder, ignore_errors=True)
    (path / UNFINISHED).unlink(missing_ok=True)
    if all(file.name in _LOCKS for file in path.iterdir()):
        shutil.rmtree(path)


def finish_dataset(path: str | Path, declaration: Declaration) -> None:
    """Declare a data set complete; from then on it can be read."""
    path = Path(path)
    shutil.rmtree(path / STAGING, ignore_errors=True)
    write_json(path / DECLARATION, {"format": _FORMAT, **asdict(declaration)})
    (path / UNFINISHED).unlink(missing_ok=True)


def _is_left(file: Path) -> bool:
    """Whether it is an incomplete file of an interrupted writer."""
    begun = (f".{UNFINISHED}.", f".{DECLARATION}.", ".part-", ".empty.parquet.")
    return file.name.startswith(begun) and file.is_file()


def _differences(have: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    if have["kind"] != wanted["kind"]:
        return f"{have['kind']} found, {wanted['kind']} requested"
    one, other = have["parameters"], wanted["parameters"]
    return "; ".join(
        f"{name} {one.get(name)!r} found, {other.get(name)!r} requested"
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    )


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("cepbench", "numpy", "pyarrow", "pyspark"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(f"{file} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise DatasetError(f"{file} does not declare a data set")
    return content
