"""Events of the middle item from which histories no longer go on, by what is forbidden behind them."""

from __future__ import annotations

from cepbench.engines.sequence_counts.kernels.order_statistics.tables import (
    CLOSED,
    HEAP_SIZE,
    MIDDLE,
    WAITING,
    is_open_row,
    weight_of,
)
from cepbench.engines.sequence_counts.kernels.order_statistics.trees import change_leaf, marks_of
from cepbench.kernels.instructions import GREATER, GREATER_EQUAL, compares
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def close_row(plan, table, ranks, trees, bounds, row):
    """Let no histories go on from an event of the middle item."""
    passes, leaves = plan.passes, trees.leaves
    rank, weight = ranks[plan.places[1], row], weight_of(plan, table, MIDDLE, row)
    number, is_waiting = weight * table.numbers[0, row], row >= bounds[WAITING]
    if is_waiting:
        change_leaf(passes, 0, trees.waiting, leaves, rank, 0, 0, -weight, -number)
    else:
        change_leaf(passes, 0, trees.ending, leaves, rank, 0, 0, -weight, -number)
    if plan.goes_on:
        number = table.numbers[1, row]
        table.numbers[1, row] -= marks_of(passes, 1, trees.going_on, leaves, rank)
        if not is_waiting:
            change_leaf(passes, 1, trees.going_on, leaves, rank, 0, 0, -weight, -weight * number)
            if plan.closes:
                number = weight * table.numbers[1, row]
                change_leaf(passes, 1, trees.closed, leaves, rank, 0, 0, weight, number)


@njit_in_place
def close_by_value(plan, table, ranks, trees, bounds, row, low):
    """Let no histories go on from the events of the middle item that are compared with a forbidden one."""
    heap = trees.heap
    while bounds[HEAP_SIZE]:
        front = heap[0]
        if front >= low and is_open_row(table, bounds, front):
            if not closes_row(plan, table, row, front):
                return
            close_row(plan, table, ranks, trees, bounds, front)
            table.items[front] |= CLOSED
        # The last one takes its place, and sinks.
        bounds[HEAP_SIZE] -= 1
        size, place = bounds[HEAP_SIZE], 0
        sinking = heap[size]
        while 2 * place + 1 < size:
            child = 2 * place + 1
            if child + 1 < size and _is_before(plan, table, heap[child + 1], heap[child]):
                child += 1
            if not _is_before(plan, table, heap[child], sinking):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = sinking


@njit_in_place
def enter_heap(plan, table, trees, bounds, begin, end):
    """Add the open events of the middle item among some to the heap."""
    heap = trees.heap
    for row in range(begin, end):
        # A missing value is compared with none.
        value = table.values[plan.closed_value, row]
        if table.items[row] & MIDDLE and value == value and is_open_row(table, bounds, row):
            place = bounds[HEAP_SIZE]
            bounds[HEAP_SIZE] += 1
            while place and _is_before(plan, table, row, heap[(place - 1) // 2]):
                heap[place] = heap[(place - 1) // 2]
                place = (place - 1) // 2
            heap[place] = row


@njit_in_place
def _is_before(plan, table, one, two):
    """Whether an event of the middle item is closed by all that close another one, by its value."""
    values, column = table.values, plan.closed_value
    if plan.operator in (GREATER, GREATER_EQUAL):
        return values[column, one] < values[column, two]
    return values[column, one] > values[column, two]


@njit_in_place
def closes_row(plan, table, row, middle):
    """Whether a forbidden event is one behind an event of the middle item."""
    one, two = table.values[plan.closing_value, row], table.values[plan.closed_value, middle]
    return compares(plan.operator, one, two)
