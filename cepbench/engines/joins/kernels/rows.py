"""Appending, moving and swapping rows."""

from __future__ import annotations

from cepbench.engines.joins.kernels import tables
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def append(found, node, side, outer, exact, begin, chosen, plan, state):
    """Append the joins of an outer row with inner rows to a node.

    ``found``: number of rows. ``exact``: whether the inner rows are consecutive from ``begin``;
    otherwise they are in ``chosen``. ``chosen``: int64 (BLOCK,).
    """
    nodes = plan.nodes
    x, y = nodes[node, tables.LEFT + side], nodes[node, tables.RIGHT - side]
    end = state.rows[node, tables.END]

    earliest = state.ints[tables.int_column(x, nodes[x, tables.EARLIEST], state) + outer]
    target = tables.int_column(node, nodes[node, tables.EARLIEST], state) + end
    column = state.ints[target : target + found]
    source = tables.int_column(y, nodes[y, tables.EARLIEST], state)
    _gather(state.ints, source, exact, begin, chosen, column)
    for row in range(found):
        column[row] = min(earliest, column[row])
    latest = state.ints[tables.int_column(x, nodes[x, tables.LATEST], state) + outer]
    target = tables.int_column(node, nodes[node, tables.LATEST], state) + end
    column = state.ints[target : target + found]
    _gather(
        state.ints,
        tables.int_column(y, nodes[y, tables.LATEST], state),
        exact,
        begin,
        chosen,
        column,
    )
    for row in range(found):
        column[row] = max(latest, column[row])

    for rule in tables.rules_of(node, tables.COPY_INT, plan):
        target = tables.int_column(node, plan.rules[rule, 2], state) + end
        column = state.ints[target : target + found]
        copy_ints(rule, node, side, outer, exact, begin, chosen, plan, state, column)
    for rule in tables.rules_of(node, tables.COPY_FLOAT, plan):
        target = tables.float_column(node, plan.rules[rule, 2], state) + end
        values = state.floats[target : target + found]
        if plan.rules[rule, 0] == side:
            values[:] = state.floats[tables.float_column(x, plan.rules[rule, 1], state) + outer]
        else:
            source = tables.float_column(y, plan.rules[rule, 1], state)
            _gather(state.floats, source, exact, begin, chosen, values)


@njit_in_place
def copy_ints(rule, node, side, outer, exact, begin, chosen, plan, state, column):
    """Fill a column by a copy rule: from the outer row, or from the inner rows.

    ``rule``: number of a rule of the kind ``COPY_INT``. ``column``: int64 (rows,), written in
    place.
    """
    copied = plan.rules[rule, 1]
    if plan.rules[rule, 0] == side:
        x = plan.nodes[node, tables.LEFT + side]
        column[:] = state.ints[tables.int_column(x, copied, state) + outer]
    else:
        y = plan.nodes[node, tables.RIGHT - side]
        source = tables.int_column(y, copied, state)
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
def lifetimes_of_fresh(node, plan, state):
    """The sum of the times for which a node's fresh rows are stored; see :mod:`cepbench.kernels.counts`."""
    fresh = state.rows[node, tables.END] - state.rows[node, tables.FRESH]
    first = (
        tables.int_column(node, plan.nodes[node, tables.EARLIEST], state)
        + state.rows[node, tables.FRESH]
    )
    last = (
        tables.int_column(node, plan.nodes[node, tables.LATEST], state)
        + state.rows[node, tables.FRESH]
    )
    earliest, latest = state.ints[first : first + fresh], state.ints[last : last + fresh]
    total = 0
    for row in range(fresh):
        total += (plan.window - latest[row] + earliest[row]) >> plan.lifetime_shift
    return total


@njit_in_place
def move_row(node, source, target, plan, state):
    """Overwrite row ``target`` of a node with row ``source``."""
    if source == target:
        return
    for column in range(plan.nodes[node, tables.INTS]):
        base = tables.int_column(node, column, state)
        state.ints[base + target] = state.ints[base + source]
    for column in range(plan.nodes[node, tables.FLOATS]):
        base = tables.float_column(node, column, state)
        state.floats[base + target] = state.floats[base + source]


@njit_in_place
def swap_rows(node, one, other, plan, state):
    """Swap two rows of a node."""
    if one == other:
        return
    for column in range(plan.nodes[node, tables.INTS]):
        base = tables.int_column(node, column, state)
        held = state.ints[base + one]
        state.ints[base + one] = state.ints[base + other]
        state.ints[base + other] = held
    for column in range(plan.nodes[node, tables.FLOATS]):
        base = tables.float_column(node, column, state)
        value = state.floats[base + one]
        state.floats[base + one] = state.floats[base + other]
        state.floats[base + other] = value
