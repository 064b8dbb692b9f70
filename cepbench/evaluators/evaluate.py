"""The front end: one pattern, one finite stream, one plan."""

from __future__ import annotations

from cepbench.arguments import flag
from cepbench.errors import EvaluationError
from cepbench.evaluators.detector import PARTIAL_MATCH_LIMIT, Detector
from cepbench.evaluators.own import evaluated_by
from cepbench.evaluators.registry import evaluator_for
from cepbench.evaluators.result import Result
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.plans.given import plan_from
from cepbench.plans.model import Plan, UnionPlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_types
from cepbench.streams.given import stream_from


def evaluate(
    pattern: Pattern | str,
    stream: EventStream,
    plan: Plan | UnionPlan,
    *,
    evaluator: str | None = None,
    output: str = "matches",
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    latency: bool = False,
    node_times: bool = False,
) -> Result:
    """All matches of ``pattern`` in ``stream``, found along ``plan``.

    Parameters
    ----------
    pattern : Pattern or str
        Or its text.
    stream : EventStream
    plan : OrderPlan, TreePlan or UnionPlan
        One plan, or for a pattern with OR one for each of its branches, as ``cep.plan`` gives them.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``; by default the one made for the kind of plan: ``lazy-nfa`` for
        order plans, ``tree`` for tree plans.
    output : {"matches", "arrow", "count"}
        Whether to keep the matches or just to count them. What is kept can be had as a sorted
        DataFrame, ``Result.matches``, or as it was found, ``Result.arrow``, whichever is named.
    partial_match_limit : int
        How many partial matches may be stored before the run ends with an error; an evaluator of
        one's own does not know of it.
    latency : bool
        Whether to measure when each match is reported, see :class:`Detector`.
    node_times : bool
        Whether to measure how much time goes into each node of the plan, for ``Result.nodes``.

    Returns
    -------
    Result

    Raises
    ------
    StreamError
        If the pattern asks for types or attributes that the stream does not have.
    PatternError, PlanError, EvaluationError
        If an argument makes no sense, or plan, evaluator and pattern do not fit each other.
    PartialMatchLimitError
        If more partial matches would have to be stored than allowed.
    """
    pattern, stream, plan = pattern_from(pattern), stream_from(stream), plan_from(plan)
    latency = flag(latency, "latency", EvaluationError)
    node_times = flag(node_times, "node_times", EvaluationError)
    check_types(pattern, stream)
    chosen = evaluator_for(plan, evaluator)
    if chosen.run is not None:
        return evaluated_by(chosen, pattern, stream, plan, output, latency or node_times)
    detector = Detector(
        pattern,
        plan,
        evaluator=evaluator,
        output=output,
        partial_match_limit=partial_match_limit,
        latency=latency,
        node_times=node_times,
    )
    found, _ = detector.advance(stream, ended=True)
    return Result(
        pattern=pattern,
        plan=plan,
        evaluator=detector.evaluator,
        metrics=detector.metrics(),
        node_table=detector.node_table(),
        found=tuple(found) if output != "count" else None,
    )
