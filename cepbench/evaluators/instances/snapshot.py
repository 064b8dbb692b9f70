"""The state of an instance-based engine as plain arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cepbench.errors import SnapshotError
from cepbench.kernels.instances.room import empty_state
from cepbench.kernels.instances.tables import Plan, State

#: Arrays of a state that are written as they are; the others hold nothing between two batches.
_KEPT = ("events", "values", "expiring", "buffers", "arena", "cells", "lists", "counts", "totals")


def pack(plan: Plan, state: State) -> dict[str, np.ndarray]:
    """The arrays of a state.

    Parameters
    ----------
    plan : Plan
    state : State
    """
    return {name: getattr(state, name).copy() for name in _KEPT}


def unpack(snapshot: Mapping[str, np.ndarray], plan: Plan, columns: int) -> State:
    """The state from its arrays.

    Parameters
    ----------
    snapshot : mapping of str to ndarray
    plan : Plan
    columns : int
        How many values of each event are stored.

    Raises
    ------
    SnapshotError
        If an array is missing, or is not of the kind that it must be.
    """
    empty = empty_state(plan, columns)
    found = {}
    for name in _KEPT:
        array, like = np.asarray(snapshot.get(name)), getattr(empty, name)
        if array.dtype != like.dtype or array.ndim != like.ndim:
            raise SnapshotError(f"the snapshot is damaged: it has no usable {name!r}")
        found[name] = np.ascontiguousarray(array).copy()
    return State(chosen=np.zeros((2, len(found["events"])), np.int64), **found)
