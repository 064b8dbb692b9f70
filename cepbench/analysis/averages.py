"""Values of patterns → averages with bootstrap intervals, of several runs over the same patterns.

The unit of observation is the pattern: intervals come from resampling patterns, so they show how far
an average would move with other patterns from the same set, and not how noisy the clock is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cepbench.analysis.common_patterns import common_rows
from cepbench.seeds import rng_for

#: Resamples of a bootstrap.
RESAMPLES = 2_000

#: Share of the resamples that an interval covers.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Statistic:
    """What becomes of the values of many patterns.

    Attributes
    ----------
    of : callable
        Takes an array of values, patterns first, and ``axis``.
    of_logs : bool
        Whether the values are logarithms, and the result is to be none.
    has_interval : bool
        False for a worst case, of which resampling says nothing: its interval is the value.
    """

    of: Callable[..., Any]
    of_logs: bool = False
    has_interval: bool = True


def geometric_mean(values: np.ndarray, axis: int | None = None) -> Any:
    """The average of ratios and of what spans powers of ten; values above zero."""
    return np.exp(np.mean(np.log(values), axis=axis))


MEAN, MEDIAN = Statistic(np.mean), Statistic(np.median)
GEOMETRIC_MEAN = Statistic(geometric_mean)
WORST_CASE = Statistic(np.max, has_interval=False)


def _numbers(rows: pd.DataFrame, metric: str) -> np.ndarray:
    return rows[metric].to_numpy(float)


def averages(
    table: pd.DataFrame,
    run: Sequence[str],
    wanted: Mapping[str, Mapping[str, Statistic]],
    *,
    group: Mapping[str, Any],
    pattern: Sequence[str] = ("pattern_id",),
    seeded_by: Sequence[str] | None = None,
    values: Callable[[pd.DataFrame, str], np.ndarray] = _numbers,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[dict[str, Any]]:
    """A row a run, metric and statistic of one group; all runs over the same patterns.

    Parameters
    ----------
    table : DataFrame
        Rows of one group; a metric is missing in those that are not to count. Its index has no
        duplicates.
    run, pattern : sequence of str
        Columns that name what is compared, and over what; see
        :func:`cepbench.analysis.common_patterns.common_rows`.
    wanted : mapping of str to mapping of str to Statistic
        Metric → name of a statistic → what it is.
    group : mapping
        Columns that all rows get, in front.
    seeded_by : sequence of str, optional
        Columns of the group or the run whose values, beside the metric's name, seed the bootstrap;
        by default those of the group. Runs that share them share their resamples.
    values : callable
        Rows that count and the metric → array of which each statistic is taken, patterns first.
    seed : int
        Of the resampling.
    resamples : int

    Returns
    -------
    list of dict
        The group's columns, the run's, ``metric``, ``statistic``, ``value``, ``low``, ``high``
        (95 % percentile bootstrap over patterns), ``patterns`` (averaged over), ``left_out`` (the
        others of the group) and ``missing`` (those among them that this run lacks and another has).
    """
    common = {
        metric: common_rows(table, table[metric].notna().to_numpy(), run, pattern)
        for metric in wanted
    }
    rows = []
    for which, part in table.groupby(list(run), sort=False):
        named = {**group, **dict(zip(run, which, strict=True))}
        seeds = [named[name] for name in (group if seeded_by is None else seeded_by)]
        for metric, statistics in wanted.items():
            its = common[metric].loc[part.index]
            counted = values(part[its["counted"]], metric)
            counts = {
                "patterns": len(counted),
                "left_out": int(its["left_out"].iloc[0]),
                "missing": int(its["missing"].iloc[0]),
            }
            for name, statistic in statistics.items():
                found = with_interval(counted, statistic, seed, resamples, *seeds, metric)
                rows.append({**named, "metric": metric, "statistic": name, **found, **counts})
    return rows


def with_interval(
    values: np.ndarray, statistic: Statistic, seed: int, resamples: int, *group: object
) -> dict[str, float]:
    """A statistic as ``value``, and its bootstrap interval as ``low`` and ``high``.

    ``group`` names what it is of, and seeds a random generator of its own: a figure does not move
    because another group was added.
    """
    value = float(statistic.of(values)) if len(values) else float("nan")
    low = high = value
    if statistic.has_interval:
        rng = rng_for(seed, repr(group))
        low, high = bootstrap(values, statistic.of, rng, resamples)
    found = {"value": value, "low": low, "high": high}
    return {name: float(np.exp(its)) for name, its in found.items()} if statistic.of_logs else found


def bootstrap(
    values: np.ndarray,
    average: Callable[..., Any],
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Percentile bootstrap interval of an average.

    Parameters
    ----------
    values : ndarray of float, shape (patterns, ...)
    average : callable
        Takes an array and ``axis``.
    rng : numpy.random.Generator
    resamples : int

    Returns
    -------
    low, high : float
        NaN if there are no values.
    """
    if not len(values):
        return float("nan"), float("nan")
    chosen = rng.integers(len(values), size=(resamples, len(values)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(average(values.take(chosen, axis=0), axis=1), [tail, 1 - tail])
    return float(low), float(high)
