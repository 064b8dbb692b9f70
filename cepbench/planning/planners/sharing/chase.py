"""CHASE: the plan of least cost, and the strategies that it is compared with [liu2011]_, section 7."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from cepbench.planning.costs.reuse import ReuseProblem, Sources
from cepbench.planning.kernels.arborescence import least_arborescence
from cepbench.planning.plans.reuse import Reuse


def chase(problem: ReuseProblem, rng: np.random.Generator) -> Sources:
    """Choose the source of each query so that the sum of the costs is least [liu2011]_, section 5.

    The root, the paper's virtual ground, has an edge to each query, of its cost from scratch; another
    edge is there only if it is cheaper. Lemma 1, which says that the plan is optimal, needs that a
    query has one source and that no cost depends on how the source is computed.
    """
    return least_sources(problem.scratch, problem.edges)


def least_sources(scratch: Mapping[str, float], edges: Iterable[Reuse]) -> dict[str, str | None]:
    """One source for each query, or None, at the least sum of costs.

    Queries are those of ``scratch``, with their costs from scratch; edges are the other ways.
    """
    place = {query: number for number, query in enumerate(scratch, 1)}
    cheaper = [its for its in edges if its.cost < scratch[its.query]]
    ends = [(0, number) for number in place.values()]
    ends += [(place[its.sources[0]], place[its.query]) for its in cheaper]
    weights = [*scratch.values(), *(its.cost for its in cheaper)]
    sources, targets = np.array(ends, dtype=np.int64).T.copy()
    chosen, _ = least_arborescence(
        len(place) + 1, sources, targets, np.array(weights, dtype=np.float64)
    )
    queries = [None, *scratch]
    return {query: queries[sources[chosen[number]]] for query, number in place.items()}


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
