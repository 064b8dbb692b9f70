"""Enumeration of the matches of a graph, depth first, into columns that Arrow takes as they are.

From an event the search goes to its predecessor, from a union to each of its histories that begin
within the window. Every union visited has such a history at its head, so the delay between two
matches is linear in their lengths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.match_graph.graph import (
    HEAD,
    ITEM,
    LEFT,
    NONE,
    POSITION,
    PREDECESSOR,
    RIGHT,
    UNION,
    is_live,
)

# What PROGRESS holds: roots begun, nodes pending, matches written, events of the last match.
ROOTS, PENDING, WRITTEN, LENGTH, PROGRESS = 0, 1, 2, 3, 4

# Why the search returns: it has ended, the chunk is full, or the search needs more room itself.
ENDED, FULL, CRAMPED = 0, 1, 2


class Search(NamedTuple):
    """A depth-first search where it paused."""

    pending: np.ndarray  #: int64 (room, 3): nodes not yet visited, the events chosen before them,
    #: and the item of the last of these
    path: np.ndarray  #: int64 (room,): positions of the events chosen, last one first
    begins: np.ndarray  #: int64 (items + 1,): where the events of each item begin in the path
    progress: np.ndarray  #: int64 (PROGRESS,)


class Chunk(NamedTuple):
    """Matches written."""

    ends: np.ndarray  #: int64 (items, 1 + rows): from 1 on, positions, or the ends of sets
    members: np.ndarray  #: int64 (sets, members): positions in the sets of each item that has them


def new_search(items: int) -> Search:
    """A search that has not begun.

    Parameters
    ----------
    items : int
        Positive items of the pattern.
    """
    room = 64
    return Search(
        np.empty((room, 3), np.int64),
        np.empty(room, np.int64),
        np.empty(items + 1, np.int64),
        np.zeros(PROGRESS, np.int64),
    )


def roomier(search: Search) -> Search:
    """The search with twice the room, after it returned ``CRAMPED``.

    Parameters
    ----------
    search : Search
    """
    return search._replace(
        pending=np.concatenate((search.pending, np.empty_like(search.pending))),
        path=np.concatenate((search.path, np.empty_like(search.path))),
    )


@njit_in_place
def enumerate_matches(graph, roots, earliest, sets, search, chunk):
    """Write matches until all are written or the chunk is full.

    Parameters
    ----------
    graph : MatchGraph
    roots, earliest : int64 arrays, shape (n,)
        The last events of matches, and the position of the earliest event in the window of each.
    sets : int64 array, shape (items,)
        For each item the row of ``chunk.members`` that it is written to; -1 if it has one event.
    search : Search
        For a new chunk ``WRITTEN`` is 0.
    chunk : Chunk
        ``ends[:, 0]`` is 0.

    Returns
    -------
    int
        ``ENDED``, ``FULL`` or ``CRAMPED``.
    """
    nodes, mask = graph.nodes, len(graph.nodes) - 1
    path, progress = search.path, search.progress
    last = len(sets) - 1
    while begin(graph, roots, earliest, search):
        node, depth, chosen = search.pending[progress[PENDING]]
        while node != NONE:
            node = to_event(graph, earliest, node, depth, chosen, search)
            if node == NONE:
                return CRAMPED
            item = nodes[node & mask, ITEM]
            if item != chosen:
                search.begins[item + 1] = depth
                chosen = item
            # Most events of a long match are in one set, with one predecessor each.
            before = node
            while node != NONE and nodes[node & mask, ITEM] == item and depth < len(path):
                path[depth] = nodes[node & mask, POSITION]
                depth += 1
                before, node = node, nodes[node & mask, PREDECESSOR]
            if node == NONE:
                search.begins[0] = progress[LENGTH] = depth
                if not write_match(last, sets, search, chunk):
                    # The first event is chosen again; its item has begun before.
                    wait(before, depth - 1, chosen, search)
                    return FULL
    return ENDED


@njit_in_place
def begin(graph, roots, earliest, search):
    """Take the next node that waits, or the next root; it is then behind those that wait.

    Parameters
    ----------
    graph : MatchGraph
    roots, earliest : int64 arrays, shape (n,)
    search : Search

    Returns
    -------
    bool
        Whether there is one.
    """
    progress = search.progress
    while progress[PENDING] == 0 and progress[ROOTS] < len(roots):
        root = progress[ROOTS]
        progress[ROOTS] += 1
        if is_live(graph, roots[root], earliest[root]):
            wait(roots[root], 0, NONE, search)
    progress[PENDING] -= 1
    if progress[PENDING] < 0:
        progress[PENDING] = 0
        return False
    return True


@njit_in_place
def to_event(graph, earliest, node, depth, chosen, search):
    """The event of a node's first history; its others wait.

    Parameters
    ----------
    graph : MatchGraph
    earliest : int64 array, shape (n,)
    node, depth, chosen : int
        The node, how many events have been chosen before it, and the item of the last of these.
    search : Search

    Returns
    -------
    int
        The node of the event; ``NONE`` if the search is cramped, and the node waits.
    """
    nodes, mask, room = graph.nodes, len(graph.nodes) - 1, len(search.path)
    bound = earliest[search.progress[ROOTS] - 1]
    while True:
        if search.progress[PENDING] + 3 > room or depth == room:
            wait(node, depth, chosen, search)
            return NONE
        row = node & mask
        if nodes[row, ITEM] != UNION:
            return node
        for side in (RIGHT, LEFT):
            if is_live(graph, nodes[row, side], bound):
                wait(nodes[row, side], depth, chosen, search)
        node = nodes[row, HEAD]


@njit_in_place
def wait(node, depth, chosen, search):
    """Leave a node for later.

    Parameters
    ----------
    node, depth, chosen : int
        As for :func:`to_event`.
    search : Search
    """
    top = search.progress[PENDING]
    search.pending[top, 0] = node
    search.pending[top, 1] = depth
    search.pending[top, 2] = chosen
    search.progress[PENDING] += 1


@njit_in_place
def write_match(last, sets, search, chunk):
    """Write the path as a match; false if the chunk is full.

    Parameters
    ----------
    last : int
        The last item.
    sets : int64 array, shape (items,)
    search : Search
    chunk : Chunk
    """
    progress, begins, ends = search.progress, search.begins, chunk.ends
    row = progress[WRITTEN]
    if row + 1 == ends.shape[1]:
        return False
    for item in range(last + 1):
        size = begins[item] - begins[item + 1]
        if sets[item] >= 0 and ends[item, row] + size > chunk.members.shape[1]:
            return False
    for item in range(last + 1):
        # The events of an item are in the path before those of the item before it.
        begin, end = begins[item + 1], begins[item]
        if sets[item] < 0:
            ends[item, row + 1] = search.path[begin]
            continue
        place = ends[item, row] + end - 1
        for k in range(begin, end):
            chunk.members[sets[item], place - k] = search.path[k]
        ends[item, row + 1] = ends[item, row] + end - begin
    progress[WRITTEN] = row + 1
    return True
