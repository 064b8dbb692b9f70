"""Processing of a batch of events, one event after the other."""

from __future__ import annotations

import numpy as np

from cepbench.engines.instances.kernels import tables
from cepbench.engines.instances.kernels.grow import combine
from cepbench.engines.instances.kernels.lists import expire
from cepbench.engines.instances.kernels.matches import consume_best, decide, has_room
from cepbench.engines.instances.kernels.room import more_cells, more_events, more_instances
from cepbench.kernels import counts
from cepbench.kernels.batches import FIRST_CHUNK, LARGEST_CHUNK, NEVER
from cepbench.kernels.clock import now as now_ns
from cepbench.kernels.jit import njit_in_place


def advance(
    plan: tables.Plan,
    limit: int,
    state: tables.State,
    scratch: tables.Scratch,
    batch: tables.Batch,
    columns: int,
    until: int,
    *,
    has_sets: bool,
    watched: bool,
) -> tuple[tables.State, list[tuple[np.ndarray, np.ndarray]], int, int]:
    """Process a batch of events and find the matches that they complete.

    For ``columns`` and ``until`` see :mod:`cepbench.kernels.batches`. ``has_sets``: whether matches have
    sets. ``watched``: whether to measure the time that goes into each node.

    Returns
    -------
    state : State
        With new arrays where there was no room; the state given is of no use then.
    matches : list of (int64 array of shape (columns, some), int64 array)
        Positions of the events of each match, and for a set where its positions begin in the
        second array and how many there are; of several roots behind the number of the branch. In
        the order in which they were found; at least one pair.
    found : int
    outcome : int
        ``OK`` or ``TOO_MANY``.
    """
    at = scratch.progress
    at[:] = 0
    at[tables.AT_NODE] = at[tables.OUTER] = at[tables.INNER] = at[tables.BEST] = -1
    chunks: list[tuple[np.ndarray, np.ndarray]] = []
    found = 0
    size = FIRST_CHUNK if columns else 0
    room = (
        int(state.totals[tables.NEXT_EVENT] - state.totals[tables.FIRST_EVENT])
        + batch.events.shape[1]
    )
    wide = 2 * max(size, room) if has_sets and columns else 0
    matches, members = np.empty((columns, size), np.int64), np.empty(wide, np.int64)
    outcome = tables.NO_MATCHES
    while outcome not in (tables.OK, tables.TOO_MANY):
        outcome = _run(
            plan, limit, columns > 0, watched, state, scratch, batch, until, matches, members
        )
        if outcome == tables.NO_EVENTS:
            state = more_events(state)
        elif outcome == tables.NO_INSTANCES:
            state = more_instances(int(at[tables.AT_NODE]), plan, state)
        elif outcome == tables.NO_CELLS:
            state = more_cells(state)
        else:
            reported = int(at[tables.REPORTED])
            found += reported
            chunks.append((matches[:, : reported if columns else 0], members[: at[tables.MEMBERS]]))
            at[tables.REPORTED] = at[tables.MEMBERS] = 0
            if outcome == tables.NO_MATCHES:
                size = min(2 * size, LARGEST_CHUNK)
                wide = min(2 * wide, max(wide, LARGEST_CHUNK))
                matches, members = np.empty((columns, size), np.int64), np.empty(wide, np.int64)
    return state, chunks, found, int(outcome)


@njit_in_place
def _run(plan, limit, reports, watched, state, scratch, batch, until, matches, members):
    """Process events until the batch ends or an array is full."""
    at = scratch.progress
    since = now_ns(scratch.clock) if watched else 0
    while at[tables.AT_EVENT] < batch.events.shape[1]:
        if at[tables.AT_NODE] < 0:
            outcome = _take(reports, plan, state, scratch, batch, matches, members)
            if outcome != tables.OK:
                return outcome
            at[tables.AT_NODE] = plan.leaves
        while at[tables.AT_NODE] < len(plan.nodes):
            node = at[tables.AT_NODE]
            outcome = combine(node, limit, reports, plan, state, scratch, matches, members)
            if watched:
                now = now_ns(scratch.clock)
                state.counts[node, counts.NANOSECONDS] += now - since
                since = now
            if outcome != tables.OK:
                return outcome
            at[tables.AT_NODE] += 1
        _update_peaks(plan, state)
        if plan.consuming and at[tables.BEST] >= 0:
            consume_best(reports, plan, state, scratch, matches, members)
        at[tables.AT_NODE] = -1
        at[tables.AT_EVENT] += 1
    if len(scratch.latencies) > 0:
        at[tables.ARRIVED] = now_ns(scratch.clock)
    return _pass_time(until, reports, plan, state, scratch, matches, members)


@njit_in_place
def _pass_time(now, reports, plan, state, scratch, matches, members):
    """Decide deferred matches and expire instances, before the events of ``now``."""
    if now <= state.totals[tables.NOW]:
        return tables.OK
    if plan.late:
        outcome = decide(now, reports, plan, state, scratch, matches, members)
        if outcome != tables.OK:
            return outcome
    if now < NEVER:
        state.totals[tables.NOW] = now
        expire(plan, state)
    return tables.OK


@njit_in_place
def _take(reports, plan, state, scratch, batch, matches, members):
    """Store the next event, and add it to the buffers of its leaves."""
    number, totals = scratch.progress[tables.AT_EVENT], state.totals
    now = batch.events[0, number]
    if len(scratch.latencies) > 0:
        scratch.progress[tables.ARRIVED] = now_ns(scratch.clock)
    outcome = _pass_time(now, reports, plan, state, scratch, matches, members)
    if outcome != tables.OK:
        return outcome
    if totals[tables.NEXT_EVENT] - totals[tables.FIRST_EVENT] == len(state.events):
        return tables.NO_EVENTS
    if reports and not has_room(state, scratch, matches, members):
        return tables.NO_MATCHES
    event = totals[tables.NEXT_EVENT]
    row = event & (len(state.events) - 1)
    totals[tables.NEXT_EVENT] += 1
    state.events[row, tables.TIME], state.events[row, tables.POSITION] = (
        now,
        batch.events[1, number],
    )
    state.events[row, tables.USED], state.events[row, tables.CELLS] = 0, totals[tables.NEXT_CELL]
    for column in range(state.values.shape[1]):
        state.values[row, column] = batch.values[number, column]
    is_later = state.events[(event - 1) & (len(state.events) - 1), tables.TIME] < now
    for node in range(len(plan.nodes)):
        state.lists[node, tables.FRESH] = state.lists[node, tables.END]
        if is_later:
            state.lists[node, tables.SINCE] = state.lists[node, tables.END]
        state.expiring[row, node] = 0
    for place in range(batch.starts[number], batch.starts[number + 1]):
        leaf = batch.leaves[place]
        end = state.lists[leaf, tables.END]
        state.buffers[leaf, end & (state.buffers.shape[1] - 1)] = event
        state.lists[leaf, tables.END] = end + 1
        state.lists[leaf, tables.LIVE] += 1
        state.counts[leaf, counts.CREATED] += 1
        totals[tables.BUFFERED] += 1
    return tables.OK


@njit_in_place
def _update_peaks(plan, state):
    """Update the peaks."""
    totals, lists = state.totals, state.lists
    total = totals[tables.BUFFERED]
    total += (totals[tables.NEXT_EVENT] - totals[tables.FIRST_EVENT]) * (
        tables.EVENT_COLUMNS + state.values.shape[1]
    )
    total += (totals[tables.NEXT_CELL] - totals[tables.FIRST_CELL]) * tables.CELL_COLUMNS
    for node in range(len(plan.nodes)):
        state.counts[node, counts.PEAK] = max(
            state.counts[node, counts.PEAK], lists[node, tables.LIVE]
        )
        if node >= plan.leaves:
            total += (lists[node, tables.END] - lists[node, tables.START]) * plan.nodes[
                node, tables.WIDTH
            ]
    peaks = state.peaks
    peaks[counts.PEAK_PARTIAL_MATCHES] = max(
        peaks[counts.PEAK_PARTIAL_MATCHES], totals[tables.INSTANCES]
    )
    peaks[counts.PEAK_EVENTS] = max(peaks[counts.PEAK_EVENTS], totals[tables.BUFFERED])
    peaks[counts.PEAK_BYTES] = max(peaks[counts.PEAK_BYTES], 8 * total)
