"""The nodes of a plan, and estimates by node: arrivals, partial matches, rows and cost."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cepbench.engines.plan_runs.nodes import PlannedNodes
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import Kind, Pattern
from cepbench.patterns.negations import negated_apart
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.nodes import check_sum_over_nodes
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.costs.zstream import ZStream
from cepbench.planning.plans.kinds import indices_of
from cepbench.planning.plans.model import AnyPlan, Plan, UnionPlan
from cepbench.planning.plans.notes import shown_log
from cepbench.planning.plans.tree import leaves, post_order, relabel
from cepbench.planning.statistics.model import Statistics

#: Notes of a plan without estimates.
_NO_NOTES: dict[str, Any] = {
    "log_cost": None, "cost_model": None, "estimates": (), "alpha": 0.0, "log_latency": None,
}  # fmt: skip


_KINDS = {Kind.PLAIN: "event", Kind.KLEENE: "set", Kind.NEGATED: "negated", Kind.GROUP: "group"}


class ExplainedNode(NamedTuple):
    """A node of a plan's tree, or a negated variable or group as a child of the node that checks or forms it."""

    #: ``event``, ``set`` (a Kleene variable), ``join``, ``negated`` or ``group``.
    kind: str
    #: In the order of the plan.
    variables: tuple[str, ...]
    #: The number of its parent, or of the node that checks or forms it; -1 for the root.
    parent: int
    #: Of an order plan: 1 for its first variable, then its joins; otherwise 0.
    step: int


def explained_nodes(
    branch: Pattern, plan: Plan, placed: Mapping[str, Collection[str]] | None = None
) -> list[ExplainedNode]:
    """The nodes of a branch's plan in post-order, then the negated variables and groups in written order.

    ``placed`` has for each negated variable and group the variables of its node; by default the nodes where
    evaluators of joins check them: groups and what depends on them at the root.
    """
    kinds = {variable.name: _KINDS[variable.kind] for variable in branch.variables}
    below: list[tuple[str, ...]] = []
    parents: list[int] = []
    waiting: list[int] = []  # nodes whose parent was not visited yet
    for number, tree in enumerate(post_order(plan.tree)):
        below.append(tuple(leaves(tree)))
        parents.append(-1)
        if isinstance(tree, tuple):
            for child in (waiting.pop(), waiting.pop()):
                parents[child] = number
        waiting.append(number)
    number_of = {frozenset(names): number for number, names in enumerate(below)}
    nodes = [
        ExplainedNode(
            kind="join" if len(names) > 1 else kinds[names[0]],
            variables=names,
            parent=parents[number],
            # In post-order the prefix of an order immediately follows its last leaf.
            step=number // 2 + 1 if plan.kind == "order" and number % 2 == 0 else 0,
        )
        for number, names in enumerate(below)
    ]
    if placed is None:
        placed = _checked_at(branch, plan)
    return nodes + [
        ExplainedNode(kinds[v.name], (v.name,), number_of[frozenset(placed[v.name])], 0)
        for v in branch.variables
        if v.kind in (Kind.NEGATED, Kind.GROUP)
    ]


def _checked_at(branch: Pattern, plan: Plan) -> dict[str, tuple[str, ...]]:
    """The variables of the nodes that check negated variables and form groups."""
    at_root = dict.fromkeys((v.name for v in branch.groups), tuple(plan.names))
    if branch.groups:
        apart = negated_apart(branch)
        touched = [v for v in branch.negated if v not in apart]
        at_root |= dict.fromkeys((v.name for v in touched), tuple(plan.names))
        branch = branch.without((*branch.groups, *touched))
    placements = tuple(its for its in plan.placements if its[0] not in at_root)
    planned = PlannedNodes(branch, plan.tree, positions=False, placements=placements)
    return at_root | {check.name: node.variables for node in planned.nodes for check in node.checks}


@dataclass(frozen=True)
class Estimates:
    """Estimates of a plan."""

    #: With these estimates as its notes.
    plan: AnyPlan
    #: Of each branch.
    nodes: tuple[list[ExplainedNode], ...]
    #: Of each branch with a row for each node, see :class:`~cepbench.presentation.explainer.explanation.Explanation`.
    tables: tuple[pd.DataFrame, ...]
    #: Why estimates are missing, or that the plan was made for a different cost.
    remarks: tuple[str, ...] = ()


def estimate(
    pattern: Pattern,
    plan: AnyPlan,
    statistics: Statistics,
    *,
    time_selectivity: str,
    alpha: float,
    last: str | Sequence[str | None] | None,
    cost: str | CostModel,
) -> Estimates:
    """The nodes of each branch's plan with estimates; only with arrival rates if there are none.

    Raises StatisticsError if a number is missing, or an argument is invalid; PlanGeneratorError if the cost
    is unknown, or not a sum over nodes.
    """
    branches = pattern.branches()
    pairs = list(zip(branches, plan.parts, strict=True))
    try:
        problems = branch_problems(pattern, statistics, time_selectivity, alpha, last, cost)
    except UnsupportedPatternError as error:
        noted, total = _with_notes(plan, [_NO_NOTES] * len(branches)), math.nan
        found = [_without_estimates(explained_nodes(*pair)) for pair in pairs]
        remarks: tuple[str, ...] = (f"No estimates: {error}.",)
    else:
        check_sum_over_nodes(problems[0].cost)
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
        assert noted.log_cost is not None  # each part has its cost now
        total, remarks = noted.log_cost, _remarks(plan, noted.log_cost)
        found = [
            _branch_estimates(*pair, problem, is_slowest=number == slowest)
            for number, (pair, problem) in enumerate(zip(pairs, problems, strict=True))
        ]
    tables = (
        _table(number, branch, its, statistics, total)
        for number, (branch, its) in enumerate(zip(branches, found, strict=True))
    )
    return Estimates(noted, tuple(its.nodes for its in found), tuple(tables), remarks)


class _BranchEstimates(NamedTuple):
    """The nodes of a branch's plan; the other attributes have a value for each."""

    nodes: list[ExplainedNode]
    operators: list[str]
    log_sizes: np.ndarray
    log_costs: np.ndarray


def _without_estimates(nodes: list[ExplainedNode]) -> _BranchEstimates:
    missing = np.full(len(nodes), np.nan)
    return _BranchEstimates(nodes, [""] * len(nodes), missing, missing)


def _branch_estimates(
    branch: Pattern, part: Plan, problem: CostedProblem, *, is_slowest: bool
) -> _BranchEstimates:
    cost = problem.cost
    if isinstance(cost, ZStream):
        return _by_operator(branch, part, problem, cost)
    if isinstance(cost, Throughput) and not is_slowest:
        cost = Throughput()  # without latency
    tree = relabel(part.tree, problem.names.index)
    log_sizes = problem.log_node_sizes("tree", tree)
    log_costs = cost.log_node_costs(problem, part.kind, tree)
    bare = _without_estimates(explained_nodes(branch, part))
    # Negated variables and groups come after the plan's nodes and do not contribute to its cost.
    missing = bare.log_sizes[len(log_sizes) :]
    return bare._replace(
        log_sizes=np.concatenate((log_sizes, missing)),
        log_costs=np.concatenate((log_costs, missing)),
    )


def _by_operator(
    branch: Pattern, part: Plan, problem: CostedProblem, cost: ZStream
) -> _BranchEstimates:
    """The operators of ZStream at the nodes, and those of negated variables and groups beside them."""
    operators, sizes = cost.operators(problem, part.kind, indices_of(part, problem.names))
    below_nodes = (frozenset(leaves(node)) for node in post_order(part.tree))
    number_of = {names: number for number, names in enumerate(below_nodes)}
    names = [""] * len(sizes)
    log_costs = np.full(len(sizes), -np.inf)
    beside: dict[str, tuple[tuple[str, ...], str, float]] = {}
    for operator in operators:
        below = tuple(problem.names[v] for v in operator.variables)
        number = number_of[frozenset(below)]
        # The first operator of an inner node is its join, which may form groups.
        is_join = len(below) > 1 and not names[number] and operator.name not in ("NSEQ", "NEG")
        if is_join:
            names[number], log_costs[number] = operator.name, operator.cost
        for name in operator.added:
            its = ("", math.nan) if is_join else (operator.name, operator.cost)
            beside[name] = (below, *its)
    nodes = explained_nodes(branch, part, {name: below for name, (below, *_) in beside.items()})
    others = [beside[node.variables[0]] for node in nodes[len(sizes) :]]
    return _BranchEstimates(
        nodes,
        names + [name for _, name, _ in others],
        np.array(sizes + [math.nan] * len(others)),
        np.append(log_costs, [its_cost for *_, its_cost in others]),
    )


def _remarks(plan: AnyPlan, log_cost: float) -> tuple[str, ...]:
    """A remark if the cost noted by the plan's generator is different."""
    if plan.log_cost is None or math.isclose(plan.log_cost, log_cost, rel_tol=1e-9, abs_tol=1e-9):
        return ()
    return (
        f"The plan was made for a cost of {shown_log(plan.log_cost)}, with other statistics or "
        "another cost model.",
    )


def _table(
    number: int, branch: Pattern, found: _BranchEstimates, statistics: Statistics, log_total: float
) -> pd.DataFrame:
    """The columns that identify the nodes of a branch, and those of their estimates."""
    nodes, operators, log_sizes, log_costs = found
    types = {variable.name: variable.type_text for variable in branch.variables}
    # A latency of 0 has no shares.
    with np.errstate(over="ignore", invalid="ignore"):
        sizes, costs = np.exp(log_sizes), np.exp(log_costs)
        shares = np.exp(log_costs - log_total)
    return pd.DataFrame(
        {
            "branch": number,
            "node": range(len(nodes)),
            "parent": [node.parent for node in nodes],
            "kind": [node.kind for node in nodes],
            "variables": [", ".join(node.variables) for node in nodes],
            "types": [", ".join(types[name] for name in node.variables) for node in nodes],
            "step": [node.step for node in nodes],
            "operator": operators,
            "arrival_rate": [_arrival_rate(branch, node, statistics) for node in nodes],
            "estimated": sizes,
            "log_estimated": log_sizes,
            "estimated_rate": [
                _creation_rate(branch, node, size) for node, size in zip(nodes, sizes, strict=True)
            ],
            "cost": costs,
            "log_cost": log_costs,
            "cost_share": shares,
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
    :func:`cepbench.planning.costs.creation.created_per_event`, but not for sets of a Kleene variable, and
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
