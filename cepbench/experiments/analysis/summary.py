"""Results table → summary tables: averages and paired ratios with bootstrap intervals.

Repetitions of one cell are first reduced to their median, since the unit of observation is the
pattern; see :mod:`cepbench.experiments.analysis.averages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import choice, shown, texts
from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.averages import (
    MEAN,
    MEDIAN,
    RESAMPLES,
    Statistic,
    averages,
    median,
    resampling_from,
)
from cepbench.experiments.sweeps.cells import LIMIT, METRICS, OK, as_measured

#: Metrics that are quotients of two columns: how much work a plan has does not depend on a clock.
_QUOTIENTS = {"partial_matches_per_event": ("partial_matches_created", "events")}
#: Columns of the results table that can be summarised, and metrics made of them.
SUMMARY_METRICS = (*METRICS, *_QUOTIENTS, "plan_seconds", "plan_cost", "plan_log_cost")

#: Columns that name a pattern.
PATTERN = ["pattern_set", "size", "pattern_id"]
#: Columns that name a run: what was planned and how it was executed.
RUN = ["generator", "plan_kind", "evaluator", "strategy", "alpha"]
#: Columns that name it besides where a sweep varies them.
VARIED = ("stream", "regime", "window", "options", "output")
#: Columns of an average: see :func:`cepbench.experiments.analysis.averages.averages`.
ESTIMATE = ("statistic", "value", "low", "high", "patterns", "left_out")
#: All runs of a generator.
NO_CHOICE: Mapping[str, Any] = MappingProxyType({})
#: Columns by which runs of one generator are chosen, beside :data:`VARIED`.
_CHOICES = ("evaluator", "strategy", "alpha")
_GROUPED_BY = ("pattern_set", *VARIED, "strategy", "alpha", "size")
_AVERAGES = {"mean": MEAN, "median": MEDIAN}
_RATIOS = {
    "geometric mean": Statistic(np.mean, of_logs=True),
    "median": Statistic(median, of_logs=True),
}


def runs_of(*results: pd.DataFrame) -> list[str]:
    """Columns that name a run in these tables: :data:`RUN`, and of :data:`VARIED` what they vary."""
    values = {
        name: {value for table in results if name in table for value in table[name].unique()}
        for name in VARIED
    }
    return [*RUN, *(name for name in VARIED if len(values[name]) > 1)]


def summarize(
    results: pd.DataFrame,
    metrics: Sequence[str] = ("events_per_second", "peak_bytes"),
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Averages over patterns, per pattern set and size and per pattern set.

    All generators of a group are averaged over the same patterns: those on which all repetitions
    of all of them ended well. A generator that did not end well on more than half of them has no
    average, and takes no pattern from the others; see
    :func:`cepbench.experiments.analysis.common_patterns.common_rows`.

    Parameters
    ----------
    metrics : sequence of str
        Of :data:`SUMMARY_METRICS`.

    Returns
    -------
    DataFrame
        As :func:`cepbench.experiments.analysis.averages.averages` returns it, by ``pattern_set``,
        ``size`` (missing: all sizes), :data:`RUN`, and :data:`VARIED` where they vary; mean and
        median. Order: sets and generators as in ``results``, sizes ascending.

    Raises
    ------
    ExperimentError
        If a metric is unknown.
    """
    results = as_measured(results)
    metrics = texts(metrics, "metrics", ExperimentError)
    seed, resamples = resampling_from(seed, resamples)
    run = runs_of(results)
    # Regimes have different patterns, so that runs of one are not compared with runs of another.
    outer = ["pattern_set", *(["regime"] if "regime" in run else [])]
    groups = groups_of(per_pattern(results, metrics), [*outer, "size"])
    run = [name for name in run if name not in outer]
    found = averages(
        groups, run, dict.fromkeys(metrics, _AVERAGES), pattern=["size", "pattern_id"], seed=seed,
        resamples=resamples,
    )  # fmt: skip
    return with_columns(found, [*outer, "size", *run, "metric", *ESTIMATE, "missing"])


def paired_ratios(
    results: pd.DataFrame,
    metric: str,
    generator: str,
    baseline: str,
    by: Sequence[str] = ("pattern_set", "size"),
    *,
    run: Mapping[str, Any] = NO_CHOICE,
    baseline_run: Mapping[str, Any] = NO_CHOICE,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """How many times larger ``metric`` is with ``generator`` than with ``baseline``, per pattern.

    A run that ended at the limit of partial matches has bounds (see
    :data:`cepbench.experiments.sweeps.cells.LIMIT`): the ratio to one that ended well is then a bound too, and
    counts as such, since the patterns on which plans differ most are of this kind. Patterns on
    which both ended at the limit or either failed, or whose value is not above zero, are left out
    and counted.

    Parameters
    ----------
    metric : str
        Of :data:`SUMMARY_METRICS`.
    generator, baseline : str
        Two plan generators; or one, with two evaluators, strategies or weights of latency.
    by : sequence of str
        Some of ``pattern_set``, ``stream``, ``regime``, ``window``, ``options``, ``output``,
        ``strategy``, ``alpha`` and ``size``; with ``size``, a row with missing size over all sizes comes last.
        What varies of stream, regime, window, options and output must be among them or in ``run``.
    run, baseline_run : mapping of str to value
        Which runs to take where the plans of a generator ran more than once and are not grouped:
        ``evaluator``, ``strategy``, ``alpha``, ``stream``, ``regime``, ``window``, ``options`` or
        ``output`` → value. The
        baseline takes those of ``run``, except for the evaluator, unless ``baseline_run`` names
        others.

    Returns
    -------
    DataFrame
        As :func:`cepbench.experiments.analysis.averages.averages` returns it, geometric mean and median,
        with ``generator``, ``baseline`` and ``bounds`` (those of the patterns whose ratio is a bound).

    Raises
    ------
    ExperimentError
        If the metric, a generator or a column in ``by`` is unknown, or a run must be chosen.
    """
    by = texts(by, "by", ExperimentError)
    seed, resamples = resampling_from(seed, resamples)
    pairs = log_ratios(
        results, metric, generator, baseline, by, run=run, baseline_run=baseline_run
    ).assign(generator=generator, baseline=baseline)
    groups = [*groups_of(pairs.rename(columns={"log_ratio": metric}), by)]
    found = averages(
        groups, ["generator", "baseline"], {metric: _RATIOS}, pattern=PATTERN, seed=seed,
        resamples=resamples,
    )  # fmt: skip
    found["bounds"] = np.repeat([int(group["bound"].sum()) for _, group in groups], len(_RATIOS))
    return with_columns(found, [*by, "metric", "generator", "baseline", *ESTIMATE, "bounds"])


def log_ratios(
    results: pd.DataFrame,
    metric: str,
    generator: str,
    baseline: str,
    by: Sequence[str] = ("pattern_set", "size"),
    *,
    run: Mapping[str, Any] = NO_CHOICE,
    baseline_run: Mapping[str, Any] = NO_CHOICE,
) -> pd.DataFrame:
    """The logarithm of each pattern's ratio, of which :func:`paired_ratios`, whose parameters these are, takes averages.

    One row per pattern (and stream, window, options, output, strategy or weight of latency, if in
    ``by``): ``pattern_set``, ``size``, ``pattern_id``, those columns, ``log_ratio``, missing where
    there is none, and ``bound``, whether it is a bound of the ratio.
    """
    results = as_measured(results)
    for column in by:
        choice(column, "by", _GROUPED_BY, ExperimentError)
    for name, chosen in {"run": run, "baseline_run": baseline_run}.items():
        if not isinstance(chosen, Mapping):
            raise ExperimentError(
                f"{name} must be a mapping such as {{'evaluator': 'tree'}}, not {shown(chosen)}"
            )
    varied = [
        name for name in VARIED if name in {*by, *run, *baseline_run} or name in runs_of(results)
    ]
    observed = per_pattern(results, [metric], [*RUN, *varied], bounds=True)
    shared = {name: value for name, value in run.items() if name != "evaluator"}
    above = _of_run(observed, generator, run, by)
    below = _of_run(observed, baseline, {**shared, **baseline_run}, by)
    grouped = [name for name in (*VARIED, "strategy", "alpha") if name in by]
    identity = [*PATTERN, *grouped]
    pairs = above[[*identity, metric, "bound"]].merge(
        below[[*identity, metric, "bound"]], on=identity, how="outer", suffixes=("", "_of_baseline")
    )
    pairs["log_ratio"] = log_quotients(
        pairs[metric].to_numpy(float), pairs[f"{metric}_of_baseline"].to_numpy(float)
    )
    bounds = pairs[["bound", "bound_of_baseline"]].eq(True)
    pairs.loc[bounds.all(axis=1), "log_ratio"] = np.nan
    pairs["bound"] = bounds.any(axis=1) & pairs["log_ratio"].notna()
    for name in reversed(["pattern_set", *grouped]):
        pairs = in_order_of(results[name].unique(), pairs, name)
    return pairs[[*identity, "log_ratio", "bound"]].reset_index(drop=True)


def per_pattern(
    results: pd.DataFrame,
    metrics: Sequence[str],
    run: Sequence[str] | None = None,
    *,
    bounds: bool = False,
) -> pd.DataFrame:
    """One row a pattern and run: medians over repetitions.

    Columns are ``pattern_set``, ``size``, ``pattern_id``, those that name a ``run``, by default those
    of :func:`runs_of`, and the metrics, which are missing unless every repetition ended well.

    With ``bounds``, what runs that ended at the limit of partial matches are known to exceed or to
    stay below is kept, and there is ``bound``, whether a repetition ended there.
    """
    for metric in metrics:
        choice(metric, "a metric", SUMMARY_METRICS, ExperimentError)
    columns = [*PATTERN, *(runs_of(results) if run is None else run)]
    plain = results[columns].assign(
        ended_well=(results["status"] == OK).to_numpy(bool),
        limited=(results["status"] == LIMIT).to_numpy(bool),
        **{metric: _values_of(results, metric) for metric in metrics},
    )
    cells = plain.groupby(columns, sort=False)
    medians = cells[list(metrics)].median()
    if not bounds:
        medians[~cells["ended_well"].all()] = np.nan
        return medians.reset_index()
    medians[cells["ended_well"].sum() + cells["limited"].sum() < cells.size()] = np.nan
    for metric in metrics:  # of some, such as bytes, a run at the limit tells no bound
        unbounded = plain["limited"] & plain[metric].isna()
        of_cells = unbounded.groupby([plain[name] for name in columns], sort=False).any()
        medians.loc[of_cells, metric] = np.nan
    medians["bound"] = cells["limited"].any()
    return medians.reset_index()


def _values_of(results: pd.DataFrame, metric: str) -> np.ndarray:
    """A metric of each run, float of shape (rows,); NaN where it is missing."""
    columns = _QUOTIENTS.get(metric, (metric,))
    over, *under = (results[name].to_numpy(float, na_value=np.nan) for name in columns)
    for each in under:
        over = np.divide(over, each, out=np.full(len(over), np.nan), where=each > 0)
    return over


def log_quotients(over: np.ndarray, under: np.ndarray) -> np.ndarray:
    """ln(over / under) of n pairs; NaN where one of the two is missing or not above zero."""
    usable = (over > 0) & (under > 0)
    quotients = np.divide(over, under, out=np.full(len(over), np.nan), where=usable)
    return np.log(quotients)


def groups_of(
    table: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Groups of rows by ``by`` with their keys; after the sizes comes one group of all sizes."""
    outer = [name for name in by if name != "size"]
    groups: Iterable[tuple[dict[str, Any], pd.DataFrame]] = [({}, table)]
    if outer:
        groups = (
            (dict(zip(outer, key, strict=True)), part)
            for key, part in table.groupby(outer, sort=False)
        )
    for key, part in groups:
        if "size" in by:
            for size in sorted(part["size"].unique()):
                yield {**key, "size": int(size)}, part[part["size"] == size]
            key["size"] = pd.NA
        yield key, part


def in_order_of(values: Iterable[Any], table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows sorted by a column's place among ``values``; a merge sorts by name."""
    order = {value: rank for rank, value in enumerate(values)}
    return table.sort_values(name, key=lambda column: column.map(order), kind="stable")


def _of_run(
    observed: pd.DataFrame, generator: str, chosen: Mapping[str, Any], by: Sequence[str]
) -> pd.DataFrame:
    """The rows of one generator, narrowed until no pattern has two of them in one group."""
    known = list(observed["generator"].unique())
    choice(generator, "the plan generator, of those in the results,", known, ExperimentError)
    runs = observed[observed["generator"] == generator]
    for name in chosen:
        choice(name, "a key that chooses a run", (*_CHOICES, *VARIED), ExperimentError)
    for name in (*_CHOICES, *(name for name in VARIED if name in runs)):
        ran = list(runs[name].unique())
        listed = [str(each) for each in ran]
        if name in chosen:
            if chosen[name] not in ran:
                raise ExperimentError(
                    f"{generator} did not run in {name} {chosen[name]!r}, only in {', '.join(listed)}"
                )
            runs = runs[runs[name] == chosen[name]]
        elif len(ran) > 1 and name not in by:
            raise ExperimentError(
                f"{generator} ran in {' and '.join(listed)}; choose one {name} by run= or "
                f"baseline_run=, or name {name!r} in by"
            )
    return runs


def with_columns(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The table with these columns alone; sizes are integers, also where some are missing."""
    found = table.reindex(columns=list(columns))
    return found.astype({"size": "Int64"}) if "size" in columns else found
