"""The match of OUTPUT non_overlap among those of one last event, without enumerating them."""

from __future__ import annotations

import numpy as np

from cepbench.engines.runs.kernels.graph import (
    ITEM,
    NONE,
    POSITION,
    START,
    UNION,
    UNION_NODES,
    add_event,
    add_union,
    is_live,
    room,
)
from cepbench.engines.runs.kernels.nodes import children, find_nodes
from cepbench.kernels.jit import njit, njit_in_place

#: What :func:`choose` returns if there is no room for the nodes of the match.
NO_ROOM = -2


@njit
def choose(graph, root, earliest, scratch):
    """Choose the match with the latest start, then with the fewest events, then the smallest.

    The smallest is that of the smallest tuple of positions in written order, in which a set is the
    tuple of its positions. All matches with the latest start begin with one event. Each node keeps
    its best history, and a union compares those of its parts, from their ends to the event where
    they part.

    ``root``: the union of the runs that accept an event. ``earliest``: the position after the last
    event of the match reported before, or that of the first event in the window, if that is later.

    Returns int, a new node whose only history is the match; ``NONE`` if none begins at ``earliest``
    or later; ``NO_ROOM`` if the graph has less room than the match has events.
    """
    nodes, mask = graph.nodes, len(graph.nodes) - 1
    if not is_live(graph, root, earliest):
        return NONE
    latest = nodes[root & mask, START]
    below = find_nodes(graph, np.full(1, root), latest, scratch)
    # By node: the event at which its best history ends; by event: the one before, and its length.
    best, before, length = np.arange(below), np.full(below, NONE), np.ones(below, np.int64)
    for k in range(below):
        row = scratch.order[k] & mask
        begin, end = children(graph, row)
        if nodes[row, ITEM] == UNION:
            best[k] = NONE
        for column in range(begin, end):
            if not is_live(graph, nodes[row, column], latest):
                continue
            other = best[scratch.places[nodes[row, column] & mask]]
            if nodes[row, ITEM] != UNION:
                before[k], length[k] = other, length[other] + 1
            elif (
                best[k] == NONE
                or length[other] < length[best[k]]
                or (
                    length[other] == length[best[k]]
                    and _is_smaller(graph, other, best[k], before, scratch)
                )
            ):
                best[k] = other
    last = best[below - 1]
    if room(graph) < length[last]:
        return NO_ROOM
    chosen = np.empty(length[last], np.int64)
    for k in range(len(chosen) - 1, -1, -1):
        chosen[k] = scratch.order[last]
        last = before[last]
    node = NONE
    for k in range(len(chosen)):
        row = chosen[k] & mask
        node = add_event(graph, nodes[row, POSITION], nodes[row, ITEM], node)
    return node


@njit
def choose_each(graph, roots, earliest, lasts, first, scratch, chosen):
    """Choose one match for each last event, as long as there is room.

    ``roots``, ``earliest``, ``lasts``: int64 (n,), roots, their windows, and the positions of their
    last events; those of one last event come together. ``first``: the root to begin with.
    ``chosen``: int64 (n,), written in place: the match of a last event, at the first of its roots.

    Returns the root to go on with after the graph has grown; n at the end.
    """
    while first < len(roots):
        root, last = NONE, first
        while last < len(roots) and lasts[last] == lasts[first]:
            if room(graph) < UNION_NODES:
                return first
            root = add_union(graph, root, roots[last])
            last += 1
        node = choose(graph, root, earliest[first], scratch)
        if node == NO_ROOM:
            return first
        chosen[first] = node
        first = last
    return first


@njit_in_place
def _is_smaller(graph, one, other, before, scratch):
    """Whether a history is smaller than one of the same length.

    After equal events a set that ends is smaller than one that goes on.
    """
    nodes, mask = graph.nodes, len(graph.nodes) - 1
    smaller = False
    while one != other:
        row, other_row = scratch.order[one] & mask, scratch.order[other] & mask
        one, other = before[one], before[other]
        goes_on = one != NONE and nodes[row, ITEM] == nodes[scratch.order[one] & mask, ITEM]
        other_goes_on = (
            other != NONE and nodes[other_row, ITEM] == nodes[scratch.order[other] & mask, ITEM]
        )
        if goes_on != other_goes_on:
            smaller = other_goes_on
        elif nodes[row, POSITION] != nodes[other_row, POSITION]:
            smaller = nodes[row, POSITION] < nodes[other_row, POSITION]
    return smaller
