"""Drives a plan through a batch of events, a short step of time after the other."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.buffers import expire, has_room, make_room, widened
from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.join import FOUND, TURN, has_drivers, join_node
from cepbench.kernels.tables import (
    CAPACITY,
    CREATED,
    END,
    FLOAT_OFFSET,
    FLOATS,
    FRESH,
    INT_OFFSET,
    INTS,
    KEPT,
    NO_ROOM,
    OK,
    PEAK,
    PEAK_BYTES,
    PEAK_EVENTS,
    PEAK_PARTIAL_MATCHES,
    START,
    Plan,
    Scratch,
)

_NEVER = np.iinfo(np.int64).max

# How far a step has come: PROGRESS[...].
_NODE = 0  # whose turn it is, leaves first; -1 before the step
_NOW = 1  # the latest timestamp taken
_HORIZON = 2  # the latest timestamp to be taken


def advance(
    plan: Plan,
    step: int,
    limit: int,
    state: np.ndarray,
    counts: np.ndarray,
    peaks: np.ndarray,
    ints: np.ndarray,
    floats: np.ndarray,
    scratch: Scratch,
    events: np.ndarray,
    starts: np.ndarray,
    values: np.ndarray,
    value_starts: np.ndarray,
    positions: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, int]:
    """Take in a batch of events and find the matches that they complete.

    Events are taken in steps of ``step`` in time. Within a step every node joins all that is new
    before its parent does, and each pair of rows meets once. The length of the step does not change
    what is found, only how soon rows are forgotten, and so how many are still looked at in vain.

    Parameters
    ----------
    plan : Plan
    step : int
        In the unit of the timestamps, at least 1.
    limit : int
        How many partial matches may be stored.
    state, counts, peaks : int64 arrays
        Written in place.
    ints, floats : 1-d arrays
        The arenas.
    scratch : Scratch
    events : int64 array, shape (2, m)
        Timestamps and positions, leaf after leaf, in order of arrival within a leaf.
    starts : int64 array, shape (leaves + 1,)
        Where each leaf's events start.
    values : 1-d float64 array
        Column ``c`` of leaf ``l`` starts at ``value_starts[l] + c * (number of its events)``.
    value_starts : int64 array, shape (leaves,)
    positions : bool
        Whether to write matches (else they are only counted).

    Returns
    -------
    ints, floats : 1-d arrays
        The arenas, maybe new ones.
    matches : int64 array, shape (leaves, found or more)
        Positions of the events of each match; empty if only counted.
    found : int
    outcome : int
        ``OK`` or ``TOO_MANY``.
    """
    leaves = len(starts) - 1
    root = len(plan.nodes) - 1
    taken = starts.copy()
    matches = np.empty((leaves, 1024 if positions else 0), np.int64)
    before = counts[root, CREATED]
    scratch.progress[_NODE] = -1
    scratch.rectangle[TURN] = -1
    outcome = NO_ROOM
    while outcome == NO_ROOM:
        outcome = _run(
            plan, step, limit, state, counts, peaks, ints, floats, scratch, events, starts, taken,
            values, value_starts, positions, matches,
        )  # fmt: skip
        if outcome == NO_ROOM:
            node, more = int(scratch.progress[_NODE]), int(scratch.rectangle[FOUND])
            if node == root:
                matches = widened(matches, int(state[root, END]), more)
            else:
                ints, floats = make_room(node, more, plan.nodes, state, ints, floats)
    state[root, END] = 0
    return ints, floats, matches, int(counts[root, CREATED] - before), int(outcome)


@njit_in_place
def _run(
    plan, step, limit, state, counts, peaks, ints, floats, scratch, events, starts, taken, values,
    value_starts, positions, matches,
):  # fmt: skip
    """Take step after step until the batch ends, or some node has no room left."""
    leaves = len(starts) - 1
    root = len(plan.nodes) - 1
    at = scratch.progress
    while True:
        if at[_NODE] < 0:
            now = _next_timestamp(taken, starts, events)
            if now == _NEVER:
                return OK
            at[_NODE], at[_NOW], at[_HORIZON] = 0, now, now + step - 1
        while at[_NODE] < leaves:
            leaf = at[_NODE]
            first = taken[leaf]
            last = _first_after(at[_HORIZON], events, first, starts[leaf + 1])
            if not has_room(leaf, last - first, plan.nodes, state, ints, floats):
                scratch.rectangle[FOUND] = last - first
                return NO_ROOM
            state[leaf, FRESH] = state[leaf, END]
            if first < last:
                source = value_starts[leaf] + first - starts[leaf]
                _take(
                    leaf, first, last, events, values, source, starts[leaf + 1] - starts[leaf],
                    plan, state, counts, ints, floats,
                )  # fmt: skip
                taken[leaf] = last
                at[_NOW] = max(at[_NOW], events[0, last - 1])
            at[_NODE] += 1
        while at[_NODE] <= root:
            node = at[_NODE]
            if not has_drivers(node, plan, state):
                state[node, FRESH] = state[node, END]
                at[_NODE] += 1
                continue
            free = limit
            for other in range(leaves, root):
                free -= state[other, END] - state[other, START] if other != node else 0
            outcome = join_node(
                node, node == root and not positions, _NEVER if node == root else free, plan,
                state, counts, ints, floats, scratch, matches,
            )  # fmt: skip
            if outcome != OK:
                return outcome
            at[_NODE] += 1
        _finish_step(at[_NOW] - plan.window, leaves, plan, state, counts, peaks, ints, floats)
        at[_NODE] = -1


@njit_in_place
def _next_timestamp(taken, starts, events):
    earliest = _NEVER
    for leaf in range(len(starts) - 1):
        if taken[leaf] < starts[leaf + 1]:
            earliest = min(earliest, events[0, taken[leaf]])
    return earliest


@njit_in_place
def _first_after(horizon, events, first, last):
    """The first event of ``first..last`` that is later than ``horizon``, else ``last``."""
    while first < last and events[0, first] <= horizon:
        first += 1
    return first


@njit_in_place
def _take(leaf, first, last, events, values, source, stride, plan, state, counts, ints, floats):
    """Store the events ``first..last`` of a leaf."""
    more = last - first
    end, capacity = state[leaf, END], state[leaf, CAPACITY]
    for column in range(2):
        begin = state[leaf, INT_OFFSET] + column * capacity + end
        for row in range(more):
            ints[begin + row] = events[column, first + row]
    for column in range(plan.nodes[leaf, FLOATS]):
        begin = state[leaf, FLOAT_OFFSET] + column * capacity + end
        for row in range(more):
            floats[begin + row] = values[source + column * stride + row]
    state[leaf, END] = end + more
    counts[leaf, CREATED] += more


@njit_in_place
def _finish_step(oldest, leaves, plan, state, counts, peaks, ints, floats):
    """Count what is stored, then forget what no event still to come can extend."""
    events = rows = size = 0
    for node in range(len(plan.nodes) - 1):
        stored = state[node, END] - state[node, START]
        size += stored * 8 * (plan.nodes[node, INTS] + plan.nodes[node, FLOATS])
        if plan.nodes[node, KEPT] == 1:
            live = expire(node, oldest, plan.nodes, state, ints, floats)
            counts[node, PEAK] = max(counts[node, PEAK], live)
            if node < leaves:
                events += live
            else:
                rows += live
        else:
            state[node, START] = 0
            state[node, END] = 0
            state[node, FRESH] = 0
    peaks[PEAK_PARTIAL_MATCHES] = max(peaks[PEAK_PARTIAL_MATCHES], rows)
    peaks[PEAK_EVENTS] = max(peaks[PEAK_EVENTS], events)
    peaks[PEAK_BYTES] = max(peaks[PEAK_BYTES], size)
