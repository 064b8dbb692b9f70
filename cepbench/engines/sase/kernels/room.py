"""Room for more runs: expired ones are removed, and full tables are enlarged.

Tables are at least twice as large as what they hold, so that the time for this is proportional to
that for the events. Source: [agrawal2008]_, section 5.3, whose binary search in each stack is not
needed, since the nodes of the match graph are in a ring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from cepbench.engines.runs.kernels.graph import empty_graph, reclaim, room, with_room
from cepbench.engines.sase.kernels import partitions, starts, tables
from cepbench.engines.sase.kernels.advance import cells_a_step
from cepbench.engines.sase.kernels.runs import chain, free
from cepbench.kernels.exact import widened
from cepbench.kernels.instructions import STACK
from cepbench.kernels.jit import njit

if TYPE_CHECKING:
    from cepbench.engines.sase.kernels.pool import Pool

_S = TypeVar("_S", tables.State, "Pool", partitions.Table)

#: The least number of cells.
_CELLS = 1 << 12

#: Powers of two that blocks of cells may have.
_CLASSES = 63

#: The least number of nodes of the match graph.
_NODES = 1 << 14

#: Roots of the match graph that are enumerated together, or values of matches written together.
_ROOTS = 1 << 12


def empty_state(
    plan: tables.Plan, columns: int, tallies: np.ndarray, profile: np.ndarray
) -> tables.State:
    """A state without runs, whose V has so many columns."""
    counters = np.zeros(tables.COUNTERS, np.int64)
    for counter in (tables.FREE_RUN, tables.FREE_PARTITION, tables.WAITING):
        counters[counter] = -1
    state = tables.State(
        runs=np.zeros((0, tables.RUN_COLUMNS), np.int64),
        vectors=np.zeros((1, columns)),
        heads=np.zeros((0, plan.states, tables.HEADS), np.int64),
        buckets=np.zeros(0, np.int64),
        partitions=np.zeros((0, tables.PARTITION_COLUMNS), np.int64),
        keys=np.zeros((0, len(plan.keys))),
        partition_buckets=np.zeros(0, np.int64),
        cells=np.zeros((_CELLS if plan.counts else 0, 1), np.int64),
        cell_times=np.zeros(_CELLS if plan.counts else 0, np.int64),
        totals=np.zeros((0, 1), np.int64),
        free_cells=np.full(_CLASSES, -1),
        found=np.zeros(1, np.int64),
        counters=counters,
        tallies=tallies,
        profile=profile,
        progress=np.zeros(tables.PROGRESS, np.int64),
        stack=np.empty(STACK),
        graph=empty_graph(1 if plan.counts else _NODES),
        roots=np.empty((2, _ROOTS if plan.reports else 0), np.int64),
        values=np.empty((len(plan.returned), _ROOTS)),
    )
    state = with_partitions(plan, _with_runs(plan, state, 16), 4)
    if not len(plan.keys):
        # The only partition, which is never removed.
        state.counters[tables.FREE_PARTITION] = state.partitions[0, tables.NEXT_PARTITION]
        state.partitions[0] = 0
        state.heads[0] = -1
    return state


def roomier(
    plan: tables.Plan, state: tables.State, earliest: int, first_position: int
) -> tables.State:
    """The state, which has no roots, without expired runs, and with room for the next step.

    ``earliest``, ``first_position``: of the earliest event in the current window.
    """
    sweep(plan, state, earliest)
    capacity = len(state.runs)
    if 2 * state.counters[tables.FREE_RUNS] < capacity:
        state = _with_runs(plan, state, 2 * capacity)
    used = int(np.count_nonzero(state.partitions[:, tables.OF_RUNS] >= 0))
    if 2 * used >= len(state.partitions):
        state = with_partitions(plan, state, 2 * len(state.partitions))
    if plan.counts:
        return _with_cells(plan, state)
    reclaim(state.graph, first_position)
    more = max(tables.NODES_A_STEP, len(state.graph.nodes) - int(room(state.graph)))
    return state._replace(graph=with_room(state.graph, more))


def _with_runs(plan: tables.Plan, state: tables.State, capacity: int) -> tables.State:
    """The state with room for more runs."""
    old = len(state.runs)
    runs = np.zeros((capacity, tables.RUN_COLUMNS), np.int64)
    runs[:old] = state.runs
    runs[old:, tables.STATE] = -1
    runs[old:, tables.NEXT] = np.append(
        np.arange(old + 1, capacity), state.counters[tables.FREE_RUN]
    )
    state.counters[tables.FREE_RUN] = old
    state.counters[tables.FREE_RUNS] += capacity - old
    vectors = np.zeros((capacity + 1, state.vectors.shape[1]))
    vectors[:old] = state.vectors[:old]
    totals = np.zeros((capacity, state.totals.shape[1]), np.int64)
    totals[:old] = state.totals
    state = state._replace(
        runs=runs, vectors=vectors, totals=totals, buckets=np.full(2 * capacity, -1)
    )
    chain_all(plan, state)
    return state


def with_partitions(plan: tables.Plan, state: _S, capacity: int) -> _S:
    """The state, the pool of runs or the table, with room for more partitions."""
    old = len(state.partitions)
    table = np.full((capacity, tables.PARTITION_COLUMNS), -1)
    table[:old] = state.partitions
    table[old:, tables.NEXT_PARTITION] = np.append(
        np.arange(old + 1, capacity), state.counters[tables.FREE_PARTITION]
    )
    state.counters[tables.FREE_PARTITION] = old
    heads = np.full((capacity, *state.heads.shape[1:]), -1)
    heads[:old] = state.heads
    keys = np.zeros((capacity, len(plan.keys)))
    keys[:old] = state.keys
    state = state._replace(
        partitions=table, heads=heads, keys=keys, partition_buckets=np.full(2 * capacity, -1)
    )
    partitions.chain_all(plan, state)
    return state


def _with_cells(plan: tables.Plan, state: tables.State) -> tables.State:
    """The state with its cells packed, room for more, and if need be wider counts."""
    live = state.runs[:, tables.STATE] >= 0
    used = int(state.runs[live, tables.SIZE].sum())
    step = max(
        [
            8,
            *(
                cells_a_step(state, p)
                for p in np.flatnonzero(state.partitions[:, tables.OF_RUNS] >= 0)
            ),
        ]
    )
    wider = state.counters[tables.WIDENS] == 1
    if not wider and state.counters[tables.TOP_CELL] + step <= len(state.cells):
        return state
    digits = state.cells.shape[1] + int(wider)
    size = max(_CELLS, 4 * (used + step))
    fresh = state._replace(
        cells=np.zeros((size, digits), np.int64),
        cell_times=np.zeros(size, np.int64),
        totals=widened(state.totals, digits),
        found=widened(state.found[None], digits)[0],
    )
    repack(state, fresh)
    return fresh


@njit
def repack(state, fresh):
    """Copy the cells of all runs to new tables of as many digits or more, without gaps."""
    top = 0
    for run in range(len(state.runs)):
        size = state.runs[run, tables.SIZE]
        if state.runs[run, tables.STATE] < 0 or size == 0:
            continue
        first = state.runs[run, tables.BLOCK]
        for ordinal in range(state.runs[run, tables.LOW], state.runs[run, tables.HIGH]):
            old, new = first + (ordinal & (size - 1)), top + (ordinal & (size - 1))
            fresh.cell_times[new] = state.cell_times[old]
            for limb in range(state.cells.shape[1]):
                fresh.cells[new, limb] = state.cells[old, limb]
        state.runs[run, tables.BLOCK] = top
        top += size
    state.counters[tables.TOP_CELL] = top
    state.counters[tables.WIDENS] = 0
    state.free_cells[:] = -1


@njit
def sweep(plan, state, earliest):
    """Remove expired runs, and partitions without runs."""
    runs, table, progress = state.runs, state.partitions, state.progress
    while progress[tables.AT_RUN] >= 0 and runs[progress[tables.AT_RUN], tables.LATEST] < earliest:
        progress[tables.AT_RUN] = runs[progress[tables.AT_RUN], tables.NEXT]
    for partition in range(len(table)):
        table[partition, tables.OLDEST] = table[partition, tables.NEXT_START]
    for run in range(len(runs)):
        if runs[run, tables.STATE] < 0:
            continue
        if runs[run, tables.IS_LINKED] == 1 and runs[run, tables.LATEST] < earliest:
            free(state, run, plan)
            continue
        if plan.counts:
            starts.expire(state, run, earliest)
            partition = runs[run, tables.PARTITION]
            table[partition, tables.OLDEST] = min(
                table[partition, tables.OLDEST], runs[run, tables.LOW]
            )
    if len(plan.keys) > 0:
        for partition in range(len(table)):
            if table[partition, tables.OF_RUNS] == 0 and partition != progress[tables.CURRENT]:
                table[partition, tables.OF_RUNS] = -1
                table[partition, tables.NEXT_PARTITION] = state.counters[tables.FREE_PARTITION]
                state.counters[tables.FREE_PARTITION] = partition
        partitions.chain_all(plan, state)


@njit
def chain_all(plan, state):
    """Enter all runs in new buckets, which are empty."""
    for run in range(len(state.runs)):
        if state.runs[run, tables.STATE] >= 0 and state.runs[run, tables.IS_LINKED] == 1:
            chain(state, run, plan)
