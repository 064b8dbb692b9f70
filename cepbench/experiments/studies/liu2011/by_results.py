"""The workloads of the figures in windows in which they have from a thousand to ten million results.

[liu2011]_, section VII, shows each workload with one number of results, and prints no window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.experiments.studies.liu2011.turns import company_stream, planner_runs, study_workload
from cepbench.experiments.studies.runs import figure_runs
from cepbench.streams.event_stream import EventStream

#: Profile → trades, numbers of results, runs.
PROFILES = {
    "quick": (10_000, (10**3, 10**4, 10**5, 10**6), 5),
    "full": (100_000, (10**3, 10**4, 10**5, 10**6, 10**7), 10),
}

_ENGINE = "hierarchical-stacks"


def runs_by_results(
    sweep: str,
    profile: str,
    *,
    seed: int = 0,
    events: int = 0,
    results: Sequence[int] = (),
    repetitions: int = 0,
) -> pd.DataFrame:
    """Plan and run a workload by every planner, in turns, in windows that give more and more results.

    Parameters
    ----------
    sweep : str
        Whose workload it is, such as ``both``.
    profile : str
        One of :data:`PROFILES`.
    seed : int
        Of the stream.
    events : int
        Trades; 0: as many as the profile has.
    results : sequence of int
        The least numbers of results; by default those of the profile.
    repetitions : int
        Runs; 0: as many as the profile has.

    Returns
    -------
    DataFrame
        As :func:`cepbench.experiments.studies.runs.figure_runs` does, of the rows of
        :func:`cepbench.experiments.studies.liu2011.turns.planner_runs` with the number of results as setting.
    """
    own_events, numbers, runs = PROFILES[profile]
    stream = company_stream(events or own_events, seed)
    rows = []
    for least in results or numbers:
        window = f"{window_for(sweep, stream, least)} milliseconds"
        workload = study_workload(sweep, stream.hierarchy, window)
        found = planner_runs(
            workload, stream, evaluator=_ENGINE, repetitions=repetitions or runs, seed=seed
        )
        rows += [row | {"setting": f"{row['matches']:,}", "window": window} for row in found]
    return figure_runs(pd.DataFrame(rows), "setting", "generator")


def window_for(sweep: str, stream: EventStream, results: int) -> int:
    """The least window, in whole ms, in which a workload has so many results or more."""

    def count(window: int) -> int:
        workload = study_workload(sweep, stream.hierarchy, f"{window} milliseconds")
        return evaluate(workload, stream, evaluator=_ENGINE, output="count").metrics.matches

    low = high = 1
    while count(high) < results:
        low, high = high, -(-high * 5 // 4)
    return bisect_left(range(high), results, low, high, key=count)
