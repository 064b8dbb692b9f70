"""Runs of the template's queries, as the tables that charts, pages and the ledger read.

[agrawal2008]_ varies query, window and engine, where other studies vary patterns and plans. Here
what a figure has on its horizontal axis takes the place of a pattern set, its curves or bars that
of plan generators, and a run that of a pattern, so that intervals are over runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cepbench.analysis.averages import MEDIAN, RESAMPLES, averages
from cepbench.analysis.summary import groups_of

#: Evaluator → its name in the paper's figures.
ENGINES = {"sase-basic": "basic", "sase": "merging", "sase-backtrack": "backtrack"}

#: Strategy → its name in the paper's Table 1.
STRATEGIES = {"partition_contiguity(symbol)": "s2", "next": "s3"}

#: Columns that name a run, whatever the engine.
_RUN = ["pattern_id", "strategy", "stream", "output", "repetition"]

#: Symbols of the streams, whose events share the units of a window.
SYMBOLS = 2


def runs_of(results: pd.DataFrame) -> pd.DataFrame:
    """A sweep's results with the query of each run, its engine, and what the paper's tables print.

    Parameters
    ----------
    results : DataFrame
        As :attr:`cepbench.studies.measured.StudySweep.results` returns it.

    Returns
    -------
    DataFrame
        The same rows with ``query`` (``p1s3``), ``engine`` (:data:`ENGINES`), ``window_size`` (W,
        events of a symbol), the columns of :class:`cepbench.evaluators.result.RunCounts`, and

        - ``match_length``: events of a match, averaged;
        - ``merged_percent``: of the runs that are there at a time step where none are merged, the
          share that needs no run of its own where they are; of the merging engine, and missing
          without the basic one beside it. Table 3 does not define its percentage; this one has its
          values;
        - ``matching_percent``, ``construction_percent``: shares of the time of both;
        - ``reprocessed_per_event``: how often an event is read again;
        - ``seconds_per_matched_event``: time divided by the output complexity.
    """
    counted = [json.loads(text) if isinstance(text, str) else {} for text in results["details"]]
    runs = pd.concat(
        [
            results.reset_index(drop=True),
            pd.DataFrame(counted).astype(float),
        ],
        axis="columns",
    )
    named = runs["pattern_id"].str.removeprefix("user-")
    apart = runs[runs["evaluator"] == "sase-basic"].set_index(_RUN)["runs_per_step"]
    beside = apart.reindex(pd.MultiIndex.from_frame(runs[_RUN])).to_numpy()
    merged = 100 * (1 - runs["runs_per_step"] / beside)
    matching, construction = runs["seconds_matching"], runs["seconds_construction"]
    events = runs["output_complexity"].where(runs["output_complexity"] > 0)
    return runs.assign(
        query=named.str.replace("star", "*") + runs["strategy"].map(STRATEGIES),
        engine=runs["evaluator"].map(ENGINES),
        window_size=[_units(pattern) // SYMBOLS for pattern in runs["pattern"]],
        match_length=events / runs["matches"].astype(float),
        merged_percent=merged.where(runs["evaluator"] == "sase"),
        matching_percent=100 * matching / (matching + construction),
        construction_percent=100 * construction / (matching + construction),
        reprocessed_per_event=runs["events_reprocessed"] / runs["events"].astype(float),
        seconds_per_matched_event=runs["seconds"] / events,
    )


def _units(pattern: str) -> int:
    """The window of a pattern's text, in units."""
    return int(pattern.rpartition(" WITHIN ")[2].split()[0])


def figure_runs(runs: pd.DataFrame, setting: str, series: str) -> pd.DataFrame:
    """Runs as summaries and the ledger read them, a setting and a series for each.

    Parameters
    ----------
    runs : DataFrame
        As :func:`runs_of` returns it, of a single output.
    setting : str
        Column of what the horizontal axis of a figure has; becomes ``pattern_set``.
    series : str
        Column of its curves or bars; becomes ``generator``.

    Returns
    -------
    DataFrame
        With the same columns. ``pattern_id`` is the setting and the number of the run, and the
        logarithmic cost of a plan, which no run has, that of the output complexity.
    """
    settings = runs[setting].astype(str)
    with np.errstate(divide="ignore"):
        complexity = np.log(runs["output_complexity"].to_numpy(float))
    return runs.assign(
        pattern_set=settings,
        pattern_id=settings + ", run " + runs["repetition"].astype(str),
        generator=runs[series].astype(str),
        plan_kind="tree",
        plan_log_cost=np.where(np.isfinite(complexity), complexity, np.nan),
        **dict.fromkeys(("evaluator", "stream", "window", "output"), ""),
        strategy="any",
    )


def gains(runs: pd.DataFrame, setting: str, series: str, *, over: str, under: str) -> pd.DataFrame:
    """By what factor one engine is faster than another, in each run.

    Parameters
    ----------
    runs : DataFrame
        As :func:`runs_of` returns it.
    setting, series : str
        See :func:`figure_runs`.
    over, under : str
        Two values of :data:`ENGINES`.

    Returns
    -------
    DataFrame
        As :func:`summary_of` takes it, with the metric ``gain``.
    """
    key = list(dict.fromkeys([setting, series, "query", "repetition"]))
    speed = runs.set_index([*key, "engine"])["events_per_second"].unstack("engine")
    found = (speed[over] / speed[under]).rename("gain").reset_index()
    settings = found[setting].astype(str)
    return found.assign(
        pattern_set=settings,
        pattern_id=settings + ", run " + found["repetition"].astype(str),
        generator=found[series].astype(str),
        plan_kind="tree",
    )


def summary_of(
    runs: pd.DataFrame, metrics: Sequence[str], *, seed: int = 0, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Medians over runs with their intervals, as charts by setting read them.

    Parameters
    ----------
    runs : DataFrame
        As :func:`figure_runs` or :func:`gains` returns it.
    metrics : sequence of str
        Numeric columns.
    seed : int
        Of the resampling.
    resamples : int

    Returns
    -------
    DataFrame
        As :func:`cepbench.analysis.summary.summarize` returns it, for any column.
    """
    found = averages(
        groups_of(runs, ["pattern_set"]),
        ["generator", "plan_kind"],
        {metric: {"median": MEDIAN} for metric in metrics},
        seed=seed,
        resamples=resamples,
    )
    return found.assign(size=pd.array([pd.NA] * len(found), "Int64"), engine="")


def table_of(runs: pd.DataFrame, *metrics: str) -> pd.DataFrame:
    """Medians over runs: metrics and series in rows, settings in columns, in the order of the runs.

    Parameters
    ----------
    runs : DataFrame
        As :func:`figure_runs` returns it.
    *metrics : str
    """
    cells = runs.groupby(["generator", "pattern_set"])
    settings, series = (list(runs[name].unique()) for name in ("pattern_set", "generator"))
    parts = {
        f"{metric.replace('_', ' ')} {name}": cells[metric].median().loc[name].reindex(settings)
        for metric in metrics
        for name in series
    }
    return pd.DataFrame(parts).T.rename_axis(columns=None)


def compared(runs: pd.DataFrame, over: str, under: str) -> str:
    """By what factors one series is faster than another, from the least to the greatest.

    Parameters
    ----------
    runs : DataFrame
        As :func:`figure_runs` returns it.
    over, under : str
        Two series.
    """
    speed = runs.groupby(["pattern_set", "generator"], sort=False)["events_per_second"].median()
    wide = speed.unstack("generator")
    ratios = (wide[over] / wide[under]).dropna().sort_values()
    return (
        f"{over.capitalize()} has between {ratios.iloc[0]:.3g} ({ratios.index[0]}) and "
        f"{ratios.iloc[-1]:.3g} ({ratios.index[-1]}) times the throughput of {under}."
    )
