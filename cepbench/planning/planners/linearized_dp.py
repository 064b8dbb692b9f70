"""LINDP: linearized dynamic programming, the best tree over the leaf order of IKKBZ."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.planners.ikkbz import best_order
from cepbench.planning.planners.predicate_graph import adjacency, components
from cepbench.planning.planners.registry import plan_generator
from cepbench.planning.planners.zstream import tree_over


@plan_generator(
    "LINDP",
    kind="tree",
    costs="joins",
    space="all trees whose leaves stand in the order of IKKBZ",
    source="[neumann2018]_, section 3",
    default=False,
)
def linearized_dp(problem: CostedProblem, rng: np.random.Generator) -> Any:
    """ZSTREAM over the leaf order that IKKBZ finds; for patterns of hundreds of events.

    If the predicate graph is cyclic, IKKBZ gets the minimum spanning tree of the selectivities; of
    equal ones the earlier written pair comes first. The components of a disconnected graph are
    ordered separately and concatenated, the one of fewest partial matches first.

    The leaf order depends on rates and selectivities alone, the tree over it on the whole cost:
    consumed events, order in time, latency.

    Differs from [neumann2018]_: there it is one of three strategies chosen by size, here separate
    generators (DPCCP, LINDP, GOO); and there it makes no cross products.
    """
    order: list[int] = []
    parts = components(adjacency(problem))
    for part in sorted(parts, key=problem.log_partial_matches):
        order += _along_conditions(problem, part)
    return tree_over(problem, order)


def _along_conditions(problem: PlanningProblem, part: list[int]) -> list[int]:
    """The order of IKKBZ over a connected component."""
    index = np.array(part)
    alone = PlanningProblem(
        tuple(problem.names[i] for i in part),
        problem.log_cardinality[index],
        problem.log_selectivity[np.ix_(index, index)],
    )
    return [part[i] for i in best_order(alone, _spanning_tree(alone))]


def _spanning_tree(problem: PlanningProblem) -> list[tuple[int, int]]:
    """The edges of the minimum spanning tree of the conditions, by Kruskal's algorithm."""
    pairs = np.argwhere(np.triu(adjacency(problem)))
    pairs = pairs[np.argsort(problem.log_selectivity[tuple(pairs.T)], kind="stable")]
    part = np.arange(problem.n)
    edges = []
    for i, j in pairs.tolist():
        if part[i] != part[j]:
            edges.append((i, j))
            part[part == part[j]] = part[i]
    return edges
