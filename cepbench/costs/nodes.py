"""What each node of a plan is expected to hold, and what it adds to the plan's cost."""

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
        What the node adds to the cost for throughput: its size. Minus infinity for the events
        that an order plan takes up after the first: Cost_ord has no place for them.
    latency : ndarray of float64
        α times what the node adds to the cost for latency; minus infinity where α is 0.
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
        Which costs; an order's tree is the left-deep one.
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
    """What each node of a plan costs.

    Parameters
    ----------
    pattern, statistics, cost, time_selectivity, alpha, last
        See :func:`~cepbench.planners.generate.plan`. The cost has to be one that is known join by
        join.
    plan : OrderPlan, TreePlan or UnionPlan

    Returns
    -------
    DataFrame
        A row a node of each branch's tree, left, right, node: ``branch``, ``variables`` (tuple),
        ``estimated`` (partial matches), ``cost`` and ``log_cost`` (natural logarithm), of which
        the sum over a branch is the cost of its plan.

    Raises
    ------
    PlanError
        If the plan is none of this pattern.
    StatisticsError, UnsupportedPatternError, PlanGeneratorError
        As :func:`~cepbench.planners.generate.plan` does.
    """
    pattern, statistics = pattern_from(pattern), statistics_from(statistics)
    plan = plan_from(plan)
    check_parts(plan, [branch.positive_names for branch in pattern.branches()])
    problems = branch_problems(pattern, statistics, time_selectivity, alpha, last, cost)
    rows = []
    for number, (part, problem) in enumerate(zip(plan.parts, problems, strict=True)):
        tree = relabel(part.tree, problem.names.index)
        sizes = problem.log_node_sizes("tree", tree)
        costs = problem.cost.log_node_costs(problem, part.kind, tree)
        for node, size, its_cost in zip(post_order(part.tree), sizes, costs, strict=True):
            rows.append((number, tuple(leaves(node)), size, its_cost))
    table = pd.DataFrame(rows, columns=["branch", "variables", "estimated", "log_cost"])
    with np.errstate(over="ignore"):
        table["estimated"] = np.exp(table["estimated"])
        table.insert(3, "cost", np.exp(table["log_cost"]))
    return table
