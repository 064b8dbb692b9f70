"""The workloads of the figures in windows in which they have from a thousand to ten million results.

[liu2011]_, section VII, shows each workload with one number of results, and prints no window.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.experiments.studies.liu2011.turns import company_stream, planner_runs, study_workload
from cepbench.experiments.studies.runs import figure_runs, sized
from cepbench.streams.event_stream import EventStream

#: Profile → trades, least numbers of results, runs.
PROFILES: dict[str, dict[str, Any]] = {
    "quick": {"events": 10_000, "results": (10**3, 10**4, 10**5, 10**6), "repetitions": 5},
    "full": {"events": 100_000, "results": (10**3, 10**4, 10**5, 10**6, 10**7), "repetitions": 10},
}

_ENGINE = "hierarchical-stacks"


def runs_by_results(sweep: str, profile: str, *, seed: int = 0, **changes: Any) -> pd.DataFrame:
    """Plan and run the workload of a sweep by every planner, in turns, in windows of more and more results.

    Changes are ``events``, ``results`` and ``repetitions`` in the place of the profile's, unless 0
    or empty. Runs are those of :func:`cepbench.experiments.studies.liu2011.turns.planner_runs` with
    the number of results as setting.
    """
    sizes = sized(PROFILES, profile, changes)
    stream = company_stream(sizes["events"], seed)
    rows = []
    for least in sizes["results"]:
        window = f"{window_for(sweep, stream, least)} milliseconds"
        workload = study_workload(sweep, stream.hierarchy, window)
        repetitions = sizes["repetitions"]
        found = planner_runs(
            workload, stream, evaluator=_ENGINE, repetitions=repetitions, seed=seed
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
