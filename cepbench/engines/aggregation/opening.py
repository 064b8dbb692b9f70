"""The arguments of aggregations as tasks, and the methods that run them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cepbench.arguments import choice, shown
from cepbench.engines.aggregation.arrival import by_arrival
from cepbench.engines.aggregation.e_cube import E_CUBE, ReuseRun
from cepbench.engines.aggregation.protocol import (
    EMITS,
    SCOPES,
    AggregationMethod,
    AggregationRun,
    AggregationTask,
)
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.tables import check_columns
from cepbench.engines.aggregation.workload_run import SHARED, QueryRuns, counted_queries
from cepbench.errors import EvaluationError, PatternError, UnsupportedPatternError, errors_naming
from cepbench.patterns.model import EventType, Pattern
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload


def is_e_cube(method: Any) -> bool:
    """Whether a method is the one of workloads only."""
    return isinstance(method, str) and method.lower() == E_CUBE


def tasks_of(
    queries: Pattern | Workload, emit: str, scope: str, evaluator: str | None
) -> dict[str, AggregationTask]:
    """Check the arguments of :class:`Aggregator`; returns a task for each query.

    A PatternError or an EvaluationError if one is invalid.
    """
    tasks = {}
    for name, pattern in queries.queries.items():
        with errors_naming(name):
            if not pattern.aggregates:
                raise PatternError(
                    "the pattern has no AGG; write AGG COUNT before WITHIN, or use cep.evaluate for "
                    "its matches"
                )
            tasks[name] = AggregationTask(
                pattern,
                choice(emit, "emit", EMITS, EvaluationError),
                choice(scope, "scope", SCOPES, EvaluationError),
                evaluator,
            )
    check_columns(queries.queries)
    if len({task.pattern.window.is_datetime for task in tasks.values()}) > 1:
        raise PatternError(
            "the windows of a workload are all durations or all numbers of units, because they are "
            "over the same stream"
        )
    return tasks


def run_of(
    queries: Pattern | Workload,
    tasks: Mapping[str, AggregationTask],
    method: str | None,
    sharing: WorkloadPlan | str | None,
) -> QueryRuns | ReuseRun:
    """The run of all queries.

    An EvaluationError if ``sharing`` is no plan of the workload, or not of the method. An
    UnsupportedPatternError if a method cannot run its query, or a query that is cut shares no
    counters.
    """
    if not queries.by_query and sharing is not None:
        raise EvaluationError(
            "a single pattern shares nothing; leave out sharing, or give a cep.Workload"
        )
    if not queries.by_query and is_e_cube(method):
        raise EvaluationError(
            f"the method {E_CUBE} is for workloads, whose queries reuse each other's matches; use "
            "two-step, or give a cep.Workload"
        )
    if sharing is None:
        if is_e_cube(method):
            raise EvaluationError(
                f"the method {E_CUBE} reuses matches as a plan says; give sharing=cep.plan_workload("
                'workload, statistics, planner="CHASE"), or use cep.aggregate, which plans'
            )
        return QueryRuns({name: opened(name, task, method) for name, task in tasks.items()})
    reuses = isinstance(sharing, WorkloadPlan) and sharing.sources is not None
    due = E_CUBE if reuses else SHARED
    if method is not None and method.lower() != due:
        raise EvaluationError(
            f"the sharing is for the method {due}, not {method}; leave out method, or sharing"
        )
    if not isinstance(sharing, WorkloadPlan):
        raise EvaluationError(
            f"sharing is a cep.WorkloadPlan, not {shown(sharing)}; a planner needs statistics, so give cep.plan_workload(workload, statistics, planner)"
        )
    if sharing.workload != queries:
        raise EvaluationError("the plan is of another workload; make one with this workload")
    if reuses:
        return ReuseRun(tasks, sharing)
    if any(task.evaluator is not None for task in tasks.values()):
        raise EvaluationError(f"the method {SHARED} uses no evaluator; leave it out")
    shares = sharing.shares_prefixes or any(sharing.cuts.values())
    counted = counted_queries(tasks, sharing) if shares else {}
    alone = {
        name: opened(name, task, method) for name, task in tasks.items() if not counted.get(name)
    }
    return QueryRuns(alone, {name: tasks[name] for name in tasks if name not in alone}, sharing)


def opened(query: str, task: AggregationTask, method: str | None) -> tuple[str, AggregationRun]:
    """The name of a query's method, by default the first one that runs it, and its run.

    An EvaluationError if the method is unknown, or uses no evaluator. An UnsupportedPatternError if
    the method cannot run the pattern.
    """
    with errors_naming(query):
        if method is not None:
            chosen = AGGREGATORS.find(method)
            if task.evaluator is not None and not chosen.lists_matches:
                raise EvaluationError(f"the method {chosen.name} uses no evaluator; leave it out")
            _check_concepts(chosen, task.pattern)
            return chosen.name, by_arrival(chosen.open, task)
        for entry in (entry for entry in AGGREGATORS.values() if entry.expires):
            if entry.lists_matches:  # which runs all patterns
                return entry.name, by_arrival(entry.open, task)
            if task.evaluator is None:
                with suppress(UnsupportedPatternError):
                    return entry.name, by_arrival(entry.open, task)
    raise AssertionError(task)  # pragma: no cover


def _check_concepts(method: AggregationMethod, pattern: Pattern) -> None:
    """Check that a method takes the concepts of a pattern."""
    if method.concepts:
        return
    types = [key for key in pattern.group_by if isinstance(key.attribute, EventType)]
    if pattern.concepts or types:
        what = f"GROUP BY {types[0]}" if types else f"items of a concept ({pattern.concepts[0]})"
        raise UnsupportedPatternError(
            f"the method {method.name} does not declare that it takes {what}; use the method two-step, "
            "or register it with concepts=True once it does"
        )
