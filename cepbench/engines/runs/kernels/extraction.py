"""A copy of the part of a graph that some matches consist of."""

from __future__ import annotations

import numpy as np

from cepbench.engines.runs.kernels import graph as graphs
from cepbench.engines.runs.kernels.nodes import children
from cepbench.kernels.jit import njit


def extracted(
    graph: graphs.MatchGraph, roots: np.ndarray, earliest: np.ndarray
) -> tuple[graphs.MatchGraph, np.ndarray]:
    """The nodes that the matches of some roots consist of, and the roots among them.

    Nodes are numbered from 0 on, in the same order; expired roots are ``NONE``.
    """
    first = graph.totals[graphs.FIRST]
    needed = np.zeros(graph.totals[graphs.NEXT] - first, bool)
    mark_needed(graph, roots, earliest, needed)
    # Behind the others, the number of every node that is not stored.
    numbers = np.append(np.where(needed, np.cumsum(needed) - 1, graphs.NONE), graphs.NONE)

    def renumbered(old: np.ndarray) -> np.ndarray:
        return numbers[np.where(old < first, len(needed), old - first)]

    nodes = graphs.stored_nodes(graph)[needed]
    is_union = nodes[:, graphs.ITEM] == graphs.UNION
    for column in (graphs.HEAD, graphs.LEFT, graphs.RIGHT):
        nodes[is_union, column] = renumbered(nodes[is_union, column])
    nodes[~is_union, graphs.PREDECESSOR] = renumbered(nodes[~is_union, graphs.PREDECESSOR])
    return graphs.graph_of(nodes), renumbered(roots)


@njit
def mark_needed(graph, roots, earliest, needed):
    """Mark the nodes on the ways from roots to the first events within their windows.

    ``needed``: bool (stored nodes,), false; written in place.
    """
    first, mask = graph.totals[graphs.FIRST], len(graph.nodes) - 1
    # The widest window that a node is in, for all that refer to it are behind it.
    bounds = np.empty(len(needed), np.int64)
    for number in range(len(roots)):
        if graphs.is_live(graph, roots[number], earliest[number]):
            place = roots[number] - first
            if not needed[place] or earliest[number] < bounds[place]:
                bounds[place] = earliest[number]
            needed[place] = True
    for place in range(len(needed) - 1, -1, -1):
        if not needed[place]:
            continue
        row = (first + place) & mask
        begin, end = children(graph, row)
        for column in range(begin, end):
            child = graph.nodes[row, column]
            if graphs.is_live(graph, child, bounds[place]):
                if not needed[child - first] or bounds[place] < bounds[child - first]:
                    bounds[child - first] = bounds[place]
                needed[child - first] = True
