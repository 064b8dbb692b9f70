"""Rank correlation and fitted power law between the cost of plans and a metric of their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cepbench.experiments.analysis.averages import RESAMPLES, interval, resampled

_STATISTICS = ("spearman", "exponent", "intercept")


def cost_fit(
    points: pd.DataFrame,
    metric: str = "events_per_second",
    by: Sequence[str] = ("plan_kind",),
    *,
    fixed: str = "",
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """How well cost predicts performance: rank correlation, and the exponent of a power law.

    ``points`` has a row a plan: the columns of ``by``, whose values are fitted apart, ``pattern_id``,
    ``log_cost`` and the metric, ``events_per_second``, ``peak_bytes`` or ``peak_partial_matches``. Of
    the values of a column ``fixed`` every resample has as many patterns as there are.

    One row a kind of plan: ``by``, ``metric``; ``spearman``; ``exponent`` and ``intercept`` of
    ``ln(metric) = intercept + exponent · ln(cost)`` by least squares, each with ``…_low`` and
    ``…_high`` (95 % percentile bootstrap over patterns, whose plans go together); ``points``,
    ``patterns`` and ``left_out``, points whose metric is 0.

    Source: [kolchinsky2018]_, section 6.3, Figure 6.
    """
    rows = []
    for key, group in points.groupby(list(by), sort=True):
        usable = group[group[metric] > 0]
        logs = usable[["log_cost", metric]].to_numpy(float)
        logs[:, 1] = np.log(logs[:, 1])
        of_pattern, patterns = pd.factorize(usable["pattern_id"])
        row: dict[str, Any] = {**dict(zip(by, key, strict=True)), "metric": metric}
        (estimates,) = _fits(logs, np.ones((1, len(logs))))
        strata = usable.groupby(of_pattern)[fixed].first() if fixed else np.zeros(len(patterns))
        drawn = _times_drawn(np.asarray(strata), np.random.default_rng(seed), resamples)
        spread = _fits(logs, drawn[:, of_pattern])
        for k, name in enumerate(_STATISTICS):
            low, high = interval(spread[:, k][~np.isnan(spread[:, k])])
            row |= {name: estimates[k], f"{name}_low": low, f"{name}_high": high}
        row |= {"points": len(usable), "patterns": len(patterns)}
        rows.append({**row, "left_out": len(group) - len(usable)})
    return pd.DataFrame(rows)


def _times_drawn(strata: np.ndarray, rng: np.random.Generator, resamples: int) -> np.ndarray:
    """How often each pattern is in each resample, int of shape (resamples, patterns)."""
    count = len(strata)
    chosen = resampled(strata, rng, resamples) + count * np.arange(resamples)[:, None]
    return np.bincount(chosen.ravel(), minlength=resamples * count).reshape(resamples, count)


def _fits(logs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation, slope and intercept of each resample, shape (resamples, 3).

    Of logarithms of cost and value, shape (points, 2); a resample has each point as often as
    ``weights``, of shape (resamples, points), says. NaN where all costs of a resample are the same, and no
    correlation where all values are.
    """
    if not len(logs):
        return np.full((len(weights), len(_STATISTICS)), np.nan)
    cost, value = (np.broadcast_to(column, weights.shape) for column in logs.T)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = _covariance(cost, value, weights) / _covariance(cost, cost, weights)
        intercept = _mean(value, weights) - slope * _mean(cost, weights)
        of_cost, of_value = (_ranks(column, weights) for column in logs.T)
        spread = _covariance(of_cost, of_cost, weights) * _covariance(of_value, of_value, weights)
        spearman = _covariance(of_cost, of_value, weights) / np.sqrt(spread)
    fits = np.stack([spearman, slope, intercept], axis=1)
    fits[~_varies(logs[:, 0], weights)] = np.nan
    fits[~_varies(logs[:, 1], weights), 0] = np.nan
    return fits


def _mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (values * weights).sum(axis=1) / weights.sum(axis=1)


def _covariance(one: np.ndarray, other: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sums of products of deviations, shape (resamples,)."""
    deviations = [each - _mean(each, weights)[:, None] for each in (one, other)]
    return (deviations[0] * deviations[1] * weights).sum(axis=1)


def _ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Ranks in each resample, shape (resamples, points); equal values share the mean of theirs."""
    _, place = np.unique(values, return_inverse=True)
    rising = np.argsort(place, kind="stable")  # sums of neighbours are quicker than of places
    begins = np.flatnonzero(np.diff(place[rising], prepend=-1))
    counts = np.add.reduceat(weights[:, rising].astype(float), begins, axis=1)
    return np.asarray((np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, place])


def _varies(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Whether a resample has two different values, shape (resamples,)."""
    highest = np.where(weights > 0, values, -np.inf).max(axis=1)
    return highest > np.where(weights > 0, values, np.inf).min(axis=1)
