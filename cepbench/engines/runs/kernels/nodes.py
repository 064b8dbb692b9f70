"""The nodes that the matches of a root consist of, each after those that it refers to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.runs.kernels.graph import (
    HEAD,
    ITEM,
    PREDECESSOR,
    RIGHT,
    UNION,
    MatchGraph,
    is_live,
)
from cepbench.kernels.jit import njit, njit_in_place


class Scratch(NamedTuple):
    """The nodes with a history of the roots at hand, which have the same window."""

    order: np.ndarray  #: int64 (capacity,): each after those that it refers to
    places: np.ndarray  #: int64 (capacity,): where a node is in ``order``, by its row
    stack: np.ndarray  #: int64 (4 * capacity,)


def new_scratch(graph: MatchGraph) -> Scratch:
    """Scratch for a graph, until its capacity changes."""
    capacity = len(graph.nodes)
    return Scratch(
        np.empty(capacity, np.int64), np.zeros(capacity, np.int64), np.empty(4 * capacity, np.int64)
    )


@njit_in_place
def children(graph, row):
    """The columns of a node that refer to others: the first, and the one behind the last."""
    if graph.nodes[row, ITEM] == UNION:
        return HEAD, RIGHT + 1
    return PREDECESSOR, PREDECESSOR + 1


@njit
def find_nodes(graph, roots, earliest, scratch):
    """Find the nodes on the ways from roots to the first events within their window.

    They have the same window. Returns the number of nodes, which are in ``scratch``.
    """
    nodes, mask, stack = graph.nodes, len(graph.nodes) - 1, scratch.stack
    found = 0
    for root in roots:
        top = 0
        if is_live(graph, root, earliest) and not _is_found(root, found, mask, scratch):
            stack[0] = root
            top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if node < 0:  # all that it refers to has been found
                scratch.order[found] = ~node
                scratch.places[~node & mask] = found
                found += 1
            elif not _is_found(node, found, mask, scratch):
                stack[top] = ~node
                top += 1
                row = node & mask
                first, last = children(graph, row)
                for column in range(first, last):
                    child = nodes[row, column]
                    if is_live(graph, child, earliest) and not _is_found(
                        child, found, mask, scratch
                    ):
                        stack[top] = child
                        top += 1
    return found


@njit_in_place
def group_end(earliest, first, most):
    """The end of the roots from ``first`` on that have the same window, at most ``most``."""
    last = first + 1
    while last < min(len(earliest), first + most) and earliest[last] == earliest[first]:
        last += 1
    return last


@njit_in_place
def _is_found(node, found, mask, scratch):
    """Whether a node is among those found; what earlier groups left behind need not be erased."""
    place = scratch.places[node & mask]
    return place < found and scratch.order[place] == node
