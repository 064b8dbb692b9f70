"""Whether two tables of values agree."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cepbench.patterns.model import Pattern

#: Floats may differ by this share of the largest value: sums are taken in another order.
_TOLERANCE = 1e-9


def difference(found: pd.DataFrame, expected: pd.DataFrame, pattern: Pattern) -> str | None:
    """The first difference between two tables of values, in words; None if there is none.

    They are those of one pattern; the order of the groups of an event does not matter.
    """
    names = [str(each) for each in pattern.aggregates]
    keys = [name for name in expected.columns.tolist() if name not in names]
    one = found.sort_values(keys, kind="stable", ignore_index=True)
    two = expected.sort_values(keys, kind="stable", ignore_index=True)
    least = min(len(one), len(two))
    differs = np.zeros(least, bool)
    for name in expected:
        differs |= ~_equal(one[name][:least], two[name][:least])
    if differs.any():
        row = int(differs.argmax())
        return f"{_shown(one, row)}, and it should be {_shown(two, row)}"
    if len(one) > least:
        return f"{_shown(one, least)} is one value too many"
    if len(two) > least:
        return f"{_shown(two, least)} is missing"
    return None


def _equal(one: pd.Series, two: pd.Series) -> np.ndarray:
    missing = one.isna().to_numpy()
    if one.dtype.kind == two.dtype.kind == "f":
        size = np.abs(two[np.isfinite(two)]).max() if np.isfinite(two).any() else 0.0
        return np.isclose(one, two, rtol=_TOLERANCE, atol=_TOLERANCE * size, equal_nan=True)
    both = missing & two.isna().to_numpy()
    return both | (one.astype(object) == two.astype(object)).to_numpy()


def _shown(frame: pd.DataFrame, row: int) -> str:
    return ", ".join(f"{name} = {value}" for name, value in frame.iloc[row].items())
