"""The state of an instance-based engine as plain arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cepbench.engines.instances.kernels.room import empty_state
from cepbench.engines.instances.kernels.tables import CAPACITY, WIDTH, Plan, State
from cepbench.errors import SnapshotError

#: Working space, undefined between batches.
_SCRATCH = "chosen"


def pack(state: State) -> dict[str, np.ndarray]:
    """The arrays of a state.

    Parameters
    ----------
    state : State
    """
    return {name: a.copy() for name, a in state._asdict().items() if name != _SCRATCH}


def unpack(snapshot: Mapping[str, np.ndarray], plan: Plan, columns: int) -> State:
    """The state from its arrays.

    Parameters
    ----------
    snapshot : mapping of str to ndarray
    plan : Plan
    columns : int
        Number of stored values of each event.

    Raises
    ------
    SnapshotError
        If an array is missing, or has an invalid type or shape.
    """
    empty = empty_state(plan, columns)._asdict()
    del empty[_SCRATCH]
    found = {}
    for name, like in empty.items():
        array = np.asarray(snapshot.get(name))
        if array.dtype != like.dtype or array.ndim != like.ndim:
            raise SnapshotError(f"the snapshot is damaged: it has no usable {name!r}")
        found[name] = np.ascontiguousarray(array).copy()
    events, cells = len(found["events"]), len(found["cells"])
    shapes = {name: like.shape for name, like in empty.items()}
    for name in ("events", "values", "expiring"):
        shapes[name] = (events, shapes[name][1])
    shapes["buffers"] = (plan.leaves, events)
    shapes["cells"] = (cells, shapes["cells"][1])
    if found["lists"].shape == shapes["lists"]:
        shapes["arena"] = (int(found["lists"][:, CAPACITY] @ plan.nodes[:, WIDTH]),)
    for name, array in found.items():
        if array.shape != shapes[name]:
            raise SnapshotError(
                f"the snapshot is damaged: {name!r} has the shape {array.shape}, where "
                f"{shapes[name]} is due"
            )
    for name, size in (("events", events), ("cells", cells)):
        # Rings are indexed by a mask.
        if size == 0 or size & (size - 1):
            raise SnapshotError(f"the snapshot is damaged: {name!r} has {size} rows")
    return State(**found, chosen=np.zeros((2, events), np.int64))
