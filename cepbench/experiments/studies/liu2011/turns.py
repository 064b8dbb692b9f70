"""Planners that take turns on one workload in this process, each planning anew for every run.

[liu2011]_, section VII, shows each workload with one number of results, and prints no window; here they
have windows in which there are from a thousand to ten million results, too.
"""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.experiments.studies.runs import figure_runs, sized
from cepbench.experiments.sweeps.sweep_file import read_sweep
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.workloads.model import Workload
from cepbench.streams.company_trades import HIERARCHY, CompanyTrades
from cepbench.streams.event_stream import EventStream

PLANNERS = ("NAIVE", "TOP-DOWN", "BOTTOM-UP", "CHASE")

#: The series of runs of each query by itself, which share nothing.
ALONE = "each alone"

#: Profile of :func:`runs_by_results` → trades, least numbers of results, runs.
PROFILES: dict[str, dict[str, Any]] = {
    "quick": {"events": 10_000, "results": (10**3, 10**4, 10**5), "repetitions": 5},
    "full": {"events": 100_000, "results": (10**3, 10**4, 10**5, 10**6, 10**7), "repetitions": 10},
}

_ENGINE = "hierarchical-stacks"


def study_workload(sweep: str, hierarchy: ConceptHierarchy | None, window: str = "") -> Workload:
    """The only workload of a sweep of the study, such as ``both``; in another window if one is given."""
    ((_, text),) = read_sweep(f"liu2011/{sweep}").config("").user_workloads
    if window:
        text = re.sub(r"(?<=WITHIN ).*", window, text)
    return Workload.parse(text, hierarchy=hierarchy)


def company_stream(events: int, seed: int, **parameters: Any) -> EventStream:
    """Trades of all companies under their hierarchy, at equal rates unless other parameters are given."""
    table = CompanyTrades(events, seed, **parameters).table(0, events)
    stream = EventStream.from_arrow(table, type="symbol", time="ts")
    return stream.with_hierarchy(HIERARCHY)


def planner_runs(
    workload: Workload,
    stream: EventStream,
    *,
    evaluator: str,
    repetitions: int,
    seed: int = 0,
    planners: Sequence[str] = PLANNERS,
    warm_up: bool = True,
) -> list[dict[str, Any]]:
    """Plan a workload and list its matches, by planners in turns; :data:`ALONE` runs each query by itself.

    With ``warm_up`` a first turn loads compiled code, and is left out.

    A row a run, for :func:`cepbench.experiments.studies.runs.figure_runs`: ``size`` (queries),
    ``generator`` (the planner, or :data:`ALONE`), ``regime`` (the evaluator), ``seconds``,
    ``plan_seconds`` (refinements and planning), ``plan_cost`` (calibrated), ``matches``,
    ``reusing`` (queries with a source), ``peak_bytes``.
    """
    statistics = measure_statistics(workload, stream, seed=seed)
    rows: list[dict[str, Any]] = []
    for run in range(-1 if warm_up else 0, repetitions):
        for name in planners:
            # Without known refinements.
            fresh = Workload(workload.patterns, hierarchy=workload.hierarchy)
            began = time.perf_counter()
            if name == ALONE:
                queries = fresh.patterns.items()
                plan = None
                parts = [Workload({q: its}, hierarchy=fresh.hierarchy) for q, its in queries]
            else:
                plan = plan_workload(
                    fresh, statistics, name, delays=True, seed=seed, evaluator=evaluator
                )
                parts = [fresh]
            planned = time.perf_counter()
            found = [
                evaluate(part, stream, plan, evaluator=evaluator, output="arrow").metrics
                for part in parts
            ]
            ended = time.perf_counter()
            sources = plan.sources or {} if plan else {}
            rows.append(
                {
                    "size": len(workload.patterns),
                    "generator": name,
                    "regime": evaluator,
                    "repetition": run,
                    "seconds": ended - planned,
                    "plan_seconds": planned - began if plan else math.nan,
                    "plan_cost": plan.cost if plan else math.nan,
                    "matches": sum(its.matches for its in found),
                    "reusing": sum(source is not None for source in sources.values()),
                    "peak_bytes": max(its.peak_bytes for its in found),
                }
            )
    return [row for row in rows if row["repetition"] >= 0]


def runs_by_results(sweep: str, profile: str, *, seed: int = 0, **changes: Any) -> pd.DataFrame:
    """Plan and run the workload of a sweep by every planner, in turns, in windows of more and more results.

    Changes are ``events``, ``results`` and ``repetitions`` in the place of the profile's, unless 0
    or empty. Runs are those of :func:`planner_runs` with the number of results as setting.
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
