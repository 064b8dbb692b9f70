"""The kernels' state of a plan's nodes; packed as plain arrays for a snapshot, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cepbench.errors import SnapshotError
from cepbench.kernels.joins import tables
from cepbench.kernels.joins.buffers import place_columns

#: Rows that a node of a new detector has room for.
_FIRST_ROOM = 1024


@dataclass
class NodeState:
    """What the kernels keep of each node of a plan.

    Attributes
    ----------
    state : ndarray of int64, shape (nodes, STATE_COLUMNS)
    counts : ndarray of int64, shape (nodes, COUNT_COLUMNS)
    peaks : ndarray of int64, shape (PEAKS,)
    ints : ndarray of int64
        Arena of all nodes' integer columns.
    floats : ndarray of float64
        Arena of all nodes' float columns.
    members : ndarray of int64, shape (2, capacity)
        Pool of the members of sets.
    used : ndarray of int64, shape (1,)
        How much of the pool is taken.
    """

    state: np.ndarray
    counts: np.ndarray
    peaks: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    members: np.ndarray
    used: np.ndarray

    @classmethod
    def empty(cls, plan: tables.Plan) -> NodeState:
        """Nothing stored, nothing counted, and some room for the rows of each node of a plan."""
        nodes = plan.nodes
        state = np.zeros((len(nodes), tables.STATE_COLUMNS), np.int64)
        # Checks have no rows; rows of a root that is not stored are matches, which lie elsewhere.
        has_rows = (nodes[:, tables.INTS] > 0) & (
            plan.stored | (np.arange(len(nodes)) < len(nodes) - 1)
        )
        state[has_rows, tables.CAPACITY] = _FIRST_ROOM
        return cls(
            state,
            np.zeros((len(nodes), tables.COUNT_COLUMNS), np.int64),
            np.zeros(tables.PEAKS, np.int64),
            np.empty(place_columns(nodes, state, tables.INT_OFFSET, tables.INTS), np.int64),
            np.empty(place_columns(nodes, state, tables.FLOAT_OFFSET, tables.FLOATS), np.float64),
            np.empty((2, 64), np.int64),
            np.zeros(1, np.int64),
        )


def pack(nodes: np.ndarray, kept: NodeState) -> dict[str, np.ndarray]:
    """Stored rows as plain arrays, without the room between the rows."""

    def stored(arena: np.ndarray, offset: int, width: int) -> np.ndarray:
        pieces = [np.empty(0, arena.dtype)]
        for node, state in enumerate(kept.state):
            for column in range(nodes[node, width]):
                begin = state[offset] + column * state[tables.CAPACITY]
                pieces.append(arena[begin + state[tables.START] : begin + state[tables.END]])
        return np.concatenate(pieces)

    return {
        "rows": kept.state[:, tables.END] - kept.state[:, tables.START],
        "shifts": kept.state[:, tables.SHIFT] + kept.state[:, tables.START],
        "counts": kept.counts.copy(),
        "peaks": kept.peaks.copy(),
        "ints": stored(kept.ints, tables.INT_OFFSET, tables.INTS),
        "floats": stored(kept.floats, tables.FLOAT_OFFSET, tables.FLOATS),
        "members": kept.members[:, : kept.used[0]].copy(),
    }


def unpack(snapshot: Mapping[str, np.ndarray], plan: tables.Plan) -> NodeState:
    """The kernels' state from a snapshot of a detector with this plan.

    Raises
    ------
    SnapshotError
        If an array is missing, or is not of the kind and size that it must be.
    """
    nodes = plan.nodes
    kept = NodeState.empty(plan)

    def array(name: str, like: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if name not in snapshot:
            raise SnapshotError(f"the snapshot is damaged: it has no array {name!r}")
        found = np.asarray(snapshot[name])
        if found.dtype != like.dtype or found.shape != shape:
            raise SnapshotError(
                f"the snapshot is damaged: {name!r} is an array of {found.dtype} and shape "
                f"{found.shape}, where {like.dtype} and {shape} are due"
            )
        return found.copy()

    rows = array("rows", kept.state, (len(nodes),))
    if (rows < 0).any():
        raise SnapshotError("the snapshot is damaged: it counts less than no rows")
    kept.counts = array("counts", kept.counts, kept.counts.shape)
    kept.peaks = array("peaks", kept.peaks, kept.peaks.shape)
    kept.ints = array("ints", kept.ints, (int(rows @ nodes[:, tables.INTS]),))
    kept.floats = array("floats", kept.floats, (int(rows @ nodes[:, tables.FLOATS]),))
    for column in (tables.CAPACITY, tables.END, tables.FRESH):
        kept.state[:, column] = rows
    kept.state[:, tables.SHIFT] = array("shifts", kept.state, (len(nodes),))
    size = np.shape(snapshot.get("members", ()))[-1:]
    kept.members = array("members", kept.ints, (2, *size))
    kept.used[0] = kept.members.shape[1]
    place_columns(nodes, kept.state, tables.INT_OFFSET, tables.INTS)
    place_columns(nodes, kept.state, tables.FLOAT_OFFSET, tables.FLOATS)
    return kept
