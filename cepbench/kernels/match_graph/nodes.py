"""The nodes that the matches of a root consist of, in the order of creation.

A node refers only to earlier ones, so that one pass in this order meets every node after those that
it refers to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.kernels.jit import njit, njit_in_place
from cepbench.kernels.match_graph.graph import (
    HEAD,
    ITEM,
    NONE,
    PREDECESSOR,
    RIGHT,
    UNION,
    MatchGraph,
    is_live,
)


class Scratch(NamedTuple):
    """The nodes with a history of the root at hand, in the order of creation."""

    order: np.ndarray  #: int64 (capacity,)
    places: np.ndarray  #: int64 (capacity,): where a node is in ``order``, by its row


def new_scratch(graph: MatchGraph) -> Scratch:
    """Scratch for a graph, until its capacity changes.

    Parameters
    ----------
    graph : MatchGraph
    """
    capacity = len(graph.nodes)
    return Scratch(np.full(capacity, NONE), np.zeros(capacity, np.int64))


@njit_in_place
def children(graph, row):
    """The columns of a node that refer to others.

    Parameters
    ----------
    graph : MatchGraph
    row : int

    Returns
    -------
    first, last : int
        The last one is excluded.
    """
    if graph.nodes[row, ITEM] == UNION:
        return HEAD, RIGHT + 1
    return PREDECESSOR, PREDECESSOR + 1


@njit
def find_nodes(graph, root, earliest, scratch):
    """Find the nodes on the ways from a root to the first events within its window.

    Parameters
    ----------
    graph : MatchGraph
    root, earliest : int
    scratch : Scratch
        Written in place.

    Returns
    -------
    int
        How many there are.
    """
    order, places, mask = scratch.order, scratch.places, len(graph.nodes) - 1
    if not is_live(graph, root, earliest):
        return 0
    order[0] = root
    found, visited = 1, 0
    while visited < found:
        row = order[visited] & mask
        first, last = children(graph, row)
        for column in range(first, last):
            child = graph.nodes[row, column]
            if not is_live(graph, child, earliest):
                continue
            # What earlier roots left behind need not be erased.
            place = places[child & mask]
            if place >= found or order[place] != child:
                order[found] = child
                places[child & mask] = found
                found += 1
        visited += 1
    order[:found].sort()
    for k in range(found):
        places[order[k] & mask] = k
    return found
