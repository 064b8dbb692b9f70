"""Appending, moving and swapping rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.kernels.jit import njit_in_place

# HOW: one row for all, successive rows, or listed ones.
ONE, SUCCESSIVE, LISTED = range(3)


class Chosen(NamedTuple):
    """The row of a child that each of some joined rows has."""

    how: int
    first: int  #: that row, the first one, or the row that the listed ones are counted from
    listed: np.ndarray  #: int64


@njit_in_place
def append(found, node, side, outer, inner, plan, state):
    """Append joined rows to a node.

    ``found``: number of rows. ``outer``, ``inner``: which rows of the child on ``side``, and of the other
    child, they have, as :class:`Chosen`.
    """
    nodes, ints = plan.nodes, state.ints
    x, y = nodes[node, tables.LEFT + side], nodes[node, tables.RIGHT - side]
    end = state.rows[node, tables.END]
    for which in (tables.EARLIEST, tables.LATEST):
        target = tables.int_column(node, nodes[node, which], state) + end
        column = ints[target : target + found]
        _gather(ints, tables.int_column(y, nodes[y, which], state), inner, column)
        mine = tables.int_column(x, nodes[x, which], state) + outer.first
        time = ints[mine]
        for row in range(found):
            if outer.how == LISTED:
                time = ints[mine + outer.listed[row]]
            is_mine = time < column[row] if which == tables.EARLIEST else time > column[row]
            column[row] = time if is_mine else column[row]
    for rule in tables.rules_of(node, tables.COPY_INT, plan):
        target = tables.int_column(node, plan.rules[rule, 2], state) + end
        copy_ints(rule, node, side, outer, inner, plan, state, ints[target : target + found])
    for rule in tables.rules_of(node, tables.COPY_FLOAT, plan):
        target = tables.float_column(node, plan.rules[rule, 2], state) + end
        values = state.floats[target : target + found]
        if plan.rules[rule, 0] == side:
            source = tables.float_column(x, plan.rules[rule, 1], state)
            _gather(state.floats, source, outer, values)
        else:
            source = tables.float_column(y, plan.rules[rule, 1], state)
            _gather(state.floats, source, inner, values)


@njit_in_place
def copy_ints(rule, node, side, outer, inner, plan, state, column):
    """Fill a column of joined rows by a copy rule; other arguments as for :func:`append`.

    ``rule``: number of a rule of the kind ``COPY_INT``. ``column``: int64 (rows,), written in
    place.
    """
    copied = plan.rules[rule, 1]
    if plan.rules[rule, 0] == side:
        x = plan.nodes[node, tables.LEFT + side]
        _gather(state.ints, tables.int_column(x, copied, state), outer, column)
    else:
        y = plan.nodes[node, tables.RIGHT - side]
        _gather(state.ints, tables.int_column(y, copied, state), inner, column)


@njit_in_place
def _gather(arena, source, chosen, column):
    """Fill ``column`` from chosen rows of the one that starts at ``source``."""
    first, listed = source + chosen.first, chosen.listed
    if chosen.how == ONE:
        column[:] = arena[first]
    elif chosen.how == SUCCESSIVE:
        for row in range(len(column)):
            column[row] = arena[first + row]
    else:
        for row in range(len(column)):
            column[row] = arena[first + listed[row]]


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
