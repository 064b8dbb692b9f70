"""Storage of rows: growing arenas of columns for all nodes, and eviction of expired rows."""

from __future__ import annotations

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.kernels import counts
from cepbench.kernels.jit import njit_in_place

#: Initial capacity of each node in rows.
_FIRST_ROOM = 1024


@njit_in_place
def has_room(node, extra, plan, state):
    """Whether ``extra`` more rows fit at a node; moves its rows to the front of their columns if that helps.

    Row numbers of the node may change (``START``, ``END`` and ``FRESH`` move together).
    """
    rows = state.rows[node]
    start, end, capacity = rows[tables.START], rows[tables.END], rows[tables.CAPACITY]
    if end + extra <= capacity:
        return True
    if 2 * (end - start + extra) > capacity:
        return False
    _move_to_front(node, plan, state)
    return True


@njit_in_place
def _move_to_front(node, plan, state):
    rows = state.rows[node]
    start, end = rows[tables.START], rows[tables.END]
    for column in range(plan.nodes[node, tables.INTS]):
        base = tables.int_column(node, column, state)
        for row in range(end - start):
            state.ints[base + row] = state.ints[base + start + row]
    for column in range(plan.nodes[node, tables.FLOATS]):
        base = tables.float_column(node, column, state)
        for row in range(end - start):
            state.floats[base + row] = state.floats[base + start + row]
    rows[tables.START] = 0
    rows[tables.END] = end - start
    rows[tables.FRESH] -= start
    rows[tables.SHIFT] += start


@njit_in_place
def expire(node, oldest, plan, state):
    """Evict rows whose earliest timestamp is before ``oldest``; returns the number of rows left.

    Expired rows may be between live ones. Rows are compacted once expired ones outnumber live ones,
    so the amortized cost per row is constant, and at most twice the needed memory is used.
    """
    rows = state.rows[node]
    start, end = rows[tables.START], rows[tables.END]
    base = tables.int_column(node, plan.nodes[node, tables.EARLIEST], state)
    while start < end and state.ints[base + start] < oldest:
        start += 1
    rows[tables.START] = start
    if plan.nodes[node, tables.EARLIEST] == plan.nodes[node, tables.LATEST]:
        # Events expire in order of arrival.
        rows[tables.FRESH] = end
        return end - start
    live = 0
    earliest = state.ints[base + start : base + end]
    for row in range(end - start):
        live += int(earliest[row] >= oldest)
    if 2 * live < end - start:
        _compact(node, oldest, live, plan, state)
    rows[tables.FRESH] = rows[tables.END]
    return live


@njit_in_place
def _compact(node, oldest, live, plan, state):
    rows = state.rows[node]
    start, end = rows[tables.START], rows[tables.END]
    earliest = tables.int_column(node, plan.nodes[node, tables.EARLIEST], state)
    for column in range(plan.nodes[node, tables.INTS]):
        if column != plan.nodes[node, tables.EARLIEST]:
            base = tables.int_column(node, column, state)
            _compact_column(state.ints, base, state.ints, earliest, start, end, oldest)
    for column in range(plan.nodes[node, tables.FLOATS]):
        base = tables.float_column(node, column, state)
        _compact_column(state.floats, base, state.ints, earliest, start, end, oldest)
    # Last, because it determines which rows of the other columns are kept.
    _compact_column(state.ints, earliest, state.ints, earliest, start, end, oldest)
    rows[tables.START] = 0
    rows[tables.END] = live


@njit_in_place
def _compact_column(column, base, ints, earliest, start, end, oldest):
    kept = base
    for row in range(start, end):
        # Always written, kept only if live: no branch to mispredict.
        column[kept] = column[base + row]
        kept += int(ints[earliest + row] >= oldest)


def empty_state(plan: tables.Plan) -> tables.NodeState:
    """The empty state of a plan, with initial capacity for the rows of each node."""
    nodes = plan.nodes
    rows = np.zeros((len(nodes), tables.STATE_COLUMNS), np.int64)
    # Checks have no rows; rows of a root that is not stored are matches, which are stored
    # elsewhere.
    has_rows = (nodes[:, tables.INTS] > 0) & (
        plan.stored | (np.arange(len(nodes)) < len(nodes) - 1)
    )
    rows[has_rows, tables.CAPACITY] = _FIRST_ROOM
    return tables.NodeState(
        rows=rows,
        counts=np.zeros((len(nodes), counts.COUNT_COLUMNS), np.int64),
        peaks=np.zeros(counts.PEAKS, np.int64),
        ints=np.empty(place_columns(nodes, rows, tables.INT_OFFSET, tables.INTS), np.int64),
        floats=np.empty(place_columns(nodes, rows, tables.FLOAT_OFFSET, tables.FLOATS), np.float64),
        members=np.empty((2, 64), np.int64),
        used=np.zeros(1, np.int64),
    )


def place_columns(nodes: np.ndarray, rows: np.ndarray, offset: int, width: int) -> int:
    """Place all nodes' columns in an arena by their capacities; returns its size.

    The column ``offset`` of ``rows`` is written; it and ``width`` are ``INT_OFFSET`` and ``INTS``, or
    ``FLOAT_OFFSET`` and ``FLOATS``.
    """
    sizes = rows[:, tables.CAPACITY] * nodes[:, width]
    rows[:, offset] = np.cumsum(sizes) - sizes
    return int(sizes.sum())


def make_room(
    grown: int, extra: int, plan: tables.Plan, state: tables.NodeState
) -> tables.NodeState:
    """The state with both arenas reallocated, with room for ``extra`` more rows at a node.

    Not compiled: as capacities double, it is called a few times in a run. The rows of the node, and no
    others, move to the front; ``state.rows`` is written in place.
    """
    nodes, rows, old = plan.nodes, state.rows, state.rows.copy()
    live = old[grown, tables.END] - old[grown, tables.START]
    rows[grown, tables.CAPACITY] = 2 * (live + extra)
    rows[grown, [tables.START, tables.END, tables.FRESH]] -= old[grown, tables.START]
    rows[grown, tables.SHIFT] += old[grown, tables.START]

    def laid_out(arena: np.ndarray, offset: int, width: int) -> np.ndarray:
        larger = np.empty(place_columns(nodes, rows, offset, width), arena.dtype)
        for node in range(len(nodes)):
            if old[node, tables.CAPACITY] == 0:
                continue  # no rows, or matches, which are stored elsewhere
            for column in range(nodes[node, width]):
                source = old[node, offset] + column * old[node, tables.CAPACITY]
                target = rows[node, offset] + column * rows[node, tables.CAPACITY]
                larger[target + rows[node, tables.START] : target + rows[node, tables.END]] = arena[
                    source + old[node, tables.START] : source + old[node, tables.END]
                ]
        return larger

    return state._replace(
        ints=laid_out(state.ints, tables.INT_OFFSET, tables.INTS),
        floats=laid_out(state.floats, tables.FLOAT_OFFSET, tables.FLOATS),
    )
