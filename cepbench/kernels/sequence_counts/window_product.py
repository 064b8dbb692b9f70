"""Counts without starts: the window as a product of matrices, one for each timestamp.

Entry (i, j) of a matrix is the number of ways in which the events of a timestamp lead from a history
of column i to one of column j: the number of events of an item, 2^k - 1 for k elements of a Kleene
item, which also multiply the item's diagonal entry by 2^k, and 0 on the diagonal of a column that a
forbidden event ends. Row 0 of the product over the window counts its histories.

The product is kept by two stacks, as a queue whose ends are aggregated apart: for each event in
front of the middle, row 0 of the product from its timestamp to the middle; and the whole product
since the middle. When the front has expired, all events become front. An event takes O(columns) on
average, however many starts there are, and nothing is subtracted, which suits any semiring.

Not in the paper [qi2014]_, whose sections 3.2 and 3.3 keep a row for each start and count anew after a
forbidden event.
"""

from __future__ import annotations

from cepbench.kernels.jit import njit, njit_in_place
from cepbench.kernels.sequence_counts.numbers import add, add_products, add_total, assign, copy_row
from cepbench.kernels.sequence_counts.tables import HIGH, LOW, MIDDLE, STARTED


@njit_in_place
def expire(plan, state, partition, earliest):
    """Drop the events before ``earliest``; returns whether a number is large, which has to be tried
    again with more digits."""
    span = state.spans[partition]
    while span[LOW] < span[HIGH] and state.times[span[LOW]] < earliest:
        span[LOW] += 1
    if span[LOW] <= span[MIDDLE]:
        return False
    if _all_to_the_front(plan, state, span[LOW], span[HIGH]):
        return True
    span[MIDDLE] = span[HIGH]
    columns = state.cells.shape[0]
    for column in range(columns):
        first = partition * columns
        assign(state.back, column, first, first + columns, 0)
        assign(state.back, column, first + column, first + column + 1, 1)
    return False


@njit
def _all_to_the_front(plan, state, low, high):
    """Multiply the matrices of these events from the last one on; whether a number is large."""
    times, suffix = state.times, state.suffix
    columns = suffix.shape[0]
    for column in range(columns):
        assign(suffix, column, 0, columns, 0)
        assign(suffix, column, column, column + 1, 1)
    # In suffix a row of the product is a column, so that rows are added.
    behind = high
    while behind > low:
        first, present = behind - 1, state.marks[behind - 1]
        while first > low and times[first - 1] == times[behind - 1]:
            first -= 1
            present |= state.marks[first]
        for item in range(len(plan.begins)):
            if present & plan.prevents[item]:
                assign(suffix, plan.sources[item], 0, columns, 0)
            if present & (plan.begins[item] | plan.takes[item]) and plan.columns[item] >= 0:
                for row in range(behind - 1, first - 1, -1):
                    if _multiply(plan, suffix, item, state.marks[row]):
                        return True
        copy_row(state.cells, first, suffix)
        behind = first
    return False


@njit_in_place
def _multiply(plan, suffix, item, flags):
    """Multiply an event's matrix by the product behind it: :func:`select`, transposed."""
    columns, column, loop = suffix.shape[0], plan.columns[item], plan.loops[item]
    apart = loop >= 0 and loop != column
    large = False
    if flags & plan.begins[item]:
        large = add(suffix, plan.sources[item], column, 0, columns, None)
        if apart:
            large |= add(suffix, plan.sources[item], loop, 0, columns, None)
    if flags & plan.takes[item]:
        large |= add(suffix, loop, loop, 0, columns, None)
        if apart:
            large |= add(suffix, loop, column, 0, columns, None)
    return large


@njit_in_place
def select(plan, state, events, partition, item, row):
    """Multiply the product by an event's matrix, and count; whether a number is large."""
    flags, large = events.flags[row], False
    state.progress[STARTED] += item == 0 and flags & plan.begins[0] != 0
    # First as a further element of the item, then as its first event.
    for takes in range(1, -1, -1):
        if flags & (plan.takes[item] if takes else plan.begins[item]):
            source = plan.loops[item] if takes else plan.sources[item]
            large |= _add(plan, state, partition, item, source)
    return large


@njit_in_place
def _add(plan, state, partition, item, source):
    back, columns = state.back, state.cells.shape[0]
    column, loop, first = plan.columns[item], plan.loops[item], partition * columns
    if item == len(plan.columns) - 1:
        _count(state, partition, source, first)
    large = False
    if column >= 0:
        large = add(back, column, source, first, first + columns, None)
    if loop >= 0 and loop != column:
        large |= add(back, loop, source, first, first + columns, None)
    return large


@njit_in_place
def _count(state, partition, source, first):
    """Count the histories of a column as matches."""
    low = state.spans[partition, LOW]
    if low < state.spans[partition, MIDDLE]:
        add_products(state.found, state.cells, low, state.back, source, first)
    else:
        add_total(state.found, state.back, source, first, first + 1, None)


@njit_in_place
def prevent(plan, state, partition, column):
    """Drop the histories of a column, that a forbidden event follows."""
    columns = state.cells.shape[0]
    assign(state.back, column, partition * columns, (partition + 1) * columns, 0)


@njit_in_place
def remember(plan, state, events, partition, first, last):
    """Keep the events of a timestamp that has ended."""
    span = state.spans[partition]
    for at in range(first, last):
        row = events.rows[at]
        flags = events.flags[row] & plan.changes
        if flags:
            state.times[span[HIGH]], state.marks[span[HIGH]] = events.times[row], flags
            span[HIGH] += 1
