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
from cepbench.kernels.sequence_counts.numbers import (
    add,
    add_part,
    add_products,
    add_total,
    add_weighted,
    assign,
    copy_row,
    is_too_large,
)
from cepbench.kernels.sequence_counts.tables import HIGH, LOW, MIDDLE, STARTED, UPDATES


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
        assign(state.back, column, first, first + columns, plan.zero)
        assign(state.back, column, first + column, first + column + 1, plan.one)
    return False


@njit
def _all_to_the_front(plan, state, low, high):
    """Multiply the matrices of these events from the last one on; whether a number is large."""
    times, suffix = state.times, state.suffix
    columns = suffix.shape[0]
    for column in range(columns):
        assign(suffix, column, 0, columns, plan.zero)
        assign(suffix, column, column, column + 1, plan.one)
    # In suffix a row of the product is a column, so that rows are added.
    behind = high
    while behind > low:
        first, present = behind - 1, state.marks[behind - 1]
        while first > low and times[first - 1] == times[behind - 1]:
            first -= 1
            present |= state.marks[first]
        for item in range(len(plan.begins)):
            if present & plan.prevents[item]:
                _clear(plan, suffix, plan.sources[item], 0, columns)
            if present & (plan.begins[item] | plan.takes[item]) and plan.columns[item] >= 0:
                for row in range(behind - 1, first - 1, -1):
                    weight = weight_of(state.weights, item, plan.weighted, row, plan.one)
                    if _multiply(plan, state, item, state.marks[row], weight):
                        return True
        copy_row(state.cells, first, suffix)
        behind = first
    return False


@njit_in_place
def weight_of(weights, item, weighted, row, one):
    """The weight of an event as one of an item."""
    weight = one
    if weights is not None:  # apart, so that it is decided when compiling
        weight = weights[row] if item == weighted else one
    return weight


@njit_in_place
def _multiply(plan, state, item, flags, weight):
    """Multiply an event's matrix by the product behind it: :func:`select`, transposed."""
    column, loop, source = plan.columns[item], plan.loops[item], plan.sources[item]
    apart = loop >= 0 and loop != column
    large = False
    if flags & plan.begins[item]:
        large |= _precede(plan, state, item, source, column, weight)
        if apart and not large:
            large |= _precede(plan, state, item, source, loop, weight)
    if flags & plan.takes[item] and not large:
        large |= _precede(plan, state, item, loop, loop, weight)
        if apart and not large:
            large |= _precede(plan, state, item, loop, column, weight)
    return large


@njit_in_place
def _precede(plan, state, item, source, column, weight):
    """Add what follows the histories of a column to what follows those of another one."""
    suffix, picked, is_maximum = state.suffix, plan.picked, plan.is_maximum
    columns = suffix.shape[0]
    if item == plan.weighted:
        behind = column + picked
        if is_too_large(suffix, behind, 0, columns, weight, is_maximum):
            return True
    if picked == 0:
        weights = state.weights
        return add_weighted(suffix, source, column, 0, columns, None, weights, weight, is_maximum)
    large = add(suffix, source, column, 0, columns, None, None, is_maximum)
    if item == plan.weighted:
        large |= add(suffix, source, column + picked, 0, columns, None, weight, is_maximum)
    return large | add(suffix, source + picked, column + picked, 0, columns, None, None, is_maximum)


@njit_in_place
def select(plan, state, events, partition, item, row, weight):
    """Multiply the product by an event's matrix, and count; whether a number is large."""
    flags, large = events.flags[row], False
    state.progress[STARTED] += item == 0 and flags & plan.begins[0] != 0
    # First as a further element of the item, then as its first event.
    for takes in range(1, -1, -1):
        if flags & (plan.takes[item] if takes else plan.begins[item]):
            source = plan.loops[item] if takes else plan.sources[item]
            large |= _add(plan, state, partition, item, source, weight)
    return large


@njit_in_place
def _add(plan, state, partition, item, source, weight):
    columns = state.cells.shape[0]
    column, loop, first = plan.columns[item], plan.loops[item], partition * columns
    if item == len(plan.columns) - 1 and plan.final < 0:
        if plan.picked == 0 or item == plan.weighted:
            _count(plan, state, partition, source, first, state.weights, weight)
        if plan.picked > 0:
            _count(plan, state, partition, source + plan.picked, first, None, weight)
    large = False
    if column >= 0:
        large = _extend(plan, state, item, column, source, first, weight)
    if loop >= 0 and loop != column:
        large |= _extend(plan, state, item, loop, source, first, weight)
    state.progress[UPDATES] += columns
    return large


@njit_in_place
def _extend(plan, state, item, column, source, first, weight):
    """Add the histories of a column to another one."""
    back, picked, is_maximum = state.back, plan.picked, plan.is_maximum
    behind = first + back.shape[0]
    if picked == 0:
        weights = state.weights
        return add_weighted(back, column, source, first, behind, None, weights, weight, is_maximum)
    # From behind, because both may be the same.
    large = add(back, column + picked, source + picked, first, behind, None, None, is_maximum)
    if item == plan.weighted:
        large |= add(back, column + picked, source, first, behind, None, weight, is_maximum)
    return large | add(back, column, source, first, behind, None, None, is_maximum)


@njit_in_place
def _count(plan, state, partition, source, first, weights, weight):
    """Count the histories of a column as matches."""
    low, is_maximum = state.spans[partition, LOW], plan.is_maximum
    if low < state.spans[partition, MIDDLE]:
        add_products(state.found, state.cells, low, state.back, source, first, is_maximum)
    else:
        add_total(state.found, state.back, source, first, first + 1, None, is_maximum)
    add_part(state.found, weights, weight, plan.zero, is_maximum)


@njit_in_place
def count_window(plan, state, partition):
    """Add all matches in the window to ``found``."""
    first = partition * state.cells.shape[0]
    _count(plan, state, partition, plan.final + plan.picked, first, None, plan.one)


@njit_in_place
def prevent(plan, state, partition, column):
    """Drop the histories of a column, that a forbidden event follows."""
    columns = state.cells.shape[0]
    _clear(plan, state.back, column, partition * columns, (partition + 1) * columns)


@njit_in_place
def _clear(plan, cells, column, first, last):
    assign(cells, column, first, last, plan.zero)
    if plan.picked > 0:
        assign(cells, column + plan.picked, first, last, plan.zero)


@njit_in_place
def remember(plan, state, events, partition, first, last):
    """Keep the events of a timestamp that has ended."""
    span = state.spans[partition]
    for at in range(first, last):
        row = events.rows[at]
        flags = events.flags[row] & plan.changes
        if flags:
            state.times[span[HIGH]], state.marks[span[HIGH]] = events.times[row], flags
            _keep_weight(state.weights, span[HIGH], events.weights, row)
            span[HIGH] += 1


@njit_in_place
def _keep_weight(weights, place, given, row):
    if weights is not None:
        weights[place] = given[row]
