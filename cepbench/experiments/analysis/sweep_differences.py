"""Differences between two sweeps: data, configuration, machine, and numbers of matches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import OK, PROVENANCE, Cell, as_measured
from cepbench.experiments.sweeps.store import read_results


def read_sweep_table(source: str | Path | pd.DataFrame) -> pd.DataFrame:
    """The rows of a sweep; an error if there are none."""
    results = as_measured(source) if isinstance(source, pd.DataFrame) else read_results(source)
    if results.empty:
        raise ExperimentError(f"{name_of(source, 'a sweep')} has no finished rows yet")
    return results


def name_of(source: str | Path | pd.DataFrame, otherwise: str) -> str:
    """Name of a sweep: its folder or file, or ``otherwise`` for a table."""
    return otherwise if isinstance(source, pd.DataFrame) else Path(source).resolve().name


def check_counts(
    first: pd.DataFrame, second: pd.DataFrame, *, names: tuple[str, str], same_data: bool | None
) -> int:
    """Number of patterns whose counts of matches, or values of AGG, differ; an error on the same data."""
    streams = "stream" in first and "stream" in second
    key = ["pattern_id", "pattern", *(["stream"] if streams else [])]
    # A run of a method has no count but a digest.
    counts = [
        table[table["status"] == OK]
        .assign(found=lambda rows: rows["matches"].astype("string").fillna(rows["digest"]))
        .groupby(key, sort=False, dropna=False)["found"]
        .first()
        for table in (first, second)
    ]
    both = pd.concat(counts, axis=1, join="inner", keys=["first", "second"])
    differing = both[both["first"] != both["second"]]
    if same_data and len(differing):
        pattern_id, text, *_ = differing.index[0]
        one, other = differing.iloc[0]
        raise ExperimentError(
            f"{len(differing)} of {len(both)} patterns have other numbers of matches or values in "
            f"{names[0]} and {names[1]}, which ran on the same data: pattern {pattern_id} has "
            f"{one} and {other}. One of the two engines is wrong, so nothing else "
            f"is compared. Pattern: {text}"
        )
    return len(differing)


#: What no clock changes on the same data, and a machine only by planning with costs measured on it, in words ->
#: its columns.
EXACT = {
    "matches": ("matches", "digest"),
    "plans": ("plan",),
    "work": ("partial_matches_created", "peak_partial_matches", "comparisons", "updates"),
}


#: In the text of a plan.
_COST = r", estimated cost \S+"


def pairs_of(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """A row a run that ended well in both, whose columns end in ``_first`` and ``_second``.

    Of several repetitions the first that there is; names of the run and the pattern have no ending.
    """
    run = [name for name in Cell._fields if name != "repetition"]
    key = [
        name
        for name in ("pattern_id", "pattern", "stream", *run)
        if name in first and name in second  # older tables have fewer
    ]
    tables = [
        table[table["status"] == OK].drop_duplicates(key).set_index(key)
        for table in (first, second)
    ]
    both = tables[0].join(tables[1], how="inner", lsuffix="_first", rsuffix="_second")
    return both.reset_index()


def unequal(pairs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The pairs that differ in each of :data:`EXACT`; a number that one of them lacks is not compared."""
    found = {}
    for name, columns in EXACT.items():
        differ = pd.Series(False, pairs.index)
        for column in columns:
            one, other = (
                pairs[its].replace(_COST, "", regex=True) if column == "plan" else pairs[its]
                for its in (f"{column}_first", f"{column}_second")
            )
            differ |= one.notna() & other.notna() & (one != other).fillna(False).astype(bool)
        found[name] = pairs[differ]
    return found


def configuration_of(results: pd.DataFrame) -> dict[str, Any]:
    """The configuration recorded in the rows; the common keys if there are several."""
    found = []
    for text in results["configuration"].dropna().unique():
        try:
            value = json.loads(text) if text else {}
        except ValueError:
            value = {}
        found.append(value if isinstance(value, dict) else {})
    if not found:
        return {}
    return {
        key: value
        for key, value in found[0].items()
        if all(other.get(key) == value for other in found)
    }


def same_data_of(first: pd.DataFrame, second: pd.DataFrame) -> bool | None:
    """Whether two sweeps ran on the same data; None if a table does not say."""
    made = [configuration_of(table).get("data_made_from") for table in (first, second)]
    return None if None in made else made[0] == made[1]


def differences_of(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Keys of the configuration and of the provenance with other values; see SweepComparison."""
    one, other = configuration_of(first), configuration_of(second)
    rows = [
        {"key": key, "first": one.get(key), "second": other.get(key)}
        for key in dict.fromkeys([*one, *other])
        if one.get(key) != other.get(key)
    ]
    for key in PROVENANCE:
        have = [sorted(map(str, table[key].dropna().unique())) for table in (first, second)]
        if have[0] != have[1]:
            shown = [" and ".join(values) or None for values in have]
            rows.append({"key": key, "first": shown[0], "second": shown[1]})
    return pd.DataFrame(rows, columns=["key", "first", "second"])
