"""The results table: one row a cell, and what every row records.

A cell is one run of one plan: pattern × stream × window × plan generator × evaluator × its options ×
selection strategy × weight of latency × output × repetition; or one run of an aggregation method:
pattern or workload × stream × window × method × sharing × repetition; or one run of a workload by a
planner: workload × stream × window × planner × evaluator × its options × output × repetition. Refusals, runs at the limit of
partial matches and failures are rows too, with their ``status``.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from cepbench.arguments import kind_of
from cepbench.errors import ExperimentError

#: The plan was evaluated.
OK = "ok"
#: The plan generator refused the problem, or the aggregation method the pattern.
REFUSED = "refused"
#: The evaluator stopped at the partial-match limit. The row has bounds: ``seconds``,
#: ``partial_matches_created`` and ``peak_partial_matches`` would have been larger, and
#: ``events_per_second`` smaller.
LIMIT = "partial_match_limit"
#: Any other failure; see ``reason``.
ERROR = "error"

#: Detection latency in seconds, from a run of its own; missing unless a sweep asks for it.
LATENCY = ("latency_mean", "latency_median", "latency_p95", "latency_p99")

#: Metrics of aggregation methods alone, as :class:`cepbench.engines.aggregation.protocol.AggregateMetrics` names
#: them, the number of rows of values, and a digest of these, which is equal for all methods. A run of a
#: planner has a digest of the number of matches of each query.
OF_METHODS = {
    "seconds_per_slide": pa.float64(),
    "updates": pa.int64(),
    "peak_counters": pa.int64(),
    "peak_objects": pa.int64(),
    "values": pa.int64(),
    "digest": pa.string(),
}
#: Metrics of an evaluation, as :class:`cepbench.engines.runs.result.Metrics` names it.
METRICS = {
    "seconds": pa.float64(),
    "events": pa.int64(),
    "events_per_second": pa.float64(),
    "matches": pa.int64(),
    "partial_matches_created": pa.int64(),
    "mean_partial_matches": pa.float64(),
    "peak_partial_matches": pa.int64(),
    "peak_buffered_events": pa.int64(),
    "peak_bytes": pa.int64(),
    "comparisons": pa.int64(),
    **dict.fromkeys(LATENCY, pa.float64()),
    **OF_METHODS,
}
#: Versions and machine. ``commit`` is missing if cepbench runs from no checkout.
PROVENANCE = {
    **dict.fromkeys(
        ("cepbench_version", "commit", "numba_version", "llvmlite_version", "numpy_version",
         "pandas_version", "pyarrow_version", "python_version", "platform", "cpu"),
        pa.string(),
    ),
    "cores": pa.int64(),
}  # fmt: skip

#: Columns of the results table and their types, in order. ``configuration`` is the sweep's whole
#: configuration as JSON: each row states its provenance by itself.
RESULT_SCHEMA = pa.schema(
    [
        ("pattern_set", pa.string()),
        ("size", pa.int64()),
        ("pattern_id", pa.string()),
        ("pattern", pa.string()),
        ("generator", pa.string()),
        ("plan_kind", pa.string()),
        ("evaluator", pa.string()),
        # An aggregation method and how it shares work between queries; empty for runs of plans.
        ("method", pa.string()),
        ("sharing", pa.string()),
        # The evaluator's, as a JSON object.
        ("options", pa.string()),
        # Empty in a sweep of a single stream or window.
        ("stream", pa.string()),
        ("window", pa.string()),
        # The regime that the pattern was drawn for; empty in a sweep without regimes.
        ("regime", pa.string()),
        ("strategy", pa.string()),
        ("alpha", pa.float64()),
        ("repetition", pa.int64()),
        ("seed", pa.int64()),
        ("time_selectivity", pa.string()),
        ("dataset", pa.string()),
        ("output", pa.string()),
        ("partial_match_limit", pa.int64()),
        ("configuration", pa.string()),
        ("plan", pa.string()),
        ("plan_cost", pa.float64()),
        ("plan_log_cost", pa.float64()),
        ("plan_seconds", pa.float64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        # The generator whose run of an equal plan this row repeats; missing for a run of its own.
        ("measured_with", pa.string()),
        # Metrics of this evaluator alone, as a JSON object; missing if none.
        ("details", pa.string()),
        *METRICS.items(),
        *PROVENANCE.items(),
        ("started_at", pa.timestamp("ms", tz="UTC")),
    ]
)

#: The ``generator`` and the ``plan_kind`` of a run without a plan.
NO_PLAN = "none"

#: The ``sharing`` of a method that runs each query of a workload by itself.
NO_SHARING = "none"

#: The ``output`` of aggregation methods.
VALUES = "values"

#: The ``options`` of an evaluator that runs with its defaults.
NO_OPTIONS = "{}"


class Cell(NamedTuple):
    """Identity of a row within its pattern and stream."""

    generator: str
    evaluator: str
    repetition: int
    strategy: str = "any"
    alpha: float = 0.0
    window: str = ""
    options: str = NO_OPTIONS
    output: str = "count"


def cell_of(row: Mapping[str, Any]) -> Cell:
    """The cell that a results row fills."""
    return Cell(*(row[name] for name in Cell._fields))


@cache
def provenance() -> dict[str, Any]:
    """Versions and machine, as the columns of a results row; without the machine's name."""
    packages = ("cepbench", "numba", "llvmlite", "numpy", "pandas", "pyarrow")
    return {
        **{f"{package}_version": version(package) for package in packages},
        "commit": commit_of(Path(__file__).resolve().parents[3]),
        "python_version": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
    }


def commit_of(root: Path) -> str | None:
    """The commit of a checkout of cepbench, marked if the package was edited since; None elsewhere."""
    if not (root / ".git").exists():  # site-packages may be inside of another checkout
        return None
    try:
        commit, changes = (
            subprocess.run(
                ["git", "-C", str(root), *command],
                capture_output=True, check=True, encoding="utf-8", timeout=10,
            ).stdout.strip()
            for command in (("rev-parse", "HEAD"), ("status", "--porcelain", "--", "cepbench"))
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit} with changes" if changes else commit


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # no such file outside of Linux
    return platform.processor() or platform.machine()


def results_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a DataFrame with the columns and types of :data:`RESULT_SCHEMA`."""
    return frame_of(results_table(rows))


def results_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as an Arrow table with the schema :data:`RESULT_SCHEMA`.

    An ExperimentError if a row has a column that the schema does not.
    """
    copies = [dict(row) for row in rows]
    for row in copies:
        unknown = row.keys() - set(RESULT_SCHEMA.names)
        if unknown:
            raise ExperimentError(
                f"results row with unknown column {min(unknown)!r}; it was written by another "
                "version of cepbench, so start the sweep in an empty folder"
            )
        if isinstance(row.get("started_at"), str):
            row["started_at"] = pd.Timestamp(row["started_at"])
    return pa.Table.from_pylist(copies, schema=RESULT_SCHEMA)


def frame_of(table: pa.Table) -> pd.DataFrame:
    """A results table as a DataFrame; integer columns with missing values stay integers."""
    nullable = {pa.int64(): pd.Int64Dtype()}
    return table.to_pandas(types_mapper=nullable.get)


#: Columns that name a pattern or a run, and what an empty cell of them is.
_NAMING = {
    **dict.fromkeys(("pattern_set", "pattern_id", "pattern", "generator", "plan_kind", "evaluator",
                     "method", "sharing", "stream", "window", "regime", "strategy", "output"), ""),
    "options": NO_OPTIONS,
}  # fmt: skip


#: Columns of every table of results.
_NEEDED = (
    "pattern_set", "size", "pattern_id", "generator", "plan_kind", "evaluator", "strategy", "alpha",
    "status",
)  # fmt: skip


def as_measured(results: pd.DataFrame) -> pd.DataFrame:
    """A results table with names as they were before it was a CSV file.

    There empty texts are missing, names of digits are numbers, and whole numbers beside missing ones
    have a fraction.

    An ExperimentError if it is no DataFrame, or has no columns of runs.
    """
    if not isinstance(results, pd.DataFrame):
        raise ExperimentError(
            f"results must be a DataFrame, as cep.read_results returns it, not {kind_of(results)}"
        )
    for name in _NEEDED:
        if name not in results:
            raise ExperimentError(
                f"the results have no column {name!r}; give all columns of cep.read_results"
            )
    found = {}
    for name, empty in _NAMING.items():
        if name not in results:
            continue
        column = results[name]
        is_text = not pd.api.types.is_numeric_dtype(column)
        if column.isna().any() or not is_text:
            texts = column.astype(object) if is_text else column.map(_digits, na_action="ignore")
            found[name] = texts.astype(object).where(column.notna(), empty)
    for name, kind in {**METRICS, **PROVENANCE}.items():
        column = results.get(name)
        is_float = pa.types.is_integer(kind) and pd.api.types.is_float_dtype(column)
        if is_float and (column.dropna() % 1 == 0).all():
            found[name] = column.astype("Int64")
    return results.assign(**found) if found else results


def _digits(value: Any) -> str:
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def check_agreement(results: pd.DataFrame) -> None:
    """Check that all finished runs of a pattern, on one stream under one window and strategy, agree.

    Plans and options change costs, never the number of matches, and methods change no value; a
    difference is a bug of an evaluator or method.

    An ExperimentError naming the first pattern and the two runs that differ.
    """
    finished = results[results["status"] == OK]
    same = ["pattern_id", "stream", "window", "strategy"]
    # Groups are looked into one by one only where a fast look finds that runs differ.
    groups = finished.groupby(same, sort=False, dropna=False)
    differ = (groups[["digest", "matches"]].nunique(dropna=False) > 1).any(axis="columns")
    if not differ.any():
        return
    for key, rows in finished.groupby(same, sort=False):
        other_values = rows[rows["digest"] != rows["digest"].iloc[0]].dropna(subset=["digest"])
        if len(other_values):
            names = rows["generator"].iloc[0], other_values["generator"].iloc[0]
            raise ExperimentError(
                f"pattern {key[0]}: the values of {names[1]} differ from those of {names[0]}, so one "
                f"method is wrong. Pattern: {rows['pattern'].iloc[0]}"
            )
        differing = rows[rows["matches"] != rows["matches"].iloc[0]]
        if len(differing):
            one, other = (
                f"{row['matches']} matches by {row['generator']} in {row['evaluator']} "
                f"(options {row['options']}, plan {row['plan']})"
                for row in (rows.iloc[0], differing.iloc[0])
            )
            where = ", ".join(str(part) for part in key[1:] if part)
            raise ExperimentError(
                f"pattern {key[0]} ({where}) has {one} but {other}; all plans must find the same, "
                "so one evaluator is wrong. Pattern: "
                f"{rows['pattern'].iloc[0]}"
            )
