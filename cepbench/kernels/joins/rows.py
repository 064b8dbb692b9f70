"""Rows: those that a join makes of an outer row and the inner rows chosen for it; moving them."""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.joins.tables import (
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
def append(found, node, side, outer, exact, begin, chosen, plan, state, ints, floats):
    """Write ``found`` rows after the last one of ``node``: a row ``outer`` with inner rows.

    ``side`` is the side of the outer row, 0 for the left child of ``node``, 1 for the right one.
    The inner rows are those in ``chosen``, or if they are ``exact`` those from ``begin`` on.
    """
    nodes, spans = plan.nodes, plan.spans
    x, y = nodes[node, LEFT + side], nodes[node, RIGHT - side]
    x_capacity, y_capacity = state[x, CAPACITY], state[y, CAPACITY]
    x_ints, y_ints = state[x, INT_OFFSET] + outer, state[y, INT_OFFSET]
    capacity = state[node, CAPACITY]
    base = state[node, INT_OFFSET] + state[node, END]

    earliest = ints[x_ints + nodes[x, EARLIEST] * x_capacity]
    target = base + nodes[node, EARLIEST] * capacity
    column = ints[target : target + found]
    _gather(ints, y_ints + nodes[y, EARLIEST] * y_capacity, exact, begin, chosen, column)
    for row in range(found):
        column[row] = min(earliest, column[row])
    latest = ints[x_ints + nodes[x, LATEST] * x_capacity]
    target = base + nodes[node, LATEST] * capacity
    column = ints[target : target + found]
    _gather(ints, y_ints + nodes[y, LATEST] * y_capacity, exact, begin, chosen, column)
    for row in range(found):
        column[row] = max(latest, column[row])

    for rule in range(spans[node, COPY_INT], spans[node, COPY_INT + 1]):
        target = base + plan.rules[rule, 2] * capacity
        column = ints[target : target + found]
        copy_ints(rule, node, side, outer, exact, begin, chosen, plan, state, ints, column)
    base = state[node, FLOAT_OFFSET] + state[node, END]
    for rule in range(spans[node, COPY_FLOAT], spans[node, COPY_FLOAT + 1]):
        target = base + plan.rules[rule, 2] * capacity
        values = floats[target : target + found]
        if plan.rules[rule, 0] == side:
            values[:] = floats[state[x, FLOAT_OFFSET] + plan.rules[rule, 1] * x_capacity + outer]
        else:
            source = state[y, FLOAT_OFFSET] + plan.rules[rule, 1] * y_capacity
            _gather(floats, source, exact, begin, chosen, values)


@njit_in_place
def copy_ints(rule, node, side, outer, exact, begin, chosen, plan, state, ints, column):
    """Fill ``column`` as the rule says: from the outer row, or from the inner ones."""
    copied = plan.rules[rule, 1]
    if plan.rules[rule, 0] == side:
        x = plan.nodes[node, LEFT + side]
        column[:] = ints[state[x, INT_OFFSET] + copied * state[x, CAPACITY] + outer]
    else:
        y = plan.nodes[node, RIGHT - side]
        source = state[y, INT_OFFSET] + copied * state[y, CAPACITY]
        _gather(ints, source, exact, begin, chosen, column)


@njit_in_place
def _gather(arena, source, exact, begin, chosen, column):
    """Fill ``column`` from the one that starts at ``source``."""
    if exact:
        for row in range(len(column)):
            column[row] = arena[source + begin + row]
    else:
        for row in range(len(column)):
            column[row] = arena[source + chosen[row]]


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
