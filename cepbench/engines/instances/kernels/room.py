"""The arrays of a run: empty ones, and larger ones when they are full.

Not compiled: as capacities double, growth is rare.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.instances.kernels import tables
from cepbench.kernels import counts
from cepbench.kernels.batches import NEVER

#: Initial capacities: events, cells, and instances of each node; powers of two.
_EVENTS, _CELLS, _INSTANCES = 64, 64, 64


def empty_state(plan: tables.Plan, columns: int) -> tables.State:
    """The state before the first event, with room for some values of each."""
    nodes = len(plan.nodes)
    lists = np.zeros((nodes, tables.LIST_COLUMNS), np.int64)
    lists[:, tables.SOONEST] = NEVER
    lists[plan.leaves :, tables.CAPACITY] = _INSTANCES
    totals = np.zeros(tables.TOTALS, np.int64)
    totals[tables.NOW] = np.iinfo(np.int64).min
    return tables.State(
        events=np.zeros((_EVENTS, tables.EVENT_COLUMNS), np.int64),
        values=np.zeros((_EVENTS, columns)),
        expiring=np.zeros((_EVENTS, nodes), np.int64),
        buffers=np.zeros((plan.leaves, _EVENTS), np.int64),
        chosen=np.zeros((2, _EVENTS), np.int64),
        arena=np.zeros(_lay_out(plan, lists), np.int64),
        cells=np.zeros((_CELLS, tables.CELL_COLUMNS), np.int64),
        lists=lists,
        counts=np.zeros((nodes, counts.COUNT_COLUMNS), np.int64),
        peaks=np.zeros(counts.PEAKS, np.int64),
        totals=totals,
    )


def _lay_out(plan: tables.Plan, lists: np.ndarray) -> int:
    """Write the offsets of the nodes' records, and return the size of the arena."""
    sizes = lists[:, tables.CAPACITY] * plan.nodes[:, tables.WIDTH]
    lists[:, tables.OFFSET] = np.cumsum(sizes) - sizes
    return int(sizes.sum())


def more_events(state: tables.State) -> tables.State:
    """Room for twice as many events, in their ring and in every buffer."""
    old = len(state.events)
    stored = np.arange(state.totals[tables.FIRST_EVENT], state.totals[tables.NEXT_EVENT])
    buffers = np.zeros((len(state.buffers), 2 * old), np.int64)
    for leaf, rows in enumerate(state.lists[: len(buffers)]):
        used = np.arange(rows[tables.START], rows[tables.END])
        buffers[leaf, used % (2 * old)] = state.buffers[leaf, used % old]
    return state._replace(
        events=_wider(state.events, stored),
        values=_wider(state.values, stored),
        expiring=_wider(state.expiring, stored),
        buffers=buffers,
        chosen=np.zeros((2, 2 * old), np.int64),
    )


def more_cells(state: tables.State) -> tables.State:
    """Room for twice as many cells."""
    stored = np.arange(state.totals[tables.FIRST_CELL], state.totals[tables.NEXT_CELL])
    return state._replace(cells=_wider(state.cells, stored))


def _wider(ring: np.ndarray, ordinals: np.ndarray) -> np.ndarray:
    """A ring of twice the size with the same rows at these ordinals."""
    found = np.zeros((2 * len(ring), ring.shape[1]), ring.dtype)
    found[ordinals % len(found)] = ring[ordinals % len(ring)]
    return found


def more_instances(node: int, plan: tables.Plan, state: tables.State) -> tables.State:
    """Room for twice as many instances of a node; ``state.lists`` are written in place."""
    before = state.lists.copy()
    state.lists[node, tables.CAPACITY] *= 2
    arena = np.zeros(_lay_out(plan, state.lists), np.int64)
    for other in range(plan.leaves, len(plan.nodes)):
        size = before[other, tables.END] * plan.nodes[other, tables.WIDTH]
        old, new = before[other, tables.OFFSET], state.lists[other, tables.OFFSET]
        arena[new : new + size] = state.arena[old : old + size]
    return state._replace(arena=arena)
