"""Room for more events, instances and cells: new arrays, twice as large.

Not compiled: as capacities double, each is called a few times in the whole of a run.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.counts import COUNT_COLUMNS, PEAKS
from cepbench.kernels.instances.tables import (
    CAPACITY,
    CELL_COLUMNS,
    END,
    EVENT_COLUMNS,
    FIRST_CELL,
    FIRST_EVENT,
    LIST_COLUMNS,
    NEVER,
    NEXT_CELL,
    NEXT_EVENT,
    NOW,
    OFFSET,
    SOONEST,
    START,
    TOTALS,
    WIDTH,
    Plan,
    State,
)

#: Events, cells and instances of each node that there is room for at first; powers of two.
_EVENTS, _CELLS, _INSTANCES = 64, 64, 64


def empty_state(plan: Plan, columns: int) -> State:
    """The state before the first event.

    Parameters
    ----------
    plan : Plan
    columns : int
        How many values of each event are stored.
    """
    nodes = len(plan.nodes)
    lists = np.zeros((nodes, LIST_COLUMNS), np.int64)
    lists[:, SOONEST] = NEVER
    lists[plan.leaves :, CAPACITY] = _INSTANCES
    totals = np.zeros(TOTALS, np.int64)
    totals[NOW] = np.iinfo(np.int64).min
    return State(
        events=np.zeros((_EVENTS, EVENT_COLUMNS), np.int64),
        values=np.zeros((_EVENTS, columns)),
        expiring=np.zeros((_EVENTS, nodes), np.int64),
        buffers=np.zeros((plan.leaves, _EVENTS), np.int64),
        chosen=np.zeros((2, _EVENTS), np.int64),
        arena=np.zeros(_lay_out(plan, lists), np.int64),
        cells=np.zeros((_CELLS, CELL_COLUMNS), np.int64),
        lists=lists,
        counts=np.zeros((nodes, COUNT_COLUMNS), np.int64),
        peaks=np.zeros(PEAKS, np.int64),
        totals=totals,
    )


def _lay_out(plan: Plan, lists: np.ndarray) -> int:
    """Write where each inner node's records begin; gives the size of the arena."""
    sizes = lists[:, CAPACITY] * plan.nodes[:, WIDTH]
    lists[:, OFFSET] = np.cumsum(sizes) - sizes
    return int(sizes.sum())


def more_events(state: State) -> State:
    """Room for twice as many events, in their ring and in every buffer.

    Parameters
    ----------
    state : State
    """
    old = len(state.events)
    stored = np.arange(state.totals[FIRST_EVENT], state.totals[NEXT_EVENT])
    buffers = np.zeros((len(state.buffers), 2 * old), np.int64)
    for leaf, rows in enumerate(state.lists[: len(buffers)]):
        used = np.arange(rows[START], rows[END])
        buffers[leaf, used % (2 * old)] = state.buffers[leaf, used % old]
    return state._replace(
        events=_wider(state.events, stored),
        values=_wider(state.values, stored),
        expiring=_wider(state.expiring, stored),
        buffers=buffers,
        chosen=np.zeros((2, 2 * old), np.int64),
    )


def more_cells(state: State) -> State:
    """Room for twice as many cells.

    Parameters
    ----------
    state : State
    """
    stored = np.arange(state.totals[FIRST_CELL], state.totals[NEXT_CELL])
    return state._replace(cells=_wider(state.cells, stored))


def _wider(ring: np.ndarray, ordinals: np.ndarray) -> np.ndarray:
    """A ring of twice the size with the same rows at these ordinals."""
    found = np.zeros((2 * len(ring), ring.shape[1]), ring.dtype)
    found[ordinals % len(found)] = ring[ordinals % len(ring)]
    return found


def more_instances(node: int, plan: Plan, state: State) -> State:
    """Room for twice as many instances of a node.

    Parameters
    ----------
    node : int
    plan : Plan
    state : State
        Its ``lists`` are written in place.
    """
    before = state.lists.copy()
    state.lists[node, CAPACITY] *= 2
    arena = np.zeros(_lay_out(plan, state.lists), np.int64)
    for other in range(plan.leaves, len(plan.nodes)):
        size = before[other, END] * plan.nodes[other, WIDTH]
        old, new = before[other, OFFSET], state.lists[other, OFFSET]
        arena[new : new + size] = state.arena[old : old + size]
    return state._replace(arena=arena)
