"""Room for rows: one growing arena of columns for all nodes, and the removal of expired rows."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.joins.tables import (
    CAPACITY,
    EARLIEST,
    END,
    FLOAT_OFFSET,
    FLOATS,
    FRESH,
    INT_OFFSET,
    INTS,
    LATEST,
    SHIFT,
    START,
)


@njit_in_place
def has_room(node, extra, nodes, state, ints, floats):
    """See that ``extra`` more rows fit at ``node``; False if they do not.

    Row numbers of ``node`` may change (START, END and FRESH move together).
    """
    start, end, capacity = state[node, START], state[node, END], state[node, CAPACITY]
    if end + extra <= capacity:
        return True
    if 2 * (end - start + extra) > capacity:
        return False
    _move_to_front(node, nodes, state, ints, floats)
    return True


@njit_in_place
def _move_to_front(node, nodes, state, ints, floats):
    start, end, capacity = state[node, START], state[node, END], state[node, CAPACITY]
    for column in range(nodes[node, INTS]):
        base = state[node, INT_OFFSET] + column * capacity
        for row in range(end - start):
            ints[base + row] = ints[base + start + row]
    for column in range(nodes[node, FLOATS]):
        base = state[node, FLOAT_OFFSET] + column * capacity
        for row in range(end - start):
            floats[base + row] = floats[base + start + row]
    state[node, START] = 0
    state[node, END] = end - start
    state[node, FRESH] -= start
    state[node, SHIFT] += start


@njit_in_place
def expire(node, oldest, nodes, state, ints, floats):
    """Forget rows whose earliest timestamp is before ``oldest``; gives how many live on.

    Expired rows may lie between others. They are squeezed out once they are more than the living,
    which keeps the cost per row constant and the memory within twice of what is needed.
    """
    start, end, capacity = state[node, START], state[node, END], state[node, CAPACITY]
    base = state[node, INT_OFFSET] + nodes[node, EARLIEST] * capacity
    while start < end and ints[base + start] < oldest:
        start += 1
    state[node, START] = start
    if nodes[node, EARLIEST] == nodes[node, LATEST]:
        # Events expire in the order in which they came.
        state[node, FRESH] = end
        return end - start
    live = 0
    earliest = ints[base + start : base + end]
    for row in range(end - start):
        live += int(earliest[row] >= oldest)
    if 2 * live < end - start:
        _squeeze(node, oldest, live, nodes, state, ints, floats)
    state[node, FRESH] = state[node, END]
    return live


@njit_in_place
def _squeeze(node, oldest, live, nodes, state, ints, floats):
    start, end, capacity = state[node, START], state[node, END], state[node, CAPACITY]
    earliest = state[node, INT_OFFSET] + nodes[node, EARLIEST] * capacity
    for column in range(nodes[node, INTS]):
        if column != nodes[node, EARLIEST]:
            base = state[node, INT_OFFSET] + column * capacity
            _squeeze_column(ints, base, ints, earliest, start, end, oldest)
    for column in range(nodes[node, FLOATS]):
        base = state[node, FLOAT_OFFSET] + column * capacity
        _squeeze_column(floats, base, ints, earliest, start, end, oldest)
    # Last of all, as it tells for the other columns which rows are kept.
    _squeeze_column(ints, earliest, ints, earliest, start, end, oldest)
    state[node, START] = 0
    state[node, END] = live


@njit_in_place
def _squeeze_column(column, base, ints, earliest, start, end, oldest):
    kept = base
    for row in range(start, end):
        # Always written, kept only if it lives: no branch to mispredict.
        column[kept] = column[base + row]
        kept += int(ints[earliest + row] >= oldest)


def place_columns(nodes: np.ndarray, state: np.ndarray, offset: int, width: int) -> int:
    """Place all nodes' columns in an arena by their capacities; gives how large that must be."""
    sizes = state[:, CAPACITY] * nodes[:, width]
    state[:, offset] = np.cumsum(sizes) - sizes
    return int(sizes.sum())


def make_room(
    grown: int,
    extra: int,
    nodes: np.ndarray,
    state: np.ndarray,
    ints: np.ndarray,
    floats: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Both arenas laid out anew, with room for ``extra`` more rows at one node.

    Not compiled: as capacities double, it is called a few times in the whole of a run. The rows
    of the node, and no others, move to the front.
    """
    old = state.copy()
    live = old[grown, END] - old[grown, START]
    state[grown, CAPACITY] = 2 * (live + extra)
    state[grown, [START, END, FRESH]] -= old[grown, START]
    state[grown, SHIFT] += old[grown, START]
    arenas = []
    for arena, offset, width in ((ints, INT_OFFSET, INTS), (floats, FLOAT_OFFSET, FLOATS)):
        larger = np.empty(place_columns(nodes, state, offset, width), arena.dtype)
        for node in range(len(nodes)):
            if old[node, CAPACITY] == 0:
                continue  # no rows, or matches, which lie elsewhere
            for column in range(nodes[node, width]):
                source = old[node, offset] + column * old[node, CAPACITY]
                target = state[node, offset] + column * state[node, CAPACITY]
                larger[target + state[node, START] : target + state[node, END]] = arena[
                    source + old[node, START] : source + old[node, END]
                ]
        arenas.append(larger)
    return arenas[0], arenas[1]
