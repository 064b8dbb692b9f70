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
def append(found, node, side, outer, exact, begin, chosen, plan, state):
    """Write rows after the last one of a node: each of an outer row and one inner row.

    Parameters
    ----------
    found : int
        How many rows.
    node, side, outer : int
        The node, the side of the outer row (0 for the left child, 1 for the right one), and its
        number.
    exact : bool
        Whether the inner rows are those from ``begin`` on, else those in ``chosen``.
    begin : int
    chosen : int64 array, shape (BLOCK,)
    plan, state : Plan, NodeState
    """
    nodes, spans = plan.nodes, plan.spans
    x, y = nodes[node, LEFT + side], nodes[node, RIGHT - side]
    x_capacity, y_capacity = state.rows[x, CAPACITY], state.rows[y, CAPACITY]
    x_ints, y_ints = state.rows[x, INT_OFFSET] + outer, state.rows[y, INT_OFFSET]
    capacity = state.rows[node, CAPACITY]
    base = state.rows[node, INT_OFFSET] + state.rows[node, END]

    earliest = state.ints[x_ints + nodes[x, EARLIEST] * x_capacity]
    target = base + nodes[node, EARLIEST] * capacity
    column = state.ints[target : target + found]
    _gather(state.ints, y_ints + nodes[y, EARLIEST] * y_capacity, exact, begin, chosen, column)
    for row in range(found):
        column[row] = min(earliest, column[row])
    latest = state.ints[x_ints + nodes[x, LATEST] * x_capacity]
    target = base + nodes[node, LATEST] * capacity
    column = state.ints[target : target + found]
    _gather(state.ints, y_ints + nodes[y, LATEST] * y_capacity, exact, begin, chosen, column)
    for row in range(found):
        column[row] = max(latest, column[row])

    for rule in range(spans[node, COPY_INT], spans[node, COPY_INT + 1]):
        target = base + plan.rules[rule, 2] * capacity
        column = state.ints[target : target + found]
        copy_ints(rule, node, side, outer, exact, begin, chosen, plan, state, column)
    base = state.rows[node, FLOAT_OFFSET] + state.rows[node, END]
    for rule in range(spans[node, COPY_FLOAT], spans[node, COPY_FLOAT + 1]):
        target = base + plan.rules[rule, 2] * capacity
        values = state.floats[target : target + found]
        if plan.rules[rule, 0] == side:
            values[:] = state.floats[
                state.rows[x, FLOAT_OFFSET] + plan.rules[rule, 1] * x_capacity + outer
            ]
        else:
            source = state.rows[y, FLOAT_OFFSET] + plan.rules[rule, 1] * y_capacity
            _gather(state.floats, source, exact, begin, chosen, values)


@njit_in_place
def copy_ints(rule, node, side, outer, exact, begin, chosen, plan, state, column):
    """Fill a column as a rule says: from the outer row, or from the inner ones.

    Parameters
    ----------
    rule : int
        Number of a rule of the kind ``COPY_INT``.
    node, side, outer, exact, begin, chosen
        As for :func:`append`.
    plan, state : Plan, NodeState
    column : int64 array, shape (rows,)
        Written in place.
    """
    copied = plan.rules[rule, 1]
    if plan.rules[rule, 0] == side:
        x = plan.nodes[node, LEFT + side]
        column[:] = state.ints[state.rows[x, INT_OFFSET] + copied * state.rows[x, CAPACITY] + outer]
    else:
        y = plan.nodes[node, RIGHT - side]
        source = state.rows[y, INT_OFFSET] + copied * state.rows[y, CAPACITY]
        _gather(state.ints, source, exact, begin, chosen, column)


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
def spans_of_fresh(node, plan, state):
    """The sum over a node's fresh rows of latest minus earliest timestamp.

    Parameters
    ----------
    node : int
    plan, state : Plan, NodeState
    """
    capacity, fresh = state.rows[node, CAPACITY], state.rows[node, END] - state.rows[node, FRESH]
    base = state.rows[node, INT_OFFSET] + state.rows[node, FRESH]
    first = base + plan.nodes[node, EARLIEST] * capacity
    last = base + plan.nodes[node, LATEST] * capacity
    earliest, latest = state.ints[first : first + fresh], state.ints[last : last + fresh]
    total = 0
    for row in range(fresh):
        total += latest[row] - earliest[row]
    return total


@njit_in_place
def move_row(node, source, target, plan, state):
    """Overwrite row ``target`` of a node with row ``source``.

    Parameters
    ----------
    node, source, target : int
    plan, state : Plan, NodeState
    """
    if source == target:
        return
    capacity = state.rows[node, CAPACITY]
    for column in range(plan.nodes[node, INTS]):
        base = state.rows[node, INT_OFFSET] + column * capacity
        state.ints[base + target] = state.ints[base + source]
    for column in range(plan.nodes[node, FLOATS]):
        base = state.rows[node, FLOAT_OFFSET] + column * capacity
        state.floats[base + target] = state.floats[base + source]


@njit_in_place
def swap_rows(node, one, other, plan, state):
    """Swap two rows of a node.

    Parameters
    ----------
    node, one, other : int
    plan, state : Plan, NodeState
    """
    if one == other:
        return
    capacity = state.rows[node, CAPACITY]
    for column in range(plan.nodes[node, INTS]):
        base = state.rows[node, INT_OFFSET] + column * capacity
        held = state.ints[base + one]
        state.ints[base + one] = state.ints[base + other]
        state.ints[base + other] = held
    for column in range(plan.nodes[node, FLOATS]):
        base = state.rows[node, FLOAT_OFFSET] + column * capacity
        value = state.floats[base + one]
        state.floats[base + one] = state.floats[base + other]
        state.floats[base + other] = value
