"""Estimates by node of a plan: arrivals, partial matches, rows and cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from cepbench.costs.branches import branch_problems
from cepbench.costs.nodes import log_node_costs
from cepbench.errors import UnsupportedPatternError
from cepbench.explainer.nodes import ExplainedNode
from cepbench.patterns.model import Kind, Pattern
from cepbench.plans.kinds import indices_of
from cepbench.plans.model import AnyPlan, Plan, UnionPlan
from cepbench.plans.notes import shown_log
from cepbench.plans.tree import relabel
from cepbench.statistics.model import Statistics

#: Notes of a plan without estimates.
_NO_NOTES: dict[str, Any] = {
    "log_cost": None, "cost_model": None, "estimates": (), "alpha": 0.0, "log_latency": None,
}  # fmt: skip


@dataclass(frozen=True)
class Estimates:
    """Estimates of a plan.

    Attributes
    ----------
    plan : OrderPlan, TreePlan or UnionPlan
        The plan, annotated with these estimates.
    tables : tuple of DataFrame
        One per branch, with one row per node; see
        :class:`~cepbench.explainer.explanation.Explanation`.
    remarks : tuple of str
        Why estimates are missing, or that the plan was made for a different cost.
    """

    plan: AnyPlan
    tables: tuple[pd.DataFrame, ...]
    remarks: tuple[str, ...] = ()


def estimate(
    pattern: Pattern,
    plan: AnyPlan,
    nodes: Sequence[Sequence[ExplainedNode]],
    statistics: Statistics,
    *,
    time_selectivity: str,
    alpha: float,
    last: str | Sequence[str | None] | None,
) -> Estimates:
    """Estimates for the nodes of each branch's plan.

    Raises
    ------
    StatisticsError
        If a number is missing, or an argument is invalid.
    """
    branches = pattern.branches()
    try:
        problems = branch_problems(pattern, statistics, time_selectivity, alpha, last)
    except UnsupportedPatternError as error:
        bare = _with_notes(plan, [_NO_NOTES] * len(branches))
        tables = [
            _table(branch, its, statistics) for branch, its in zip(branches, nodes, strict=True)
        ]
        return Estimates(bare, tuple(tables), (f"No estimates: {error}.",))
    trees = [
        relabel(part.tree, problem.names.index)
        for part, problem in zip(plan.parts, problems, strict=True)
    ]
    noted = _with_notes(
        plan,
        [
            problem.cost.notes(problem, part.kind, indices_of(part, problem.names))
            for part, problem in zip(plan.parts, problems, strict=True)
        ],
    )
    # Branches run concurrently: only the latency of the slowest one is part of the cost.
    delays = [-math.inf if p.log_latency is None else p.log_latency for p in noted.parts]
    slowest = int(np.argmax(delays))
    total = noted.log_cost
    assert total is not None  # each part has its cost now
    tables = []
    for number, (branch, problem) in enumerate(zip(branches, problems, strict=True)):
        found = log_node_costs(problem, plan.kind, trees[number])
        log_cost = found.throughput
        if number == slowest:
            log_cost = np.logaddexp(log_cost, found.latency)
        # Negated variables come after the plan's nodes and do not contribute to its cost.
        missing = np.full(len(nodes[number]) - len(found.sizes), np.nan)
        tables.append(
            _table(
                branch,
                nodes[number],
                statistics,
                log_sizes=np.concatenate((found.sizes, missing)),
                log_costs=np.concatenate((log_cost, missing)),
                log_total=total,
            )
        )
    return Estimates(noted, tuple(tables), _remarks(plan, total))


def _remarks(plan: AnyPlan, log_cost: float) -> tuple[str, ...]:
    """A remark if the cost noted by the plan's generator is different."""
    if plan.log_cost is None or math.isclose(plan.log_cost, log_cost, rel_tol=1e-9, abs_tol=1e-9):
        return ()
    return (
        f"The plan was made for a cost of {shown_log(plan.log_cost)}, with other statistics or "
        "another cost model.",
    )


def _table(
    branch: Pattern,
    nodes: Sequence[ExplainedNode],
    statistics: Statistics,
    *,
    log_sizes: np.ndarray | None = None,
    log_costs: np.ndarray | None = None,
    log_total: float = math.nan,
) -> pd.DataFrame:
    """The columns of estimates; only arrival rates, if sizes and costs are missing."""
    missing = np.full(len(nodes), np.nan)
    log_sizes = missing if log_sizes is None else log_sizes
    log_costs = missing if log_costs is None else log_costs
    with np.errstate(over="ignore"):
        sizes, costs = np.exp(log_sizes), np.exp(log_costs)
    return pd.DataFrame(
        {
            "arrival_rate": [_arrival_rate(branch, node, statistics) for node in nodes],
            "estimated": sizes,
            "log_estimated": log_sizes,
            "estimated_rate": [
                _creation_rate(branch, node, size) for node, size in zip(nodes, sizes, strict=True)
            ],
            "cost": costs,
            "log_cost": log_costs,
            "cost_share": np.exp(log_costs - log_total),
        }
    )


def _arrival_rate(branch: Pattern, node: ExplainedNode, statistics: Statistics) -> float:
    """Events per second (or tick); NaN for joins and for variables without a rate."""
    name, window = node.variables[0], branch.window.seconds
    if node.kind == "join" or not window or name not in statistics.names:
        return math.nan
    return statistics.cardinality(name, window) / window


def _creation_rate(branch: Pattern, node: ExplainedNode, size: float) -> float:
    """Rows created per second (or tick), if derivable from the number that coexist; else NaN.

    A node over k variables creates k·PM rows per window, see
    :func:`cepbench.costs.creation.created_per_event`, but not for sets of a Kleene variable, and
    not if events are consumed or contiguous.
    """
    k, window = len(node.variables), branch.window.seconds
    sets = {variable.name for variable in branch.variables if variable.kind is Kind.KLEENE}
    follows = not sets & {*node.variables} and (k == 1 or branch.strategy.name == "any")
    return k * size / window if follows and window else math.nan


def _with_notes(plan: AnyPlan, notes: Sequence[dict[str, Any]]) -> AnyPlan:
    """The plan with other notes, without its lower bound, which was proven for other numbers."""
    parts: list[Plan] = [
        replace(part, **its, log_bound=None) for part, its in zip(plan.parts, notes, strict=True)
    ]
    return UnionPlan(parts) if isinstance(plan, UnionPlan) else parts[0]
