"""The cost models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from cepbench.costs import order_throughput, tree_throughput
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
    log_node_sizes : callable
        (problem, plan in indices) → logarithms of the estimated partial matches of its nodes.
    source : str
    """

    name: str
    plans: str
    log_cost: Callable[[PlanningProblem, Any], float]
    log_node_sizes: Callable[[PlanningProblem, Any], np.ndarray]
    source: str


#: Name → cost model.
COST_MODELS: Mapping[str, CostModel] = MappingProxyType(
    {
        model.name: model
        for model in (
            CostModel(
                "order-throughput",
                "order",
                order_throughput.log_cost,
                order_throughput.log_node_sizes,
                "[kolchinsky2018]_, section 3.1",
            ),
            CostModel(
                "tree-throughput",
                "tree",
                tree_throughput.log_cost,
                tree_throughput.log_node_sizes,
                "[kolchinsky2018]_, section 3.2",
            ),
        )
    }
)
