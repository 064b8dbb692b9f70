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

from cepbench.engines.sequence_counts.kernels import tables
from cepbench.engines.sequence_counts.kernels.numbers import (
    add,
    add_part,
    add_products,
    add_total,
    assign,
    copy_row,
    is_too_large,
)
from cepbench.engines.sequence_counts.kernels.starts import behind_expired
from cepbench.kernels.jit import njit, njit_in_place


@njit_in_place
def expire(plan, state, partition, earliest):
    """Drop the events before ``earliest``; returns whether a number is large, which has to be tried
    again with more digits."""
    span = state.spans[partition]
    span[tables.LOW] = behind_expired(state.times, span[tables.LOW], span[tables.HIGH], earliest)
    if span[tables.LOW] <= span[tables.MIDDLE]:
        return False
    if _all_to_the_front(plan, state, span[tables.LOW], span[tables.HIGH]):
        return True
    span[tables.MIDDLE] = span[tables.HIGH]
    span[tables.PEAK] = max(span[tables.PEAK], span[tables.HIGH] - span[tables.LOW])
    set_to_one(plan, state.back, partition * state.cells.shape[0])
    return False


@njit_in_place
def set_to_one(plan, product, first):
    """Set a product, which begins at a row, to that of no events."""
    columns = product.shape[0]
    for column in range(columns):
        assign(product, column, first, first + columns, plan.zero)
        assign(product, column, first + column, first + column + 1, plan.one)


@njit
def _all_to_the_front(plan, state, low, high):
    """Multiply the matrices of these events from the last one on; whether a number is large."""
    times, suffix = state.times, state.suffix
    columns = suffix.shape[0]
    set_to_one(plan, suffix, 0)
    # In suffix a row of the product is a column, so that rows are added.
    behind = high
    while behind > low:
        first, present = behind - 1, state.marks[behind - 1]
        while first > low and times[first - 1] == times[behind - 1]:
            first -= 1
            present |= state.marks[first]
        for item in range(len(plan.begins)):
            if present & plan.prevents[item]:
                clear(plan, suffix, plan.sources[item], 0, columns)
            if present & (plan.begins[item] | plan.takes[item]) == 0:
                continue
            for row in range(behind - 1, first - 1, -1):
                weight = state.weights[row] if item == plan.weighted else plan.one
                if _multiply(plan, state, item, state.marks[row], weight):
                    return True
        copy_row(state.cells, first, suffix)
        behind = first
    return False


@njit_in_place
def _multiply(plan, state, item, flags, weight):
    """Multiply an event's matrix by the product behind it: :func:`select`, transposed, from behind."""
    suffix, columns, large = state.suffix, state.suffix.shape[0], False
    for edge in range(2 * item, 2 * item + 2):
        if flags & (plan.takes[item] if edge & 1 == 1 else plan.begins[item]) == 0:
            continue
        for step in range(plan.step_spans[edge + 1] - 1, plan.step_spans[edge] - 1, -1):
            if large:
                return True
            target, factor = plan.steps[step, tables.TARGET], plan.one
            if plan.steps[step, tables.IS_WEIGHTED]:
                factor = weight
                if is_too_large(suffix, target, 0, columns, weight, plan.is_maximum):
                    return True
            large |= add(
                suffix, plan.steps[step, tables.SOURCE], target, 0, columns, state.fits, False, factor,
                plan.limit, plan.is_maximum,
            )  # fmt: skip
    return large


@njit_in_place
def select(plan, state, events, partition, item, row, weight):
    """Multiply the product by an event's matrix, and count; whether a number is large."""
    flags, large, back = events.flags[row], False, state.back
    first = partition * back.shape[0]
    behind = first + back.shape[0]
    state.progress[tables.STARTED] += item == 0 and flags & plan.begins[0] != 0
    # First as a further element of the item, then as its first event.
    for edge in range(2 * item + 1, 2 * item - 1, -1):
        if flags & (plan.takes[item] if edge & 1 == 1 else plan.begins[item]) == 0:
            continue
        if plan.count_spans[edge] < plan.count_spans[edge + 1]:
            count(plan, state, partition, edge, weight)
        for step in range(plan.step_spans[edge], plan.step_spans[edge + 1]):
            large |= add(
                back, plan.steps[step, tables.TARGET], plan.steps[step, tables.SOURCE], first, behind,
                state.fits, False, weight if plan.steps[step, tables.IS_WEIGHTED] else plan.one,
                plan.limit, plan.is_maximum,
            )  # fmt: skip
        state.progress[tables.UPDATES] += behind - first
    return large


@njit_in_place
def count(plan, state, partition, edge, weight):
    """Count the histories that an edge completes."""
    span, first = state.spans[partition], partition * state.back.shape[0]
    found, back, is_maximum = state.found, state.back, plan.is_maximum
    for place in range(plan.count_spans[edge], plan.count_spans[edge + 1]):
        source = plan.counts[place, tables.SOURCE]
        is_weighted = plan.counts[place, tables.IS_WEIGHTED]
        if span[tables.LOW] < span[tables.MIDDLE]:
            add_products(
                found, is_weighted, state.cells, span[tables.LOW], back, source, first, is_maximum
            )
        else:
            add_total(
                found, is_weighted, back, source, first, first + 1, state.fits, False, is_maximum
            )
        if is_weighted:
            add_part(found, weight, plan.zero, is_maximum)


@njit_in_place
def clear(plan, cells, column, first, last):
    """Drop the histories of a column, that a forbidden event follows."""
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
            state.times[span[tables.HIGH]], state.marks[span[tables.HIGH]] = (
                events.times[row],
                flags,
            )
            if len(events.weights):
                state.weights[span[tables.HIGH]] = events.weights[row]
            span[tables.HIGH] += 1
