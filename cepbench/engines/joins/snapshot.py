"""Conversion of the kernels' state to plain arrays for a snapshot, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.buffers import empty_state, place_columns
from cepbench.engines.runs.snapshot import stored_array
from cepbench.errors import SnapshotError


def pack(nodes: np.ndarray, state: tables.NodeState) -> dict[str, np.ndarray]:
    """Stored rows as plain arrays, without unused capacity."""

    def stored(arena: np.ndarray, offset: int, width: int) -> np.ndarray:
        pieces = [np.empty(0, arena.dtype)]
        for node, rows in enumerate(state.rows):
            for column in range(nodes[node, width]):
                begin = rows[offset] + column * rows[tables.CAPACITY]
                pieces.append(arena[begin + rows[tables.START] : begin + rows[tables.END]])
        return np.concatenate(pieces)

    return {
        "rows": state.rows[:, tables.END] - state.rows[:, tables.START],
        "shifts": state.rows[:, tables.SHIFT] + state.rows[:, tables.START],
        "counts": state.counts.copy(),
        "peaks": state.peaks.copy(),
        "ints": stored(state.ints, tables.INT_OFFSET, tables.INTS),
        "floats": stored(state.floats, tables.FLOAT_OFFSET, tables.FLOATS),
        "members": state.members[:, : state.used[0]].copy(),
    }


def unpack(snapshot: Mapping[str, np.ndarray], plan: tables.Plan) -> tables.NodeState:
    """The kernels' state from a snapshot of a detector with this plan.

    Raises
    ------
    SnapshotError
        If an array is missing, or has an invalid type or size.
    """
    nodes = plan.nodes
    empty = empty_state(plan)

    sizes = stored_array(snapshot, "rows", empty.rows, (len(nodes),))
    if (sizes < 0).any():
        raise SnapshotError("the snapshot is damaged: it counts less than no rows")
    rows = np.zeros_like(empty.rows)
    for column in (tables.CAPACITY, tables.END, tables.FRESH):
        rows[:, column] = sizes
    rows[:, tables.SHIFT] = stored_array(snapshot, "shifts", rows, (len(nodes),))
    ints = place_columns(nodes, rows, tables.INT_OFFSET, tables.INTS)
    floats = place_columns(nodes, rows, tables.FLOAT_OFFSET, tables.FLOATS)
    members = stored_array(
        snapshot, "members", empty.members, (2, *np.shape(snapshot.get("members", ()))[-1:])
    )
    return tables.NodeState(
        rows=rows,
        counts=stored_array(snapshot, "counts", empty.counts, empty.counts.shape),
        peaks=stored_array(snapshot, "peaks", empty.peaks, empty.peaks.shape),
        ints=stored_array(snapshot, "ints", empty.ints, (ints,)),
        floats=stored_array(snapshot, "floats", empty.floats, (floats,)),
        members=members,
        used=np.array([members.shape[1]]),
    )
