"""A linear model of an engine's time: seconds per run, event, partial match and comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np
import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import OK

#: Term of the model → the column of the results that it multiplies, empty for a constant. Matches
#: that are only counted are not stored, so that they take no more than their comparisons.
TERMS: Mapping[str, str] = MappingProxyType(
    {
        "run": "",
        "event": "events",
        "partial match": "partial_matches_created",
        "comparison": "comparisons",
    }
)

#: Columns that name a run; its repetitions are reduced to the fastest.
_RUN = ("regime", "pattern_id", "stream", "window", "strategy", "evaluator", "options", "plan")


@dataclass(frozen=True)
class TimeModel:
    """``seconds = Σ coefficient · count`` over the terms of :data:`TERMS`."""

    #: The engine.
    evaluator: str
    #: Term → seconds for one.
    coefficients: Mapping[str, float]
    #: Runs that it was fitted to.
    rows: int
    #: Median of the unsigned relative error of the prediction over these.
    error: float

    def seconds(self, runs: pd.DataFrame) -> np.ndarray:
        """The time that each run, with the columns of :data:`TERMS`, is predicted to take, shape (n,)."""
        each = [self.coefficients[term] for term in TERMS]
        return np.asarray(_counts(runs) @ np.array(each))

    def with_dearer(self, term: str, times: float) -> TimeModel:
        """The model of an engine that needs ``times`` as long for one of a term."""
        changed = {**self.coefficients, term: times * self.coefficients[term]}
        return TimeModel(self.evaluator, changed, self.rows, self.error)

    def describe(self) -> str:
        """Time of each term, and how far the model is off."""
        terms = [
            f"{1e6 * each:.3g} µs per {term}" if each >= 1e-6 else f"{1e9 * each:.3g} ns per {term}"
            for term, each in self.coefficients.items()
        ]
        return (
            f"{self.evaluator}: {', '.join(terms)}; median error {self.error:.0%} of "
            f"{self.rows:,} runs"
        )


def fastest_runs(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of the fastest repetition of each run that ended well, without those of equal plans."""
    ran = results[(results["status"] == OK) & results["measured_with"].isna()]
    kept = [name for name in _RUN if name in ran]
    return ran.sort_values("seconds", kind="stable").drop_duplicates(kept).sort_index()


def fit_time_model(results: pd.DataFrame, evaluator: str) -> TimeModel:
    """Fit the time of an engine by non-negative least squares of the relative errors.

    Absolute errors would be those of the few longest runs alone. An ExperimentError if fewer runs
    ended well than the model has terms.
    """
    runs = fastest_runs(results[results["evaluator"] == evaluator])
    counts = _counts(runs)
    seconds = runs["seconds"].to_numpy(float)
    usable = np.isfinite(counts).all(axis=1) & (seconds > 0)
    counts, seconds = counts[usable], seconds[usable]
    if len(seconds) < len(TERMS):
        raise ExperimentError(
            f"{len(seconds)} runs of {evaluator} ended well with all of their counts; a time model "
            f"needs at least {len(TERMS)}: measure more patterns"
        )
    # Columns of one length, as counts of comparisons are millions of times those of events.
    relative = counts / seconds[:, None]
    lengths = np.linalg.norm(relative, axis=0)
    lengths[lengths == 0] = 1.0
    each = _nonnegative(relative / lengths) / lengths
    error = float(np.median(np.abs(counts @ each / seconds - 1.0)))
    coefficients = dict(zip(TERMS, map(float, each), strict=True))
    return TimeModel(evaluator, coefficients, len(seconds), error)


def _counts(runs: pd.DataFrame) -> np.ndarray:
    """The count of each term, float of shape (runs, terms)."""
    one = np.ones(len(runs))
    return np.column_stack(
        [runs[name].to_numpy(float, na_value=np.nan) if name else one for name in TERMS.values()]
    )


def _nonnegative(columns: np.ndarray) -> np.ndarray:
    """Weights, shape (k,), none negative, that bring the sum of columns of shape (n, k) closest to ones.

    The best weights are those of an unconstrained fit over the columns that they use, and of so
    few columns every selection can be tried.
    """
    size = columns.shape[1]
    best, least = np.zeros(size), np.inf
    for used in (each for k in range(1, size + 1) for each in combinations(range(size), k)):
        weights = np.zeros(size)
        weights[list(used)] = np.linalg.lstsq(columns[:, used], np.ones(len(columns)))[0]
        distance = float(((columns @ weights - 1.0) ** 2).sum())
        if (weights >= 0).all() and distance < least:
            best, least = weights, distance
    return best
