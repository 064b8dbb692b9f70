"""Counts of matches by event, for conditions between an event and the one before it in a match.

The events in the window are the nodes of a graph, whose edges lead from an event to those that may
come next in a match. A node has the number of histories that end in it, by start: the sum of those of
the nodes before it. No edge is stored: an event looks for the nodes before it when it comes.

Source: GRETA [poppe2017]_, sections 4 to 6.

Differs from the paper: counts by start instead of by window, so that a history leaves the sum when its
first event expires; nodes before an event are found by a scan instead of a tree.
"""

from __future__ import annotations

from cepbench.engines.aggregation.kernels.event_graph import tables
from cepbench.engines.sase.kernels.conditions import holds, update
from cepbench.engines.sequence_counts.kernels.numbers import (
    add,
    add_total,
    assign,
    copy_total,
    is_too_large,
)
from cepbench.engines.sequence_counts.kernels.starts import behind_expired, expire, fit
from cepbench.engines.sequence_counts.kernels.tables import COUNTED
from cepbench.kernels.jit import njit, njit_in_place

# What became of an event: all, nothing yet, all but numbers need more digits before the next one.
_DONE, _AGAIN, _LARGE = range(3)


@njit_in_place
def count_paths(plan, state, events):
    """Process a batch of events of one partition, from where ``state.progress`` says.

    Those flagged as counted have been processed before. Returns whether all events have been; else
    numbers need more digits.
    """
    progress = state.progress
    while progress[tables.AT] < len(events.rows):
        row = events.rows[progress[tables.AT]]
        now, flags = events.times[row], events.flags[row]
        if flags & COUNTED == 0:
            if progress[tables.ITEM] == 0:
                _expire(state, now - plan.window)
            while progress[tables.ITEM] < len(plan.begins):
                item = progress[tables.ITEM]
                if flags & plan.prevents[item] and state.barriers[item, 0] < now:
                    state.barriers[item, 1] = state.barriers[item, 0]
                    state.barriers[item, 0] = now
                outcome = _DONE
                if flags & (plan.begins[item] | plan.takes[item]):
                    outcome = _select(plan, state, events, item, row)
                progress[tables.ITEM] += outcome != _AGAIN
                if outcome != _DONE:
                    progress[tables.IS_LARGE] = 1
                    return False
            _sample(plan, state, events.samples[progress[tables.AT]])
        progress[tables.AT] += 1
        progress[tables.ITEM] = 0
    return True


@njit_in_place
def _expire(state, earliest):
    """Drop starts and nodes before ``earliest``, and allow starts that nothing prevents any more."""
    bounds = state.bounds
    expire(bounds, state.starts, state.marks, earliest)
    bounds[tables.FIRST] = behind_expired(
        state.times, bounds[tables.FIRST], bounds[tables.LAST], earliest
    )


@njit
def _select(plan, state, events, item, row):
    """Count the histories that end in an event as one of an item, and keep it."""
    bounds, cells, now = state.bounds, state.cells, events.times[row]
    flags, last = events.flags[row], len(plan.begins) - 1
    is_kept = item < last or plan.takes[item] != 0
    node = bounds[tables.LAST] if is_kept else -1
    column = _column(plan, node)
    for part in range(plan.parts):
        assign(cells, column + part, bounds[tables.LOW], cells.shape[1], plan.zero)
    weight = events.weights[row] if item == plan.weighted else plan.one
    begins = flags & plan.begins[item] != 0
    for edge in range(2):
        if (edge == 0 and not begins) or (edge == 1 and flags & plan.takes[item] == 0):
            continue
        if edge == 0 and item == 0:
            _start(plan, state, events, column, row, weight)
        elif _extend(plan, state, events, item, edge, column, row, weight):
            return _AGAIN
    vector = state.vectors[node]
    update(plan.edges[item, 0 if begins else 1], row, vector, plan.automaton, events)
    leaves = plan.edges[item, 2] < 0 or holds(
        plan.edges[item, 2], row, vector, plan.automaton, state, events
    )
    if item == 0 and begins:
        bounds[tables.HIGH] = _row_of(plan, state, now) + 1
        bounds[tables.MIDDLE] = behind_expired(
            state.marks, bounds[tables.MIDDLE], bounds[tables.HIGH], now - plan.window
        )
    if is_kept:
        state.times[node], state.leaves[node] = now, leaves
        state.previous[node], state.heads[item] = state.heads[item], node
        state.ends[node] = bounds[tables.HIGH]
        bounds[tables.LAST] = node + 1
    nodes = bounds[tables.LAST] - bounds[tables.FIRST]
    counters = (nodes * plan.parts + 1) * (bounds[tables.HIGH] - bounds[tables.LOW])
    bounds[tables.PEAK_NODES] = max(bounds[tables.PEAK_NODES], nodes)
    bounds[tables.PEAK_COUNTERS] = max(bounds[tables.PEAK_COUNTERS], counters)
    if item == last and leaves and _complete(plan, state, column + plan.parts - 1):
        return _LARGE
    return _DONE


@njit_in_place
def _column(plan, node):
    """The first column of a node, or of the present event for node -1."""
    return tables.MATCHES + 1 + (node + 1) * plan.parts


@njit_in_place
def _row_of(plan, state, now):
    """The row of a start: that of the starts at its timestamp, unless conditions read a start's values."""
    last = state.bounds[tables.HIGH] - 1
    is_new = len(plan.kept) > 0 or last < state.bounds[tables.LOW] or state.starts[last] < now
    return last + is_new


@njit_in_place
def _start(plan, state, events, column, row, weight):
    """Prepare a start, which is to be in the last row."""
    start = _row_of(plan, state, events.times[row])
    state.starts[start] = events.times[row]
    state.marks[start] = _barrier(state, 0, events.times[row])
    for k in range(len(plan.kept)):
        state.values[k, start] = events.values[plan.kept[k], row]
    factor = weight if plan.parts == 1 else plan.one
    assign(state.cells, column, start, start + 1, factor)
    if plan.parts > 1 and plan.weighted == 0:
        assign(state.cells, column + 1, start, start + 1, weight)


@njit_in_place
def _barrier(state, item, now):
    """Timestamp of the latest forbidden event before an item's event."""
    barriers = state.barriers
    return barriers[item, 0] if barriers[item, 0] < now else barriers[item, 1]


@njit_in_place
def _extend(plan, state, events, item, edge, column, row, weight):
    """Add the histories of all nodes that an event may follow; whether a number is large.

    Edge 0 is that of an item's first event, and edge 1 that of a further element.
    """
    bounds, cells, now = state.bounds, state.cells, events.times[row]
    low, high = bounds[tables.LOW], bounds[tables.HIGH]
    some = plan.spans[2 * item + edge] < plan.spans[2 * item + edge + 1]
    if some:
        fit(plan, state, events, 2 * item + edge, row, low, high)
    barrier = _barrier(state, item, now)
    is_weighted = item == plan.weighted
    # Histories; with two parts those times a weight, and those times the event's weight.
    terms = plan.parts + (plan.parts > 1 and is_weighted)
    node = state.heads[item - 1 + edge]
    while node >= bounds[tables.FIRST] and (edge == 1 or state.times[node] >= barrier):
        follows = edge == 1 or (state.times[node] < now and state.leaves[node])
        if follows and holds(
            plan.edges[item, edge], row, state.vectors[node], plan.automaton, state, events
        ):
            source, end = _column(plan, node), state.ends[node]
            if is_weighted and is_too_large(cells, source, low, end, weight, plan.is_maximum):
                return True
            for term in range(terms):
                factor = weight if is_weighted and term == terms - 1 else plan.one
                target = column + (term > 0)
                if add(
                    cells, target, source + (term == 1), low, end, state.fits, some, factor,
                    plan.limit, plan.is_maximum,
                ):  # fmt: skip
                    return True
            state.progress[tables.UPDATES] += end - low
        node = state.previous[node]
    return False


@njit_in_place
def _complete(plan, state, column):
    """Count histories as matches; whether a number is large."""
    low, middle = state.bounds[tables.LOW], state.bounds[tables.MIDDLE]
    if plan.counts_window:
        return add(
            state.cells, tables.MATCHES, column, low, middle, state.fits, False, plan.one,
            plan.limit, plan.is_maximum,
        )  # fmt: skip
    _count(plan, state, column, middle)
    return False


@njit_in_place
def _count(plan, state, column, last):
    """Add the numbers of a column to ``found``."""
    low, is_maximum = state.bounds[tables.LOW], plan.is_maximum
    add_total(state.found, 0, state.cells, column, low, last, state.fits, False, is_maximum)


@njit_in_place
def _sample(plan, state, sample):
    """Write the value after an event."""
    if sample >= 0:
        if plan.counts_window:
            _count(plan, state, tables.MATCHES, state.bounds[tables.HIGH])
        copy_total(state.out, sample, state.found)
    assign(state.found, 0, 0, 1, plan.zero)
