"""CHASE: the plan of least cost, as an arborescence of least weight."""

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
    chosen = least_arborescence(
        len(place) + 1, sources, targets, np.array(weights, dtype=np.float64)
    )
    queries = [None, *scratch]
    return {query: queries[sources[chosen[number]]] for query, number in place.items()}
