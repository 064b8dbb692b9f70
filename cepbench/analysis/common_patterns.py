"""Which patterns averages are taken over, so that those of several generators compare.

A generator that fails on the hard patterns would look fast by the easy ones alone. Averages are
therefore taken over the patterns that all compared runs have a value of, and say how many those
are. A run that lacks more than half of the patterns is not compared: it would leave too few to the
others, which have done nothing wrong.
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
    """Which rows of a group count, and how many patterns are left out of it.

    Parameters
    ----------
    table : DataFrame
        Rows of one group: what is averaged apart is compared apart.
    known : ndarray of bool, shape (rows,)
        Whether a row has a value. A run has a pattern if all its rows of it have one; a pattern
        without a row is one that it lacks.
    run, pattern : sequence of str
        Columns that name what is compared, and what it is compared over.

    Returns
    -------
    DataFrame
        Indexed as ``table``: ``counted``, whether the row is averaged over; ``left_out``, the
        patterns of the group that the row's run is not averaged over; and ``missing``, those among
        them that it lacks itself and another run has. A run that lacks more than half of what
        the runs have together counts nowhere, and takes no pattern from the others.
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
    """The rows under a new index, with infinite values of some columns missing, too."""
    found = table.reset_index(drop=True)
    for name in columns:
        found[name] = found[name].where(np.isfinite(found[name].to_numpy(float, na_value=np.nan)))
    return found


def left_out_notes(rows: pd.DataFrame) -> list[str]:
    """What a chart or table of averages leaves out, in sentences; none if that is nothing.

    Parameters
    ----------
    rows : DataFrame
        Of one metric and statistic: ``generator`` (or ``series``, what it is called there),
        ``patterns``, ``left_out`` and ``missing`` as :func:`common_rows` has it, and
        ``pattern_set`` and ``size`` where these are averaged apart.
    """
    name = "series" if "series" in rows else "generator"
    apart = [column for column in ("pattern_set", "size") if column in rows]
    # What stands side by side, such as strategies, shares its patterns.
    plain = rows.assign(every=rows["patterns"] + rows["left_out"])
    groups = plain.groupby(apart, dropna=False) if apart else plain.groupby(lambda _: 0)
    counted = groups["patterns"].max().sum()
    every = groups["every"].max().sum()
    by_group = plain.groupby([*apart, name], dropna=False, sort=False)["missing"].max()
    missing = by_group.groupby(name, sort=False).sum()
    notes = []
    if counted < every:
        notes.append(f"Over {counted:,} of {every:,} patterns: those that all compared have.")
    if missing.any():
        texts = [f"{which} {count:,}" for which, count in missing.items() if count]
        notes.append(f"Patterns missing, of {every:,}: {', '.join(texts)}.")
    empty = plain[(plain["patterns"] == 0) & (plain["missing"] > 0)]
    if len(empty):
        named = ", ".join(dict.fromkeys(empty[name]))
        notes.append(f"Not compared where more than half are missing: {named}.")
    return notes
