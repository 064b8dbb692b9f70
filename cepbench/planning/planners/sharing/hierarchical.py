"""NAIVE, TOP-DOWN and BOTTOM-UP: the strategies that CHASE is compared with [liu2011]_, section 7."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cepbench.planning.costs.reuse import ReuseProblem, Sources
from cepbench.planning.plans.reuse import Reuse


def naive(problem: ReuseProblem, rng: np.random.Generator) -> Sources:
    """Every query from scratch."""
    return dict.fromkeys(problem.scratch)


def top_down(problem: ReuseProblem, rng: np.random.Generator) -> Sources:
    """General queries first: a query is computed from a more general one wherever there is one.

    From the one of least cost, even if from scratch would be cheaper.
    """
    return _cheapest(problem, (its for its in problem.edges if its.method == "down"))


def bottom_up(problem: ReuseProblem, rng: np.random.Generator) -> Sources:
    """Specific queries first: a query is computed from a more specific one wherever there is one.

    From the one of least cost, even if from scratch would be cheaper.
    """
    edges = (its for its in problem.edges if its.method == "up" or its.change == "nothing")
    return _cheapest(problem, edges)


def _cheapest(problem: ReuseProblem, edges: Iterable[Reuse]) -> Sources:
    """The cheapest of some edges to each query, of several the first."""
    found: dict[str, Reuse] = {}
    for edge in edges:
        if edge.query not in found or edge.cost < found[edge.query].cost:
            found[edge.query] = edge
    return {query: found[query].source if query in found else None for query in problem.scratch}
