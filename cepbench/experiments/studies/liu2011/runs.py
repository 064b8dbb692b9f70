"""Runs of workloads by planners, as the tables that charts, pages and the ledger read.

[liu2011]_ varies workload, planner and time; see :mod:`cepbench.experiments.studies.runs`. Regimes are evaluators:
the paper's hierarchical stacks, and trees.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from cepbench.experiments.studies.measured import StudySweep
from cepbench.experiments.studies.runs import figure_runs, number
from cepbench.experiments.sweeps.cells import OK
from cepbench.experiments.sweeps.queries import query_rows, results_over_time
from cepbench.planning.costs.reuse import ReuseProblem, Sources
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream

#: Streams of the sweep ``pattern`` → DELL's rate, a multiple of the other companies'.
RATES = {
    "dell_001": "0.01", "dell_003": "0.03", "dell_01": "0.1", "dell_03": "0.3", "dell_1": "1",
    "dell_3": "3", "dell_10": "10",
}  # fmt: skip


def runs_of(sweep: StudySweep) -> pd.DataFrame:
    """The finished runs of a sweep of whole streams, see :func:`with_axes`."""
    return with_axes(sweep.results, sweep.streams)


def with_axes(results: pd.DataFrame, streams: Mapping[str, Path]) -> pd.DataFrame:
    """Finished runs with a setting, a series and their costs; streams are by name.

    As :func:`cepbench.experiments.studies.runs.figure_runs`, with the planner as series, the
    evaluator as ``regime`` and, as settings, DELL's rate if it varies, else the window in ms if
    several were run, else the number of trades. Besides ``results_per_ms``; ``load``, seconds per
    second of the stream; ``e_cube``, the cost of the plan by the paper's model, ``inverse_cost``,
    10⁶ divided by it, and ``plan_log_cost``, the logarithm of the cost per second: the model counts
    what is done in a window.
    """
    results = results[results["status"] == OK]
    model = _by_model(results, streams)
    if results["window"].nunique() > 1:
        setting = results["window"].str.removesuffix(" milliseconds")
    elif set(results["stream"]) <= RATES.keys():
        setting = results["stream"].map(RATES)
    else:
        setting = model["trades"].map("{:,.0f}".format)
    seconds = results["seconds"].astype(float)
    runs = results.assign(
        setting=setting,
        regime=results["evaluator"],
        results_per_ms=results["matches"].astype(float) / (1000 * seconds),
        load=seconds / model["stream_seconds"],
        e_cube=model["e_cube"],
        inverse_cost=1e6 / model["e_cube"],
        plan_log_cost=np.log(model["e_cube"] / model["window_seconds"]),
    )
    order = setting.str.replace(",", "").astype(float).to_numpy()
    ordered = runs.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)
    return figure_runs(ordered, "setting", "generator")


def _by_model(results: pd.DataFrame, streams: Mapping[str, Path]) -> pd.DataFrame:
    """Of each run the cost of its plan by the paper's model, and window and stream in seconds and trades.

    A run itself reads only the trades of the companies that its queries name.
    """
    columns = ["e_cube", "window_seconds", "stream_seconds", "trades"]
    found = pd.DataFrame(np.nan, results.index, columns)
    for key, rows in results.groupby(["stream", "window", "pattern"], sort=False):
        stream, _, text = map(str, key)
        events = EventStream.from_parquet(streams[stream])
        workload = Workload.parse(text, hierarchy=events.hierarchy)
        statistics = measure_statistics(workload, events)
        problem = ReuseProblem.of(workload, statistics, "e-cube", delays=True)
        window = max(pattern.window.seconds for pattern in workload.patterns.values())
        span = seconds_of(events)
        for row, details in rows["details"].items():
            found.loc[row] = problem.cost(sources_of(details)), window, span, len(events)
    return found


def seconds_of(stream: EventStream) -> float:
    """The time between the first and the last event."""
    return float(stream.timestamps[-1] - stream.timestamps[0]) / 1e9


def sources_of(details: str) -> Sources:
    """Query → source, from the details of a row of a sweep with planners."""
    return {step["query"]: step["source"] for step in json.loads(details)["steps"]}


def ways_of(results: pd.DataFrame) -> Styler:
    """How each planner computed each query, and how long that took, where there are most results.

    By planner and query, in the order of computation: ``source``, ``results``, ``reused``, and for
    each evaluator the median of its milliseconds.
    """
    most = results.sort_values("matches", kind="stable").iloc[-1]
    same = (results["stream"] == most["stream"]) & (results["window"] == most["window"])
    rows = query_rows(results[same])
    rows = rows.assign(source=rows["source"].fillna("from scratch"))
    by_query = rows.groupby(["generator", "query"], sort=False)
    ways = by_query[["source", "results", "reused"]].first()
    times = 1000 * rows.groupby(["generator", "query", "evaluator"])["seconds"].median().unstack()
    times.columns = [f"ms, {name}" for name in times.columns]
    return ways.join(times).style.format(number, subset=[*times.columns])


def over_time(results: pd.DataFrame, workload: str) -> pd.DataFrame:
    """Seconds of work until each push of a workload, by the matches that it brought the total to.

    Results are of runs in batches. As :func:`cepbench.experiments.studies.runs.figure_runs`, with
    the number of matches as setting, which is the same for all planners, since all find the same.
    The end of the stream is left out.
    """
    curves = results_over_time(results[results["pattern_id"] == f"workload-{workload}"])
    keys = ["generator", "repetition"]
    pushes = curves[curves.groupby(keys).cumcount(ascending=False) > 0]
    runs = pushes.assign(
        setting=pushes["matches"].map("{:,}".format), regime=pushes["evaluator"], size=0, status=OK
    )
    return figure_runs(runs, "setting", "generator")
