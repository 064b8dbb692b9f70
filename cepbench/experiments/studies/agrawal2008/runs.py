"""Runs of the template's queries, as the tables that charts, pages and the ledger read.

[agrawal2008]_ varies query, window and engine; see :mod:`cepbench.experiments.studies.runs`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from cepbench.experiments.studies.agrawal2008.printed import PROTOTYPE
from cepbench.experiments.studies.runs import by_seed, details_of, factors, figure_runs, number

#: Evaluator → its name in the paper's figures.
ENGINES = {"sase-basic": "basic", "sase": "merging", "sase-backtrack": "backtrack"}

#: Strategy → its name in the paper's Table 1.
STRATEGIES = {"partition_contiguity(symbol)": "s2", "next": "s3"}

#: Columns that name a run, whatever the engine.
_RUN = ["pattern_id", "strategy", "stream", "output", "repetition"]

#: Symbols of a stream that does not name their number, whose events share the units of a window.
SYMBOLS = 2


def runs_of(results: pd.DataFrame) -> pd.DataFrame:
    """A sweep's results with the query of each run, its engine, and what the paper's tables print.

    The same rows with ``query`` (``p1s3``), ``engine`` (:data:`ENGINES`), ``window_size`` (W,
    events of a symbol), the columns of :class:`cepbench.engines.runs.result.RunCounts`, and

    - ``match_length``: events of a match, averaged;
    - ``simultaneous_runs``: runs that are there at a time step, averaged. An event is read by
      those of its symbol only, one of :data:`SYMBOLS`, or as many as the name of the stream says
      (``symbols4``), that are equally frequent. The paper does
      not say whether Table 2 counts both symbols' runs; these have its values;
    - ``merged_percent``: of the runs that are there at a time step where none are merged, the
      share that needs no run of its own where they are; of the merging engine, and missing
      without the basic one beside it. Table 3 does not define its percentage; this one has its
      values;
    - ``matching``, ``matching_and_construction``: seconds of the moves of runs with the updates
      of the buffer, and of these with the construction of matches;
    - ``matching_percent``, ``construction_percent``: their shares in both;
    - ``reprocessed_per_event``: how often an event is read again;
    - ``fewer_steps``, ``fewer_runs``: 1 divided by the steps of an event, and by the simultaneous
      runs. Steps are events read, runs visited and events written into matches, by the two factors
      of section 6.1 that decide the throughput, simultaneous runs and output complexity;
    - ``plan_log_cost``: no run has a plan; the logarithm of its output complexity.
    """
    runs = by_seed(results).reset_index(drop=True)
    runs = runs.join(details_of(runs).astype(float))
    named = runs["pattern_id"].str.removeprefix("user-")
    apart = runs[runs["evaluator"] == "sase-basic"].set_index(_RUN)["runs_per_step"]
    beside = apart.reindex(pd.MultiIndex.from_frame(runs[_RUN])).to_numpy()
    merged = 100 * (1 - runs["runs_per_step"] / beside)
    matching = runs["seconds_matching"] + runs["seconds_buffer"].fillna(0)
    both = matching + runs["seconds_construction"]
    events = runs["output_complexity"].where(runs["output_complexity"] > 0)
    of_stream = pd.to_numeric(runs["stream"].str.extract(r"^symbols(\d+)")[0])
    symbols = of_stream.fillna(SYMBOLS).astype(int)
    units = pd.Series([_units(pattern) for pattern in runs["pattern"]], index=runs.index)
    steps = 1 + runs["runs_per_step"] + runs["output_complexity"] / runs["events"].astype(float)
    return runs.assign(
        query=named.str.replace("star", "*") + runs["strategy"].map(STRATEGIES),
        engine=runs["evaluator"].map(ENGINES),
        window_size=units // symbols,
        match_length=events / runs["matches"].astype(float),
        simultaneous_runs=symbols * runs["runs_per_step"],
        merged_percent=merged.where(runs["evaluator"] == "sase"),
        matching=matching,
        matching_and_construction=both,
        matching_percent=100 * matching / both,
        construction_percent=100 * runs["seconds_construction"] / both,
        reprocessed_per_event=runs["events_reprocessed"] / runs["events"].astype(float),
        fewer_steps=1 / steps,
        fewer_runs=1 / (symbols * runs["runs_per_step"]),
        plan_log_cost=np.log(events),
    )


def _units(pattern: str) -> int:
    """The window of a pattern's text, in units."""
    return int(pattern.rpartition(" WITHIN ")[2].split()[0])


def gains(runs: pd.DataFrame, setting: str, series: str, *, over: str, under: str) -> pd.DataFrame:
    """By what factor one of :data:`ENGINES` is faster than another, in each of the runs of :func:`runs_of`.

    The column ``gain``, with setting and series as
    :func:`cepbench.experiments.studies.runs.figure_runs` has them.
    """
    key = list(dict.fromkeys([setting, series, "query", "repetition"]))
    speed = runs.set_index([*key, "engine"])["events_per_second"].unstack("engine")
    found = (speed[over] / speed[under]).rename("gain").reset_index()
    return figure_runs(found, setting, series)


#: Rows of :func:`speedups` → columns of :func:`runs_of`.
_TIMES = {
    "all": "seconds",
    "matching and construction": "matching_and_construction",
    "matching": "matching",
}


def speedups(runs: pd.DataFrame, over: str, under: str) -> pd.DataFrame:
    """By what factors one series is faster than another: medians over runs.

    Settings in columns; rows ``all``, ``matching and construction``, ``matching``: with all that a
    run takes, without the reading of events and the tests of each by itself, and without the
    construction of matches, too.
    """
    rows = [factors(runs, metric, under, over) for metric in _TIMES.values()]
    return pd.concat(rows).dropna(axis="columns").set_axis([*_TIMES])


def compared(runs: pd.DataFrame, over: str, under: str) -> str:
    """By what factors one series is faster than another, from the least to the greatest."""
    its = speedups(runs, over, under)

    def span(row: str) -> str:
        ratios = its.T[row].sort_values()
        return " and ".join(f"{ratios.iloc[k]:.3g} ({ratios.index[k]})" for k in (0, -1))

    return (
        f"{over.capitalize()} has between {span('all')} times the throughput of {under}; in matching "
        f"alone, it is between {span('matching')} times as fast."
    )


def beside_the_prototype(runs: pd.DataFrame) -> str:
    """Throughput of the slowest and the fastest setting of one series beside that of the paper's prototype."""
    speed = runs.groupby("pattern_set", sort=False)["events_per_second"].median().sort_values()
    return (
        f"The slowest query, {speed.index[0]}, has a throughput of {number(speed.iloc[0])} events per "
        f"second, the fastest, {speed.index[-1]}, of {number(speed.iloc[-1])}: "
        f"{number(speed.iloc[0] / PROTOTYPE)} and {number(speed.iloc[-1] / PROTOTYPE)} times the "
        f"{PROTOTYPE:,} that the paper's prototype exceeds, with runs merged, on its expensive "
        "queries."
    )
