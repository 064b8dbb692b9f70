"""Evaluation of a workload on a finite stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cepbench.arguments import kind_of
from cepbench.errors import CepbenchError, EvaluationError, PlanError, did_you_mean
from cepbench.evaluators.protocol import Evaluator
from cepbench.evaluators.registry import evaluator_for
from cepbench.evaluators.result import Metrics, Result
from cepbench.evaluators.task_runs import run_task
from cepbench.evaluators.tasks import evaluator_without_plan, runs_some, task_for
from cepbench.evaluators.workload_runs.result import Step, WorkloadMatches
from cepbench.patterns.model import Pattern
from cepbench.plans.model import AnyPlan, OrderPlan, Plan, TreePlan, UnionPlan
from cepbench.plans.tree import left_deep
from cepbench.streams.event_stream import EventStream
from cepbench.workloads.model import Workload

#: Metrics that are sums over queries.
_SUMMED = ("seconds", "matches", "partial_matches_created", "comparisons")


def evaluate_workload(
    workload: Workload,
    stream: EventStream,
    plan: Mapping[str, AnyPlan] | None,
    *,
    evaluator: str | Evaluator | None,
    options: Mapping[str, Any] | None,
    output: str,
    partial_match_limit: int,
) -> WorkloadMatches:
    """Find the matches of every query of a workload; see :func:`cepbench.evaluate`."""
    plans = _plans_of(workload, plan)
    results, taken = {}, []
    for query, pattern in workload.patterns.items():
        with errors_naming(query):
            results[query] = evaluate_alone(
                pattern,
                stream,
                plans.get(query),
                evaluator=evaluator,
                options=options,
                output=output,
                partial_match_limit=partial_match_limit,
            )
        metrics = results[query].metrics
        taken.append(Step(query, None, metrics.matches, 0, metrics.matches, metrics.seconds))
    return WorkloadMatches(results, taken, _total([each.metrics for each in results.values()]))


def evaluate_alone(
    pattern: Pattern,
    stream: EventStream,
    plan: AnyPlan | None,
    *,
    evaluator: str | Evaluator | None,
    **arguments: Any,
) -> Result:
    """The result of one query from scratch.

    Without a plan the evaluator, by default ``tree``, runs without one if it can, else by a plan in
    written order.
    """
    if pattern.aggregates:
        raise EvaluationError(
            "evaluate finds matches; cep.aggregate(workload, stream) computes the values of AGG"
        )
    if plan is None:
        if evaluator is None:
            evaluator = evaluator_without_plan(pattern.strategy.name) or "tree"
        plan = written_plan(pattern, evaluator_for(evaluator))
    chosen, task = task_for(pattern, plan, evaluator=evaluator, whole_stream=True, **arguments)
    return run_task(chosen, task, stream)


def written_plan(pattern: Pattern, evaluator: Evaluator) -> AnyPlan | None:
    """A plan in written order for an evaluator; None for one that runs without."""
    kinds = [kind for kind in ("tree", "order") if runs_some(evaluator, kind)]
    if evaluator.without_plan or not kinds:
        return None
    plans: list[Plan] = [
        TreePlan(left_deep(branch.planned_names))
        if kinds[0] == "tree"
        else OrderPlan(branch.planned_names)
        for branch in pattern.branches()
    ]
    return plans[0] if len(plans) == 1 else UnionPlan(plans)


def _plans_of(workload: Workload, given: Any) -> Mapping[str, AnyPlan]:
    """The plans of single queries."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise PlanError(
            f"the plan of a workload is a mapping of queries to plans, not {kind_of(given)}; "
            'write {"q1": cep.plan(pattern, statistics)}, or leave it out'
        )
    for query in given:
        if query not in workload.patterns:
            raise PlanError(
                f"the plan has a query {query!r} that the workload has not; it has "
                f"{', '.join(workload.patterns)}{did_you_mean(query, workload.patterns)}"
            )
    return given


def _total(metrics: Sequence[Metrics]) -> Metrics:
    """The metrics of all queries together."""
    return Metrics(
        events=metrics[0].events,
        **{name: np.nansum([getattr(its, name) for its in metrics]).item() for name in _SUMMED},
    )


@contextmanager
def errors_naming(query: str) -> Iterator[None]:
    """Add the name of a query to errors about it."""
    try:
        yield
    except CepbenchError as error:
        error.args = (f"query {query!r}: {error}",)
        raise
