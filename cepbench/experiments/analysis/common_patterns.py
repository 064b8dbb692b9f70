"""The common patterns over which several generators are averaged.

A generator that fails on the hard patterns would look fast by the easy ones alone. Averages are
therefore taken over the patterns for which all compared runs have a value, and count them. A run
that lacks more than half of the patterns is not compared, or it would leave too few to the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd


def common_rows(
    table: pd.DataFrame,
    known: np.ndarray,
    run: Sequence[str],
    pattern: Sequence[str] = ("pattern_id",),
) -> pd.DataFrame:
    """Rows of a group that count, and the number of patterns left out.

    ``table`` has the rows of one group, which is averaged and compared by itself; ``known``, bool of
    shape (rows,), whether a row has a value; ``run`` and ``pattern`` the columns that name the
    compared runs and the patterns. A run has a pattern if all its rows for it have a value, and lacks
    a pattern without a row.

    The result is indexed as the table: ``counted``, whether the row is averaged over; ``left_out``, the
    patterns of the group that the row's run is not averaged over; and ``missing``, those among
    them that it lacks itself and another run has. A run that lacks more than half of the
    patterns that any run has counts nowhere, and excludes no pattern for the others.
    """
    its_run = table.groupby(list(run), sort=False).ngroup().to_numpy()
    its_pattern = table.groupby(list(pattern), sort=False).ngroup().to_numpy()
    shape = (int(its_pattern.max(initial=-1)) + 1, int(its_run.max(initial=-1)) + 1)
    rows, values = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int)
    np.add.at(rows, (its_pattern, its_run), 1)
    np.add.at(values, (its_pattern, its_run), known)
    has = (rows > 0) & (values == rows)
    of_any = has.any(axis=1)
    missing = (of_any[:, None] & ~has).sum(axis=0)
    compared = (2 * missing <= of_any.sum()) & has.any(axis=0)
    common = has[:, compared].all(axis=1) & compared.any()
    left_out = len(has) - np.where(compared, common.sum(), 0)
    return pd.DataFrame(
        {
            "counted": common[its_pattern] & compared[its_run],
            "left_out": left_out[its_run],
            "missing": missing[its_run],
        },
        index=table.index,
    )


def only_finite(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """The rows under a new index; infinite values of some columns become missing."""
    found = table.reset_index(drop=True)
    for name in columns:
        found[name] = found[name].where(np.isfinite(found[name].to_numpy(float, na_value=np.nan)))
    return found


def left_out_notes(rows: pd.DataFrame) -> list[str]:
    """Sentences on the patterns that averages leave out; none if there are no such patterns.

    The rows are those of one metric and statistic: ``generator`` (or ``series``, what it is called
    there), ``patterns``, ``left_out`` and ``missing`` as :func:`common_rows` has it, and ``regime``,
    ``pattern_set`` and ``size`` where these are averaged apart. Where ratios count runs at the limit,
    ``bounds`` has the number of ratios that are bounds.
    """
    name = "series" if "series" in rows else "generator"
    apart = [column for column in ("regime", "pattern_set", "size") if column in rows]
    # Series side by side, such as strategies, share their patterns.
    plain = rows.assign(every=rows["patterns"] + rows["left_out"])
    groups = plain.groupby(apart, dropna=False) if apart else plain.groupby(lambda _: 0)
    counted = groups["patterns"].max().sum()
    every = groups["every"].max().sum()
    by_group = plain.groupby([*apart, name], dropna=False, sort=False)
    notes = []
    if counted < every:
        notes.append(f"Over {counted:,} of {every:,} patterns: those that all compared have.")
    for column, what in (
        ("missing", f"Patterns missing, of {every:,}"),
        ("bounds", "Ratios that are bounds, as a run ended at the limit"),
    ):
        if column in plain and plain[column].any():
            by_name = by_group[column].max().groupby(name, sort=False).sum()
            texts = [f"{which} {count:,}" for which, count in by_name.items() if count]
            notes.append(f"{what}: {', '.join(texts)}.")
    empty = plain[(plain["patterns"] == 0) & (plain["missing"] > 0)]
    if len(empty):
        named = ", ".join(dict.fromkeys(empty[name]))
        notes.append(f"Not compared where more than half are missing: {named}.")
    return notes
