"""Planners of workloads side by side on one stream, each with several evaluators."""

from __future__ import annotations

import math
import statistics as averages
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import choice, texts
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS, evaluator_for
from cepbench.engines.detection.tasks import options_of
from cepbench.engines.runs.workload_result import WorkloadMatches
from cepbench.errors import (
    ExperimentError,
    PartialMatchLimitError,
    PlanGeneratorError,
    PlanningRefusedError,
    UnsupportedPatternError,
    UnsupportedTaskError,
    errors_naming,
)
from cepbench.experiments.sweeps.cells import ERROR, LIMIT, OK, REFUSED
from cepbench.planning.costs.reuse import REUSE_COSTS
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.given import workload_statistics
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, check_types, under_one_hierarchy

#: Columns of the comparison, in order.
PLANNER_COLUMNS = (
    "planner", "evaluator", "plan", "cost", "plan_seconds", "events_per_second",
    "events_per_second_q1", "events_per_second_q3", "times_naive", "runs", "measured_with", "peak_bytes",
    "reused", "matches", "status", "reason",
)  # fmt: skip

#: The planner that the others are compared with.
_NAIVE = "NAIVE"


def compare_planners(
    workload: Workload,
    stream: EventStream,
    *,
    statistics: Any,
    planners: Sequence[str] | None,
    evaluators: Sequence[str] | None,
    options: Mapping[str, Mapping[str, Any]],
    repetitions: int,
    seconds: float,
    seed: int,
    partial_match_limit: int,
    output: str,
    cost: Any,
    on_progress: Callable[[int, int], object] | None,
) -> list[dict[str, Any]]:
    """A row for each planner and evaluator, see :func:`cepbench.compare`.

    The first run of each different plan, which may compile, is not measured; its matches are compared
    with those of the other plans. The others are interleaved.
    """
    names = _planners(planners)
    chosen = _evaluators(evaluators)
    its_options = {evaluator_for(name).name: its for name, its in options.items()}
    for name, its in its_options.items():
        options_of(evaluator_for(name), its)
    choice(cost, "the cost of reused matches", REUSE_COSTS, PlanGeneratorError)
    _check_queries(workload, stream)
    if statistics is None:
        statistics = measure_statistics(workload, stream, seed=seed)
    known = workload_statistics(workload, statistics)
    plans = {
        (name, its): _planned(workload, known, name, cost=cost, seed=seed, evaluator=its)
        for name in names
        for its in chosen
    }
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    #: Evaluator and plan → the first planner with it, and the times of its runs.
    firsts: dict[tuple[str, str], str] = {}
    times: dict[tuple[str, str], list[float]] = {}
    total, done = len(names) * len(chosen) * (1 + repetitions), 0

    def report(runs: int) -> None:
        nonlocal done
        done += runs
        if on_progress is not None:
            on_progress(done, max(done, total))

    def run(cell: tuple[str, str], output: str) -> tuple[WorkloadMatches, float]:
        planner, evaluator = cell
        began = time.perf_counter()
        found = evaluate(
            workload,
            stream,
            plans[planner, evaluator][0],
            evaluator=evaluator,
            options=its_options.get(evaluator),
            output=output,
            partial_match_limit=partial_match_limit,
        )
        return found, time.perf_counter() - began

    report(0)
    agreement = _Agreement()
    for evaluator in chosen:
        for planner in names:
            plan, outcome = plans[planner, evaluator]
            row = rows[planner, evaluator] = {"planner": planner, "evaluator": evaluator, **outcome}
            if plan is None:
                report(1 + repetitions)
                continue
            its_key = evaluator, str(plan.to_dict())
            first = firsts.setdefault(its_key, planner)
            if first != planner:
                row["measured_with"] = first
                report(1 + repetitions)
                continue
            try:
                found, _ = run((planner, evaluator), "matches")
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a failure of a run is a row
                row |= _failure(error)
                report(1 + repetitions)
                continue
            agreement.check(found, f"{planner} on {evaluator}")
            row |= {
                "matches": found.metrics.matches,
                "reused": int(found.steps["reused"].sum()),
                "peak_bytes": found.metrics.peak_bytes,
            }
            times[planner, evaluator] = []
            report(1)
    waiting = [*times]
    while waiting:
        for cell in waiting:
            found, took = run(cell, output)
            agreement.check_counts(found, " on ".join(cell))
            times[cell].append(took)
            report(1)
        waiting = [
            cell for cell in waiting if len(times[cell]) < repetitions or sum(times[cell]) < seconds
        ]
    for cell, took_each in times.items():
        rows[cell] |= _figures(took_each, len(stream))
    for (_, evaluator), row in rows.items():
        if row.get("measured_with") is not None:
            # Its own planner, plan and planning time; the run is that of the first one.
            run_by = rows[row["measured_with"], evaluator]
            row |= {name: value for name, value in run_by.items() if row.get(name) is None}
            row |= {name: run_by[name] for name in ("status", "reason")}
    for (_, evaluator), row in rows.items():
        naive = rows.get((_NAIVE, evaluator), {}).get("events_per_second")
        if naive is not None and row.get("events_per_second") is not None:
            row["times_naive"] = row["events_per_second"] / naive
    return [*rows.values()]


def _planners(given: Sequence[str] | None) -> list[str]:
    """The names of planners that reuse matches; by default of all."""
    if given is None:
        return [name for name, entry in WORKLOAD_PLANNERS.items() if entry.shares == "matches"]
    entries = [WORKLOAD_PLANNERS.find(name) for name in texts(given, "planners", ExperimentError)]
    for entry in entries:
        if entry.shares != "matches":
            raise ExperimentError(
                f"planner {entry.name} shares counts of sequences, for cep.aggregate; name planners "
                "that reuse matches, such as CHASE"
            )
    return list(dict.fromkeys(entry.name for entry in entries))


def _evaluators(given: Sequence[str] | None) -> list[str]:
    """The names of evaluators; by default ``tree`` and those that share state between queries."""
    if given is None:
        return ["tree", *(name for name, entry in EVALUATORS.items() if entry.together is not None)]
    names = texts(given, "evaluators", ExperimentError)
    return list(dict.fromkeys(evaluator_for(name).name for name in names))


def _check_queries(workload: Workload, stream: EventStream) -> None:
    """Raise for queries that no run could evaluate on the stream."""
    for query, pattern in workload.patterns.items():
        if pattern.aggregates:
            raise ExperimentError(
                f"query {query!r} has AGG {pattern.aggregates[0]}; of a workload, matches are compared. "
                "cep.aggregate(workload, stream, sharing=...) computes its values; for matches use "
                "pattern.without_aggregate()"
            )
        with errors_naming(query):
            its, under = under_one_hierarchy(pattern, stream)
            check_types(its, under)
            check_fit(its, under)


def timed_plan(
    workload: Workload, statistics: Mapping[str, Statistics], planner: str, **options: Any
) -> tuple[WorkloadPlan, float]:
    """A plan for a stream that is run as a whole, where no match is late, and the seconds of planning.

    Refinements are part of planning, the loading of compiled code is not. Parameters and errors are
    those of :func:`cepbench.plan_workload`.
    """
    plan_workload(_SMALL, _OF_SMALL, planner)
    # A workload computes its refinements on first use.
    fresh = Workload(workload.patterns, hierarchy=workload.hierarchy)
    began = time.perf_counter()
    found = plan_workload(fresh, statistics, planner, delays=True, **options)
    return found, time.perf_counter() - began


def _planned(
    workload: Workload, statistics: Mapping[str, Statistics], planner: str, **options: Any
) -> tuple[WorkloadPlan | None, dict[str, Any]]:
    """The plan, or None, and the columns about planning."""
    try:
        plan, took = timed_plan(workload, statistics, planner, **options)
    except PlanningRefusedError as error:
        return None, {"status": REFUSED, "reason": str(error)}
    except PlanGeneratorError as error:
        return None, {"status": ERROR, "reason": str(error)}
    ways = map(plan.reuse, plan.order)
    from_others = [f"{way.query} {way}" for way in ways if way.source is not None]
    return plan, {
        "plan": "; ".join(from_others),
        "cost": plan.cost,
        "plan_seconds": took,
        "status": OK,
        "reason": None,
    }


_SMALL = Workload(
    {"q": "PATTERN SEQ(A a) WITHIN 1 units", "r": "PATTERN SEQ(A a, B b) WITHIN 1 units"}
)
_OF_SMALL = dict.fromkeys(_SMALL.patterns, Statistics(rates={"a": 1.0, "b": 1.0}))


class _Agreement:
    """Whether all runs find the same matches of every query."""

    def __init__(self) -> None:
        self._first = ""
        self._found: dict[str, tuple[int, int]] = {}

    def check(self, found: WorkloadMatches, run: str) -> None:
        """Compare the matches of a run, in any order, with those of the first one."""
        for query, result in found.items():
            hashed = pd.util.hash_pandas_object(result.matches, index=False).to_numpy(np.uint64)
            own = len(hashed), int(hashed.sum(dtype=np.uint64))
            if self._found.setdefault(query, own) != own:
                raise self._error(query, run)
        self._first = self._first or run

    def check_counts(self, found: WorkloadMatches, run: str) -> None:
        """Compare the numbers of matches of a run with those of the first one."""
        for query, result in found.items():
            if self._found[query][0] != result.metrics.matches:
                raise self._error(query, run)

    def _error(self, query: str, run: str) -> ExperimentError:
        return ExperimentError(
            f"{run} finds other matches of query {query!r} than {self._first}; one of both is wrong. "
            "cep.check_evaluator finds out about a user-defined evaluator"
        )


def _failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, UnsupportedPatternError | UnsupportedTaskError):
        return {"status": REFUSED, "reason": str(error)}
    if isinstance(error, PartialMatchLimitError):
        return {"status": LIMIT, "reason": str(error)}
    return {"status": ERROR, "reason": f"{type(error).__name__}: {error}"}


def _figures(times: Sequence[float], events: int) -> dict[str, Any]:
    """Median and quartiles of the throughput."""
    speeds = [events / took if took else math.inf for took in times]
    low, high = np.quantile(speeds, [0.25, 0.75])
    return {
        "events_per_second": averages.median(speeds),
        "events_per_second_q1": low,
        "events_per_second_q3": high,
        "runs": len(times),
    }
