"""What restored runs have to satisfy, so that kernels stay within their arrays and lists end."""

from __future__ import annotations

import numpy as np

from cepbench.engines.runs.kernels.graph import (
    FIRST,
    ITEM,
    LEFT,
    NEXT,
    PREDECESSOR,
    RANK,
    RIGHT,
    UNION,
    MatchGraph,
)
from cepbench.engines.runs.kernels.graph import HEAD as HEAD_OF_UNION
from cepbench.engines.runs.state import check_range, damaged
from cepbench.engines.sase.kernels import sase_basic, tables
from cepbench.engines.sase.kernels import versioned_buffer as buffers

_ANY = 1 << 62


def check_power(name: str, size: int) -> None:
    """Check the size of a ring or hash table.

    Raises
    ------
    SnapshotError
    """
    if size < 1 or size & (size - 1):
        raise damaged(f"{name!r} has {size} rows")


def check_graph(graph: MatchGraph, items: int) -> None:
    """Check that nodes refer to earlier ones, and that heaps are as low as their ranks say.

    Raises
    ------
    SnapshotError
    """
    first, behind = graph.totals[[FIRST, NEXT]].tolist()
    check_power("nodes", len(graph.nodes))
    check_range("nodes", graph.totals, 0, _ANY)
    check_range("nodes", graph.totals[[NEXT]] - first, 0, len(graph.nodes) + 1)
    numbers = np.arange(first, behind)
    rows = graph.nodes[numbers & (len(graph.nodes) - 1)]
    check_range("items", rows[:, ITEM], UNION, items)
    unions = rows[:, ITEM] == UNION
    check_range("nodes", rows[~unions, PREDECESSOR] - numbers[~unions], -_ANY, 0)
    for column in (HEAD_OF_UNION, LEFT, RIGHT):
        check_range("nodes", rows[unions, column] - numbers[unions], -_ANY, 0)
    # Others have expired.
    right = rows[unions, RIGHT]
    linked = right >= first
    below = rows[right[linked] - first]
    check_range("ranks", rows[unions, RANK], 1, 64)
    ranks = np.where(below[:, ITEM] == UNION, below[:, RANK], 1)
    if (rows[unions, RANK][linked] != ranks + 1).any():
        raise damaged("the heaps of histories have other ranks")


def check_lists(name: str, following: np.ndarray, heads: np.ndarray, members: np.ndarray) -> None:
    """Check that linked lists end, and have each member once and nothing else.

    Parameters
    ----------
    name : str
    following : ndarray of int64
        Of each element the next one; -1 for none.
    heads : ndarray of int64
        The first one of each list; -1 for none.
    members : ndarray of int64
        Ascending.

    Raises
    ------
    SnapshotError
    """
    after = following[members]
    found = np.sort(np.append(heads[heads >= 0], after[after >= 0]))
    check_range(name, np.append(heads, after), -1, len(following))
    # Elements of a circle are all found, too.
    jump = np.full(len(following) + 1, -1)
    jump[members] = after
    for _ in range(len(members).bit_length()):
        jump = jump[jump]
    if not np.array_equal(found, members) or (jump >= 0).any():
        raise damaged(f"{name!r} are no lists of all of them")


def check_runs(plan: tables.Plan, state: tables.State) -> None:
    """Check the runs of the merging engine, their lists, and the cells of their histories.

    Raises
    ------
    SnapshotError
    """
    runs, partitions, counters = state.runs, state.partitions, state.counters
    if len(state.vectors) != len(runs) + 1 or state.totals.shape[1] != state.cells.shape[1]:
        raise damaged("runs have other values than columns")
    check_power("buckets", len(state.buckets))
    check_power("partition_buckets", len(state.partition_buckets))
    check_range("states", runs[:, tables.STATE], -1, plan.states)
    live = np.flatnonzero(runs[:, tables.STATE] >= 0)
    its = runs[live]
    check_range("partitions", its[:, tables.PARTITION], 0, len(partitions))
    check_range("nodes", its[:, tables.NODE], -1, int(state.graph.totals[NEXT]))
    check_range("starts", its[:, [tables.LOW, tables.HIGH]], 0, _ANY)
    linked = np.flatnonzero((runs[:, tables.STATE] >= 0) & (runs[:, tables.IS_LINKED] == 1))
    check_lists("tables", runs[:, tables.NEXT], state.heads.ravel(), linked)
    before = np.full(len(runs), -1)
    after = runs[linked, tables.NEXT]
    before[after[after >= 0]] = linked[after >= 0]
    tables_of = runs[:, tables.PARTITION] * plan.states + runs[:, tables.STATE]
    heads = state.heads.ravel()
    starts = linked[before[linked] < 0]
    same = tables_of[after[after >= 0]] == tables_of[linked[after >= 0]]
    has_previous = linked[before[linked] >= 0]
    if (
        (runs[has_previous, tables.PREVIOUS] != before[has_previous]).any()
        or (runs[starts, tables.PREVIOUS] >= 0).any()
        or not same.all()
        or (heads[tables_of[starts]] != starts).any()
    ):
        raise damaged("runs are in other tables")
    free = np.flatnonzero(runs[:, tables.STATE] < 0)
    check_lists("runs", runs[:, tables.NEXT], counters[[tables.FREE_RUN]], free)
    chained = linked[
        plan.masked_spans[runs[linked, tables.STATE]]
        < plan.masked_spans[runs[linked, tables.STATE] + 1]
    ]
    check_lists("chains", runs[:, tables.CHAIN], state.buckets, chained)
    check_range("buckets", runs[chained, tables.BUCKET], 0, len(state.buckets))
    waiting = np.flatnonzero(runs[:, tables.WAITS] == 1)
    check_lists("waiting", runs[:, tables.WAITS_BEFORE], counters[[tables.WAITING]], waiting)
    unused = np.flatnonzero(partitions[:, tables.OF_RUNS] < 0)
    used = np.flatnonzero(partitions[:, tables.OF_RUNS] >= 0) if len(plan.keys) else unused[:0]
    following = partitions[:, tables.NEXT_PARTITION]
    check_lists("partitions", following, counters[[tables.FREE_PARTITION]], unused)
    check_lists("partition_buckets", following, state.partition_buckets, used)
    number = np.bincount(its[:, tables.PARTITION], minlength=len(partitions))
    if (
        counters[tables.FREE_RUNS] != len(free)
        or (number > np.maximum(partitions[:, tables.OF_RUNS], 0)).any()
        or counters[tables.ROOTS] != 0
        or state.progress[[tables.AT, tables.PHASE]].any()
        or (partitions[its[:, tables.PARTITION], tables.OF_RUNS] < 0).any()
    ):
        raise damaged("it counts other runs")
    _check_cells(state, its)


def _check_cells(state: tables.State, its: np.ndarray) -> None:
    """Check that each block of cells is of one run, or free."""
    top, times = int(state.counters[tables.TOP_CELL]), state.cell_times
    check_range("cells", state.counters[[tables.TOP_CELL]], 0, len(times) + 1)
    some = its[:, tables.SIZE] > 0
    blocks = [*its[some][:, [tables.BLOCK, tables.SIZE]].tolist()]
    for power, first in enumerate(state.free_cells.tolist()):
        while first >= 0 and len(blocks) <= top and first < len(times):
            blocks.append([first, 1 << power])
            first = int(times[first])
        if first >= 0:
            raise damaged("free cells are in no list")
    end = 0
    for first, size in sorted(blocks):
        check_power("cells", size)
        if first < end or first + size > top:
            raise damaged("cells are of several runs")
        end = first + size


def check_versions(state: sase_basic.State, buffer: buffers.Buffer) -> None:
    """Check the runs of the engine that keeps them apart, and its buffer.

    Raises
    ------
    SnapshotError
    """
    runs, counters, bounds = state.runs, state.counters, buffer.bounds
    for name, ring in (
        ("versions", len(state.versions)),
        ("entries", buffer.entries.shape[1]),
        ("pointers", buffer.pointers.shape[1]),
    ):
        check_power(name, ring)
    first, behind = counters[[sase_basic.FIRST_VERSION, sase_basic.NEXT_VERSION]].tolist()
    check_range("versions", counters[[sase_basic.FIRST_VERSION]], 0, _ANY)
    check_range("versions", np.array([behind - first]), 0, len(state.versions) + 1)
    numbers = np.arange(first, behind)
    prefixes = state.versions[numbers & (len(state.versions) - 1), buffers.PREFIX]
    check_range("versions", prefixes, -1, _ANY)
    check_range("versions", prefixes - numbers, -_ANY, 0)
    check_range("versions", runs[:, sase_basic.RUN_PREFIX], -1, behind)
    if counters[[sase_basic.LOGGED, sase_basic.ENDS, sase_basic.SETTLED]].any():
        raise damaged("it has runs between two rounds")
    if counters[sase_basic.FREE] != -1 or counters[sase_basic.FREE_RUNS] != 0:
        raise damaged("it has free runs")
    states = len(bounds)
    check_range("states", runs[:, sase_basic.RUN_STATE], 0, states)
    check_range("stacks", runs[:, sase_basic.RUN_STACK], 0, states)
    check_range("entries", bounds, 0, _ANY)
    sizes = bounds[:, buffers.NEXT] - bounds[:, buffers.FIRST]
    check_range("entries", sizes, 0, buffer.entries.shape[1] + 1)
    check_range("entries", state.tops[:, 0] - bounds[:, buffers.NEXT], 0, 1)
    last = bounds[runs[:, sase_basic.RUN_STACK], buffers.NEXT]
    check_range("entries", last - runs[:, sase_basic.RUN_ENTRY], 1, _ANY)
    for stack, (low, high, pointer) in enumerate(bounds.tolist()):
        numbers = np.arange(low, high) & (buffer.entries.shape[1] - 1)
        firsts = np.append(buffer.entries[stack, numbers, buffers.FIRST_POINTER], pointer)
        check_range("pointers", np.diff(firsts), 1, _ANY)
        check_range("pointers", pointer - firsts, 0, buffer.pointers.shape[1] + 1)
        own = np.repeat(buffer.entries[stack, numbers, buffers.AT_POSITION], np.diff(firsts))
        rows = np.arange(firsts[0], pointer) & (buffer.pointers.shape[1] - 1)
        its = buffer.pointers[stack, rows]
        check_range("stacks", its[:, buffers.TO_STACK], -1, states)
        check_range("versions", its[:, buffers.LABEL_PREFIX], -1, behind)
        follows = its[:, buffers.TO_STACK] >= 0
        to, entries = its[follows, buffers.TO_STACK], its[follows, buffers.TO_ENTRY]
        check_range("entries", bounds[to, buffers.NEXT] - entries, 1, _ANY)
        # Others have expired, and are sought no more.
        kept = entries >= bounds[to, buffers.FIRST]
        places = entries[kept] & (buffer.entries.shape[1] - 1)
        positions = buffer.entries[to[kept], places, buffers.AT_POSITION]
        check_range("positions", positions - own[follows][kept], -_ANY, 0)
