"""Expected partial matches and cost of each node of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cepbench.costs.branches import branch_problems
from cepbench.costs.costed import CostedProblem
from cepbench.costs.latency import log_waiting
from cepbench.costs.model import CostModel
from cepbench.costs.throughput import Throughput
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.plans.given import check_parts, plan_from
from cepbench.plans.model import AnyPlan
from cepbench.plans.tree import Tree, leaves, post_order, relabel
from cepbench.statistics.given import statistics_from
from cepbench.statistics.model import Statistics


@dataclass(frozen=True, eq=False)
class NodeCosts:
    """Natural logarithms for the 2n − 1 nodes of a plan's tree, in post-order.

    Attributes
    ----------
    sizes : ndarray of float64
        Expected partial matches.
    throughput : ndarray of float64
        The node's contribution to Costtrpt: its size, or minus infinity for the leaves after the
        first of an order plan, which are not part of Cost_ord.
    latency : ndarray of float64
        α times the node's contribution to Costlat; minus infinity if α is 0.
    """

    sizes: np.ndarray
    throughput: np.ndarray
    latency: np.ndarray


def log_node_costs(problem: CostedProblem, kind: str, tree: Tree[int]) -> NodeCosts:
    """Costtrpt and α·Costlat of a plan, node by node.

    Parameters
    ----------
    problem : CostedProblem
    kind : {"order", "tree"}
        Kind of the plan; the tree of an order is left-deep.
    tree : int or pair of trees
        Nested pairs of the indices 0 … n−1.

    Notes
    -----
    Source: [kolchinsky2018]_, sections 3.1, 3.2, 5.1 and 5.2. ``throughput`` adds up to Costtrpt,
    ``latency`` to α·Costlat.
    """
    sizes = problem.log_node_sizes("tree", tree)
    latency = np.full(len(sizes), -np.inf)
    if problem.alpha:
        latency = np.log(problem.alpha) + log_waiting(problem, kind, tree)
    return NodeCosts(sizes, Throughput().log_node_costs(problem, kind, tree), latency)


def plan_cost(
    pattern: Pattern | str,
    plan: AnyPlan,
    statistics: Statistics,
    *,
    cost: str | CostModel = "throughput",
    time_selectivity: str = "adjacent",
    alpha: float = 0.0,
    last: str | Sequence[str | None] | None = None,
) -> pd.DataFrame:
    """The cost of each node of a plan.

    Parameters
    ----------
    pattern, statistics, cost, time_selectivity, alpha, last
        See :func:`~cepbench.planners.generate.plan`. The cost must be of the form ``joins`` or
        ``sets``.
    plan : OrderPlan, TreePlan or UnionPlan

    Returns
    -------
    DataFrame
        One row per node of each branch's tree, in post-order: ``branch``, ``variables`` (tuple),
        ``estimated`` (partial matches), ``cost`` and ``log_cost`` (natural logarithm); the costs of
        a branch add up to that of its plan.

    Raises
    ------
    PlanError
        If the plan does not fit the pattern.
    StatisticsError, UnsupportedPatternError, PlanGeneratorError
        As for :func:`~cepbench.planners.generate.plan`.
    """
    pattern, statistics = pattern_from(pattern), statistics_from(statistics)
    plan = plan_from(plan)
    check_parts(plan, [branch.planned_names for branch in pattern.branches()])
    problems = branch_problems(pattern, statistics, time_selectivity, alpha, last, cost)
    rows = []
    for number, (part, problem) in enumerate(zip(plan.parts, problems, strict=True)):
        tree = relabel(part.tree, problem.names.index)
        sizes = problem.log_node_sizes("tree", tree)
        costs = problem.cost.log_node_costs(problem, part.kind, tree)
        for node, size, log_cost in zip(post_order(part.tree), sizes, costs, strict=True):
            rows.append((number, tuple(leaves(node)), size, log_cost))
    table = pd.DataFrame(rows, columns=["branch", "variables", "estimated", "log_cost"])
    with np.errstate(over="ignore"):
        table["estimated"] = np.exp(table["estimated"])
        table.insert(3, "cost", np.exp(table["log_cost"]))
    return table
