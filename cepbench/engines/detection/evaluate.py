"""The front end: evaluation of a pattern on a finite stream, by a plan or without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, overload

from cepbench.arguments import whole
from cepbench.engines.detection.chosen import chosen
from cepbench.engines.detection.counted import results_of
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, task_for
from cepbench.engines.detection.workload_evaluate import evaluate_workload
from cepbench.engines.row_patterns.evaluate import RowResult, evaluate_rows
from cepbench.engines.runs.protocol import Arguments, Evaluator
from cepbench.engines.runs.result import Result
from cepbench.engines.runs.workload_result import WorkloadMatches
from cepbench.errors import EvaluationError, UnsupportedTaskError
from cepbench.patterns.model import Pattern
from cepbench.patterns.row_pattern import RowPattern
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import (
    check_fit,
    check_types,
    reporting_missing_types,
    under_one_hierarchy,
)
from cepbench.streams.given import Frame, events_from


@overload
def evaluate(
    pattern: RowPattern,
    stream: EventStream | Frame,
    *,
    type: str | None = None,
    time: str | None = None,
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
) -> RowResult: ...


@overload
def evaluate(
    pattern: Workload,
    stream: EventStream | Frame,
    plan: WorkloadPlan | Mapping[str, AnyPlan] | str | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    evaluator: str | Evaluator | None = None,
    options: Mapping[str, Any] | None = None,
    output: str = "matches",
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
) -> WorkloadMatches: ...


@overload
def evaluate(
    pattern: Pattern | str,
    stream: EventStream | Frame,
    plan: AnyPlan | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    evaluator: str | Evaluator | None = None,
    options: Mapping[str, Any] | None = None,
    output: str = "matches",
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    latency: bool = False,
    node_times: bool = False,
    missing_types: str = "warn",
) -> Result: ...


def evaluate(
    pattern: Pattern | str | Workload | RowPattern,
    stream: EventStream | Frame,
    plan: Any = None,
    *,
    type: str | None = None,
    time: str | None = None,
    evaluator: str | Evaluator | None = None,
    options: Mapping[str, Any] | None = None,
    output: str = "matches",
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    latency: bool = False,
    node_times: bool = False,
    missing_types: str = "warn",
) -> Result | WorkloadMatches | RowResult:
    """Find all matches of ``pattern`` in ``stream`` by ``plan``.

    Parameters
    ----------
    pattern : Pattern, str, Workload or RowPattern
        A pattern or its text; or a workload, of which every query gets its own matches; or a query with
        MATCH_RECOGNIZE, which needs no plan and takes no options.
    stream : EventStream or Frame
        Or a DataFrame of pandas or Polars, an Arrow table or another exporter of Arrow data, whose rows
        are events in order of time; with ``type`` and ``time``.
    plan : OrderPlan, TreePlan, Automaton or UnionPlan, optional
        One plan, or for a pattern with OR one for each of its branches, as ``cep.plan`` returns
        them; None for an evaluator that runs without. Else by default the plan that ``cep.plan`` makes of
        statistics sampled from the stream, which is ``Result.plan``. Of a workload a WorkloadPlan with
        sources, or a mapping of queries to such plans, in which a query without one is evaluated in
        written order; by default each query has its own plan, and engine, as above. The name of a planner in
        ``cep.WORKLOAD_PLANNERS`` stands for its plan by a sample of the stream, or for none where that is not
        expected to save more than planning takes.
    type, time : str, optional
        Names of the columns of event types and times of a stream that is no EventStream.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``, in any case. By default ``lazy-nfa`` for order plans, ``tree``
        for tree plans, ``sase`` for automata; without a plan the built-in one that is expected to take
        the least time, see ``Result.choice``.
    options : mapping, optional
        Options of the evaluator by name; others have their defaults.
    output : {"matches", "arrow", "count", "compressed"}
        Whether to store or only to count matches. Stored ones are available as a sorted DataFrame,
        ``Result.matches``, and in the order found, ``Result.arrow``; ``compressed`` stores them as
        a graph, ``Result.compressed``, from which the others are enumerated on demand.
    partial_match_limit : int
        Maximum number of stored partial matches, whose sets may have five times as many events; a run that
        exceeds it is an error. Not enforced for user-defined functions.
    latency : bool
        Whether to measure detection latency, see :class:`Detector`; not of workloads.
    node_times : bool
        Whether to measure the time spent in each node of the plan, for ``Result.nodes``; not of
        workloads.
    missing_types : {"warn", "error"}
        Whether a type that no event has is a :class:`~cepbench.errors.MissingTypeWarning`, once, or
        a StreamError; it is one in any case if the stream has a hierarchy.

    Returns
    -------
    Result, WorkloadMatches or RowResult
        Of a workload a mapping of queries to results, with ``metrics`` and ``steps``; of a row pattern a
        table with its measures.

    Raises
    ------
    StreamError
        If the pattern asks for types or attributes that the stream does not have.
    PatternError, PlanError, EvaluationError
        If an argument is invalid, or plan, evaluator and pattern do not fit each other.
    UnsupportedPatternError, UnsupportedTaskError
        If the evaluator does not declare a requested capability; the message names those that do.
    PartialMatchLimitError
        If more partial matches would have to be stored than allowed.
    """
    asked = Arguments(
        evaluator=evaluator,
        options=options,
        output=output,
        partial_match_limit=partial_match_limit,
        latency=latency,
        node_times=node_times,
    )
    if isinstance(pattern, RowPattern):
        return _of_rows(pattern, events_from(stream, type, time), plan, asked)
    queries = queries_from(pattern)
    if queries.by_query and (latency or node_times):
        raise EvaluationError(
            "latency and times of nodes are measured of single patterns; evaluate "
            "workload.patterns[...] one by one"
        )
    events = events_from(stream, type, time)
    with reporting_missing_types(missing_types):
        if queries.by_query:
            return evaluate_workload(queries, events, plan, asked)
        single, events = under_one_hierarchy(queries, events)
        choice = None
        if plan is None:
            plan, its, choice = chosen(single, events, asked, whole_stream=True)
            asked = replace(asked, evaluator=its)
        task = task_for(single, plan, asked, whole_stream=True)
        check_types(single, events)
        check_fit(single, events)
        (result,) = results_of([task], events)
        return replace(result, choice=choice)


def _of_rows(pattern: RowPattern, events: EventStream, plan: Any, asked: Arguments) -> RowResult:
    """The result of a row pattern; an UnsupportedTaskError for arguments that are not for those."""
    usual = {
        "evaluator": None,
        "options": None,
        "output": "matches",
        "latency": False,
        "node_times": False,
    }
    given = ["plan"] if plan is not None else []
    given += [name for name, value in usual.items() if getattr(asked, name) != value]
    if given:
        raise UnsupportedTaskError(
            f"{given[0]}= is not for row patterns, which run by their automaton: leave it out, or evaluate "
            "cep.counterpart(pattern), if there is one"
        )
    limit = whole(asked.partial_match_limit, "partial_match_limit", EvaluationError, least=1)
    return evaluate_rows(pattern, events, limit)
