"""Changes between two sweeps that all runs of a pattern share: those of machine or engine.

All runs of one pattern take turns within a sweep, so a machine that is slower while a pattern is
measured is slower for all of them. The steadiest half of the runs, those whose change is nearest to
the median of all, estimates by how much. They are chosen over all patterns, since the noise of a
single pattern would bias its median away from a run that changed.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

#: With fewer runs it is unknown which of them changed.
LEAST_RUNS = 3


def common_change(patterns: np.ndarray, runs: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """For each pattern and run, the mean change of the steadiest half of the *other* runs.

    All arrays have the shape (n,): the numbers of the pattern and the run of each change, no pattern
    with a run twice, and its ``logs``, logarithms of second / first, NaN where there is none. The
    result is NaN everywhere if there are fewer than :data:`LEAST_RUNS` runs, and for patterns without
    a change in another of the steadiest runs.
    """
    wide = pd.DataFrame({"pattern": patterns, "run": runs, "log": logs}).pivot(
        index="pattern", columns="run", values="log"
    )
    wide = wide.dropna(axis="columns", how="all")
    if wide.shape[1] < LEAST_RUNS:
        return np.full(len(logs), np.nan)
    # Relative to the pattern's median: the patterns that a run lacks may be the slowed down ones.
    centres = wide.sub(wide.median(axis="columns"), axis="index").median()
    far = (centres - centres.median()).abs().sort_values(kind="stable")
    steady = wide[far.index[: math.ceil(len(far) / 2)]]
    sums, counts = (
        steady.sum(axis="columns").loc[patterns],
        steady.count(axis="columns").loc[patterns],
    )
    own = np.isin(runs, steady.columns) & ~np.isnan(logs)
    others = counts.to_numpy() - own
    total = sums.to_numpy() - np.where(own, logs, 0.0)
    return np.where(others > 0, total / np.maximum(others, 1), np.nan)
