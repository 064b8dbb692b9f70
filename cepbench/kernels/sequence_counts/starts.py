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
from cepbench.kernels.sequence_counts.numbers import (
    add,
    add_part,
    add_total,
    add_weighted,
    assign,
)
from cepbench.kernels.sequence_counts.tables import HIGH, LOW, MIDDLE, PREVENTED, STARTED, UPDATES


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
def select(plan, state, events, partition, item, row, weight):
    """Count the histories that go on with an event; whether a number is large."""
    flags, span, large = events.flags[row], state.spans[partition], False
    # First as a further element of the item, then as its first event.
    for edge in range(2 * item + 1, 2 * item - 1, -1):
        takes = edge & 1 == 1
        if flags & (plan.takes[item] if takes else plan.begins[item]) == 0:
            continue
        source = plan.loops[item] if takes else plan.sources[item]
        if edge == 0:
            _start(plan, state, events, partition, row, weight)
        elif plan.spans[edge] == plan.spans[edge + 1]:
            large |= _add(plan, state, item, span, source, None, weight)
        else:
            fit(plan, state, events, edge, row, span[LOW], span[HIGH])
            large |= _add(plan, state, item, span, source, state.fits, weight)
    return large


@njit_in_place
def _add(plan, state, item, span, source, fits, weight):
    column, loop = plan.columns[item], plan.loops[item]
    low, high, large = span[LOW], span[HIGH], False
    if item == len(plan.columns) - 1:
        if plan.final < 0:
            _count(plan, state, item, source, low, span[MIDDLE], fits, weight)
        elif plan.final != column:
            large |= _extend(plan, state, item, plan.final, source, low, span[MIDDLE], fits, weight)
    if column >= 0:
        large |= _extend(plan, state, item, column, source, low, high, fits, weight)
    if loop >= 0 and loop != column:
        large |= _extend(plan, state, item, loop, source, low, high, fits, weight)
    state.progress[UPDATES] += high - low
    return large


@njit_in_place
def _extend(plan, state, item, column, source, low, high, fits, weight):
    """Add the histories of a column to another one."""
    cells, picked, is_maximum = state.cells, plan.picked, plan.is_maximum
    if picked == 0:
        weights = state.weights
        return add_weighted(cells, column, source, low, high, fits, weights, weight, is_maximum)
    # From behind, because both may be the same.
    large = add(cells, column + picked, source + picked, low, high, fits, None, is_maximum)
    if item == plan.weighted:
        large |= add(cells, column + picked, source, low, high, fits, weight, is_maximum)
    return large | add(cells, column, source, low, high, fits, None, is_maximum)


@njit_in_place
def _count(plan, state, item, source, low, high, fits, weight):
    """Count the histories of a column as matches."""
    found, picked, is_maximum = state.found, plan.picked, plan.is_maximum
    if picked == 0 or item == plan.weighted:
        add_total(found, state.cells, source, low, high, fits, is_maximum)
        add_part(found, state.weights, weight, plan.zero, is_maximum)
    if picked > 0:
        add_total(found, state.cells, source + picked, low, high, fits, is_maximum)
        add_part(found, None, weight, plan.zero, is_maximum)


@njit_in_place
def count_window(plan, state, partition):
    """Add all matches in the window to ``found``."""
    span, column = state.spans[partition], plan.final + plan.picked
    add_total(state.found, state.cells, column, span[LOW], span[HIGH], None, plan.is_maximum)
    add_part(state.found, None, plan.one, plan.zero, plan.is_maximum)


@njit_in_place
def fit(plan, state, events, edge, row, low, high):
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
def _start(plan, state, events, partition, row, weight):
    """Add a row; it is a match at once if the first item is the last one."""
    span, now = state.spans[partition], events.times[row]
    start = span[HIGH]
    span[HIGH] = start + 1
    state.times[start], state.marks[start] = now, span[PREVENTED]
    for k in range(len(plan.kept)):
        state.values[k, start] = events.values[plan.kept[k], row]
    is_allowed = span[MIDDLE] == start and span[PREVENTED] < now - plan.window
    ends = is_allowed and len(plan.begins) == 1
    width = state.cells.shape[0]
    for column in range(width):
        assign(state.cells, column, start, start + 1, plan.zero)
    for column in range(width - plan.picked):
        begun = column == plan.columns[0] or column == plan.loops[0]
        if not begun and not (ends and column == plan.final):
            continue
        assign(state.cells, column, start, start + 1, plan.one)
        if plan.picked == 0:
            _assign_weight(state.cells, column, start, state.weights, weight)
        elif plan.weighted == 0:
            behind = column + plan.picked
            _assign_weight(state.cells, behind, start, state.weights, weight)
    if is_allowed:
        span[MIDDLE] = start + 1
    # A sum over the elements of a single set is that over its only one.
    if ends and plan.final < 0 and (plan.picked == 0 or plan.weighted == 0):
        assign(state.found, 1, 0, 1, plan.one)
        add_part(state.found, state.weights, weight, plan.zero, plan.is_maximum)
    state.progress[STARTED] += 1


@njit_in_place
def _assign_weight(cells, column, row, weights, weight):
    if weights is not None:
        assign(cells, column, row, row + 1, weight)


@njit_in_place
def prevent(plan, state, partition, column):
    """Drop the histories of a column, that a forbidden event follows."""
    low, high = state.spans[partition, LOW], state.spans[partition, HIGH]
    assign(state.cells, column, low, high, plan.zero)
    if plan.picked > 0:
        assign(state.cells, column + plan.picked, low, high, plan.zero)
