"""What each node of a plan is expected to hold, and what it adds to the plan's cost.

The costs of [kolchinsky2018]_, sections 3 and 5, are sums over a plan's nodes. Here they are taken
apart, for all kinds of plans by the nodes of the plan's tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.costs import order_latency, tree_latency, tree_throughput
from cepbench.costs.problem import PlanningProblem


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


def log_node_costs(problem: PlanningProblem, kind: str, tree: Any) -> NodeCosts:
    """The cost of a plan, node by node.

    Parameters
    ----------
    problem : PlanningProblem
    kind : {"order", "tree"}
        Which costs; an order's tree is the left-deep one.
    tree : int or pair of trees
        Nested pairs of the indices 0 … n−1.

    Notes
    -----
    Source: [kolchinsky2018]_, sections 3.1, 3.2, 5.1 and 5.2. ``throughput`` adds up to Costtrpt,
    ``latency`` to α·Costlat.
    """
    sizes = tree_throughput.log_node_sizes(problem, tree)
    throughput, latency = sizes, np.full(len(sizes), -np.inf)
    if kind == "tree":
        if problem.alpha:
            latency = problem.log_alpha + tree_latency.log_waiting(problem, tree)
        return NodeCosts(sizes, throughput, latency)
    # In post-order the prefix of an order comes right after the leaf that it takes up.
    prefixes = np.arange(0, len(sizes), 2)
    taken_up = np.maximum(prefixes - 1, 0)
    throughput = np.full(len(sizes), -np.inf)
    throughput[prefixes] = sizes[prefixes]
    if problem.alpha:
        waiting = order_latency.log_waiting(problem, _order(tree))
        latency[taken_up] = problem.log_alpha + waiting
    return NodeCosts(sizes, throughput, latency)


def _order(tree: Any) -> list[int]:
    """The order that a left-deep tree stands for."""
    order = []
    while isinstance(tree, tuple | list):
        tree, last = tree
        order.append(last)
    return [tree, *reversed(order)]
