"""Runs a plan over a batch of events, step by step in time."""

from __future__ import annotations

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.buffers import has_room, make_room
from cepbench.engines.joins.kernels.checks import has_checks, sift
from cepbench.engines.joins.kernels.join import has_drivers, join_node
from cepbench.engines.joins.kernels.output import emit
from cepbench.engines.joins.kernels.pool import compacted, most_members, stored_members
from cepbench.engines.joins.kernels.rows import lifetimes_of_fresh
from cepbench.engines.joins.kernels.sets import join_sets
from cepbench.engines.joins.kernels.steps import copy_counts, finish_step, lay_out_step, take_back
from cepbench.kernels import counts
from cepbench.kernels.batches import FIRST_CHUNK, LARGEST_CHUNK, NEVER
from cepbench.kernels.clock import now as now_ns
from cepbench.kernels.clock import record
from cepbench.kernels.jit import njit_in_place

_LONG_AGO = np.iinfo(np.int64).min

# Progress of a step: PROGRESS[...].
_NODE = 0  # the next node, leaves first; -1 before the step
_NOW = 1  # the latest timestamp taken
_MOMENTS = 2  # number of moments in the step
_ARRIVED = 3  # when the step began, by the system's clock
_REPORTED = 4  # number of matches in the current chunk
_MOST = 5  # maximum number of moments in the step


def advance(
    plan: tables.Plan,
    pace: tables.Pace,
    limit: int,
    state: tables.NodeState,
    scratch: tables.Scratch,
    batch: tables.Batch,
    columns: int,
    until: int,
) -> tuple[tables.NodeState, list[np.ndarray], int, int]:
    """Process a batch of events and find the matches that they complete.

    Within a step every node joins its new rows before its parent does, and each pair of rows is
    joined once. The length of a step does not affect the matches, only how early rows are evicted,
    and so the number of unnecessary tests. For ``columns`` and ``until`` see
    :mod:`cepbench.kernels.batches`; ``limit`` is how many partial matches may be stored.

    Returns ``state``: NodeState, with new arenas or a new pool if the old ones were full; the given
    state is invalid afterwards. ``matches``: list of int64 arrays, each of shape (columns, some),
    positions of the events of each match, and for a set its start in ``state.members`` and its
    size, preceded by the number of the branch if there are several roots; at least one array, in
    the order in which they were found. ``found``: int. ``outcome``: int, ``OK``, ``TOO_MANY``,
    ``TOO_MANY_MEMBERS`` or ``TOO_LARGE``.
    """
    root = len(plan.nodes) - 1
    taken = batch.starts.copy()
    matches = np.empty((columns, FIRST_CHUNK if columns else 0), np.int64)
    chunks: list[np.ndarray] = []
    found = 0
    at = scratch.progress
    at[_NODE], at[_NOW], at[_REPORTED], at[_MOST] = -1, _LONG_AGO, 0, pace.most
    scratch.rectangle[tables.TURN] = -1
    outcome = tables.NO_ROOM
    while outcome in (tables.NO_ROOM, tables.NO_MEMBERS):
        outcome = _run(
            plan,
            pace,
            limit,
            state,
            scratch,
            batch,
            taken,
            columns > 0,
            until,
            matches,
            scratch.extras,
        )
        node, more = int(at[_NODE]), int(scratch.rectangle[tables.FOUND])
        if outcome == tables.NO_MEMBERS:
            most = most_members(limit)
            if state.used[0] > most and stored_members(plan, state) > most:
                outcome = tables.TOO_MANY_MEMBERS
            else:
                known = [*chunks, matches[:, : at[_REPORTED]]]
                state = compacted(more, plan, state, known)
        elif outcome == tables.NO_ROOM and (node > root or (node == root and not plan.stored)):
            chunks.append(matches[:, : at[_REPORTED]])
            found += int(at[_REPORTED])
            at[_REPORTED] = 0
            if not plan.stored:
                state.rows[root, tables.END] = 0
            size = max(more, min(2 * matches.shape[1], LARGEST_CHUNK))
            matches = np.empty((columns, size), np.int64)
        elif outcome == tables.NO_ROOM:
            state = make_room(node, more, plan, state)
    if not plan.stored:
        state.rows[root, tables.END] = 0
    reported = int(at[_REPORTED])
    chunks.append(matches[:, : reported if columns else 0])
    return state, chunks, found + reported, int(outcome)


@njit_in_place
def _run(plan, pace, limit, state, scratch, batch, taken, positions, until, matches, extras):
    """Run steps until the batch ends, or a node has no room left.

    Numba leaves out the branches for ``extras``, an argument, if it is None.
    """
    leaves = len(batch.starts) - 1
    root = len(plan.nodes) - 1
    at = scratch.progress
    timed = len(scratch.latencies) > 0
    # Rows of a root that may still be rejected count as partial matches.
    withheld = plan.waits != tables.WAITS_NOT or plan.consuming
    since = now_ns(scratch.clock) if pace.watched else 0
    while True:
        if at[_NODE] < 0:
            at[_MOMENTS] = lay_out_step(pace, at[_MOST], batch, taken, scratch, extras)
            if at[_MOMENTS] > 0:
                at[_NODE], at[_NOW] = 0, scratch.moments[at[_MOMENTS] - 1]
                if at[_MOMENTS] > 1:
                    copy_counts(state.counts, scratch.before)
            elif plan.waits == tables.WAITS_NOT or at[_NOW] >= until:
                return tables.OK
            else:
                # No more events of the pattern's types, but time advances for waiting matches.
                at[_NODE], at[_NOW], at[_MOMENTS] = root + 1, until, 1
                scratch.moments[0] = until
            if timed:
                at[_ARRIVED] = now_ns(scratch.clock)
        while at[_NODE] < leaves:
            leaf = at[_NODE]
            first, last = taken[leaf], scratch.ahead[leaf]
            if not has_room(leaf, last - first, plan, state):
                scratch.rectangle[tables.FOUND] = last - first
                return tables.NO_ROOM
            state.rows[leaf, tables.FRESH] = state.rows[leaf, tables.END]
            if first < last:
                _take(leaf, first, last, batch, plan, state)
                taken[leaf] = last
                if pace.watched:
                    since = _watch(leaf, since, state, scratch)
            at[_NODE] += 1
        at[_NODE] = max(at[_NODE], plan.inner)
        while at[_NODE] <= root:
            node = at[_NODE]
            if not has_drivers(node, plan, state):
                state.rows[node, tables.FRESH] = state.rows[node, tables.END]
                at[_NODE] += 1
                continue
            is_root = plan.nodes[node, tables.IS_ROOT] == 1
            free = limit
            for other in range(plan.inner, root + 1):
                if other != node and (withheld or plan.nodes[other, tables.IS_ROOT] == 0):
                    free -= state.rows[other, tables.END] - state.rows[other, tables.START]
            if is_root and not withheld:
                free = NEVER
            counting = node == root and not positions and not plan.stored
            before = state.counts[node, counts.CREATED]
            outcome = tables.OK
            if plan.nodes[node, tables.KIND] == tables.JOINS:
                outcome = join_node(node, counting, free, plan, state, scratch, matches)
            elif extras is not None:
                outcome = join_sets(node, counting, free, plan, state, scratch, matches)
            if node == root and not plan.stored:
                at[_REPORTED] += state.counts[node, counts.CREATED] - before
                if timed and state.counts[node, counts.CREATED] > before:
                    record(at[_ARRIVED], state.counts[node, counts.CREATED] - before, scratch)
            if outcome == tables.TOO_MANY and at[_MOMENTS] > 1:
                # Some rows may have expired before others were created: repeat moment by moment.
                take_back(node, leaves, plan, state, taken, scratch)
                scratch.rectangle[tables.TURN] = -1
                at[_MOST] = 1
                break
            if outcome != tables.OK:
                if pace.watched:
                    _watch(node, since, state, scratch)
                return outcome
            if extras is not None and has_checks(node, plan):
                sift(node, plan, state, scratch)
            if not is_root:
                state.counts[node, counts.LIFETIME] += lifetimes_of_fresh(node, plan, state)
            if pace.watched:
                since = _watch(node, since, state, scratch)
            at[_NODE] += 1
        if at[_NODE] <= root:
            at[_NODE] = -1
            continue
        if extras is not None and plan.stored:
            outcome, given = emit(at[_NOW], at[_REPORTED], positions, plan, state, scratch, matches)
            if outcome != tables.OK:
                return outcome
            at[_REPORTED] += given
            if timed and given > 0:
                record(at[_ARRIVED], given, scratch)
            if pace.watched:
                since = _watch(root, since, state, scratch)
        if at[_NOW] < NEVER:
            finish_step(at[_MOMENTS], leaves, plan, state, scratch)
            at[_MOST] = pace.most
        at[_NODE] = -1


@njit_in_place
def _watch(node, since, state, scratch):
    """Add the time since ``since`` to a node; returns the current time."""
    now = now_ns(scratch.clock)
    state.counts[node, counts.NANOSECONDS] += now - since
    return now


@njit_in_place
def _take(leaf, first, last, batch, plan, state):
    """Store the events ``first..last`` of a leaf."""
    more = last - first
    end = state.rows[leaf, tables.END]
    for column in range(plan.nodes[leaf, tables.INTS]):
        begin = tables.int_column(leaf, column, state) + end
        for row in range(more):
            state.ints[begin + row] = batch.events[column, first + row]
    for column in range(plan.nodes[leaf, tables.FLOATS]):
        begin = tables.float_column(leaf, column, state) + end
        for row in range(more):
            state.floats[begin + row] = batch.values[column, first + row]
    state.rows[leaf, tables.END] = end + more
    state.counts[leaf, counts.CREATED] += more
