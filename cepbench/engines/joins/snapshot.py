"""Conversion of the kernels' state to plain arrays for a snapshot, and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.buffers import place_columns
from cepbench.engines.runs.state import check_range, damaged


class Stored(NamedTuple):
    """A state without unused capacity."""

    rows: np.ndarray  #: int64 (nodes,), the number of rows of each
    shifts: np.ndarray  #: int64 (nodes,)
    counts: np.ndarray
    peaks: np.ndarray
    ints: np.ndarray  #: int64, the columns of all nodes, one after the other
    floats: np.ndarray
    members: np.ndarray


#: The shapes of arrays.
SHAPES = {
    "rows": "-", "shifts": "-", "counts": "-", "peaks": "-", "ints": "*", "floats": "*",
    "members": "- *",
}  # fmt: skip


def pack(nodes: np.ndarray, state: tables.NodeState) -> Stored:
    """Stored rows as plain arrays, without unused capacity."""

    def stored(arena: np.ndarray, offset: int, width: int) -> np.ndarray:
        pieces = [np.empty(0, arena.dtype)]
        for node, rows in enumerate(state.rows):
            for column in range(nodes[node, width]):
                begin = rows[offset] + column * rows[tables.CAPACITY]
                pieces.append(arena[begin + rows[tables.START] : begin + rows[tables.END]])
        return np.concatenate(pieces)

    return Stored(
        rows=state.rows[:, tables.END] - state.rows[:, tables.START],
        shifts=state.rows[:, tables.SHIFT] + state.rows[:, tables.START],
        counts=state.counts,
        peaks=state.peaks,
        ints=stored(state.ints, tables.INT_OFFSET, tables.INTS),
        floats=stored(state.floats, tables.FLOAT_OFFSET, tables.FLOATS),
        members=state.members[:, : state.used[0]],
    )


def unpack(stored: Stored, plan: tables.Plan) -> tables.NodeState:
    """The kernels' state from that of a detector with this plan.

    Raises
    ------
    SnapshotError
        If columns have other sizes than their nodes, or sets have members that there are not.
    """
    nodes = plan.nodes
    # Larger numbers would overflow as products.
    check_range("rows", stored.rows, 0, 1 << 40)
    rows = np.zeros((len(nodes), tables.STATE_COLUMNS), np.int64)
    for column in (tables.CAPACITY, tables.END, tables.FRESH):
        rows[:, column] = stored.rows
    rows[:, tables.SHIFT] = stored.shifts
    ints = place_columns(nodes, rows, tables.INT_OFFSET, tables.INTS)
    floats = place_columns(nodes, rows, tables.FLOAT_OFFSET, tables.FLOATS)
    if (ints, floats) != (len(stored.ints), len(stored.floats)):
        raise damaged("it has columns of other sizes than their nodes")
    state = tables.NodeState(
        rows,
        *stored[2:],
        used=np.array([stored.members.shape[1]]),  # type: ignore[call-arg]
    )
    _check_sets(plan, state)
    return state


def _check_sets(plan: tables.Plan, state: tables.NodeState) -> None:
    """Check that sets are in the pool, and that their members are events of their leaves."""
    nodes, pool = plan.nodes, state.members
    #: Of each node the columns with the starts of sets, and the leaves of these.
    sets: list[dict[int, int]] = [{} for _ in nodes]
    for node in range(plan.inner, len(nodes)):
        children = nodes[node, [tables.LEFT, tables.RIGHT]]
        first, last = plan.spans[node, tables.COPY_INT : tables.COPY_INT + 2]
        for side, column, own, _ in plan.rules[first:last].tolist():
            if children[side] >= 0 and column in sets[children[side]]:
                sets[node][own] = sets[children[side]][column]
        if nodes[node, tables.KIND] == tables.SETS and nodes[node, tables.SET] >= 0:
            sets[node][int(nodes[node, tables.SET])] = int(nodes[node, tables.RIGHT])
        offset, capacity, start, end = state.rows[
            node, [tables.INT_OFFSET, tables.CAPACITY, tables.START, tables.END]
        ].tolist()
        for column, leaf in sets[node].items():
            if column + 2 > nodes[node, tables.INTS]:  # of matches that are not stored
                continue
            begins, sizes = (
                state.ints[offset + its * capacity :][start:end] for its in (column, column + 1)
            )
            check_range("sets", begins, 0, pool.shape[1] + 1)
            check_range("sizes of sets", sizes, 0, pool.shape[1] + 1)
            check_range("ends of sets", begins + sizes, 0, pool.shape[1] + 1)
            used = np.zeros(pool.shape[1] + 1, np.int64)
            np.add.at(used, begins, 1)
            np.add.at(used, begins + sizes, -1)
            ordinals = pool[0, np.cumsum(used)[:-1] > 0] - state.rows[leaf, tables.SHIFT]
            check_range("members", ordinals, 0, int(state.rows[leaf, tables.END]))
