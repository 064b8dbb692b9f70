"""The front end: a plan's estimates node by node, beside measurements of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cepbench.errors import UnsupportedPatternError
from cepbench.evaluators.evaluate import run_task
from cepbench.evaluators.protocol import Evaluator
from cepbench.evaluators.tasks import PARTIAL_MATCH_LIMIT, task_for
from cepbench.explainer.estimates import estimate
from cepbench.explainer.explanation import Explanation
from cepbench.explainer.measured import measure
from cepbench.explainer.nodes import ExplainedNode, explained_nodes
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planners.stakes import Stakes, plan_stakes
from cepbench.plans.given import plan_from
from cepbench.plans.model import AnyPlan
from cepbench.statistics.given import statistics_from
from cepbench.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream
from cepbench.streams.given import stream_from


def explain(
    pattern: Pattern | str,
    plan: AnyPlan,
    statistics: Statistics,
    stream: EventStream | None = None,
    *,
    evaluator: str | Evaluator | None = None,
    options: Mapping[str, Any] | None = None,
    time_selectivity: str = "adjacent",
    alpha: float | None = None,
    last: str | Sequence[str | None] | None = None,
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
) -> Explanation:
    """Show a plan's expected partial matches and cost, node by node; run it to see the real ones.

    Parameters
    ----------
    pattern : Pattern or str
        Or its text.
    plan : OrderPlan, TreePlan or UnionPlan
        Made by ``cep.plan`` or by hand.
    statistics : Statistics
        What the estimates are made of; they need not be those that the plan was made with.
    stream : EventStream, optional
        To run the plan on; matches are only counted.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``; by default the first one that runs such plans. To be run on a
        stream it must count what happens at the nodes of a plan.
    options : mapping, optional
        Options of the evaluator by name.
    time_selectivity, last
        As ``cep.plan`` takes them.
    alpha : float, optional
        Weight of latency in the cost; by default that of the plan.
    partial_match_limit : int
        How many partial matches may be stored before the run ends with an error.

    Returns
    -------
    Explanation
        With ``nodes``, a table of one row a node, ``stakes``, whether choosing a plan is worth it
        for this pattern, and ``describe()``; a picture in notebooks.

    Raises
    ------
    PlanError
        If the plan is not one of this pattern.
    StatisticsError
        If a rate or another number is missing, or an argument makes no sense.
    StreamError
        If the pattern asks for types or attributes that the stream does not have.
    EvaluationError
        If the evaluator is unknown or cannot run the plan.
    PartialMatchLimitError
        If more partial matches would have to be stored than allowed.

    Notes
    -----
    Source: [kolchinsky2018]_, sections 3 and 5, for what is estimated: partial matches that coexist
    within the window. The estimates of a node are held against their number averaged over the time
    in which events could arrive (see :func:`cepbench.statistics.measure.measure_statistics`), those
    of the root against the rows that it made. A nested SEQ has no estimates under
    ``time_selectivity="exact"``: a remark reports it, and no error is raised.
    """
    pattern, plan = pattern_from(pattern), plan_from(plan)
    statistics = statistics_from(statistics)
    if stream is not None:
        stream = stream_from(stream)
    chosen, task = task_for(
        pattern,
        plan,
        evaluator=evaluator,
        options=options,
        output="count",
        partial_match_limit=partial_match_limit,
        node_times=stream is not None,
        whole_stream=True,
    )
    branches = pattern.branches()
    nodes = [
        explained_nodes(branch, part) for branch, part in zip(branches, plan.parts, strict=True)
    ]
    estimates = estimate(
        pattern,
        plan,
        nodes,
        statistics,
        time_selectivity=time_selectivity,
        alpha=plan.parts[0].alpha if alpha is None else alpha,
        last=last,
    )
    tables = [
        pd.concat([_about(number, branch, its), expected], axis=1)
        for number, (branch, its, expected) in enumerate(
            zip(branches, nodes, estimates.tables, strict=True)
        )
    ]
    metrics = None
    if stream is not None:
        result = run_task(chosen, task, stream)
        metrics = result.metrics
        found = measure(result, stream, nodes, estimates.tables)
        tables = [pd.concat(pair, axis=1) for pair in zip(tables, found, strict=True)]
    return Explanation(
        pattern=pattern,
        plan=estimates.plan,
        evaluator=chosen.name,
        nodes=pd.concat(tables, ignore_index=True),
        metrics=metrics,
        remarks=estimates.remarks,
        stakes=_stakes(pattern, statistics, time_selectivity),
    )


def _stakes(pattern: Pattern, statistics: Statistics, time_selectivity: str) -> Stakes | None:
    """What choosing a plan decides; None where the pattern has no estimates."""
    try:
        return plan_stakes(pattern, statistics, time_selectivity=time_selectivity)
    except UnsupportedPatternError:
        return None


def _about(number: int, branch: Pattern, nodes: Sequence[ExplainedNode]) -> pd.DataFrame:
    """Which node each row of a branch is about."""
    types = {variable.name: variable.type_text for variable in branch.variables}
    return pd.DataFrame(
        {
            "branch": number,
            "node": range(len(nodes)),
            "parent": [node.parent for node in nodes],
            "kind": [node.kind for node in nodes],
            "variables": [", ".join(node.variables) for node in nodes],
            "types": [", ".join(types[name] for name in node.variables) for node in nodes],
            "step": [node.step for node in nodes],
        }
    )
