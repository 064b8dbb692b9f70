"""Reference results: what one machine measured at the papers' sizes, in the package.

A folder ``results/full`` or ``results/quick`` of a study has, for each of its sweeps, ``<sweep>.json``, what a sweep's folder
holds beside its rows, and the rows; for each table that a notebook measures ``<notebook>.<table>``; and ``ledger``, the
verdicts. Each of these tables is in files ``<table>-1-of-2.parquet``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cepbench.errors import ExperimentError
from cepbench.experiments.studies.profiles import MEASURED_AS, REFERENCE
from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.sweeps.cells import LATENCY, RESULT_SCHEMA, frame_of
from cepbench.experiments.sweeps.store import (
    COMPLETE,
    journal_path,
    read_kept,
    read_results,
    read_table,
)
from cepbench.files import whole_file, write_json
from cepbench.streams.dataset_folder import DECLARATION

#: Bytes of a file at most.
LARGEST = 500_000

#: The file of a sweep's folder that says what it measures.
_IDENTITY = "sweep"

#: Columns that a clock gives.
TIMES = ("seconds", "events_per_second", "plan_seconds", "seconds_per_slide", *LATENCY)

#: Significant digits of times and of costs: what a clock repeats, and what a comparison of plans needs.
_DIGITS = {**dict.fromkeys(TIMES, 4), "plan_cost": 7, "plan_log_cost": 7, "mean_partial_matches": 6}


def results_folder(study: str, profile: str = MEASURED_AS) -> Path:
    """Where the package has the reference results of a study, whether it has any or not."""
    return STUDIES[study].folder / "results" / profile


def keep_sweep(sweep: Path, streams: Mapping[str, Path], target: Path, name: str) -> list[Path]:
    """Keep all finished rows of a sweep's folder as ``name`` in a folder of reference results.

    Returns the files written, none of them larger than :data:`LARGEST`.
    """
    kept = [
        {"file": file.stem, "key": key, "value": json.dumps(value)}
        for file in sorted(sweep.glob("*.json"))
        if file.stem != _IDENTITY
        for key, value in read_kept(sweep, file.stem).items()
    ]
    target.mkdir(parents=True, exist_ok=True)
    about = {
        "identity": read_kept(sweep, _IDENTITY),
        "complete": (sweep / COMPLETE).exists(),
        "streams": {path.name: read_kept(path, "_dataset") for path in streams.values()},
    }
    write_json(target / f"{name}.json", about)
    return [
        target / f"{name}.json",
        *keep_table(_rounded(read_results(sweep)), target / name),
        *keep_table(pd.DataFrame(kept, columns=["file", "key", "value"]), target / f"{name}.kept"),
    ]


def keep_table(table: pd.DataFrame, path: Path, largest: int = LARGEST) -> list[Path]:
    """Write ``<path>-1-of-2.parquet`` and so on, as many as keep each below so many bytes; returns the files."""
    schema = RESULT_SCHEMA if list(table.columns) == RESULT_SCHEMA.names else None
    whole = pa.Table.from_pandas(table, schema, preserve_index=False)
    for old in _parts(path):
        old.unlink()
    parts = 1
    while True:
        written = []
        for number, rows in enumerate(np.array_split(np.arange(len(whole)), parts), start=1):
            part = whole.slice(rows[0] if len(rows) else 0, len(rows))
            written.append(path.with_name(f"{path.name}-{number}-of-{parts}.parquet"))
            with whole_file(written[-1]) as unfinished:
                pq.write_table(part, unfinished, compression="zstd", compression_level=19)
        sizes = [file.stat().st_size for file in written]
        if max(sizes) < largest:
            return written
        for file in written:
            file.unlink()
        parts = max(parts + 1, -(-sum(sizes) * 11 // (10 * largest)))


def read_parts(path: Path) -> pd.DataFrame:
    """The table that :func:`keep_table` wrote.

    Raises ExperimentError if there is none, or a part of it is missing, damaged or of another version.
    """
    there = _parts(path)
    if not there:
        raise ExperimentError(
            f"there are no reference results {path.parent.name}/{path.name}; measure it with "
            f"--profile {MEASURED_AS}"
        )
    number = there[0].stem.rpartition("-")[2]
    parts = [path.with_name(f"{path.name}-{n + 1}-of-{number}.parquet") for n in range(int(number))]
    of_sweep = path.with_name(f"{path.name}.json").exists()
    try:
        tables = [read_table(part) if of_sweep else pq.read_table(part) for part in parts]
    except (OSError, pa.ArrowException) as error:
        raise ExperimentError(
            f"{path}: a part is missing or damaged ({error}); install cepbench again"
        ) from error
    return pd.concat([frame_of(table) for table in tables], ignore_index=True)


def read_about(path: Path) -> dict[str, Any]:
    """What is kept of a sweep beside its tables: ``identity``, ``complete``, and the declarations of its ``streams``.

    Raises ExperimentError if it is missing or damaged.
    """
    try:
        return read_kept(path.parent, path.name)
    except FileNotFoundError as error:
        raise ExperimentError(f"{path}.json is missing; install cepbench again") from error


def _parts(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}-*-of-*.parquet"))


def restore_sweep(study: str, name: str, sweep: Path, streams: Mapping[str, Path]) -> None:
    """Lay out the reference results of a sweep as the folder of a finished one, and declare its streams.

    Raises ExperimentError if there are none, or they are of another configuration than today's.
    """
    kept = results_folder(study) / name
    rows = read_parts(kept)
    about = read_about(kept)
    for path in streams.values():
        if path.name not in about["streams"]:
            raise ExperimentError(
                f"the reference results of {study}/{name} are those of another configuration: they have no "
                f"stream {path.name}; measure it with --profile {MEASURED_AS}"
            )
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / DECLARATION, about["streams"][path.name])
    _lay_out(kept, sweep)
    with whole_file(sweep / COMPLETE) as unfinished:
        pq.write_table(pa.Table.from_pandas(rows, RESULT_SCHEMA, preserve_index=False), unfinished)


def is_complete(study: str, name: str) -> bool:
    """Whether the reference results of a sweep are those of a finished one."""
    return bool(read_about(results_folder(study) / name)["complete"])


def is_restored(study: str, name: str, sweep: Path) -> bool:
    """Whether a folder has the reference results of a sweep, as they are in the package today."""
    done = sweep / COMPLETE
    newest = max((part.stat().st_mtime for part in _parts(results_folder(study) / name)), default=0)
    return done.exists() and done.stat().st_mtime >= newest


def resume_sweep(study: str, name: str, sweep: Path) -> None:
    """Lay out the reference results of a sweep as the folder of an interrupted one, which a run then completes.

    A folder that is there stays as it is. Rows say by themselves on which machine they were measured.

    Raises ExperimentError if there are no results.
    """
    if sweep.exists():
        return
    kept = results_folder(study) / name
    rows = read_parts(kept)
    _lay_out(kept, sweep)
    for (pattern_id, stream), own in rows.groupby(["pattern_id", "stream"], sort=False):
        journal = journal_path(sweep, str(pattern_id), str(stream))
        journal.parent.mkdir(exist_ok=True)
        table = pa.Table.from_pandas(own, RESULT_SCHEMA, preserve_index=False)
        lines = (json.dumps(row, default=datetime.isoformat) for row in table.to_pylist())
        journal.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _lay_out(kept: Path, sweep: Path) -> None:
    """What a sweep's folder has beside its rows."""
    sweep.mkdir(parents=True, exist_ok=True)
    write_json(sweep / f"{_IDENTITY}.json", read_about(kept)["identity"])
    for file, its in read_parts(kept.with_name(f"{kept.name}.kept")).groupby("file"):
        values = zip(its["key"], map(json.loads, its["value"]), strict=True)
        write_json(sweep / f"{file}.json", dict(values))


def measured_table(
    name: str, profile: str, folder: Path, measure: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """A table that a notebook measures, such as ``kolchinsky2018/figure_7/results``.

    Measured or, if the profile is ``reference``, read from the package's results; and written to
    ``results.parquet`` in the folder.

    Raises ExperimentError if there is no such table to read.
    """
    found = read_parts(kept_table(name)) if profile == REFERENCE else measure()
    found.to_parquet(folder / f"{name.rpartition('/')[2]}.parquet")
    return found


def kept_table(name: str) -> Path:
    """Where a table that a notebook measures is kept, as :func:`read_parts` takes it."""
    study, _, rest = name.partition("/")
    return results_folder(study) / rest.replace("/", ".")


def lacking(sweeps: Iterable[str], tables: Iterable[str]) -> list[str]:
    """Of sweeps, ``mei2009/plans``, and tables of notebooks, those that the package has no results of."""
    kept = {name: kept_table(name) for name in (*sweeps, *tables)}
    return [name for name, path in kept.items() if not _parts(path)]


def _rounded(rows: pd.DataFrame) -> pd.DataFrame:
    """Times and costs with as many digits as mean something, which take a third of the space."""
    return rows.assign(
        **{name: _significant(rows[name], digits) for name, digits in _DIGITS.items()}
    )


def _significant(values: pd.Series, digits: int) -> pd.Series:
    numbers = values.to_numpy(np.float64, na_value=np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(numbers))))
        found = np.round(numbers * scale) / scale
    return pd.Series(np.where(np.isfinite(found), found, numbers), values.index)
