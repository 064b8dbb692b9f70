"""A sweep's folder of results, from which a sweep that was killed at any moment resumes.

``sweep.json`` holds the configuration, ``journals/<pattern_id>.jsonl`` (of several streams
``<pattern_id>@<stream>.jsonl``) one line a finished row, ``results.parquet`` all rows of a complete
sweep. A row is finished when its line, newline included, is in the file. ``sweep.lock`` is locked
while a sweep runs, by the process in ``sweep.pid``; the operating system releases the lock when the
process ends. ``user/`` has such a folder for each user-defined plan generator measured beside the
sweep: adding or editing one measures it alone.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cepbench.arguments import kind_of
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import (
    NO_OPTIONS,
    OF_METHODS,
    RESULT_SCHEMA,
    Cell,
    cell_of,
    frame_of,
    results_frame,
    results_table,
)
from cepbench.experiments.sweeps.configuration import hash_of_code
from cepbench.files import held, locked, sync_folder, user_path, whole_file, write_json
from cepbench.planning.planners.registry import find_generator, user_defined_generators

_CONFIGURATION = "sweep.json"
_JOURNALS = "journals"
#: The folder of user-defined plan generators' rows, which are measured beside those of the sweep.
_USER = "user"
#: The file that a folder of results has once every cell has a row.
COMPLETE = "results.parquet"

#: Names of columns and of keys of a configuration in earlier versions -> current names.
_RENAMED = {"algorithm": "generator", "plans": "plan_kind"}
_RENAMED_KEYS = {"algorithms": "generators", "own_patterns": "user_patterns"}
#: Columns that earlier versions did not write -> values for their tables.
_ADDED = {
    **dict.fromkeys(("commit", "llvmlite_version", "pandas_version", "pyarrow_version", "platform")),
    "options": NO_OPTIONS, "stream": "", "window": "", "regime": "", "details": None,
    "method": "", "sharing": "",
    **dict.fromkeys(OF_METHODS),
}  # fmt: skip


#: Seconds of measurements that a power failure may lose: waiting for the disk after every row takes
#: as long as measuring most of them.
_UNSYNCED_SECONDS = 1.0


class Journal(ExitStack):
    """The finished rows of one pattern on one stream, locked until it is closed.

    Opening waits until no other process has the journal open: a task of a killed sweep may live
    on for a moment. It then truncates a last line that a killed process left unfinished.

    ``path``: the file, created if it does not exist. Its folder must exist.

    ``finished``: cells whose rows are in the file.

    An ExperimentError if a line other than the last one is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = user_path(path)
        with ExitStack() as opened:
            # Not of the file itself: where locks are mandatory, nobody could read it meanwhile.
            opened.enter_context(locked(self.path.with_suffix(".lock")))
            self._file = opened.enter_context(self.path.open("ab", buffering=0))
            text = self.path.read_bytes()
            whole = _whole_lines(text)
            if len(whole) < len(text):
                self._file.truncate(len(whole))
                os.fsync(self._file.fileno())
            self.finished: set[Cell] = {cell_of(row) for row in _rows_in(whole, self.path)}
            sync_folder(self.path.parent)
            self._synced = time.monotonic()
            opened.callback(self._sync)
            self.push(opened.pop_all())

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row; synchronized with the disk when the last time is a second ago, or on closing.

        An ExperimentError if the journal already has a row of this cell.
        """
        cell = cell_of(row)
        if cell in self.finished:
            raise ExperimentError(f"{self.path.name} already has a row of {cell}")
        rest = memoryview(json.dumps(row).encode() + b"\n")
        while rest:
            rest = rest[self._file.write(rest) :]
        if time.monotonic() - self._synced > _UNSYNCED_SECONDS:
            self._sync()
        self.finished.add(cell)

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


class ResultsStore(ExitStack):
    """The folder of one sweep, locked until it is closed.

    ``path``: the folder; created if it does not exist. ``configuration``: everything that decides
    what is measured; must be JSON.

    An ExperimentError if another process runs a sweep in the folder, or the folder belongs to a
    sweep with another configuration.
    """

    def __init__(self, path: str | Path, configuration: Mapping[str, Any]) -> None:
        super().__init__()
        self.path = user_path(path)
        (self.path / _JOURNALS).mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            opened.enter_context(held(self.path, "sweep", "runs a sweep", ExperimentError))
            _check_or_write_configuration(self.path / _CONFIGURATION, configuration)
            self.push(opened.pop_all())

    @property
    def is_complete(self) -> bool:
        """Whether the results have been compacted, so that nothing is left to do."""
        return (self.path / COMPLETE).exists()

    def finished(self, pattern_id: str, stream: str = "") -> set[Cell]:
        """Cells of a pattern, on one of several streams, that have a row."""
        return {cell_of(row) for row in rows_of(self.path, pattern_id, stream)}

    def kept(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The JSON object in ``<name>.json``, made and written if it is not there yet.

        For values that are expensive and must not change when the sweep is resumed.
        """
        path = self.path / f"{name}.json"
        if not path.exists():
            write_json(path, make())
        return read_kept(self.path, name)

    def compact(self) -> None:
        """Write all rows to ``results.parquet``; call it when every cell has a row."""
        with whole_file(self.path / COMPLETE) as unfinished:
            pq.write_table(results_table(_all_rows(self.path)), unfinished, compression="zstd")


def journal_path(folder: str | Path, pattern_id: str, stream: str = "") -> Path:
    """Where the rows of a pattern, and of one stream if there are several, are within a folder."""
    return Path(folder) / _JOURNALS / f"{of_stream(pattern_id, stream)}.jsonl"


def of_stream(name: str, stream: str) -> str:
    """The name of a file that one of several streams has for itself."""
    return f"{name}@{stream}" if stream else name


def rows_of(folder: str | Path, pattern_id: str, stream: str = "") -> list[dict[str, Any]]:
    """The finished rows of one pattern of a sweep, as measured; none if it has none."""
    path = journal_path(folder, pattern_id, stream)
    return _read_journal(path) if path.exists() else []


def read_kept(folder: str | Path, name: str) -> dict[str, Any]:
    """Read a JSON object that :meth:`ResultsStore.kept` has written."""
    return _read_json(Path(folder) / f"{name}.json")


def read_draws(folder: str | Path) -> dict[str, Any]:
    """Counts of rejected draws, see :func:`cepbench.experiments.sweeps.workload.count_draws`.

    Empty for a sweep of an earlier version, which did not count them.
    """
    return read_kept(folder, "draws") if (Path(folder) / "draws.json").exists() else {}


def count_rows(path: str | Path, known: dict[str, tuple[int, int]] | None = None) -> int:
    """How many rows are finished, for showing progress; 0 for a folder without any.

    ``path``: the folder of the sweep. ``known``: sizes and rows of journals, updated; passed again,
    only journals that have grown are read.
    """
    known = {} if known is None else known
    for journal in (user_path(path) / _JOURNALS).glob("*.jsonl"):
        size = journal.stat().st_size
        if known.get(journal.name, (-1, 0))[0] != size:
            known[journal.name] = size, journal.read_bytes().count(b"\n")
    return sum(rows for _, rows in known.values())


def read_results(path: str | Path) -> pd.DataFrame:
    """All finished rows of a sweep, whether it is complete, running or was killed.

    The columns are those of :data:`cepbench.experiments.sweeps.cells.RESULT_SCHEMA`; ordered by pattern, then
    as measured.

    ``path``: the folder of the sweep, or a results table in Parquet that was kept from one.

    An ExperimentError if the folder holds no sweep, a journal is damaged, or a file is no results
    table.
    """
    if not isinstance(path, str | Path):
        raise ExperimentError(f"the folder or the table of a sweep is a path, not {kind_of(path)}")
    folder = user_path(path)
    if folder.is_file():
        return frame_of(read_table(folder))
    if not (folder / _CONFIGURATION).exists():
        raise ExperimentError(f"{folder} holds no sweep: it has no {_CONFIGURATION}")
    if (folder / COMPLETE).exists():
        return frame_of(read_table(folder / COMPLETE))
    return results_frame(_all_rows(folder))


def user_folder(sweep: str | Path, name: str) -> Path:
    """The folder of a user-defined generator's rows; edited code has another folder.

    ``sweep``: folder of the sweep. ``name``: of the generator.

    A PlanGeneratorError if there is no such generator.
    """
    generator = find_generator(name)
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", generator.name)
    return Path(sweep) / _USER / f"{plain}-{hash_of_code(generator)}"


def is_finished(sweep: str | Path, user_defined: Sequence[str] | None = None) -> bool:
    """Whether the sweep and its user-defined generators are completely measured.

    ``sweep``: folder of the sweep. ``user_defined``: names of user-defined generators; all that are
    registered by default.
    """
    return all((folder / COMPLETE).exists() for folder in _folders(sweep, user_defined))


def read_with_user_parts(
    sweep: str | Path, user_defined: Sequence[str] | None = None
) -> pd.DataFrame:
    """All finished rows of a sweep and of user-defined generators beside it, pattern by pattern.

    See :func:`read_results`.

    ``sweep``, ``user_defined``: see :func:`is_finished`.

    An ExperimentError if one of the folders holds no sweep.
    """
    tables = [read_results(folder) for folder in _folders(sweep, user_defined)]
    if len(tables) == 1:
        return tables[0]
    together = pd.concat(tables, ignore_index=True)
    return together.sort_values("pattern_id", kind="stable", ignore_index=True)


def _folders(sweep: str | Path, user_defined: Sequence[str] | None) -> list[Path]:
    names = user_defined_generators() if user_defined is None else user_defined
    return [Path(sweep), *(user_folder(sweep, name) for name in names)]


def read_table(path: Path) -> pa.Table:
    """Read a results table from Parquet, written by any version of cepbench.

    An ExperimentError if it is no Parquet, or lacks columns that every version has written.
    """
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ExperimentError(f"{path} cannot be read as Parquet: {error}") from error
    table = table.rename_columns([_RENAMED.get(name, name) for name in table.schema.names])
    missing = [name for name in RESULT_SCHEMA.names if name not in table.schema.names]
    lost = [name for name in missing if name not in _ADDED]
    if lost:
        raise ExperimentError(
            f"{path} is no results table of a sweep: it has no column {lost[0]!r}"
            + (f", nor {len(lost) - 1} others" if len(lost) > 1 else "")
        )
    for name in missing:
        kind = RESULT_SCHEMA.field(name).type
        table = table.append_column(name, pa.repeat(pa.scalar(_ADDED[name], kind), len(table)))
    configurations = map(_todays_configuration, table["configuration"].to_pylist())
    at = table.schema.get_field_index("configuration")
    table = table.set_column(at, "configuration", pa.array(configurations, pa.string()))
    return table.select(RESULT_SCHEMA.names).cast(RESULT_SCHEMA)


def _todays_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a journal of any version of cepbench, with the columns of this one."""
    if not row.keys().isdisjoint(_RENAMED):
        row = {_RENAMED.get(name, name): value for name, value in row.items()}
        row["configuration"] = _todays_configuration(row.get("configuration"))
    return {**_ADDED, **row}


@lru_cache
def _todays_configuration(text: str | None) -> str | None:
    """The column ``configuration`` with current keys."""
    try:
        content = json.loads(text or "")
    except ValueError:
        return text
    return json.dumps(_with_todays_keys(content)) if isinstance(content, dict) else text


def _with_todays_keys(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {_RENAMED_KEYS.get(key, key): value for key, value in configuration.items()}


def _all_rows(folder: Path) -> Iterator[dict[str, Any]]:
    for journal in sorted((folder / _JOURNALS).glob("*.jsonl")):
        yield from _read_journal(journal)


def _read_journal(path: Path) -> list[dict[str, Any]]:
    return _rows_in(_whole_lines(path.read_bytes()), path)


def _whole_lines(text: bytes) -> bytes:
    """The text without a last line that lacks its newline or was damaged by a crash."""
    end = text.rfind(b"\n") + 1
    start = text.rfind(b"\n", 0, max(0, end - 1)) + 1
    if end and _row(text[start:end]) is None:
        return text[:start]
    return text[:end]


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _rows_in(lines: bytes, path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(lines.splitlines(), start=1):
        row = _row(line)
        if row is None:
            raise ExperimentError(
                f"{path}, line {number}: not a results row; delete the file, and the sweep "
                "measures this pattern again"
            )
        rows.append(_todays_row(row))
    return rows


def _check_or_write_configuration(path: Path, configuration: Mapping[str, Any]) -> None:
    wanted = json.loads(json.dumps(dict(configuration)))  # tuples are lists there
    if not path.exists():
        write_json(path, wanted)
        return
    found = _with_todays_keys(_read_json(path))
    differences = [
        f"{key} is {json.dumps(found.get(key))} there and {json.dumps(wanted.get(key))} here"
        for key in dict.fromkeys([*wanted, *found])
        if found.get(key) != wanted.get(key)
    ]
    if differences:
        raise ExperimentError(
            f"{path.parent} holds a sweep with another configuration: {'; '.join(differences)}. "
            "Use another folder, or the same configuration to resume that sweep"
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ExperimentError(
            f"{path} is damaged, as no sweep leaves it: {error}; get it back, or delete the folder "
            "and run the sweep again"
        ) from error
    if not isinstance(content, dict):
        raise ExperimentError(f"{path} is no table of a sweep; delete it and run the sweep again")
    return content
