"""Planners of workloads side by side on one stream, each with several evaluators."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
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
    PlanGeneratorError,
    PlanningRefusedError,
    errors_naming,
)
from cepbench.experiments.sweeps.measure import timed_plan
from cepbench.experiments.sweeps.rotation import (
    Agreement,
    Contender,
    outcome_of,
    take_turns,
    throughput,
)
from cepbench.planning.costs.reuse import REUSE_COSTS
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
    seed: int,
    partial_match_limit: int,
    output: str,
    cost: Any,
    **how: Any,
) -> list[dict[str, Any]]:
    """A row for each planner and evaluator, see :func:`cepbench.compare`.

    The matches of the first run of each different plan are compared with those of the other plans, and
    their numbers in the measured runs.

    Parameters
    ----------
    workload, stream, statistics, planners, evaluators, options, seed, partial_match_limit, output, cost
        See :func:`cepbench.compare`.
    **how
        Of :func:`cepbench.experiments.sweeps.rotation.take_turns`.
    """
    names = _planners(planners)
    chosen = _evaluators(evaluators)
    its_options = {evaluator_for(name).name: its for name, its in options.items()}
    for name, values in its_options.items():
        options_of(evaluator_for(name), values)
    choice(cost, "the cost of reused matches", REUSE_COSTS, PlanGeneratorError)
    _check_queries(workload, stream)
    if statistics is None:
        statistics = measure_statistics(workload, stream, seed=seed)
    known = workload_statistics(workload, statistics)
    agreement = Agreement()

    def run(
        planner: str, evaluator: str, plan: WorkloadPlan, first: bool
    ) -> tuple[float, dict[str, Any]]:
        began = time.perf_counter()
        found = evaluate(
            workload,
            stream,
            plan,
            evaluator=evaluator,
            options=its_options.get(evaluator),
            output="matches" if first else output,
            partial_match_limit=partial_match_limit,
        )
        took = time.perf_counter() - began
        _check_agreement(agreement, f"{planner} on {evaluator}", found, of_matches=first)
        if not first:
            return took, {}
        return took, {
            "matches": found.metrics.matches,
            "reused": int(found.steps["reused"].sum()),
            "peak_bytes": found.metrics.peak_bytes,
        }

    rows: dict[tuple[str, str], dict[str, Any]] = {}
    #: Evaluator and plan → the contender of the first planner with it.
    contenders: dict[tuple[str, str], Contender] = {}
    for evaluator, planner in itertools.product(chosen, names):
        plan, outcome = _planned(
            workload, known, planner, cost=cost, seed=seed, evaluator=evaluator
        )
        row = rows[planner, evaluator] = {"planner": planner, "evaluator": evaluator, **outcome}
        if plan is None:
            continue
        its = Contender(row, partial(run, planner, evaluator, plan))
        first = contenders.setdefault((evaluator, str(plan.to_dict())), its)
        if first.row is not row:
            row["measured_with"] = first.row["planner"]
    for contender in take_turns([*contenders.values()], rows=len(rows), **how):
        speeds = [len(stream) / took if took else math.inf for took in contender.seconds]
        contender.row |= throughput(speeds)
    for (_, evaluator), row in rows.items():
        if "measured_with" in row:
            # Its own planner, plan and planning time; the run is that of the first one.
            run_by = rows[row["measured_with"], evaluator]
            row |= {name: value for name, value in run_by.items() if row.get(name) is None}
            row |= {name: run_by[name] for name in ("status", "reason")}
    for (_, evaluator), row in rows.items():
        naive = rows.get((_NAIVE, evaluator), {})
        if "events_per_second" in row and "events_per_second" in naive:
            row["times_naive"] = row["events_per_second"] / naive["events_per_second"]
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


def _planned(
    workload: Workload, statistics: Mapping[str, Statistics], planner: str, **options: Any
) -> tuple[WorkloadPlan | None, dict[str, Any]]:
    """The plan for a stream that is run as a whole, where no match is late, and the columns about it."""
    try:
        plan, took = timed_plan(workload, statistics, planner, delays=True, **options)
    except PlanGeneratorError as error:
        return None, outcome_of(error, PlanningRefusedError, named=False)
    ways = map(plan.reuse, plan.order)
    from_others = [f"{way.query} {way}" for way in ways if way.source is not None]
    return plan, {"plan": "; ".join(from_others), "cost": plan.cost, "plan_seconds": took}


def _check_agreement(
    agreement: Agreement, run: str, found: WorkloadMatches, *, of_matches: bool
) -> None:
    """Compare the numbers of matches with those of the first run, or the matches in any order."""
    for query, result in found.items():
        wrong = agreement.violated(run, result.metrics.matches, query)
        if of_matches and not wrong:
            hashed = pd.util.hash_pandas_object(result.matches, index=False).to_numpy(np.uint64)
            wrong = agreement.violated(run, int(hashed.sum(dtype=np.uint64)), (query, "matches"))
        if wrong:
            raise ExperimentError(
                f"{run} finds other matches of query {query!r} than {wrong[0]}; one of both is wrong. "
                "cep.check_evaluator finds out about a user-defined evaluator"
            )
