"""Steps of time: the events processed together, and counting and eviction at the end.

A step consists of moments. A moment begins with the next event and spans a small part of the
window; its time is that of its last event. In sparse streams a step has many moments, which share
its fixed cost; in dense streams each moment is a step, so that expired rows are evicted early.
Extensible rows are counted at every moment in both cases.

Under the consuming strategy a step has few events, even if more share a timestamp: consumed events
are evicted before they are joined with the next ones.
"""

from __future__ import annotations

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.buffers import expire
from cepbench.kernels import counts
from cepbench.kernels.batches import NEVER
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def lay_out_step(pace, most, batch, taken, scratch, extras):
    """Determine the events of a step: for each leaf those before ``scratch.ahead``.

    ``most``: maximum number of moments. ``taken``: int64 (leaves,), the next event of each leaf.
    ``extras``: of ``scratch``.

    Returns the number of moments, with their times in ``scratch.moments``; 0 if no event is left.
    """
    ahead, due, starts = scratch.ahead, scratch.due, batch.starts
    leaves, times = len(starts) - 1, batch.events[0]
    for leaf in range(leaves):
        ahead[leaf] = taken[leaf]
        due[leaf] = times[taken[leaf]] if taken[leaf] < starts[leaf + 1] else NEVER
    if extras is not None and pace.cap > 0:
        return _lay_out_capped(pace, batch, scratch)
    moments = more = 0
    while moments < most and more < pace.enough:
        now = NEVER
        for leaf in range(leaves):
            now = min(now, due[leaf])
        if now == NEVER:
            break
        horizon = now + pace.length - 1
        for leaf in range(leaves):
            if due[leaf] > horizon:
                continue
            first, end = ahead[leaf], starts[leaf + 1]
            last = first + 1
            while last < end and times[last] <= horizon:
                last += 1
            now = max(now, times[last - 1])
            more += last - first
            ahead[leaf] = last
            due[leaf] = times[last] if last < end else NEVER
        scratch.moments[moments] = now
        moments += 1
    return moments


@njit_in_place
def _lay_out_capped(pace, batch, scratch):
    """As :func:`lay_out_step`, for one moment of at most ``pace.cap`` events, by position."""
    ahead, due, starts = scratch.ahead, scratch.due, batch.starts
    leaves, times, positions = len(starts) - 1, batch.events[0], batch.events[1]
    now = NEVER
    for leaf in range(leaves):
        now = min(now, due[leaf])
    if now == NEVER:
        return 0
    horizon = now + pace.length - 1
    for _ in range(pace.cap):
        position = NEVER
        for leaf in range(leaves):
            if due[leaf] <= horizon:
                position = min(position, positions[ahead[leaf]])
        if position == NEVER:
            break
        # An event is taken for all variables to which it can be bound.
        for leaf in range(leaves):
            if due[leaf] <= horizon and positions[ahead[leaf]] == position:
                now = due[leaf]
                ahead[leaf] += 1
                due[leaf] = times[ahead[leaf]] if ahead[leaf] < starts[leaf + 1] else NEVER
    scratch.moments[0] = now
    return 1


@njit_in_place
def take_back(reached, leaves, plan, state, taken, scratch):
    """Undo a step up to the inner node ``reached``.

    ``reached``, ``leaves``: that node, and the number of leaves. ``taken``: int64 (leaves,), the
    next event of each leaf; written in place.
    """
    for leaf in range(leaves):
        taken[leaf] -= state.rows[leaf, tables.END] - state.rows[leaf, tables.FRESH]
        state.rows[leaf, tables.END] = state.rows[leaf, tables.FRESH]
    for node in range(plan.inner, reached + 1):
        state.rows[node, tables.END] = state.rows[node, tables.FRESH]
    copy_counts(scratch.before, state.counts)


@njit_in_place
def copy_counts(source, target):
    """Overwrite one table of counts with another.

    ``source``, ``target``: int64 (nodes, COUNT_COLUMNS).
    """
    for node in range(source.shape[0]):
        for column in range(source.shape[1]):
            target[node, column] = source[node, column]


@njit_in_place
def finish_step(moments, leaves, plan, state, scratch):
    """Count the stored rows, then evict those that no later event can extend.

    ``moments``, ``leaves``: number of moments of the step, and of leaves of the plan.
    """
    _count_live(moments - 1, leaves, plan, state, scratch)
    now = scratch.moments[moments - 1]
    events = rows = size = 0
    for node in range(len(plan.nodes)):
        stored = state.rows[node, tables.END] - state.rows[node, tables.START]
        width = plan.nodes[node, tables.INTS] + plan.nodes[node, tables.FLOATS]
        if plan.nodes[node, tables.IS_ROOT] == 1:
            # Waiting matches are removed only when emitted.
            size += stored * 8 * width if plan.stored else 0
            continue
        size += stored * 8 * width
        if plan.nodes[node, tables.KEPT] == 1:
            oldest = now - plan.nodes[node, tables.RETAINED] * plan.window
            live = expire(node, oldest, plan, state)
            state.counts[node, counts.PEAK] = max(state.counts[node, counts.PEAK], live)
            if node < leaves:
                events += live
            else:
                rows += live
        else:
            state.rows[node, tables.START] = 0
            state.rows[node, tables.END] = 0
            state.rows[node, tables.FRESH] = 0
    state.peaks[counts.PEAK_PARTIAL_MATCHES] = max(state.peaks[counts.PEAK_PARTIAL_MATCHES], rows)
    state.peaks[counts.PEAK_EVENTS] = max(state.peaks[counts.PEAK_EVENTS], events)
    state.peaks[counts.PEAK_BYTES] = max(state.peaks[counts.PEAK_BYTES], size)


@njit_in_place
def _count_live(moments, leaves, plan, state, scratch):
    """Count the extensible rows at each of the step's first ``moments`` moments."""
    events, rows = scratch.live[0], scratch.live[1]
    events[:moments] = 0
    rows[:moments] = 0
    for node in range(len(plan.nodes)):
        if (
            plan.nodes[node, tables.KEPT] == 0
            or state.rows[node, tables.START] == state.rows[node, tables.END]
        ):
            continue
        begin = tables.int_column(node, plan.nodes[node, tables.EARLIEST], state)
        earliest = state.ints[begin : begin + state.rows[node, tables.END]]
        begin = tables.int_column(node, plan.nodes[node, tables.LATEST], state)
        latest = state.ints[begin : begin + state.rows[node, tables.END]]
        first, last = state.rows[node, tables.START], len(latest)
        if plan.nodes[node, tables.SORTED] == 1:
            last = first
        for moment in range(moments):
            now = scratch.moments[moment]
            oldest = now - plan.nodes[node, tables.RETAINED] * plan.window
            if plan.nodes[node, tables.SORTED] == 1:
                # Rows that ended before `oldest` also began before it.
                while first < len(latest) and latest[first] < oldest:
                    first += 1
                while last < len(latest) and latest[last] <= now:
                    last += 1
            live = last - first
            if node >= leaves:
                live = _live_between(earliest[first:last], latest[first:last], oldest, now)
                rows[moment] += live
            else:
                events[moment] += live
            state.counts[node, counts.PEAK] = max(state.counts[node, counts.PEAK], live)
    for moment in range(moments):
        state.peaks[counts.PEAK_PARTIAL_MATCHES] = max(
            state.peaks[counts.PEAK_PARTIAL_MATCHES], rows[moment]
        )
        state.peaks[counts.PEAK_EVENTS] = max(state.peaks[counts.PEAK_EVENTS], events[moment])


@njit_in_place
def _live_between(earliest, latest, oldest, now):
    """The number of rows that began at ``oldest`` or later and ended at ``now`` or before."""
    live = 0
    for row in range(len(earliest)):
        live += int((earliest[row] >= oldest) & (latest[row] <= now))
    return live
