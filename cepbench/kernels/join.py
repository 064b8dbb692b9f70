"""One inner node of a plan: joins the rows of its two children as they come into being.

Every pair of rows meets once, in the step in which the later of the two came into being. What has
to meet is a rectangle of rows of one child, the *outer* ones, and rows of the other, the *inner*
ones. For each outer row, time conditions on a sorted column become a range of inner rows; what
remains is tested column by column, block by block.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.buffers import has_room
from cepbench.kernels.filters import (
    BLOCK,
    FLIPPED,
    keep_between,
    keep_compared,
    keep_other,
    run_program,
)
from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.rows import append, copy_ints
from cepbench.kernels.tables import (
    BOUNDS_LEFT,
    CAPACITY,
    COMPARE,
    COMPARED,
    COPY_INT,
    CREATED,
    DISTINCT,
    END,
    FLOAT_OFFSET,
    FRESH,
    INT_OFFSET,
    LATEST,
    LEFT,
    LEFT_DRIVES,
    LOWER,
    NO_ROOM,
    OK,
    PROGRAM,
    RIGHT,
    RIGHT_DRIVES,
    SORTED,
    START,
    TESTED_LEFT,
    TOO_MANY,
)

_LOWEST = np.iinfo(np.int64).min
_HIGHEST = np.iinfo(np.int64).max

#: Outer rows whose bounds are found together.
OUTER_BLOCK = 256

#: What an outer row costs, in inner rows tested: rectangles are joined along their shorter side.
_OUTER_COST = 32


# A rectangle of pairs to be joined, and how far it has come, as an integer array.
TURN = 0  # whose fresh rows drive: 0 the left child's, 1 the right one's; -1 for none yet
FOUND = 1  # how many rows there was no room for
_SIDE = 2  # of the outer rows: 0 the left child, 1 the right one
OUTER = 3  # the next outer row
_OUTER_LAST = 4
_INNER_FIRST = 5
_INNER_LAST = 6
_INNER = 7  # the next inner row of that outer row, or -1 for the first in its range


@njit_in_place
def has_drivers(node, plan, state):
    """Whether any row has come into being that may drive the join at ``node``."""
    for side in range(2):
        child = plan.nodes[node, LEFT + side]
        if plan.nodes[node, LEFT_DRIVES + side] == 1 and state[child, FRESH] < state[child, END]:
            return True
    return False


@njit_in_place
def join_node(node, counting, limit, plan, state, counts, ints, floats, scratch, matches):
    """Join the fresh rows of both children of an inner node, into rows of its own.

    Rows of the root are matches: they go to ``matches``, or are just counted. Where there is no
    room for more rows, it stops, and goes on from there when called again.

    Parameters
    ----------
    node : int
    counting : bool
        Whether to count rows instead of storing them; only at the root.
    limit : int
        How many rows may be stored.
    plan : Plan
    state, counts : int64 arrays
    ints, floats : 1-d arrays
        The arenas.
    scratch : Scratch
        ``scratch.rectangle[TURN]`` is -1 for a node not begun, and again for one that is done.
    matches : int64 array, shape (columns of the root, capacity)

    Returns
    -------
    outcome : int
        ``OK``, ``TOO_MANY`` or ``NO_ROOM`` (for ``scratch.rectangle[FOUND]`` rows).
    """
    rectangle = scratch.rectangle
    is_root = node == len(plan.nodes) - 1 and not plan.stored
    if rectangle[TURN] < 0:
        state[node, FRESH] = state[node, END]
        _lay_out(node, 0, is_root, plan, state, rectangle)
    while True:
        if rectangle[OUTER] < rectangle[_OUTER_LAST]:
            outcome = _join_rectangle(
                node, counting, limit, plan, state, counts, ints, floats, scratch, matches
            )
            if outcome != OK:
                return outcome
        if rectangle[TURN] == 1:
            break
        _lay_out(node, 1, is_root, plan, state, rectangle)
    rectangle[TURN] = -1
    return OK


@njit_in_place
def _lay_out(node, side, is_root, plan, state, rectangle):
    """What the fresh rows of one side have to meet; maybe no rows at all."""
    nodes = plan.nodes
    x, y = nodes[node, LEFT + side], nodes[node, RIGHT - side]
    both_drive = nodes[node, LEFT_DRIVES] + nodes[node, RIGHT_DRIVES] == 2
    first, last = state[x, FRESH], state[x, END]
    inner_first, inner_last = state[y, START], state[y, END]
    rectangle[TURN] = side
    if both_drive and side == 1:
        # Two fresh rows have met when it was the left side's turn.
        inner_last = state[y, FRESH]
    if nodes[node, LEFT_DRIVES + side] == 0 or inner_first == inner_last:
        last = first
    rectangle[OUTER] = rectangle[_OUTER_LAST] = first
    if first == last:
        return
    # Only if the drivers are taken one after the other, rows come out sorted by time.
    if (is_root or both_drive) and _better_turned(
        node, side, last - first, inner_last - inner_first, plan
    ):
        side = 1 - side
        first, last, inner_first, inner_last = inner_first, inner_last, first, last
    rectangle[_SIDE] = side
    rectangle[OUTER], rectangle[_OUTER_LAST] = first, last
    rectangle[_INNER_FIRST], rectangle[_INNER_LAST] = inner_first, inner_last
    rectangle[_INNER] = -1


@njit_in_place
def _better_turned(node, side, outer, inner, plan):
    """Whether to take the inner rows of a rectangle as the outer ones."""
    inner_cost = 0 if is_exact(node, side, plan) else inner
    outer_cost = 0 if is_exact(node, 1 - side, plan) else outer
    return inner * (_OUTER_COST + outer_cost) < outer * (_OUTER_COST + inner_cost)


@njit_in_place
def is_exact(node, side, plan):
    """Whether all inner rows in the range join an outer row of ``side``: none needs a test."""
    spans = plan.spans
    tested = spans[node, TESTED_LEFT + side + 1] - spans[node, TESTED_LEFT + side]
    return tested == 0 and spans[node, DISTINCT] == spans[node, PROGRAM + 1]


@njit_in_place
def _join_rectangle(
    node, counting, limit, plan, state, counts, ints, floats, scratch, matches
):  # fmt: skip
    """Join the rows of ``scratch.rectangle``, until there is no room for more."""
    rectangle, mask, chosen = scratch.rectangle, scratch.mask, scratch.chosen
    starts, stops = scratch.starts, scratch.stops
    is_root = node == len(plan.nodes) - 1 and not plan.stored
    side = rectangle[_SIDE]
    exact = is_exact(node, side, plan)
    resumed = rectangle[_INNER]
    for first in range(rectangle[OUTER], rectangle[_OUTER_LAST], OUTER_BLOCK):
        outers = min(OUTER_BLOCK, rectangle[_OUTER_LAST] - first)
        set_bounds(node, side, first, outers, plan, state, ints, scratch.low, scratch.high)
        find_ranges(node, side, outers, plan, state, ints, scratch)
        if exact and counting:
            counts[node, CREATED] += total_length(starts, stops, outers)
            continue
        for row in range(outers):
            outer, stop = first + row, stops[row]
            for begin in range(starts[row] if resumed < 0 else resumed, stop, BLOCK):
                size = min(BLOCK, stop - begin)
                if not exact:
                    test(node, side, outer, row, begin, size, plan, state, ints, floats, scratch)
                if counting:
                    counts[node, CREATED] += count(mask, size)
                    counts[node, COMPARED] += size
                    continue
                found = choose(exact, begin, size, mask, chosen)
                end = state[node, END]
                if end - state[node, START] + found > limit:
                    return TOO_MANY
                if is_root:
                    has_space = end + found <= matches.shape[1]
                else:
                    has_space = has_room(node, found, plan.nodes, state, ints, floats)
                    end = state[node, END]
                if not has_space:
                    rectangle[OUTER], rectangle[_INNER], rectangle[FOUND] = outer, begin, found
                    return NO_ROOM
                if is_root:
                    for rule in range(plan.spans[node, COPY_INT], plan.spans[node, COPY_INT + 1]):
                        column = matches[plan.rules[rule, 2], end : end + found]
                        copy_ints(rule, node, side, outer, chosen, plan, state, ints, column)
                elif found > 0:
                    append(found, node, side, outer, chosen, plan, state, ints, floats)
                state[node, END] = end + found
                counts[node, CREATED] += found
                counts[node, COMPARED] += 0 if exact else size
            resumed = -1
    return OK


@njit_in_place
def set_bounds(node, side, first, outers, plan, state, ints, low, high):
    """What outer rows say about timestamps of inner rows: ``low[column] <= t < high[column]``.

    For ``outers`` rows from ``first`` on.
    """
    x = plan.nodes[node, LEFT + side]
    rules = range(plan.spans[node, BOUNDS_LEFT + side], plan.spans[node, BOUNDS_LEFT + side + 1])
    for rule in rules:
        low[plan.rules[rule, 1], :outers] = _LOWEST
        high[plan.rules[rule, 1], :outers] = _HIGHEST
    for rule in rules:
        bounded, shift = plan.rules[rule, 1], plan.rules[rule, 3]
        begin = state[x, INT_OFFSET] + plan.rules[rule, 2] * state[x, CAPACITY] + first
        column = ints[begin : begin + outers]
        lowest, highest = low[bounded, :outers], high[bounded, :outers]
        if plan.rules[rule, 0] == LOWER:
            for row in range(outers):
                lowest[row] = max(lowest[row], column[row] + shift)
        else:
            for row in range(outers):
                highest[row] = min(highest[row], column[row] + shift)


@njit_in_place
def inner_range(rectangle, first, last):
    """Let :func:`find_ranges` look at the inner rows from ``first`` to before ``last``."""
    rectangle[_INNER_FIRST], rectangle[_INNER_LAST] = first, last


@njit_in_place
def find_ranges(node, side, outers, plan, state, ints, scratch):
    """For each outer row the inner rows that may join it, as far as they are sorted by time."""
    starts, stops = scratch.starts, scratch.stops
    first, last = scratch.rectangle[_INNER_FIRST], scratch.rectangle[_INNER_LAST]
    y = plan.nodes[node, RIGHT - side]
    if plan.nodes[y, SORTED] == 0:
        starts[:outers] = first
        stops[:outers] = last
        return
    latest = plan.nodes[y, LATEST]
    base = state[y, INT_OFFSET] + latest * state[y, CAPACITY]
    column = ints[base + first : base + last]
    first_at_least(column, first, scratch.low[latest], starts, outers)
    first_at_least(column, first, scratch.high[latest], stops, outers)


@njit_in_place
def first_at_least(column, offset, values, found, count):
    """For each of ``count`` values the first row of a sorted column that is not smaller.

    ``offset`` is added to the numbers of rows that are ``found``; it is ``offset + len(column)``
    where all are smaller. Quick where values that follow each other are of about the same size.
    """
    low, high = 0, len(column)
    while low < high:
        middle = (low + high) // 2
        if column[middle] >= values[0]:
            high = middle
        else:
            low = middle + 1
    row = low
    for number in range(count):
        value = values[number]
        while row > 0 and column[row - 1] >= value:
            row -= 1
        while row < len(column) and column[row] < value:
            row += 1
        found[number] = row + offset


@njit_in_place
def total_length(starts, stops, outers):
    """How many rows lie in all ranges together."""
    total = 0
    for row in range(outers):
        total += max(0, stops[row] - starts[row])
    return total


@njit_in_place
def test(node, side, outer, row, begin, size, plan, state, ints, floats, scratch):
    """Leave in ``scratch.mask`` which of ``size`` inner rows from ``begin`` on join.

    ``row`` is the outer row's place in its block.
    """
    mask = scratch.mask[:size]
    rules, spans = plan.rules, plan.spans
    x, y = plan.nodes[node, LEFT + side], plan.nodes[node, RIGHT - side]
    x_capacity, y_capacity = state[x, CAPACITY], state[y, CAPACITY]
    x_ints, y_ints = state[x, INT_OFFSET] + outer, state[y, INT_OFFSET] + begin
    x_floats, y_floats = state[x, FLOAT_OFFSET] + outer, state[y, FLOAT_OFFSET] + begin
    mask[:] = 1
    for rule in range(spans[node, TESTED_LEFT + side], spans[node, TESTED_LEFT + side + 1]):
        column = rules[rule, 0]
        first = y_ints + column * y_capacity
        low, high = scratch.low[column, row], scratch.high[column, row]
        keep_between(mask, ints[first : first + size], low, high)
    for rule in range(spans[node, DISTINCT], spans[node, DISTINCT + 1]):
        mine, its = rules[rule, side], rules[rule, 1 - side]
        first = y_ints + its * y_capacity
        keep_other(mask, ints[first : first + size], ints[x_ints + mine * x_capacity])
    for rule in range(spans[node, COMPARE], spans[node, COMPARE + 1]):
        mine, its, operator = rules[rule, side], rules[rule, 1 - side], rules[rule, 2]
        if side == 1:
            operator = FLIPPED[operator]
        first = y_floats + its * y_capacity
        value = floats[x_floats + mine * x_capacity]
        keep_compared(mask, operator, value, floats[first : first + size])
    if spans[node, PROGRAM] < spans[node, PROGRAM + 1]:
        run_program(
            mask, plan, spans[node, PROGRAM], spans[node, PROGRAM + 1], scratch.stack, side == 0,
            floats, x_floats, x_capacity, y_floats, y_capacity,
        )  # fmt: skip


@njit_in_place
def count(mask, size):
    total = 0
    for row in range(size):
        total += int(mask[row])
    return total


@njit_in_place
def choose(exact, begin, size, mask, chosen):
    """Put the rows that join into ``chosen``; gives how many they are."""
    if exact:
        for row in range(size):
            chosen[row] = begin + row
        return size
    found = 0
    for row in range(size):
        # Always written, kept only if it joins: no branch to mispredict.
        chosen[found] = begin + row
        found += int(mask[row])
    return found
