"""Enumeration of the matches of a graph, depth first, into columns that Arrow takes as they are.

From an event the search goes to its predecessor, from a union to each of its histories that begin
within the window. Every union visited has such a history at its head, so the delay between two
matches is linear in their lengths.

A run that accepts several events has matches with a common beginning, the histories before the last
event. They are copied from the matches of the earlier root instead of being searched for again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.runs.kernels.graph import (
    HEAD,
    ITEM,
    LEFT,
    NONE,
    POSITION,
    PREDECESSOR,
    RIGHT,
    ROOT,
    UNION,
    is_live,
)
from cepbench.kernels.jit import njit_in_place

# What PROGRESS holds: roots begun, nodes pending, matches written, events of the last match, and
# roots begun before this chunk.
ROOTS, PENDING, WRITTEN, LENGTH, BEFORE, PROGRESS = range(6)

# Why the search returns: it has ended, the chunk is full, or the search needs more room itself.
ENDED, FULL, CRAMPED = 0, 1, 2


class Search(NamedTuple):
    """A depth-first search where it paused."""

    pending: np.ndarray  #: int64 (room, 3): nodes not yet visited, the events chosen before them,
    #: and the item of the last of these
    path: np.ndarray  #: int64 (room,): positions of the events chosen, last one first
    begins: np.ndarray  #: int64 (items + 1,): where the events of each item begin in the path
    rows: np.ndarray  #: int64 (roots,): the first match of each root, in the chunk at that time
    progress: np.ndarray  #: int64 (PROGRESS,)


class Chunk(NamedTuple):
    """Matches written."""

    ends: np.ndarray  #: int64 (items, 1 + rows): from 1 on, positions, or the ends of sets
    members: np.ndarray  #: int64 (sets, members): positions in the sets of each item that has them


def new_search(items: int, roots: int) -> Search:
    """A search that has not begun, for so many positive items of the pattern and roots."""
    room = 1 << 10
    return Search(
        np.empty((room, 3), np.int64),
        np.empty(room, np.int64),
        np.empty(items + 1, np.int64),
        np.empty(roots, np.int64),
        np.zeros(PROGRESS, np.int64),
    )


def roomier(search: Search) -> Search:
    """The search with twice the room, after it returned ``CRAMPED``."""
    return search._replace(
        pending=np.concatenate((search.pending, np.empty_like(search.pending))),
        path=np.concatenate((search.path, np.empty_like(search.path))),
    )


@njit_in_place
def enumerate_matches(graph, roots, earliest, sets, search, chunk):
    """Write matches until all are written or the chunk is full.

    ``sets``: int64 (items,), the row of ``chunk.members`` that each item is written to; -1 if it has
    one event. For a new chunk ``WRITTEN`` is 0, and so is ``chunk.ends[:, 0]``.

    Returns ``ENDED``, ``FULL`` or ``CRAMPED``.
    """
    nodes, mask = graph.nodes, len(graph.nodes) - 1
    path, progress = search.path, search.progress
    last = len(sets) - 1
    if progress[WRITTEN] == 0:
        progress[BEFORE] = progress[ROOTS]
    while _next(graph, roots, earliest, sets, search):
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
                known = _root_of(node, graph, roots, earliest, search)
                if known >= 0 and _write_again(known, item, depth, earliest, sets, search, chunk):
                    before = node = NONE
                    break
                path[depth] = nodes[node & mask, POSITION]
                depth += 1
                before, node = node, nodes[node & mask, PREDECESSOR]
            if node == NONE and before != NONE:
                search.begins[0] = progress[LENGTH] = depth
                if not write_match(last, sets, search, chunk):
                    # The first event is chosen again; its item has begun before.
                    wait(before, depth - 1, chosen, search)
                    return FULL
    return ENDED


@njit_in_place
def begin(graph, roots, earliest, search):
    """Take the next node that waits, or the next root; it is then behind those that wait.

    Returns whether there is one.
    """
    progress = search.progress
    while progress[PENDING] == 0 and progress[ROOTS] < len(roots):
        root = progress[ROOTS]
        search.rows[root] = progress[WRITTEN]
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

    ``node``, ``depth``, ``chosen``: the node, how many events have been chosen before it, and the
    item of the last of these.

    Returns the node of the event; ``NONE`` if the search is cramped, and the node waits.
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
    """Leave a node for later."""
    top = search.progress[PENDING]
    search.pending[top, 0] = node
    search.pending[top, 1] = depth
    search.pending[top, 2] = chosen
    search.progress[PENDING] += 1


@njit_in_place
def write_match(last, sets, search, chunk):
    """Write the path as a match, up to the item ``last``; false if the chunk is full."""
    progress, begins, ends = search.progress, search.begins, chunk.ends
    row = progress[WRITTEN]
    if row + 1 == ends.shape[1]:
        return False
    for item in range(last + 1):
        size = begins[item] - begins[item + 1]
        if sets[item] >= 0 and ends[item, row] + size > chunk.members.shape[1]:
            return False
    for item in range(last + 1):
        ends[item, row + 1] = ends[item, row]
        _append(item, begins[item + 1], begins[item], row, sets, search, chunk)
    progress[WRITTEN] = row + 1
    return True


@njit_in_place
def _append(item, begin, end, row, sets, search, chunk):
    """Append events of the path, of which the last comes first, to an item of a match."""
    path, ends = search.path, chunk.ends
    if sets[item] < 0:
        ends[item, row + 1] = path[begin]
        return
    to = chunk.members[sets[item], ends[item, row + 1] :]
    for k in range(end - begin):
        to[k] = path[end - 1 - k]
    ends[item, row + 1] += end - begin


@njit_in_place
def _next(graph, roots, earliest, sets, search):
    """As :func:`begin`; marks the node whose histories all matches of a finished root begin with."""
    progress, nodes, mask = search.progress, graph.nodes, len(graph.nodes) - 1
    if progress[PENDING] == 0 and progress[ROOTS] > 0:
        root = progress[ROOTS] - 1
        node = roots[root]
        if is_live(graph, node, earliest[root]) and nodes[node & mask, ITEM] != UNION:
            if sets[nodes[node & mask, ITEM]] < 0:
                node = nodes[node & mask, PREDECESSOR]
            if node != NONE and nodes[node & mask, ITEM] != UNION:
                nodes[node & mask, ROOT] = root
    return begin(graph, roots, earliest, search)


@njit_in_place
def _root_of(node, graph, roots, earliest, search):
    """An earlier root of this chunk whose matches begin with the histories of a node; or -1.

    What is read of the node may be anything, and is checked.
    """
    nodes, mask, progress = graph.nodes, len(graph.nodes) - 1, search.progress
    root = nodes[node & mask, ROOT]
    if root < progress[BEFORE] or root >= progress[ROOTS] - 1:
        return -1
    last = roots[root] & mask
    is_its = roots[root] == node or (
        nodes[last, ITEM] != UNION
        and nodes[last, PREDECESSOR] == node
        and nodes[last, ITEM] != nodes[node & mask, ITEM]
    )
    return root if is_its and earliest[root] <= earliest[progress[ROOTS] - 1] else -1


@njit_in_place
def _write_again(root, item, depth, earliest, sets, search, chunk):
    """Write the matches of an earlier root with the events of the path for those after a node.

    ``root``, ``item``, ``depth``: the root, the item of the node, and the events chosen behind it.

    Returns false if the chunk might not have room for all of them; none is written.
    """
    progress, begins, ends, members = search.progress, search.begins, chunk.ends, chunk.members
    first, end = search.rows[root], search.rows[root + 1]
    row, bound = progress[WRITTEN], earliest[progress[ROOTS] - 1]
    if row + end - first >= ends.shape[1]:
        return False
    for its in range(len(sets)):
        if sets[its] >= 0:
            size = 0 if its > item else ends[its, end] - ends[its, first]
            if its >= item:
                size += (end - first) * ((depth if its == item else begins[its]) - begins[its + 1])
            if ends[its, row] + size > members.shape[1]:
                return False
    for known in range(first, end):
        start = ends[0, known + 1] if sets[0] < 0 else members[sets[0], ends[0, known]]
        if start < bound:
            continue
        for its in range(item + 1):
            if sets[its] < 0:
                ends[its, row + 1] = ends[its, known + 1]
                continue
            to = members[sets[its], ends[its, row] :]
            copied = members[sets[its], ends[its, known] : ends[its, known + 1]]
            for k in range(len(copied)):
                to[k] = copied[k]
            ends[its, row + 1] = ends[its, row] + len(copied)
        if sets[item] >= 0:
            _append(item, begins[item + 1], depth, row, sets, search, chunk)
        for its in range(item + 1, len(sets)):
            ends[its, row + 1] = ends[its, row]
            _append(its, begins[its + 1], begins[its], row, sets, search, chunk)
        row += 1
    progress[WRITTEN] = row
    return True
