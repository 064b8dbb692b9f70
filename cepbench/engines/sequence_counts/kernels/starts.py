"""Counts by start: a row for each event that may begin a match, a column for each item.

An event adds one column to another, for all starts at once. Since each row knows its start, a
condition between the start and the event chooses the rows.

Source: the prefix counters of A-Seq [qi2014]_, section 3.2 (Lemmas 3 and 4).

Differs from the paper: rows are added in place, in columns; what an event changes takes effect when
its timestamp ends.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.sequence_counts.kernels import tables
from cepbench.engines.sequence_counts.kernels.numbers import (
    add,
    add_part,
    add_total,
    assign,
)
from cepbench.kernels.instructions import compares
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def behind_expired(times, low, high, earliest):
    """The first row from ``low`` on that is not before ``earliest``."""
    while low < high and times[low] < earliest:
        low += 1
    return low


@njit_in_place
def expire(span, times, marks, earliest):
    """Drop the starts before ``earliest``, and allow those that no forbidden event precedes now."""
    span[tables.LOW] = behind_expired(times, span[tables.LOW], span[tables.HIGH], earliest)
    allowed = max(span[tables.MIDDLE], span[tables.LOW])
    span[tables.MIDDLE] = behind_expired(marks, allowed, span[tables.HIGH], earliest)


@njit_in_place
def select(plan, state, events, partition, item, row, weight):
    """Count the histories that go on with an event; whether a number is large."""
    flags, span, large = events.flags[row], state.spans[partition], False
    low, high = span[tables.LOW], span[tables.HIGH]
    # First as a further element of the item, then as its first event.
    for edge in range(2 * item + 1, 2 * item - 1, -1):
        if flags & (plan.takes[item] if edge & 1 == 1 else plan.begins[item]) == 0:
            continue
        if edge == 0:
            _start(plan, state, events, partition, row, weight)
            continue
        some = plan.spans[edge] < plan.spans[edge + 1]
        if some:
            fit(plan, state, events, edge, row, low, high)
        if plan.count_spans[edge] < plan.count_spans[edge + 1]:
            count(plan, state, partition, edge, some, weight)
        for step in range(plan.step_spans[edge], plan.step_spans[edge + 1]):
            large |= add(
                state.cells, plan.steps[step, tables.TARGET], plan.steps[step, tables.SOURCE], low,
                span[tables.MIDDLE] if plan.steps[step, tables.IS_ALLOWED] else high, state.fits, some,
                weight if plan.steps[step, tables.IS_WEIGHTED] else plan.one, plan.limit,
                plan.is_maximum,
            )  # fmt: skip
        state.progress[tables.UPDATES] += high - low
    return large


@njit_in_place
def count(plan, state, partition, edge, some, weight):
    """Count the histories that an edge completes."""
    span, is_maximum, read = state.spans[partition], plan.is_maximum, 0
    for place in range(plan.count_spans[edge], plan.count_spans[edge + 1]):
        source, last = plan.counts[place, tables.SOURCE], span[tables.HIGH]
        if plan.counts[place, tables.IS_ALLOWED]:
            last = span[tables.MIDDLE]
        read = max(read, last - span[tables.LOW])
        is_weighted = plan.counts[place, tables.IS_WEIGHTED]
        add_total(
            state.found, is_weighted, state.cells, source, span[tables.LOW], last, state.fits, some,
            is_maximum,
        )  # fmt: skip
        if is_weighted:
            add_part(state.found, weight, plan.zero, is_maximum)
    state.progress[tables.READ] += read


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
    start = span[tables.HIGH]
    span[tables.HIGH] = start + 1
    span[tables.PEAK] = max(span[tables.PEAK], start + 1 - span[tables.LOW])
    state.times[start], state.marks[start] = now, span[tables.PREVENTED]
    for k in range(len(plan.kept)):
        state.values[k, start] = events.values[plan.kept[k], row]
    may_end = span[tables.MIDDLE] == start and span[tables.PREVENTED] < now - plan.window
    for column in range(state.cells.shape[0]):
        assign(state.cells, column, start, start + 1, plan.zero)
    for place in range(len(plan.begun)):
        if may_end or not plan.begun[place, tables.IS_ALLOWED]:
            value = weight if plan.begun[place, tables.IS_WEIGHTED] else plan.one
            assign(state.cells, plan.begun[place, tables.TARGET], start, start + 1, value)
    if may_end:
        span[tables.MIDDLE] = start + 1
        # A single item; it has one history, of column 0, whose sum is that over its only event.
        for place in range(plan.count_spans[0], plan.count_spans[1]):
            if plan.counts[place, tables.SOURCE] == 0:
                assign(state.found, 1, 0, 1, plan.one)
                value = weight if plan.counts[place, tables.IS_WEIGHTED] else plan.one
                add_part(state.found, value, plan.zero, plan.is_maximum)
    state.progress[tables.STARTED] += 1
