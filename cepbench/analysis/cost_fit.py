"""Rank correlation and fitted power law between the cost of plans and a metric of their runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from cepbench.analysis.averages import CONFIDENCE, RESAMPLES

_STATISTICS = ("spearman", "exponent", "intercept")


def cost_fit(
    points: pd.DataFrame,
    metric: str = "events_per_second",
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """How well cost predicts performance: rank correlation, and the exponent of a power law.

    Parameters
    ----------
    points : DataFrame
        A row a plan: ``plan_kind``, ``pattern_id``, ``log_cost`` and the metric.
    metric : str
        ``events_per_second``, ``peak_bytes`` or ``peak_partial_matches``.
    seed : int
        Of the resampling.
    resamples : int

    Returns
    -------
    DataFrame
        One row a kind of plan: ``plan_kind``, ``metric``; ``spearman``; ``exponent`` and
        ``intercept`` of ``ln(metric) = intercept + exponent · ln(cost)`` by least squares, each
        with ``…_low`` and ``…_high`` (95 % percentile bootstrap over patterns, whose plans go
        together); ``points``, ``patterns`` and ``left_out``, points whose metric is 0.

    Notes
    -----
    Source: [kolchinsky2018]_, section 6.3, Figure 6.
    """
    rows = []
    for kind, group in points.groupby("plan_kind", sort=True):
        usable = group[group[metric] > 0]
        logs = usable[["log_cost", metric]].to_numpy(float)
        logs[:, 1] = np.log(logs[:, 1])
        of_pattern, patterns = pd.factorize(usable["pattern_id"])
        members = [np.flatnonzero(of_pattern == k) for k in range(len(patterns))]
        row: dict[str, Any] = {"plan_kind": kind, "metric": metric}
        estimates = _fit(logs)
        spread = np.array(list(_resampled(logs, members, seed, resamples))).reshape(-1, 3)
        tail = (1 - CONFIDENCE) / 2
        for k, name in enumerate(_STATISTICS):
            usual = spread[:, k][~np.isnan(spread[:, k])]
            low, high = np.quantile(usual, [tail, 1 - tail]) if len(usual) else (np.nan, np.nan)
            row |= {name: estimates[k], f"{name}_low": low, f"{name}_high": high}
        row |= {"points": len(usable), "patterns": len(members)}
        rows.append({**row, "left_out": len(group) - len(usable)})
    return pd.DataFrame(rows)


def _fit(logs: np.ndarray) -> tuple[float, float, float]:
    """Spearman's rank correlation, slope and intercept; NaN where all costs are the same."""
    if len(logs) < 2 or np.ptp(logs[:, 0]) == 0:
        return (float("nan"),) * 3
    cost, value = logs[:, 0], logs[:, 1]
    centred = cost - cost.mean()
    slope = float(centred @ value / (centred @ centred))
    varies = np.ptp(value) > 0
    spearman = float(np.corrcoef(_ranks(cost), _ranks(value))[0, 1]) if varies else float("nan")
    return spearman, slope, float(value.mean() - slope * cost.mean())


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, equal values sharing the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])


def _resampled(
    logs: np.ndarray, members: list[np.ndarray], seed: int, resamples: int
) -> Iterator[tuple[float, float, float]]:
    rng = np.random.default_rng(seed)
    for _ in range(resamples if members else 0):
        picked = rng.integers(len(members), size=len(members))
        yield _fit(logs[np.concatenate([members[k] for k in picked])])
