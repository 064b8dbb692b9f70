"""Results table → summary tables: averages and paired ratios with bootstrap intervals.

Repetitions of one cell are first reduced to their median, since the unit of observation is the
pattern; see :mod:`cepbench.analysis.averages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cepbench.analysis.averages import MEAN, MEDIAN, RESAMPLES, Statistic, averages, with_interval
from cepbench.errors import ExperimentError
from cepbench.sweeps.cells import METRICS, OK

#: Columns of the results table that can be summarised.
SUMMARY_METRICS = (*METRICS, "plan_seconds", "plan_cost", "plan_log_cost")

#: Columns that name a run: what was planned and how it was executed.
RUN = ["generator", "plan_kind", "evaluator", "strategy", "alpha"]
#: Columns that name it besides where a sweep varies them.
VARIED = ("stream", "regime", "window", "options")
_GROUPED_BY = ("pattern_set", *VARIED, "strategy", "alpha", "size")
_AVERAGES = {"mean": MEAN, "median": MEDIAN}
_RATIOS = {
    "geometric mean": Statistic(np.mean, of_logs=True),
    "median": Statistic(np.median, of_logs=True),
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
    :func:`cepbench.analysis.common_patterns.common_rows`.

    Parameters
    ----------
    results : DataFrame
        As :func:`cepbench.sweeps.store.read_results` returns it.
    metrics : sequence of str
        Of :data:`SUMMARY_METRICS`.
    seed : int
        Of the resampling.
    resamples : int

    Returns
    -------
    DataFrame
        Columns ``pattern_set``, ``size`` (missing: all sizes), ``generator``, ``plan_kind``,
        ``evaluator``, ``strategy``, ``alpha``, where they vary ``stream``, ``window`` and
        ``options``, ``metric``, ``statistic`` (mean or median),
        ``value``, ``low``, ``high`` (95 % percentile bootstrap), ``patterns`` (averaged over),
        ``left_out`` (the others of the group) and ``missing`` (those among them that this
        generator lacks and another has). Order: sets and generators as in ``results``, sizes
        ascending.

    Raises
    ------
    ExperimentError
        If a metric is unknown.
    """
    observed, run = per_pattern(results, metrics), runs_of(results)
    rows = []
    for key, group in groups_of(observed, ["pattern_set", "size"]):
        rows += averages(
            group, run, dict.fromkeys(metrics, _AVERAGES), group=key,
            pattern=["size", "pattern_id"], seed=seed, resamples=resamples,
        )  # fmt: skip
    columns = ["pattern_set", "size", *run, "metric", "statistic", "value", "low", "high"]
    return typed(rows, [*columns, "patterns", "left_out", "missing"])


def paired_ratios(
    results: pd.DataFrame,
    metric: str,
    generator: str,
    baseline: str,
    by: Sequence[str] = ("pattern_set", "size"),
    *,
    evaluator: str | None = None,
    baseline_evaluator: str | None = None,
    strategy: str | None = None,
    baseline_strategy: str | None = None,
    alpha: float | None = None,
    baseline_alpha: float | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """How many times larger ``metric`` is with ``generator`` than with ``baseline``, per pattern.

    Patterns on which either side did not end well, or whose value is not above zero, are left
    out and counted.

    Parameters
    ----------
    results : DataFrame
        As :func:`cepbench.sweeps.store.read_results` returns it.
    metric : str
        Of :data:`SUMMARY_METRICS`.
    generator, baseline : str
        Two plan generators; or one, with two evaluators, strategies or weights of latency.
    by : sequence of str
        Some of ``pattern_set``, ``stream``, ``window``, ``options``, ``strategy``, ``alpha`` and
        ``size``; with ``size``, a row with missing size over all sizes comes last. What varies of
        stream, window and options must be among them.
    evaluator, baseline_evaluator : str, optional
        Which runs to take if a generator's plans ran in several evaluators.
    strategy, baseline_strategy : str, optional
        Which if they ran under several strategies, unless grouped by them. The baseline's is by
        default the same.
    alpha, baseline_alpha : float, optional
        Likewise for weights of latency.
    seed : int
        Of the resampling.
    resamples : int

    Returns
    -------
    DataFrame
        Columns ``by``, ``metric``, ``generator``, ``baseline``, ``statistic`` (geometric mean or
        median), ``value``, ``low``, ``high`` (95 % percentile bootstrap over patterns),
        ``patterns``, ``left_out``.

    Raises
    ------
    ExperimentError
        If the metric, a generator or a column in ``by`` is unknown, or an evaluator must be named.
    """
    pairs = log_ratios(
        results, metric, generator, baseline, by, evaluator=evaluator,
        baseline_evaluator=baseline_evaluator, strategy=strategy,
        baseline_strategy=baseline_strategy, alpha=alpha, baseline_alpha=baseline_alpha,
    )  # fmt: skip
    rows = []
    for key, group in groups_of(pairs, by):
        logs = group["log_ratio"].to_numpy(float)
        logs = logs[~np.isnan(logs)]
        named = {**key, "metric": metric, "generator": generator, "baseline": baseline}
        counts = {"patterns": len(logs), "left_out": len(group) - len(logs)}
        for name, statistic in _RATIOS.items():
            found = with_interval(logs, statistic, seed, resamples, *key.values(), metric)
            rows.append({**named, "statistic": name, **found, **counts})
    columns = [*by, "metric", "generator", "baseline", "statistic", "value", "low", "high"]
    return typed(rows, [*columns, "patterns", "left_out"])


def log_ratios(
    results: pd.DataFrame,
    metric: str,
    generator: str,
    baseline: str,
    by: Sequence[str] = ("pattern_set", "size"),
    *,
    evaluator: str | None = None,
    baseline_evaluator: str | None = None,
    strategy: str | None = None,
    baseline_strategy: str | None = None,
    alpha: float | None = None,
    baseline_alpha: float | None = None,
) -> pd.DataFrame:
    """The logarithm of each pattern's ratio, of which :func:`paired_ratios` takes averages.

    Parameters
    ----------
    results, metric, generator, baseline, by
        As there, as are the others.

    Returns
    -------
    DataFrame
        One row a pattern (and stream, window, options, strategy or weight of latency, if in
        ``by``): ``pattern_set``, ``size``, ``pattern_id``, those columns, and ``log_ratio``,
        missing where there is none.
    """
    unknown = [column for column in by if column not in _GROUPED_BY]
    if unknown:
        raise ExperimentError(f"cannot group by {unknown[0]!r}; group by {', '.join(_GROUPED_BY)}")
    run = [*RUN, *(name for name in VARIED if name in by or name in runs_of(results))]
    observed = per_pattern(results, [metric], run)
    chosen = {"evaluator": evaluator, "strategy": strategy, "alpha": alpha}
    of_baseline = {
        "evaluator": baseline_evaluator,
        "strategy": strategy if baseline_strategy is None else baseline_strategy,
        "alpha": alpha if baseline_alpha is None else baseline_alpha,
    }
    above = _of_run(observed, generator, chosen, by)
    below = _of_run(observed, baseline, of_baseline, by)
    grouped = [name for name in (*VARIED, "strategy", "alpha") if name in by]
    identity = ["pattern_set", "size", "pattern_id", *grouped]
    pairs = above[[*identity, metric]].merge(
        below[[*identity, metric]], on=identity, how="outer", suffixes=("", "_of_baseline")
    )
    pairs["log_ratio"] = log_quotients(
        pairs[metric].to_numpy(float), pairs[f"{metric}_of_baseline"].to_numpy(float)
    )
    for name in reversed(["pattern_set", *grouped]):
        pairs = in_order_of(results[name].unique(), pairs, name)
    return pairs[[*identity, "log_ratio"]]


def per_pattern(
    results: pd.DataFrame, metrics: Sequence[str], run: Sequence[str] | None = None
) -> pd.DataFrame:
    """One row a pattern and run: medians over repetitions.

    Parameters
    ----------
    results : DataFrame
    metrics : sequence of str
    run : sequence of str, optional
        Columns that name a run; by default those of :func:`runs_of`.

    Returns
    -------
    DataFrame
        Columns ``pattern_set``, ``size``, ``pattern_id``, those of the run, and the metrics, which
        are missing unless every repetition ended well.
    """
    unknown = [metric for metric in metrics if metric not in SUMMARY_METRICS]
    if unknown:
        raise ExperimentError(
            f"unknown metric {unknown[0]!r}; there are {', '.join(SUMMARY_METRICS)}"
        )
    columns = ["pattern_set", "size", "pattern_id", *(runs_of(results) if run is None else run)]
    plain = results[columns].assign(
        ended_well=(results["status"] == OK).to_numpy(bool),
        **{
            metric: results[metric].astype("Float64").to_numpy(float, na_value=np.nan)
            for metric in metrics
        },
    )
    cells = plain.groupby(columns, sort=False)
    medians = cells[list(metrics)].median()
    medians[~cells["ended_well"].all()] = np.nan
    return medians.reset_index()


def log_quotients(over: np.ndarray, under: np.ndarray) -> np.ndarray:
    """ln(over / under) of pairs; NaN where one of the two is missing or not above zero.

    Parameters
    ----------
    over, under : ndarray of float, shape (n,)

    Returns
    -------
    ndarray of float, shape (n,)
    """
    usable = (over > 0) & (under > 0)
    logs = np.full(len(over), np.nan)
    logs[usable] = np.log(over[usable] / under[usable])
    return logs


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
    runs = observed[observed["generator"] == generator]
    if runs.empty:
        known = ", ".join(observed["generator"].unique())
        raise ExperimentError(f"no results of plan generator {generator!r}; there are {known}")
    for name, value in chosen.items():
        ran = list(runs[name].unique())
        listed = [str(each) for each in ran]
        if value is None and len(ran) > 1 and name not in by:
            raise ExperimentError(
                f"{generator} ran in {' and '.join(listed)}; name one by {name}= or baseline_{name}="
            )
        if value is not None:
            if value not in ran:
                raise ExperimentError(
                    f"{generator} did not run in {name} {value!r}, only in {', '.join(listed)}"
                )
            runs = runs[runs[name] == value]
    for name in VARIED:
        if name in runs and name not in by and runs[name].nunique() > 1:
            raise ExperimentError(f"{generator} ran with more than one {name}; name {name!r} in by")
    return runs


def typed(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Rows as a table; sizes are integers where there is none, too."""
    table = pd.DataFrame(rows, columns=columns)
    return table.astype({"size": "Int64"}) if "size" in columns else table
