"""The front end: evaluation of a pattern on a finite stream, by a plan or without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cepbench.evaluators.compressed import CompressedMatches
from cepbench.evaluators.detector import Detector
from cepbench.evaluators.protocol import Evaluator, Task
from cepbench.evaluators.result import Result
from cepbench.evaluators.tasks import PARTIAL_MATCH_LIMIT, task_for
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.plans.model import AnyPlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_types, under_one_hierarchy
from cepbench.streams.given import stream_from


def evaluate(
    pattern: Pattern | str,
    stream: EventStream,
    plan: AnyPlan | None = None,
    *,
    evaluator: str | Evaluator | None = None,
    options: Mapping[str, Any] | None = None,
    output: str = "matches",
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    latency: bool = False,
    node_times: bool = False,
) -> Result:
    """Find all matches of ``pattern`` in ``stream`` by ``plan``.

    Parameters
    ----------
    pattern : Pattern or str
        Or its text.
    stream : EventStream
    plan : OrderPlan, TreePlan, Automaton or UnionPlan, optional
        One plan, or for a pattern with OR one for each of its branches, as ``cep.plan`` returns
        them. None for an evaluator that runs without a plan.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``, in any case; by default ``lazy-nfa`` for order plans, ``tree``
        for tree plans, ``sase`` for automata and, without a plan, under ``STRATEGY next``.
    options : mapping, optional
        Options of the evaluator by name; others have their defaults.
    output : {"matches", "arrow", "count", "compressed"}
        Whether to store or only to count matches. Stored ones are available as a sorted DataFrame,
        ``Result.matches``, and in the order found, ``Result.arrow``; ``compressed`` stores them as
        a graph, ``Result.compressed``, from which the others are enumerated on demand.
    partial_match_limit : int
        Maximum number of stored partial matches; a run that exceeds it is an error. Not enforced
        for user-defined functions.
    latency : bool
        Whether to measure detection latency, see :class:`Detector`.
    node_times : bool
        Whether to measure the time spent in each node of the plan, for ``Result.nodes``.

    Returns
    -------
    Result

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
    pattern, stream = under_one_hierarchy(pattern_from(pattern), stream_from(stream))
    chosen, task = task_for(
        pattern,
        plan,
        evaluator=evaluator,
        options=options,
        output=output,
        partial_match_limit=partial_match_limit,
        latency=latency,
        node_times=node_times,
        whole_stream=True,
    )
    return run_task(chosen, task, stream)


def run_task(evaluator: Evaluator, task: Task, stream: EventStream) -> Result:
    """Run a task of :func:`cepbench.evaluators.tasks.task_for` on a whole stream.

    Raises
    ------
    StreamError
        If the pattern asks for types or attributes that the stream does not have.
    PartialMatchLimitError
        If more partial matches would have to be stored than allowed.
    """
    check_types(task.pattern, stream)
    detector = Detector.of_task(evaluator, task)
    found = [detector.take(stream), detector.finish()]
    graphs = [graph for one in found for graph in one.graphs]
    values = found[0].values
    listed = task.output == "matches" and not graphs and values is None
    return Result(
        pattern=task.pattern,
        plan=task.plan,
        evaluator=evaluator.name,
        metrics=detector.metrics(),
        node_table=detector.node_table(),
        found=detector.in_branches(found) if listed else None,
        graph=CompressedMatches(task.pattern, graphs)
        if graphs or task.output == "compressed"
        else None,
        values=values,
        events=stream if task.pattern.returns else None,
    )
