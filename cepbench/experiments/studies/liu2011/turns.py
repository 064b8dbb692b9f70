"""Planners that take turns on one workload in this process, each planning anew for every run."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from typing import Any

from cepbench.engines.detection.evaluate import evaluate
from cepbench.experiments.sweeps.cells import OK
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


def study_workload(sweep: str, hierarchy: ConceptHierarchy | None, window: str = "") -> Workload:
    """The only workload of a sweep of the study, such as ``both``, in its window or another, ``10
    milliseconds``.
    """
    ((_, text),) = read_sweep(f"liu2011/{sweep}").config("").user_workloads
    if window:
        text = re.sub(r"(?<=WITHIN ).*", window, text)
    return Workload.parse(text, hierarchy=hierarchy)


def company_stream(events: int, seed: int) -> EventStream:
    """Trades of all companies at equal rates, under their hierarchy."""
    table = CompanyTrades(events, seed).table(0, events)
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
) -> list[dict[str, Any]]:
    """Plan a workload and list its matches, by planners in turns; :data:`ALONE` runs each query by itself.

    A row a run, for :func:`cepbench.experiments.studies.runs.figure_runs`: ``size`` (queries),
    ``generator`` (the planner, or :data:`ALONE`), ``regime`` (the evaluator), ``seconds``,
    ``plan_seconds`` (refinements and planning), ``plan_cost`` (calibrated), ``matches``,
    ``reusing`` (queries with a source), ``peak_bytes``.
    """
    statistics = measure_statistics(workload, stream, seed=seed)
    rows: list[dict[str, Any]] = []
    for run in range(-1, repetitions):  # the first one, which is left out, loads compiled code
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
                    "status": OK,
                    "seconds": ended - planned,
                    "plan_seconds": planned - began if plan else math.nan,
                    "plan_cost": plan.cost if plan else math.nan,
                    "matches": sum(its.matches for its in found),
                    "reusing": sum(source is not None for source in sources.values()),
                    "peak_bytes": max(its.peak_bytes for its in found),
                }
            )
    return [row for row in rows if row["repetition"] >= 0]
