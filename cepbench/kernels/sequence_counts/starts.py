"""Counts by start: a row for each event that may begin a match, a column for each item.

An event adds one column to another, for all starts at once. Since each row knows its start, a
condition between the start and the event chooses the rows.

Source: the prefix counters of A-Seq [qi2014]_, section 3.2 (Lemmas 3 and 4).

Differs from the paper: rows are added in place, in columns; what an event changes takes effect when
its timestamp ends.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.instructions import compares
from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.sequence_counts.numbers import add, add_total, assign
from cepbench.kernels.sequence_counts.tables import HIGH, LOW, MIDDLE, PREVENTED, STARTED


@njit_in_place
def expire(state, partition, earliest):
    """Drop the starts before ``earliest``, and allow those that no forbidden event precedes now."""
    span = state.spans[partition]
    while span[LOW] < span[HIGH] and state.times[span[LOW]] < earliest:
        span[LOW] += 1
    span[MIDDLE] = max(span[MIDDLE], span[LOW])
    while span[MIDDLE] < span[HIGH] and state.marks[span[MIDDLE]] < earliest:
        span[MIDDLE] += 1


@njit_in_place
def select(plan, state, events, partition, item, row):
    """Count the histories that go on with an event; whether a number is large."""
    flags, span, large = events.flags[row], state.spans[partition], False
    # First as a further element of the item, then as its first event.
    for edge in range(2 * item + 1, 2 * item - 1, -1):
        takes = edge & 1 == 1
        if flags & (plan.takes[item] if takes else plan.begins[item]) == 0:
            continue
        source = plan.loops[item] if takes else plan.sources[item]
        if edge == 0:
            _start(plan, state, events, partition, row)
        elif plan.spans[edge] == plan.spans[edge + 1]:
            large |= _add(plan, state, item, span, source, None)
        else:
            _fit(plan, state, events, edge, row, span[LOW], span[HIGH])
            large |= _add(plan, state, item, span, source, state.fits)
    return large


@njit_in_place
def _add(plan, state, item, span, source, fits):
    cells, column, loop = state.cells, plan.columns[item], plan.loops[item]
    low, high = span[LOW], span[HIGH]
    if item == len(plan.columns) - 1:
        add_total(state.found, cells, source, low, span[MIDDLE], fits)
    large = False
    if column >= 0:
        large = add(cells, column, source, low, high, fits)
    if loop >= 0 and loop != column:
        large |= add(cells, loop, source, low, high, fits)
    return large


@njit_in_place
def _fit(plan, state, events, edge, row, low, high):
    """Mark the starts that satisfy the conditions of an edge on an event."""
    fits = state.fits
    for rule in range(plan.spans[edge], plan.spans[edge + 1]):
        value, operator = events.values[plan.rules[rule, 0], row], plan.rules[rule, 2]
        # Without branches, all rows are compared at once.
        less = np.int64(compares(operator, 0.0, 1.0))
        equal = np.int64(compares(operator, 0.0, 0.0))
        greater = np.int64(compares(operator, 1.0, 0.0))
        starts = state.values[plan.rules[rule, 1]]
        first = np.uint64(low)
        for k in range(first, np.uint64(high)):
            start = starts[k]
            holds = less & (value < start) | equal & (value == start) | greater & (value > start)
            if rule == plan.spans[edge]:
                fits[k - first] = -holds
            else:
                fits[k - first] &= -holds


@njit_in_place
def _start(plan, state, events, partition, row):
    """Add a row; it is a match at once if the first item is the last one."""
    span, now = state.spans[partition], events.times[row]
    start = span[HIGH]
    span[HIGH] = start + 1
    state.times[start], state.marks[start] = now, span[PREVENTED]
    for k in range(len(plan.kept)):
        state.values[k, start] = events.values[plan.kept[k], row]
    for column in range(state.cells.shape[0]):
        begun = column == plan.columns[0] or column == plan.loops[0]
        assign(state.cells, column, start, start + 1, 1 if begun else 0)
    if span[MIDDLE] == start and span[PREVENTED] < now - plan.window:
        span[MIDDLE] = start + 1
        state.found[0] += len(plan.begins) == 1
    state.progress[STARTED] += 1


@njit_in_place
def prevent(plan, state, partition, column):
    """Drop the histories of a column, that a forbidden event follows."""
    assign(state.cells, column, state.spans[partition, LOW], state.spans[partition, HIGH], 0)
