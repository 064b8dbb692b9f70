"""Room for rows: one growing arena of columns for all nodes, and the removal of expired rows."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit, njit_in_place
from cepbench.kernels.tables import (
    CAPACITY,
    EARLIEST,
    END,
    FLOAT_OFFSET,
    FLOATS,
    FRESH,
    INT_OFFSET,
    INTS,
    LATEST,
    START,
)


@njit
def make_room(node, extra, nodes, state, ints, floats):
    """See that ``extra`` more rows fit at ``node``; gives the two arenas, maybe new ones.

    Row numbers of ``node`` may change (START, END and FRESH move together), those of the other
    nodes never do.
    """
    start, end, capacity = state[node, START], state[node, END], state[node, CAPACITY]
    if end + extra <= capacity:
        return ints, floats
    live = end - start
    if 2 * (live + extra) <= capacity:
        _move_to_front(node, nodes, state, ints, floats)
        return ints, floats
    return _grow(node, 2 * (live + extra), nodes, state, ints, floats)


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


@njit
def _grow(grown, new_capacity, nodes, state, ints, floats):
    """Lay out both arenas anew, with more room at one node; the root's rows lie elsewhere."""
    int_size = 0
    float_size = 0
    for node in range(len(nodes) - 1):
        capacity = new_capacity if node == grown else state[node, CAPACITY]
        int_size += nodes[node, INTS] * capacity
        float_size += nodes[node, FLOATS] * capacity
    new_ints = np.empty(int_size, np.int64)
    new_floats = np.empty(float_size, np.float64)
    int_offset = 0
    float_offset = 0
    for node in range(len(nodes) - 1):
        old = state[node, CAPACITY]
        capacity = new_capacity if node == grown else old
        # Only the grown node's rows move to the front: its caller looks them up anew.
        shift = state[node, START] if node == grown else 0
        first, last = state[node, START], state[node, END]
        for column in range(nodes[node, INTS]):
            source = state[node, INT_OFFSET] + column * old
            target = int_offset + column * capacity - shift
            for row in range(first, last):
                new_ints[target + row] = ints[source + row]
        for column in range(nodes[node, FLOATS]):
            source = state[node, FLOAT_OFFSET] + column * old
            target = float_offset + column * capacity - shift
            for row in range(first, last):
                new_floats[target + row] = floats[source + row]
        state[node, INT_OFFSET] = int_offset
        state[node, FLOAT_OFFSET] = float_offset
        state[node, CAPACITY] = capacity
        if node == grown:
            state[node, START] -= shift
            state[node, END] -= shift
            state[node, FRESH] -= shift
        int_offset += nodes[node, INTS] * capacity
        float_offset += nodes[node, FLOATS] * capacity
    return new_ints, new_floats


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
    for row in range(start, end):
        live += ints[base + row] >= oldest
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


@njit
def widened(matches, end, more):
    """``matches`` with room for ``more`` columns after ``end``."""
    if end + more <= matches.shape[1]:
        return matches
    wider = np.empty((matches.shape[0], 2 * (end + more)), np.int64)
    for row in range(matches.shape[0]):
        for column in range(end):
            wider[row, column] = matches[row, column]
    return wider
