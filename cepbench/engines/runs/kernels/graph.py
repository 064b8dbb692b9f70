"""Matches as a graph: events with a predecessor, and unions of the ways to reach a state.

A history is what a run has chosen so far, the last event first. A node is an event after the
histories of its predecessor, or a union of histories; a match is a history that ends in a root.
The start of a node is the position of the first event of its latest history. Unions are leftist
heaps ordered by start, latest first, so that a search for the histories that begin within a window
leaves a union at the first one that does not, whatever was merged with what.

Nodes are numbered in the order of creation and stored in a ring. A node refers only to earlier
ones, and nothing refers to it once no run and no root does; those with an expired start are never
read, so that the ring holds the nodes of one window.

Kernels that look at matches take ``roots``, int64 (n,): the nodes that they end at, and
``earliest``, int64 (n,): the position of the first event in the window of each.

Source: the tECS of CORE [bucchi2022]_.

Differs from the paper: a union is a leftist heap of events instead of a pair of nodes, so that
histories may be united in any order (the paper's unions need equal starts, and lists of them are
sorted by the state that they are in, which runs merged by their values are not). A union takes time
logarithmic in its histories at worst, and constant time if the later one is a single event, as it
is wherever no values are compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.kernels.jit import njit_in_place

# Columns of nodes: of all, of events, and of unions, whose item is UNION.
START, ITEM = 0, 1
POSITION, PREDECESSOR, ROOT = 2, 3, 4  # the last one is the enumeration's, and arbitrary before
HEAD, LEFT, RIGHT, RANK = 2, 3, 4, 5
COLUMNS = 6
UNION = -1

#: The predecessor of a first event, and the union of nothing.
NONE = -1

# Columns of totals: numbers of the first node kept, and of the next one.
FIRST, NEXT, TOTALS = 0, 1, 2

#: The most nodes that one union creates: both heaps have at most 63 nodes to the right.
UNION_NODES = 126


class MatchGraph(NamedTuple):
    """A ring of nodes."""

    nodes: np.ndarray  #: int64 (capacity, COLUMNS), a power of two; node n is in row n % capacity
    totals: np.ndarray  #: int64 (TOTALS,)
    spine: np.ndarray  #: int64 (UNION_NODES,): scratch of unions


def empty_graph(capacity: int = 1 << 10) -> MatchGraph:
    """A graph without nodes; its capacity is a power of two."""
    return MatchGraph(
        np.empty((capacity, COLUMNS), np.int64),
        np.zeros(TOTALS, np.int64),
        np.empty(UNION_NODES, np.int64),
    )


def with_room(graph: MatchGraph, more: int) -> MatchGraph:
    """The graph with room for ``more`` nodes: itself, or a copy of a larger capacity."""
    if more <= room(graph):
        return graph
    return graph_of(stored_nodes(graph), int(graph.totals[FIRST]), more)


def stored_nodes(graph: MatchGraph) -> np.ndarray:
    """The nodes in the order of creation, shape (nodes, COLUMNS)."""
    stored = np.arange(graph.totals[FIRST], graph.totals[NEXT])
    copied: np.ndarray = graph.nodes[stored % len(graph.nodes)]
    return copied


def graph_of(nodes: np.ndarray, first: int = 0, more: int = 1) -> MatchGraph:
    """The graph of given nodes, shape (n, COLUMNS), numbered from ``first`` on, with room for more."""
    numbers = np.arange(first, first + len(nodes))
    graph = empty_graph(1 << (len(nodes) + more - 1).bit_length())
    graph.nodes[numbers % len(graph.nodes)] = nodes
    graph.totals[:] = first, first + len(nodes)
    return graph


@njit_in_place
def room(graph):
    """How many more nodes there is room for."""
    return len(graph.nodes) - (graph.totals[NEXT] - graph.totals[FIRST])


@njit_in_place
def is_live(graph, node, earliest):
    """Whether a node has a history whose first event is at ``earliest`` or later; ``NONE`` has not."""
    return (
        node >= graph.totals[FIRST]
        and graph.nodes[node & (len(graph.nodes) - 1), START] >= earliest
    )


@njit_in_place
def add_event(graph, position, item, predecessor):
    """Append an event to histories; there must be room for a node. Returns the new node.

    ``position``, ``item``: of the event and of its variable in written order. ``predecessor``: the
    node of the histories before it, which must be live, or ``NONE`` for a first event.
    """
    mask = len(graph.nodes) - 1
    node = graph.totals[NEXT]
    graph.totals[NEXT] += 1
    row = node & mask
    start = position
    if predecessor != NONE:
        start = graph.nodes[predecessor & mask, START]
    graph.nodes[row, START] = start
    graph.nodes[row, ITEM] = item
    graph.nodes[row, POSITION] = position
    graph.nodes[row, PREDECESSOR] = predecessor
    return node


@njit_in_place
def add_union(graph, one, other):
    """Unite the histories of two nodes; there must be room for ``UNION_NODES`` nodes.

    ``one``, ``other``: nodes without a history in common, or ``NONE``.

    Returns a new node, or if one of them is expired or ``NONE``, the other.
    """
    # Merges the right spines of two leftist heaps, latest start first, then builds new ones.
    nodes, mask, first = graph.nodes, len(graph.nodes) - 1, graph.totals[FIRST]
    depth = 0
    while one >= first and other >= first:
        if nodes[one & mask, START] < nodes[other & mask, START]:
            one, other = other, one
        graph.spine[depth] = one
        depth += 1
        one = nodes[one & mask, RIGHT] if nodes[one & mask, ITEM] == UNION else NONE
    merged = max(one, other)
    while depth > 0:
        depth -= 1
        top = graph.spine[depth] & mask
        head, left = graph.spine[depth], NONE
        if nodes[top, ITEM] == UNION:
            head, left = nodes[top, HEAD], nodes[top, LEFT]
        right = merged
        if _rank(graph, left) < _rank(graph, right):
            left, right = right, left
        merged = graph.totals[NEXT]
        graph.totals[NEXT] += 1
        row = merged & mask
        nodes[row, START] = nodes[top, START]
        nodes[row, ITEM] = UNION
        nodes[row, HEAD] = head
        nodes[row, LEFT] = left
        nodes[row, RIGHT] = right
        nodes[row, RANK] = 1 + _rank(graph, right)
    return merged


@njit_in_place
def _rank(graph, node):
    """The distance to the nearest missing child of a heap."""
    rank = 0
    if node >= graph.totals[FIRST]:
        row = node & (len(graph.nodes) - 1)
        rank = graph.nodes[row, RANK] if graph.nodes[row, ITEM] == UNION else 1
    return rank


@njit_in_place
def reclaim(graph, earliest):
    """Release nodes without a history whose first event is at ``earliest`` or later.

    All those created before the event at ``earliest`` are released; of later ones, those that no
    live node precedes.
    """
    mask = len(graph.nodes) - 1
    while (
        graph.totals[FIRST] < graph.totals[NEXT]
        and graph.nodes[graph.totals[FIRST] & mask, START] < earliest
    ):
        graph.totals[FIRST] += 1
