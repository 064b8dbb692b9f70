"""Averages over patterns with bootstrap intervals, of several runs over the same patterns.

The unit of observation is the pattern: intervals come from resampling patterns. They show how far
an average would move with other patterns of the same set, not how noisy the clock is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import seed as valid_seed
from cepbench.arguments import whole
from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.common_patterns import common_rows
from cepbench.seeds import rng_for

#: Resamples of a bootstrap.
RESAMPLES = 2_000

#: All of them are in memory at once.
MOST_RESAMPLES = 1_000_000

#: Share of the resamples that an interval covers.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Statistic:
    """An average over patterns."""

    #: Takes an array of values, patterns first, and ``axis``.
    of: Callable[..., Any]
    #: Whether the values are logarithms; the result is not.
    of_logs: bool = False
    #: False for a worst case, of which resampling says nothing; its interval is the value.
    has_interval: bool = True


def geometric_mean(values: np.ndarray, axis: int | None = None) -> Any:
    """Geometric mean, for ratios and values over several powers of ten; values above zero."""
    return np.exp(np.mean(np.log(values), axis=axis))


def median(values: np.ndarray, axis: int = 0) -> Any:
    """NumPy's median of numbers that are known, in a fifth of its time: a sort is quicker than its selection."""
    in_order = np.sort(values, axis=axis)
    count = in_order.shape[axis]
    upper = in_order.take(count // 2, axis=axis)
    return upper if count % 2 else (in_order.take(count // 2 - 1, axis=axis) + upper) / 2


MEAN, MEDIAN = Statistic(np.mean), Statistic(median)
GEOMETRIC_MEAN = Statistic(geometric_mean)
WORST_CASE = Statistic(np.max, has_interval=False)


def _numbers(rows: pd.DataFrame, metric: str) -> np.ndarray:
    return rows[metric].to_numpy(float)


def resampling_from(seed: Any, resamples: Any) -> tuple[int, int]:
    """The seed and the number of resamples of a bootstrap, or an ExperimentError."""
    return (
        valid_seed(seed, ExperimentError),
        whole(resamples, "resamples", ExperimentError, least=1, most=MOST_RESAMPLES),
    )


def averages(
    groups: Iterable[tuple[Mapping[str, Any], pd.DataFrame]],
    run: Sequence[str],
    wanted: Mapping[str, Mapping[str, Statistic]],
    *,
    pattern: Sequence[str] = ("pattern_id",),
    seeded_by: Sequence[str] | None = None,
    values: Callable[[pd.DataFrame, str], np.ndarray] = _numbers,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """One row per group, run, metric and statistic; all runs of a group over the same patterns.

    Its columns: the group's, the run's, ``metric``, ``statistic``, ``value``, ``low``, ``high`` (95 %
    percentile bootstrap over patterns), ``patterns`` (averaged over), ``left_out`` (the others of the
    group) and ``missing`` (those among them that this run lacks and another has).

    Parameters
    ----------
    groups
        Columns that all rows of a group get, in front, and its rows. A metric is missing in rows
        that do not count.
    run, pattern
        Columns that name what is compared, and over what; see
        :func:`cepbench.experiments.analysis.common_patterns.common_rows`.
    wanted
        Metric → name of a statistic → statistic.
    seeded_by
        Columns of the group or the run whose values, beside the metric's name, seed the bootstrap;
        by default those of the group. Runs that share them share their resamples.
    values
        Rows that count and the metric → array of which each statistic is taken, patterns first.
    """
    rows = []
    for group, given in groups:
        table = given.reset_index(drop=True)
        # Most metrics are known in the same rows: what is common is then found once.
        masks: dict[str, bytes] = {}
        common: dict[bytes, dict[str, np.ndarray]] = {}
        for metric in wanted:
            known = table[metric].notna().to_numpy()
            mask = masks[metric] = known.tobytes()
            if mask not in common:
                its = common_rows(table, known, run, pattern)
                common[mask] = {str(name): column.to_numpy() for name, column in its.items()}
        for which, part in table[list(run)].groupby(list(run), sort=False):
            named = {**group, **dict(zip(run, which, strict=True))}
            seeds = [named[name] for name in (group if seeded_by is None else seeded_by)]
            at = part.index.to_numpy()
            counted = {mask: table.iloc[at[of["counted"][at]]] for mask, of in common.items()}
            for metric, statistics in wanted.items():
                of = common[masks[metric]]
                numbers = values(counted[masks[metric]], metric)
                counts = {
                    "patterns": len(numbers),
                    "left_out": int(of["left_out"][at[0]]),
                    "missing": int(of["missing"][at[0]]),
                }
                for name, statistic in statistics.items():
                    found = with_interval(numbers, statistic, seed, resamples, *seeds, metric)
                    rows.append({**named, "metric": metric, "statistic": name, **found, **counts})
    return pd.DataFrame(rows)


def with_interval(
    values: np.ndarray, statistic: Statistic, seed: int, resamples: int, *group: object
) -> dict[str, float]:
    """A statistic as ``value``, and its bootstrap interval as ``low`` and ``high``.

    ``group`` names what it is of, and seeds its random generator: adding a group changes no other.
    """
    value = float(statistic.of(values)) if len(values) else float("nan")
    low = high = value
    if statistic.has_interval and len(values):
        chosen = _resampled(seed, repr(group), len(values), resamples)
        low, high = interval(statistic.of(values.take(chosen, axis=0), axis=1))
    found = {"value": value, "low": low, "high": high}
    return {name: float(np.exp(its)) for name, its in found.items()} if statistic.of_logs else found


# The metrics of a run are drawn in turn, and the next run has the same resamples of each.
@lru_cache(maxsize=4)
def _resampled(seed: int, group: str, patterns: int, resamples: int) -> np.ndarray:
    return resampled(np.zeros(patterns), rng_for(seed, group), resamples)


def bootstrap(
    values: np.ndarray,
    average: Callable[..., Any],
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Percentile bootstrap interval of an average of values, patterns first; NaN if there are none."""
    if not len(values):
        return interval(values)
    chosen = resampled(np.zeros(len(values)), rng, resamples)
    return interval(average(values.take(chosen, axis=0), axis=1))


def interval(values: np.ndarray) -> tuple[float, float]:
    """Between which values of resamples an average lies; NaN if there are none."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail]) if len(values) else (np.nan, np.nan)
    return float(low), float(high)


def resampled(strata: np.ndarray, rng: np.random.Generator, resamples: int) -> np.ndarray:
    """Indices of patterns, each resampled among those of its stratum; int, shape (resamples, patterns)."""
    different = np.unique(strata)
    if len(different) == 1:
        return rng.integers(len(strata), size=(resamples, len(strata)))
    chosen = np.empty((resamples, len(strata)), dtype=np.intp)
    for stratum in different:
        own = np.flatnonzero(strata == stratum)
        chosen[:, own] = own[rng.integers(len(own), size=(resamples, len(own)))]
    return chosen
