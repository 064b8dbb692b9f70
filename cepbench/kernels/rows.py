"""Rows: those that a join makes of an outer row and the inner rows chosen for it; moving them."""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.tables import (
    CAPACITY,
    COPY_FLOAT,
    COPY_INT,
    EARLIEST,
    END,
    FLOAT_OFFSET,
    FLOATS,
    FRESH,
    INT_OFFSET,
    INTS,
    LATEST,
    LEFT,
    RIGHT,
)


@njit_in_place
def append(found, node, side, outer, chosen, plan, state, ints, floats):
    """Write ``found`` rows after the last one of ``node``: a row ``outer`` with rows ``chosen``.

    ``side`` is the side of the outer row, 0 for the left child of ``node``, 1 for the right one.
    """
    nodes, spans = plan.nodes, plan.spans
    x, y = nodes[node, LEFT + side], nodes[node, RIGHT - side]
    x_capacity, y_capacity = state[x, CAPACITY], state[y, CAPACITY]
    x_ints, y_ints = state[x, INT_OFFSET] + outer, state[y, INT_OFFSET]
    capacity = state[node, CAPACITY]
    base = state[node, INT_OFFSET] + state[node, END]

    earliest = ints[x_ints + nodes[x, EARLIEST] * x_capacity]
    begin = base + nodes[node, EARLIEST] * capacity
    target = ints[begin : begin + found]
    source = y_ints + nodes[y, EARLIEST] * y_capacity
    for row in range(found):
        target[row] = min(earliest, ints[source + chosen[row]])
    latest = ints[x_ints + nodes[x, LATEST] * x_capacity]
    begin = base + nodes[node, LATEST] * capacity
    target = ints[begin : begin + found]
    source = y_ints + nodes[y, LATEST] * y_capacity
    for row in range(found):
        target[row] = max(latest, ints[source + chosen[row]])

    for rule in range(spans[node, COPY_INT], spans[node, COPY_INT + 1]):
        begin = base + plan.rules[rule, 2] * capacity
        copy_ints(rule, node, side, outer, chosen, plan, state, ints, ints[begin : begin + found])
    base = state[node, FLOAT_OFFSET] + state[node, END]
    for rule in range(spans[node, COPY_FLOAT], spans[node, COPY_FLOAT + 1]):
        begin = base + plan.rules[rule, 2] * capacity
        column = floats[begin : begin + found]
        if plan.rules[rule, 0] == side:
            column[:] = floats[state[x, FLOAT_OFFSET] + plan.rules[rule, 1] * x_capacity + outer]
        else:
            source = state[y, FLOAT_OFFSET] + plan.rules[rule, 1] * y_capacity
            for row in range(found):
                column[row] = floats[source + chosen[row]]


@njit_in_place
def copy_ints(rule, node, side, outer, chosen, plan, state, ints, column):
    """Fill ``column`` as the rule says: from the outer row, or from those chosen."""
    copied = plan.rules[rule, 1]
    if plan.rules[rule, 0] == side:
        x = plan.nodes[node, LEFT + side]
        column[:] = ints[state[x, INT_OFFSET] + copied * state[x, CAPACITY] + outer]
    else:
        y = plan.nodes[node, RIGHT - side]
        source = state[y, INT_OFFSET] + copied * state[y, CAPACITY]
        for row in range(len(column)):
            column[row] = ints[source + chosen[row]]


@njit_in_place
def spans_of_fresh(node, plan, state, ints):
    """The sum over fresh rows of latest minus earliest timestamp."""
    capacity, fresh = state[node, CAPACITY], state[node, END] - state[node, FRESH]
    base = state[node, INT_OFFSET] + state[node, FRESH]
    first = base + plan.nodes[node, EARLIEST] * capacity
    last = base + plan.nodes[node, LATEST] * capacity
    earliest, latest = ints[first : first + fresh], ints[last : last + fresh]
    total = 0
    for row in range(fresh):
        total += latest[row] - earliest[row]
    return total


@njit_in_place
def move_row(node, source, target, plan, state, ints, floats):
    """Write row ``source`` over row ``target``."""
    if source == target:
        return
    capacity = state[node, CAPACITY]
    for column in range(plan.nodes[node, INTS]):
        base = state[node, INT_OFFSET] + column * capacity
        ints[base + target] = ints[base + source]
    for column in range(plan.nodes[node, FLOATS]):
        base = state[node, FLOAT_OFFSET] + column * capacity
        floats[base + target] = floats[base + source]


@njit_in_place
def swap_rows(node, one, other, plan, state, ints, floats):
    """Let two rows change places."""
    if one == other:
        return
    capacity = state[node, CAPACITY]
    for column in range(plan.nodes[node, INTS]):
        base = state[node, INT_OFFSET] + column * capacity
        held = ints[base + one]
        ints[base + one] = ints[base + other]
        ints[base + other] = held
    for column in range(plan.nodes[node, FLOATS]):
        base = state[node, FLOAT_OFFSET] + column * capacity
        value = floats[base + one]
        floats[base + one] = floats[base + other]
        floats[base + other] = value
