"""The cost models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from cepbench.costs import (
    comparisons,
    order_latency,
    order_throughput,
    tree_latency,
    tree_throughput,
)
from cepbench.costs.problem import PlanningProblem


@dataclass(frozen=True)
class CostModel:
    """What plans of one kind cost.

    Attributes
    ----------
    name : str
    plans : str
        The kind of plan: ``order`` or ``tree``.
    log_cost : callable
        (problem, plan in indices) → logarithm of the cost.
    source : str
    log_node_sizes : callable, optional
        (problem, plan in indices) → logarithms of the estimated partial matches of its nodes.
    """

    name: str
    plans: str
    log_cost: Callable[[PlanningProblem, Any], float]
    source: str
    log_node_sizes: Callable[[PlanningProblem, Any], np.ndarray] | None = None


#: Name → cost model.
COST_MODELS: Mapping[str, CostModel] = MappingProxyType(
    {
        model.name: model
        for model in (
            CostModel(
                "order-throughput",
                "order",
                order_throughput.log_cost,
                "[kolchinsky2018]_, sections 3.1 and 5.2",
                order_throughput.log_node_sizes,
            ),
            CostModel(
                "tree-throughput",
                "tree",
                tree_throughput.log_cost,
                "[kolchinsky2018]_, sections 3.2 and 5.2",
                tree_throughput.log_node_sizes,
            ),
            CostModel(
                "order-latency",
                "order",
                order_latency.log_cost,
                "[kolchinsky2018]_, section 5.1",
            ),
            CostModel(
                "tree-latency",
                "tree",
                tree_latency.log_cost,
                "[kolchinsky2018]_, section 5.1",
            ),
            CostModel(
                "order-comparisons",
                "order",
                comparisons.log_order_cost,
                "of the quantities of [kolchinsky2018]_, section 3.1, with the pairs compared",
            ),
            CostModel(
                "tree-comparisons",
                "tree",
                comparisons.log_tree_cost,
                "of the quantities of [kolchinsky2018]_, section 3.2, with the pairs compared",
            ),
        )
    }
)


def plan_notes(problem: PlanningProblem, kind: str, plan: Any) -> dict[str, Any]:
    """What a plan costs, as the notes that a plan object keeps.

    Parameters
    ----------
    problem : PlanningProblem
    kind : {"order", "tree"}
    plan : sequence of int or nested pairs of int

    Returns
    -------
    dict
        ``log_cost``, ``cost_model``, ``estimates`` (logarithms of the expected partial matches of
        its nodes), ``alpha`` and, if that is not 0, ``log_latency``.
    """
    sizes = {"order": order_throughput, "tree": tree_throughput}[kind].log_node_sizes(problem, plan)
    notes: dict[str, Any] = {
        "log_cost": float(np.logaddexp.reduce(sizes)),
        "cost_model": f"{kind}-throughput",
        "estimates": tuple(sizes.tolist()),
        "alpha": problem.alpha,
    }
    if problem.consuming:
        notes["cost_model"] += f", {problem.strategy}"
    if problem.alpha:
        latency = COST_MODELS[f"{kind}-latency"].log_cost(problem, plan)
        notes["log_latency"] = latency
        notes["log_cost"] = float(np.logaddexp(notes["log_cost"], problem.log_alpha + latency))
        notes["cost_model"] += f" + {problem.alpha:g} {kind}-latency"
    return notes
