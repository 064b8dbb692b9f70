"""Steps of time: which events are taken together, and what is counted and forgotten at the end.

A step is made of moments. A moment begins with the first event not yet taken and is a small part of
the window long; its time is that of its last event. Few events make a step of many moments, so that
what a step costs by itself is shared, but never one longer than the window; where there are many,
each moment is a step, so that what has expired is soon forgotten. What can still be extended is
counted at every moment, however they were put together.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.buffers import expire
from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.tables import (
    CAPACITY,
    EARLIEST,
    END,
    FLOATS,
    FRESH,
    INT_OFFSET,
    INTS,
    KEPT,
    LATEST,
    PEAK,
    PEAK_BYTES,
    PEAK_EVENTS,
    PEAK_PARTIAL_MATCHES,
    RETAINED,
    START,
)

#: A timestamp after all others.
NEVER = np.iinfo(np.int64).max


@njit_in_place
def lay_out_step(pace, events, starts, taken, scratch):
    """Which events a step takes: for each leaf those before ``scratch.ahead``.

    Parameters
    ----------
    pace : Pace
    events : int64 array, shape (2 or 3, m)
        Timestamps in the first row, leaf after leaf.
    starts : int64 array, shape (leaves + 1,)
    taken : int64 array, shape (leaves,)
        The next event of each leaf.
    scratch : Scratch

    Returns
    -------
    moments : int
        How many, their times in ``scratch.moments``; 0 if no event is left.
    """
    ahead, leaves = scratch.ahead, len(starts) - 1
    for leaf in range(leaves):
        ahead[leaf] = taken[leaf]
    moments = more = 0
    while moments < pace.most and more < pace.enough:
        now = NEVER
        for leaf in range(leaves):
            if ahead[leaf] < starts[leaf + 1]:
                now = min(now, events[0, ahead[leaf]])
        if now == NEVER:
            break
        horizon = now + pace.length - 1
        for leaf in range(leaves):
            first = last = ahead[leaf]
            while last < starts[leaf + 1] and events[0, last] <= horizon:
                last += 1
            if first < last:
                now = max(now, events[0, last - 1])
                more += last - first
                ahead[leaf] = last
        scratch.moments[moments] = now
        moments += 1
    return moments


@njit_in_place
def finish_step(moments, leaves, plan, state, counts, peaks, ints, floats, scratch):
    """Count what is stored, then forget what no event still to come can extend."""
    for moment in range(moments - 1):
        _count_live(scratch.moments[moment], leaves, plan, state, counts, peaks, ints)
    now = scratch.moments[moments - 1]
    events = rows = size = 0
    for node in range(len(plan.nodes)):
        stored = state[node, END] - state[node, START]
        width = plan.nodes[node, INTS] + plan.nodes[node, FLOATS]
        if node == len(plan.nodes) - 1:
            # Matches that wait expire in no other way than by being given out.
            size += stored * 8 * width if plan.stored else 0
            continue
        size += stored * 8 * width
        if plan.nodes[node, KEPT] == 1:
            oldest = now - plan.nodes[node, RETAINED] * plan.window
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


@njit_in_place
def _count_live(now, leaves, plan, state, counts, peaks, ints):
    """Count what could be extended at a moment of the step before its last one."""
    events = rows = 0
    for node in range(len(plan.nodes) - 1):
        if plan.nodes[node, KEPT] == 0:
            continue
        oldest = now - plan.nodes[node, RETAINED] * plan.window
        capacity, stored = state[node, CAPACITY], state[node, END] - state[node, START]
        base = state[node, INT_OFFSET] + state[node, START]
        first = base + plan.nodes[node, EARLIEST] * capacity
        last = base + plan.nodes[node, LATEST] * capacity
        earliest, latest = ints[first : first + stored], ints[last : last + stored]
        live = 0
        for row in range(stored):
            live += int((earliest[row] >= oldest) & (latest[row] <= now))
        counts[node, PEAK] = max(counts[node, PEAK], live)
        if node < leaves:
            events += live
        else:
            rows += live
    peaks[PEAK_PARTIAL_MATCHES] = max(peaks[PEAK_PARTIAL_MATCHES], rows)
    peaks[PEAK_EVENTS] = max(peaks[PEAK_EVENTS], events)
