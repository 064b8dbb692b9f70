"""Runs of aggregation methods, as the tables that charts, pages and the ledger read.

[qi2014]_ varies query, window and method; see :mod:`cepbench.experiments.studies.runs`. Regimes are the rates of
the stream, which the paper does not print; runs on streams of several seeds are further repetitions.

Every method is measured on as much of a stream as it needs: two-step is stopped once it has listed enough
matches. Where that is before the window was full a few times, the time of a match times all matches of the
stream, which are counted without being listed, is what it would have taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cepbench.experiments.analysis.averages import bootstrap
from cepbench.experiments.studies.qi2014.printed import GAIN_AT_LENGTH_5
from cepbench.experiments.studies.runs import by_seed, factors, figure_runs, number
from cepbench.experiments.sweeps.cells import LIMIT, NO_SHARING, OK
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.workloads.model import Workload
from cepbench.seeds import rng_for

#: Windows that a run which was stopped has seen at least, if its mean over slides is taken as it is.
_ENOUGH_WINDOWS = 10

#: The regime of rows that are about all rates together.
ALL_RATES = "all rates"

#: Items of the queries that share work.
_LENGTH = 8

#: Nanoseconds of a millisecond.
_MILLISECOND = 1_000_000


def runs_of(*results: pd.DataFrame) -> pd.DataFrame:
    """Results of sweeps, with what the figures have on their axes, by rate, length and window.

    They are of streams named by their rate and seed, such as ``r10-seed3``; at least one is of
    aggregation methods. Besides the columns of results

    - ``regime``: the rate, trades of a ticker per second;
    - ``repetition``: the seed and the number of a run on its stream;
    - ``series``: the method, how it shares work between queries, if it does, or the evaluator of a
      run that only counts;
    - ``size``: positive items of the longest query;
    - ``window_size``: ms;
    - ``active``: expected number of active events of an item;
    - ``plan_log_cost``: its logarithm, as no run has a plan;
    - ``seconds_per_slide``, also of a run that only counts, ``microseconds_per_slide`` and
      ``updates_per_slide``: the window slides with every trade of the patterns' tickers;
    - ``projected``: whether these and ``peak_objects`` are those of a run that was stopped early,
      had it gone on; see :func:`_projected`. Its ``status`` is that of a run that ended.
    """
    known = [table.dropna(axis="columns", how="all") for table in results]
    runs = pd.concat(known, ignore_index=True)
    slides = runs["events"].astype(float)
    queries = {text: _queries(text) for text in runs["pattern"].unique()}
    windows = {
        text: math.ceil(its[0].window.length / _MILLISECOND) for text, its in queries.items()
    }
    sizes = {text: max(len(each.positive) for each in its) for text, its in queries.items()}
    rate = runs["stream"].str.extract(r"^r(\d+)")[0].astype(int)
    window = runs["pattern"].map(windows)
    series = runs["sharing"].where(runs["sharing"] != NO_SHARING, runs["method"])
    found = runs.assign(
        regime=rate.astype(str) + " per second",
        series=series.where(series != "", runs["evaluator"]),
        size=runs["pattern"].map(sizes),
        window_size=window,
        active=rate * window / 1000,
        plan_log_cost=np.log(rate * window / 1000),
        seconds_per_slide=runs["seconds"] / slides,
        updates_per_slide=runs["updates"].astype(float) / slides,
    )
    found = by_seed(_projected(found.assign(rate=rate, projected=False)))
    found["microseconds_per_slide"] = 1e6 * found["seconds_per_slide"]
    order = found.sort_values(["rate", "size", "window_size"], kind="stable")
    return order.drop(columns="rate").reset_index(drop=True)


def _projected(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs, and instead of those that were stopped at the limit of matches what they would have measured.

    One that saw :data:`_ENOUGH_WINDOWS` windows stays as it is. Another takes the mean time of its matches
    for each match of the stream, as the run of the same stream that only counts has them, and keeps at
    least the active events and the matches among them, k^L / L! for L items of k active events each.
    """
    stopped = runs["status"] == LIMIT
    windows = runs["events"].astype(float) / (runs["size"] * runs["active"])
    key = ["size", "window_size", "stream"]
    counts = runs[runs["method"] == ""]
    each = pd.Series(math.nan, runs.index)
    if "matches" in counts:
        matches = (counts["matches"] / counts["events"]).astype(float)
        of_stream = matches.groupby([counts[name] for name in key]).median()
        each[:] = of_stream.reindex(pd.MultiIndex.from_frame(runs[key])).to_numpy()
    early = stopped & (windows < _ENOUGH_WINDOWS) & each.notna()
    active, size = runs["active"].astype(float), runs["size"].astype(int)
    kept = size * active + active**size / size.map(math.factorial)
    seconds = each * runs["seconds"].astype(float) / runs["updates"].astype(float)
    return runs.assign(
        status=runs["status"].mask(early | (stopped & (windows >= _ENOUGH_WINDOWS)), OK),
        projected=early,
        seconds_per_slide=runs["seconds_per_slide"].mask(early, seconds),
        updates_per_slide=runs["updates_per_slide"].mask(early, each),
        peak_objects=runs["peak_objects"].astype(float).mask(early, kept),
    )


def _queries(text: str) -> Sequence[Pattern]:
    """The queries of a workload, or a single one."""
    if text.startswith("PATTERN"):
        return [parse(text)]
    return [*Workload.parse(text).patterns.values()]


def across_rates(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of a window with the number of active events as setting, all rates in one regime.

    As :func:`cepbench.experiments.studies.runs.figure_runs`, of :func:`runs_of`; series are
    ``two-step, length 5`` and so on.
    """
    series = runs["series"] + ", length " + runs["size"].astype(str)
    active = runs["active"].map("{:g} active".format)
    named = runs.assign(series=series, setting=active, regime=ALL_RATES)
    return figure_runs(named, "setting", "series")


def active_for(
    runs: pd.DataFrame, factor: float, over: str, under: str, *, seed: int = 0
) -> tuple[float, float, float]:
    """With how many active events of an item the series ``over`` takes ``factor`` times as long as ``under``.

    Runs are of one setting, in two regimes or more. The number, and its 95 % bootstrap interval
    over runs. Between the two numbers that were measured around it, or the last two, the factor is
    a power of the number.
    """
    gains = _gains(runs, "seconds_per_slide", over, under)
    active, logs = gains.columns.to_numpy(float), gains.to_numpy()

    def of_mean(logs: np.ndarray, axis: int | None = None) -> np.ndarray:
        return crossing(active, logs.mean(axis=axis or 0), factor)

    low, high = bootstrap(logs, of_mean, rng_for(seed, "active"))
    return float(of_mean(logs)), low, high


def _gains(runs: pd.DataFrame, metric: str, over: str, under: str) -> pd.DataFrame:
    """Logarithms of the factors between two series: repetitions in rows, active events in columns."""
    values = runs.set_index(["generator", "repetition", "active"])[metric].astype(float)
    return np.log(values.loc[over] / values.loc[under]).unstack("active").dropna()


def crossing(active: np.ndarray, gains: np.ndarray, factor: float) -> np.ndarray:
    """Where gains reach a factor: a power of the active events between two numbers, and after the last.

    ``gains``: their logarithms, of shape (…, active); ``active`` is increasing.
    """
    wanted, active = math.log(factor), np.log(active)
    behind = (gains[..., 1:-1] < wanted).sum(axis=-1, keepdims=True)
    low, high = (np.take_along_axis(gains, behind + step, -1)[..., 0] for step in (0, 1))
    x, beyond = active[behind[..., 0]], active[behind[..., 0] + 1]
    return np.asarray(np.exp(x + (wanted - low) / (high - low) * (beyond - x)))


#: What a factor is about → the column that has it.
_IN = {"in time": "seconds_per_slide", "in work": "updates_per_slide"}


def reached(runs: pd.DataFrame, *of: float, over: str, under: str) -> pd.DataFrame:
    """With how many active events each run reaches factors between two series, for the ledger.

    Runs are of one setting, in two regimes or more. A row a run and factor in the regime
    :data:`ALL_RATES`, with the setting ``16,736 in time`` or ``16,736 in work`` (matches listed over
    counters updated), the series ``two-step / a-seq``, and ``active``.
    """
    rows = []
    for words, metric in _IN.items():
        gains = _gains(runs, metric, over, under)
        active = gains.columns.to_numpy(float)
        for factor in of:
            found = {
                "repetition": gains.index,
                "active": crossing(active, gains.to_numpy(), factor),
            }
            rows.append(pd.DataFrame(found).assign(setting=f"{factor:,.0f} {words}"))
    every = pd.concat(rows, ignore_index=True)
    named = every.assign(
        series=f"{over} / {under}", regime=ALL_RATES, status=OK, size=runs["size"].iloc[0]
    )
    return figure_runs(named, "setting", "series")


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


def in_work(found: pd.DataFrame) -> str:
    """Where the paper's factor is reached in work, of the rows of :func:`reached`."""
    its = found[found["pattern_set"] == f"{GAIN_AT_LENGTH_5:,} in work"]["active"]
    return (
        f"In work, matches listed over counters updated, it is reached with {number(its.median())} "
        f"({number(its.min())} to {number(its.max())} on the streams)."
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
    """What a series that shares saves in each run, over A-Seq on each query.

    The rows of the series ``saved by …``, whose ``seconds_per_slide`` and ``updates`` are the
    differences.
    """
    key = ["regime", "pattern_id"]
    apart = runs[runs["generator"] == "a-seq"].set_index(key)
    own = runs[runs["generator"] == sharing].set_index(key)
    less = {
        name: apart[name].reindex(own.index) - own[name]
        for name in ("seconds_per_slide", "updates")
    }
    return own.assign(**less, generator=f"saved by {sharing}").reset_index()


def prefix_factor(queries: int, common: int) -> float:
    """By what factor a prefix tree saves updates of queries of :data:`_LENGTH` items that begin with common items.

    Every item but the first updates a counter for each active first event: those of the prefix once
    instead of for each query. It does not depend on the number of active events.
    """
    return queries * (_LENGTH - 1) / (common - 1 + queries * (_LENGTH - common))


def connect_factor(queries: int, common: int, active: float) -> float:
    """By what factor Chop-Connect, as the paper has it, saves updates and products over A-Seq on each query.

    The items of the tail but its first are updated once; for each first one a count for each active
    first event of each query is kept; and at a last one each of these is multiplied.
    """
    heads, tail = queries * (_LENGTH - common - 1), common - 1
    return queries * (_LENGTH - 1) / (heads + tail + queries + queries * active)


def prefix_arithmetic() -> str:
    """What a prefix tree can save of three queries, and of two to six."""
    least, most = (prefix_factor(3, common) for common in (2, 6))
    two, six = (prefix_factor(queries, 3) for queries in (2, 6))
    return (
        f"Arithmetic first: a prefix of 2 saves three queries of eight items a factor of {least:.2f} of "
        f"the updates, one of 6 a factor of {most:.2f}, and no prefix three or more: the printed 3 and 5 "
        f"cannot be updates saved. A prefix of 3 saves two queries {two:.2f} times and six {six:.2f} times; "
        "the printed 2 is beyond any number of them."
    )


def connect_arithmetic(*active: float) -> str:
    """What Chop-Connect costs more than A-Seq on each of three queries, as the paper has it."""
    costs = " and ".join(
        f"{number(1 / connect_factor(3, 6, k))} to {number(1 / connect_factor(3, 2, k))} times with {k:g}"
        for k in active
    )
    return (
        "Arithmetic first: connecting multiplies a count of each active first event of a query with the "
        "counter of each active first event of the tail, a product for each pair at every last trade, so "
        "that three queries need more products than updates are saved from four active events on: as the "
        f"paper has it, Chop-Connect does {costs} of them the work of A-Seq on each query (tails of 6 to 2)."
    )


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
