"""The front end: estimates and measurements by node of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import pandas as pd

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.automata.model import Automaton
from cepbench.engines.detection.chosen import fastest
from cepbench.engines.detection.planned import default_plan, sampled
from cepbench.engines.detection.task_runs import run_tasks
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, chosen_evaluator, task_for
from cepbench.engines.runs.choice import Choice
from cepbench.engines.runs.protocol import Arguments, Evaluator, Task
from cepbench.engines.runs.result import Result
from cepbench.errors import PlanError, UnsupportedPatternError
from cepbench.patterns.model import Pattern
from cepbench.patterns.row_counterpart import counterpart
from cepbench.patterns.row_pattern import RowPattern
from cepbench.planning.costs.logarithms import SMALLEST
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.models import cost_from
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.planners.stakes import Stakes, plan_stakes
from cepbench.planning.plans.given import plan_from
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.measure import active_time, measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload
from cepbench.presentation.explainer.automaton import AutomatonExplanation
from cepbench.presentation.explainer.estimates import estimate
from cepbench.presentation.explainer.explanation import Explanation
from cepbench.presentation.explainer.measured import measure
from cepbench.presentation.explainer.row_pattern import RowExplanation, explain_rows
from cepbench.presentation.explainer.workload import WorkloadExplanation, explain_workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_types, reporting_missing_types, under_one_hierarchy
from cepbench.streams.given import Frame, events_from


@overload
def explain(
    pattern: Workload,
    plan: WorkloadPlan | Mapping[str, AnyPlan] | None = None,
    statistics: Mapping[str, Statistics] | None = None,
    stream: EventStream | Frame | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    evaluator: str | Evaluator | None = None,
    options: Mapping[str, Any] | None = None,
    cost: str | None = None,
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    missing_types: str = "warn",
) -> WorkloadExplanation: ...


@overload
def explain(
    pattern: RowPattern,
    plan: None = None,
    statistics: Statistics | None = None,
    stream: EventStream | Frame | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
) -> RowExplanation | Explanation: ...


@overload
def explain(
    pattern: Pattern | str,
    plan: AnyPlan | None = None,
    statistics: Statistics | None = None,
    stream: EventStream | Frame | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    evaluator: str | Evaluator | None = None,
    options: Mapping[str, Any] | None = None,
    time_selectivity: str = "adjacent",
    alpha: float | None = None,
    cost: str | CostModel | None = None,
    last: str | Sequence[str | None] | None = None,
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    missing_types: str = "warn",
) -> Explanation: ...


def explain(
    pattern: Pattern | str | Workload | RowPattern,
    plan: Any = None,
    statistics: Any = None,
    stream: EventStream | Frame | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    evaluator: str | Evaluator | None = None,
    options: Mapping[str, Any] | None = None,
    time_selectivity: str = "adjacent",
    alpha: float | None = None,
    cost: str | CostModel | None = None,
    last: str | Sequence[str | None] | None = None,
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    missing_types: str = "warn",
) -> Explanation | WorkloadExplanation | RowExplanation:
    """Expected partial matches and cost by node of a plan, and on a stream the actual ones.

    Of an automaton its edges, the bound on its runs, and on a stream the actual ones. Of a workload
    its queries: what each is expected to cost and to find, and on a stream what it did, and whether
    the reuse of another query's matches was faster than the query from scratch. Of a query with
    MATCH_RECOGNIZE the pattern that says the same; without one the automaton that runs it, why there is no
    plan, and the nearest query that has one.

    Parameters
    ----------
    plan : OrderPlan, TreePlan, Automaton or UnionPlan, optional
        None for the automaton of the pattern. Of a workload a WorkloadPlan with sources, or a mapping
        of queries to plans; None for each query from scratch.
    statistics : Statistics, optional
        Basis of the estimates, by default measured on the stream; may differ from those that the plan was
        made with. An automaton needs none. Of a workload those of every query.
    stream, type, time : optional
        Stream on which to run the plan, see :func:`cepbench.evaluate`; matches are only counted, except
        of a workload.
    evaluator, options, partial_match_limit, missing_types
        As in :func:`cepbench.evaluate`. To run a plan of nodes on a stream the evaluator must provide
        metrics by node.
    time_selectivity, last
        See :func:`cepbench.planning.planners.generate.plan`; not of workloads.
    alpha : float, optional
        Weight of latency in the cost ``throughput``; by default that of the plan. Not of workloads.
    cost : str or CostModel, optional
        The cost to show, a sum over nodes, by default ``"throughput"``; of a workload
        ``"calibrated"``, the default, or ``"e-cube"``. Under ``"zstream"`` and ``"zstream-repaired"`` the nodes
        have their operators, and negated variables and groups their own cost.

    Returns
    -------
    Explanation, WorkloadExplanation or RowExplanation
        ``nodes`` is a table with one row per node, ``stakes`` whether choosing a plan matters for
        this pattern, ``describe()`` the text; a picture in notebooks. Of an automaton, ``nodes``
        has one row per edge; of a workload, ``steps`` has one row per query.

    Raises
    ------
    PlanError, StreamError
        If the plan, or the stream, does not fit the pattern.
    StatisticsError
        If a rate or another number is missing, or an argument is invalid.
    PlanGeneratorError
        If the cost is unknown, or not a sum over nodes.
    EvaluationError
        If the evaluator is unknown or cannot run the plan.
    PartialMatchLimitError
        If ``partial_match_limit`` is exceeded.

    Notes
    -----
    Source: [kolchinsky2018]_, sections 3 and 5, for the estimates: partial matches that coexist
    within the window. The estimate of a node is compared with their number averaged over active
    time (see :func:`cepbench.planning.statistics.measure.measure_statistics`), that of the root with the
    number of rows created. Under ``time_selectivity="exact"``, a nested SEQ has no estimates; a
    remark says so.
    """
    if isinstance(pattern, RowPattern):
        rows = pattern
        try:
            pattern = counterpart(rows)
        except UnsupportedPatternError as error:
            if plan is not None or evaluator is not None:
                raise
            events = events_from(stream, type, time) if stream is not None else None
            return explain_rows(rows, events, error, partial_match_limit)
    pattern = queries_from(pattern)
    asked = Arguments(
        evaluator=evaluator,
        options=options,
        output="matches" if pattern.by_query else "count",
        partial_match_limit=partial_match_limit,
    )
    with reporting_missing_types(missing_types):
        given = (stream, type, time)
        events = None if all(its is None for its in given) else events_from(*given)
        if pattern.by_query:
            if (time_selectivity, alpha, last) != ("adjacent", None, None):
                raise PlanError(
                    "time_selectivity, alpha and last are of plans of single patterns; explain "
                    "workload.patterns[...] one by one"
                )
            cost = "calibrated" if cost is None else cost
            return explain_workload(pattern, plan, statistics, events, asked, cost)
        if events is not None:
            pattern, events = under_one_hierarchy(pattern, events)
        plan = automaton(pattern) if plan is None else plan_from(plan)
        if plan.kind == "automaton":
            return _explain_automaton(pattern, plan, statistics, events, asked)
        if statistics is None and events is not None:
            statistics = measure_statistics(pattern, events)
        statistics = statistics_from(statistics)
        asked = replace(asked, node_times=events is not None)
        task = task_for(pattern, plan, asked, whole_stream=True)
        assert task.plan is not None
        if alpha is None:
            of_plan = cost is None or cost_from(cost) == Throughput()
            alpha = task.plan.parts[0].alpha if of_plan else 0.0
        estimates = estimate(
            pattern, task.plan, statistics, time_selectivity=time_selectivity, alpha=alpha,
            last=last, cost="throughput" if cost is None else cost,
        )  # fmt: skip
        tables: Sequence[pd.DataFrame] = estimates.tables
        metrics = None
        if events is not None:
            result = _result(task, events)
            metrics = result.metrics
            tables = measure(result, events, estimates.nodes, tables)
    remarks = estimates.remarks
    if len(task.plan.parts) > len(plan.parts):
        remarks = (f"Shown and measured are the alternatives of {plan.text}, one by one.", *remarks)
    return Explanation(
        pattern=pattern,
        plan=estimates.plan,
        evaluator=task.evaluator.name,
        nodes=pd.concat(tables, ignore_index=True),
        metrics=metrics,
        remarks=remarks,
        stakes=_stakes(pattern, statistics, time_selectivity),
        choice=_choice(pattern, task.plan, statistics, events),
    )


def _explain_automaton(
    pattern: Pattern,
    plan: AnyPlan,
    statistics: Statistics | None,
    stream: EventStream | None,
    asked: Arguments,
) -> AutomatonExplanation:
    """The edges of an automaton, and on a stream what its run counted."""
    chosen = chosen_evaluator(plan, asked.evaluator, pattern.strategy.name)
    counts = stream is not None and chosen.node_times
    asked = replace(asked, evaluator=chosen, node_times=counts)
    task = task_for(pattern, plan, asked, whole_stream=True)
    tables = [
        part.table().assign(branch=number)
        for number, part in enumerate(plan.parts)
        if isinstance(part, Automaton)
    ]
    edges = pd.concat(tables, ignore_index=True)
    metrics = None
    if stream is not None:
        result = _result(task, stream)
        metrics = result.metrics
        if counts:
            keys = ["branch", "state", "edge"]
            counted = result.nodes if len(tables) > 1 else result.nodes.assign(branch=0)
            edges = edges.merge(counted, how="left", on=keys, validate="one_to_one")
    edges.insert(0, "branch", edges.pop("branch"))
    choice = None
    if statistics is None and stream is not None:
        statistics, _ = sampled(pattern, stream)
    if statistics is not None:
        its = default_plan(pattern, statistics_from(statistics))
        choice = _choice(pattern, its, statistics, stream)
    return AutomatonExplanation(pattern, plan, chosen.name, edges, metrics, choice=choice)


def _choice(
    pattern: Pattern, plan: AnyPlan | None, statistics: Statistics, stream: EventStream | None
) -> Choice | None:
    """The engines that can count the matches of a stream, or of a million events, by expected times."""
    if not (pattern.window.length and {*pattern.names} <= {*statistics.names}):
        return None
    if stream is not None:
        active = active_time(pattern, stream)
    else:
        window = pattern.window.seconds
        events = sum(statistics.cardinality(name, window) for name in statistics.names)
        active = 1e6 / (statistics.stream_rate or max(events / window, SMALLEST))
    asked = Arguments(
        evaluator=None, options=None, output="count", partial_match_limit=PARTIAL_MATCH_LIMIT
    )
    return fastest(pattern, plan, statistics, active, asked, whole_stream=True).choice


def _result(task: Task, stream: EventStream) -> Result:
    check_types(task.pattern, stream)
    (result,) = run_tasks([task], stream)
    return result


def _stakes(pattern: Pattern, statistics: Statistics, time_selectivity: str) -> Stakes | None:
    """Whether choosing a plan matters; None if the pattern has no estimates."""
    try:
        return plan_stakes(pattern, statistics, time_selectivity=time_selectivity)
    except UnsupportedPatternError:
        return None
