"""Drives a plan through a batch of events, one event after the other."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.clock import now as now_ns
from cepbench.kernels.counts import (
    CREATED,
    NANOSECONDS,
    PEAK,
    PEAK_BYTES,
    PEAK_EVENTS,
    PEAK_PARTIAL_MATCHES,
)
from cepbench.kernels.instances.grow import combine
from cepbench.kernels.instances.lists import expire
from cepbench.kernels.instances.matches import consume_best, decide, has_room
from cepbench.kernels.instances.room import more_cells, more_events, more_instances
from cepbench.kernels.instances.tables import (
    ARRIVED,
    AT_EVENT,
    AT_NODE,
    BEST,
    BUFFERED,
    CELL_COLUMNS,
    CELLS,
    END,
    EVENT_COLUMNS,
    FIRST_CELL,
    FIRST_EVENT,
    FRESH,
    INNER,
    INSTANCES,
    LIVE,
    MEMBERS,
    NEVER,
    NEXT_CELL,
    NEXT_EVENT,
    NO_CELLS,
    NO_EVENTS,
    NO_INSTANCES,
    NO_MATCHES,
    NOW,
    OK,
    OUTER,
    POSITION,
    REPORTED,
    START,
    TIME,
    TOO_MANY,
    USED,
    WIDTH,
    Batch,
    Plan,
    Scratch,
    State,
)
from cepbench.kernels.jit import njit_in_place

# Matches in the first chunk of a batch, and in the largest ones.
_FIRST_CHUNK, _LARGEST_CHUNK = 1 << 10, 1 << 20


def advance(
    plan: Plan,
    limit: int,
    state: State,
    scratch: Scratch,
    batch: Batch,
    columns: int,
    until: int,
    *,
    has_sets: bool,
    watched: bool,
) -> tuple[State, list[tuple[np.ndarray, np.ndarray]], int, int]:
    """Take in a batch of events and find the matches that they complete.

    Parameters
    ----------
    plan : Plan
    limit : int
        How many instances may be stored.
    state : State
        Written in place.
    scratch : Scratch
    batch : Batch
    columns : int
        Columns of a match; 0 to count matches only.
    until : int
        No event follows with an earlier timestamp: the batch's last one, of whatever type; or
        ``NEVER`` if no event follows at all.
    has_sets : bool
        Whether matches have sets.
    watched : bool
        Whether to measure the time that goes into each node.

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
    at[AT_NODE] = at[OUTER] = at[INNER] = at[BEST] = -1
    chunks: list[tuple[np.ndarray, np.ndarray]] = []
    found = 0
    size = _FIRST_CHUNK if columns else 0
    room = int(state.totals[NEXT_EVENT] - state.totals[FIRST_EVENT]) + batch.events.shape[1]
    wide = 2 * max(size, room) if has_sets and columns else 0
    matches, members = np.empty((columns, size), np.int64), np.empty(wide, np.int64)
    outcome = NO_MATCHES
    while outcome not in (OK, TOO_MANY):
        outcome = _run(
            plan, limit, columns > 0, watched, state, scratch, batch, until, matches, members
        )
        if outcome == NO_EVENTS:
            state = more_events(state)
        elif outcome == NO_INSTANCES:
            state = more_instances(int(at[AT_NODE]), plan, state)
        elif outcome == NO_CELLS:
            state = more_cells(state)
        else:
            # Chunks are never copied: a large result would be moved again and again.
            reported = int(at[REPORTED])
            found += reported
            chunks.append((matches[:, : reported if columns else 0], members[: at[MEMBERS]]))
            at[REPORTED] = at[MEMBERS] = 0
            if outcome == NO_MATCHES:
                size = min(2 * size, _LARGEST_CHUNK)
                wide = min(2 * wide, max(wide, _LARGEST_CHUNK))
                matches, members = np.empty((columns, size), np.int64), np.empty(wide, np.int64)
    return state, chunks, found, int(outcome)


@njit_in_place
def _run(plan, limit, reports, watched, state, scratch, batch, until, matches, members):
    """Take event after event until the batch ends, or there is no room for something."""
    at = scratch.progress
    since = now_ns(scratch.clock) if watched else 0
    while at[AT_EVENT] < batch.events.shape[1]:
        if at[AT_NODE] < 0:
            outcome = _take(reports, plan, state, scratch, batch, matches, members)
            if outcome != OK:
                return outcome
            at[AT_NODE] = plan.leaves
        while at[AT_NODE] < len(plan.nodes):
            node = at[AT_NODE]
            outcome = combine(node, limit, reports, plan, state, scratch, matches, members)
            if watched:
                now = now_ns(scratch.clock)
                state.counts[node, NANOSECONDS] += now - since
                since = now
            if outcome != OK:
                return outcome
            at[AT_NODE] += 1
        _count(plan, state)
        if plan.consuming and at[BEST] >= 0:
            consume_best(reports, plan, state, scratch, matches, members)
        at[AT_NODE] = -1
        at[AT_EVENT] += 1
    if len(scratch.latencies) > 0:
        at[ARRIVED] = now_ns(scratch.clock)
    return _pass_time(until, reports, plan, state, scratch, matches, members)


@njit_in_place
def _pass_time(now, reports, plan, state, scratch, matches, members):
    """Decide matches that wait, and let go what is out of the window, before events of ``now``."""
    if now <= state.totals[NOW]:
        return OK
    if plan.late:
        outcome = decide(now, reports, plan, state, scratch, matches, members)
        if outcome != OK:
            return outcome
    if now < NEVER:
        state.totals[NOW] = now
        expire(plan, state)
    return OK


@njit_in_place
def _take(reports, plan, state, scratch, batch, matches, members):
    """Store the event whose turn it is, and add it to the buffers of its leaves."""
    number, totals = scratch.progress[AT_EVENT], state.totals
    now = batch.events[0, number]
    if len(scratch.latencies) > 0:
        scratch.progress[ARRIVED] = now_ns(scratch.clock)
    outcome = _pass_time(now, reports, plan, state, scratch, matches, members)
    if outcome != OK:
        return outcome
    if totals[NEXT_EVENT] - totals[FIRST_EVENT] == len(state.events):
        return NO_EVENTS
    if reports and not has_room(state, scratch, matches, members):
        return NO_MATCHES
    event = totals[NEXT_EVENT]
    row = event & (len(state.events) - 1)
    totals[NEXT_EVENT] += 1
    state.events[row, TIME], state.events[row, POSITION] = now, batch.events[1, number]
    state.events[row, USED], state.events[row, CELLS] = 0, totals[NEXT_CELL]
    for column in range(state.values.shape[1]):
        state.values[row, column] = batch.values[number, column]
    for node in range(len(plan.nodes)):
        state.lists[node, FRESH] = state.lists[node, END]
        state.expiring[row, node] = 0
    for place in range(batch.starts[number], batch.starts[number + 1]):
        leaf = batch.leaves[place]
        end = state.lists[leaf, END]
        state.buffers[leaf, end & (state.buffers.shape[1] - 1)] = event
        state.lists[leaf, END] = end + 1
        state.lists[leaf, LIVE] += 1
        state.counts[leaf, CREATED] += 1
        totals[BUFFERED] += 1
    return OK


@njit_in_place
def _count(plan, state):
    """See whether more is stored than ever before."""
    totals, lists = state.totals, state.lists
    total = totals[BUFFERED]
    total += (totals[NEXT_EVENT] - totals[FIRST_EVENT]) * (EVENT_COLUMNS + state.values.shape[1])
    total += (totals[NEXT_CELL] - totals[FIRST_CELL]) * CELL_COLUMNS
    for node in range(len(plan.nodes)):
        state.counts[node, PEAK] = max(state.counts[node, PEAK], lists[node, LIVE])
        if node >= plan.leaves:
            total += (lists[node, END] - lists[node, START]) * plan.nodes[node, WIDTH]
    peaks = state.peaks
    peaks[PEAK_PARTIAL_MATCHES] = max(peaks[PEAK_PARTIAL_MATCHES], totals[INSTANCES])
    peaks[PEAK_EVENTS] = max(peaks[PEAK_EVENTS], totals[BUFFERED])
    peaks[PEAK_BYTES] = max(peaks[PEAK_BYTES], 8 * total)
