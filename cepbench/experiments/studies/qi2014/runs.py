"""Runs of aggregation methods, as the tables that charts, pages and the ledger read.

[qi2014]_ varies query, window and method; see :mod:`cepbench.experiments.studies.runs`. Regimes are the rates of
the stream, which the paper does not print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cepbench.experiments.analysis.averages import bootstrap
from cepbench.experiments.studies.qi2014.printed import GAIN_AT_LENGTH_5
from cepbench.experiments.studies.runs import factors, figure_runs, number
from cepbench.experiments.sweeps.cells import NO_SHARING
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.workloads.model import Workload
from cepbench.seeds import rng_for

#: Nanoseconds of a millisecond.
_MILLISECOND = 1_000_000


def runs_of(*results: pd.DataFrame) -> pd.DataFrame:
    """Results of sweeps, with what the figures have on their axes, by rate, length and window.

    They are of streams named by their rate, such as ``r10``; at least one is of aggregation
    methods. Besides the columns of results

    - ``regime``: the rate, trades of a ticker per second;
    - ``series``: the method, how it shares work between queries, if it does, or the evaluator of a
      run that only counts;
    - ``size``: positive items of the longest query;
    - ``window_size``: ms;
    - ``active``: expected number of active events of an item;
    - ``plan_log_cost``: its logarithm, as no run has a plan;
    - ``seconds_per_slide``, also of a run that only counts, ``microseconds_per_slide`` and
      ``updates_per_slide``: the window slides with every trade of the patterns' tickers.
    """
    known = [table.dropna(axis="columns", how="all") for table in results]
    runs = pd.concat(known, ignore_index=True)
    slides = runs["events"].astype(float)
    queries = {text: _queries(text) for text in runs["pattern"].unique()}
    windows = {
        text: math.ceil(its[0].window.length / _MILLISECOND) for text, its in queries.items()
    }
    sizes = {text: max(len(each.positive) for each in its) for text, its in queries.items()}
    rate = runs["stream"].str.removeprefix("r").astype(int)
    window = runs["pattern"].map(windows)
    series = runs["sharing"].where(runs["sharing"] != NO_SHARING, runs["method"])
    seconds = runs["seconds"] / slides
    found = runs.assign(
        regime=rate.astype(str) + " per second",
        series=series.where(series != "", runs["evaluator"]),
        size=runs["pattern"].map(sizes),
        window_size=window,
        active=rate * window / 1000,
        plan_log_cost=np.log(rate * window / 1000),
        seconds_per_slide=seconds,
        microseconds_per_slide=1e6 * seconds,
        updates_per_slide=runs["updates"].astype(float) / slides,
    )
    order = found.assign(rate=rate).sort_values(["rate", "size", "window_size"], kind="stable")
    return order.drop(columns="rate").reset_index(drop=True)


def _queries(text: str) -> Sequence[Pattern]:
    """The queries of a workload, or a single one."""
    if text.startswith("PATTERN"):
        return [parse(text)]
    return [*Workload.parse(text).patterns.values()]


def active_for(
    runs: pd.DataFrame, factor: float, over: str, under: str, *, seed: int = 0
) -> tuple[float, float, float]:
    """With how many active events of an item the series ``over`` takes ``factor`` times as long as ``under``.

    Runs are of one setting, in two regimes or more. The number, and its 95 % bootstrap interval
    over runs. Between the two numbers that were measured around it, or the last two, the factor is
    a power of the number.
    """
    seconds = runs.set_index(["generator", "repetition", "active"])["seconds_per_slide"]
    gains = np.log(seconds.loc[over] / seconds.loc[under]).unstack("active").dropna()
    active, wanted = np.log(gains.columns.to_numpy(float)), math.log(factor)

    def crossing(logs: np.ndarray, axis: int | None = None) -> np.ndarray:
        mean = logs.mean(axis=axis or 0)
        behind = (mean[..., 1:-1] < wanted).sum(axis=-1, keepdims=True)
        low, high = (np.take_along_axis(mean, behind + step, -1)[..., 0] for step in (0, 1))
        x, beyond = active[behind[..., 0]], active[behind[..., 0] + 1]
        return np.asarray(np.exp(x + (wanted - low) / (high - low) * (beyond - x)))

    logs = gains.to_numpy()
    low, high = bootstrap(logs, crossing, rng_for(seed, "active"))
    return float(crossing(logs)), low, high


def gain_at_length_5(runs: pd.DataFrame, *, seed: int = 0) -> str:
    """By what factor A-Seq is faster than two-step at length 5, beside the paper's; settings are lengths."""
    longest = runs[runs["size"] == 5]
    gains = factors(longest, "seconds_per_slide", "two-step", "a-seq")["5"]
    text = "At length 5 A-Seq is " + " and ".join(
        f"{number(gain)} times (at {rate})" for rate, gain in gains.items()
    )
    found, low, high = active_for(longest, GAIN_AT_LENGTH_5, "two-step", "a-seq", seed=seed)
    most = longest["active"].max()
    how = " by extrapolation" if found > most else ""
    return (
        f"{text} as fast as two-step; the paper's factor, {GAIN_AT_LENGTH_5:,}, is reached{how} with "
        f"{number(found)} active events of each ticker (95 %: {number(low)} to {number(high)})."
    )


def extremes(long: pd.DataFrame, short: pd.DataFrame) -> pd.DataFrame:
    """The longest sequence by A-Seq beside the shortest by two-step, which Figure 14(a) compares.

    As :func:`cepbench.experiments.studies.runs.figure_runs`, of two tables of :func:`runs_of`, with
    the setting ``extremes``, which has no size.
    """
    most = (long["method"] == "a-seq") & (long["size"] == 10) & (long["window_size"] == 2000)
    least = (short["method"] == "two-step") & (short["size"] == 2) & (short["window_size"] == 100)
    both = pd.concat([long[most], short[least]], ignore_index=True)
    return figure_runs(both.assign(setting="extremes", size=0), "setting", "method")


def workload_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of workloads named ``q3_prefix2`` with what their queries share.

    With ``queries`` (their number), ``place`` (of the common items, ``prefix`` or ``tail``),
    ``common`` (their number), and ``workload``, all three in words.
    """
    named = (
        runs["pattern_id"]
        .str.extract(r"-q(?P<queries>\d+)_(?P<place>[a-z]+)(?P<common>\d+)$")
        .astype({"queries": int, "common": int})
    )
    words = [f"{its.queries} queries, {its.place} {its.common}" for its in named.itertuples()]
    return pd.concat([runs, named], axis="columns").assign(workload=words)


def saved(runs: pd.DataFrame, sharing: str) -> pd.DataFrame:
    """The time that a series that shares saves in each run, over A-Seq on each query.

    The rows of the series ``saved by …``, whose ``seconds_per_slide`` is the difference.
    """
    key = ["regime", "pattern_id"]
    apart = runs[runs["generator"] == "a-seq"].set_index(key)["seconds_per_slide"]
    own = runs[runs["generator"] == sharing].set_index(key)
    less = apart.reindex(own.index) - own["seconds_per_slide"]
    return own.assign(seconds_per_slide=less, generator=f"saved by {sharing}").reset_index()


def gains_by_sharing(runs: pd.DataFrame, *sharing: str) -> pd.DataFrame:
    """By what factors series that share save time and updates over A-Seq on each query, below one another."""
    tables = {
        f"{words}, {name}": factors(runs, metric, "a-seq", name)
        for name in sharing
        for words, metric in (("time", "seconds_per_slide"), ("updates", "updates"))
    }
    for of, table in tables.items():
        table.index = pd.Index([f"{of}, {regime}" for regime in table.index])
    return pd.concat([*tables.values()])


def gain_of_workload(runs: pd.DataFrame, workload: str, sharing: str) -> str:
    """By what factors a series saves time and updates of one workload, a setting, over A-Seq on each query."""
    time, updates = (
        factors(runs, metric, "a-seq", sharing)[workload]
        for metric in ("seconds_per_slide", "updates")
    )
    gains = " and ".join(
        f"{number(time[regime])} times as fast and {number(updates[regime])} times fewer updates "
        f"({regime})"
        for regime in time.index
    )
    return f"{sharing}, {workload}: {gains} than A-Seq on each query."
