"""One inner node of a plan: joins the rows of its two children as they come into being.

A *driver* is a row that has just come into being at one child. It is joined with the rows of the
other child, the *siblings*, that came into being before it; so every pair meets exactly once, when
its last event arrives, and the rows of the node come into being in order of arrival as well. Time
conditions on sorted columns become a range by binary search; what remains is tested block by
block.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.borrow import borrowed
from cepbench.kernels.buffers import make_room
from cepbench.kernels.filters import (
    BLOCK,
    FLIPPED,
    keep_between,
    keep_compared,
    keep_other,
    run_program,
)
from cepbench.kernels.jit import njit
from cepbench.kernels.tables import (
    AFTER,
    ARRIVAL,
    BOUNDS_LEFT,
    CAPACITY,
    COMPARE,
    COMPARED,
    COPY_FLOAT,
    COPY_INT,
    CREATED,
    DISTINCT,
    EARLIEST,
    END,
    FLOAT_OFFSET,
    FRESH,
    INT_OFFSET,
    LATEST,
    LEFT,
    LEFT_DRIVES,
    LIFETIME,
    OK,
    PROGRAM,
    RIGHT,
    START,
    TESTED_LEFT,
    TOO_MANY,
    WITHIN,
)

_LOWEST = np.iinfo(np.int64).min
_HIGHEST = np.iinfo(np.int64).max


@njit
def first_at_least(column, low, high, value):
    """The first index in [low, high) whose value is not smaller than ``value``, else ``high``."""
    while low < high:
        middle = (low + high) // 2
        if column[middle] >= value:
            high = middle
        else:
            low = middle + 1
    return low


@njit
def first_above(column, low, high, value):
    """The first index in [low, high) whose value is greater than ``value``, else ``high``."""
    while low < high:
        middle = (low + high) // 2
        if column[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@njit
def join_node(node, counting, limit, plan, state, counts, ints, floats, scratch, matches):
    """Join the fresh rows of both children of an inner node, into rows of its own.

    Rows of the root are matches: they go to ``matches``, or are just counted.

    Parameters
    ----------
    node : int
    counting : bool
        Whether to count rows instead of storing them; only at the root.
    limit : int
        How many rows may be stored.
    plan : Plan
    state, counts : int64 arrays
        Written in place.
    ints, floats : 1-d arrays
        The arenas.
    scratch : Scratch
    matches : int64 array, shape (columns of the root, capacity)

    Returns
    -------
    ints, floats, matches : arrays
        Maybe new ones.
    outcome : int
        ``OK`` or ``TOO_MANY``.
    """
    is_root = node == len(plan.nodes) - 1
    created = 0
    # The owners, ``ints`` and ``floats``, are returned and so outlive what is borrowed from them.
    its, fls = borrowed(ints), borrowed(floats)
    walk = scratch.walk
    start_walk(walk, node, plan, state)
    state[node, FRESH] = state[node, END]
    while next_driver(walk, node, plan, state, its):
        start, stop = narrow(walk, node, plan, state, its, scratch)
        if start >= stop:
            continue
        exact = is_exact(walk, node, plan)
        if not exact:
            counts[node, COMPARED] += stop - start
        elif counting:
            created += stop - start
            continue
        while start < stop:
            size = min(BLOCK, stop - start)
            found = choose(exact, start, size, walk, node, plan, state, its, fls, scratch)
            start += size
            if found == 0:
                continue
            created += found
            if counting:
                continue
            end = state[node, END]
            if end - state[node, START] + found > limit:
                return ints, floats, matches, TOO_MANY
            if is_root:
                matches = widened(matches, end, found)
                for rule in range(plan.spans[node, COPY_INT], plan.spans[node, COPY_INT + 1]):
                    column = matches[plan.rules[rule, 2], end : end + found]
                    copy_ints(rule, column, found, walk, plan, state, its, scratch)
            else:
                ints, floats = make_room(node, found, plan.nodes, state, ints, floats)
                its, fls = borrowed(ints), borrowed(floats)
                append(found, walk, node, plan, state, its, fls, scratch)
                end = state[node, END]
            state[node, END] = end + found
    counts[node, CREATED] += created
    if not is_root:
        counts[node, LIFETIME] += plan.window * created - spans_of_fresh(node, plan, state, its)
    return ints, floats, matches, OK


@njit
def widened(matches, end, more):
    """``matches`` with room for ``more`` columns after ``end``."""
    if end + more <= matches.shape[1]:
        return matches
    wider = np.empty((matches.shape[0], 2 * (end + more)), np.int64)
    for row in range(matches.shape[0]):
        for column in range(end):
            wider[row, column] = matches[row, column]
    return wider


# A walk over the drivers of one node, as an integer array.
_NEXT = 0  # next driver: left, right
_FROM = 2  # first sibling that may be within the window: left, right
_UNTIL = 4  # first sibling that did not come before the driver: left, right
_SIDE = 6  # side of the current driver: 0 left, 1 right
_DRIVER = 7  # its row
_X = 8  # its node
_Y = 9  # the node of its siblings


@njit
def has_drivers(node, plan, state):
    """Whether anything has come into being that may drive the join at ``node``."""
    for side in range(2):
        child = plan.nodes[node, LEFT + side]
        if plan.nodes[node, LEFT_DRIVES + side] == 1 and state[child, FRESH] < state[child, END]:
            return True
    return False


@njit
def start_walk(walk, node, plan, state):
    """Stand before the first fresh row of the children of ``node``."""
    for side in range(2):
        child = plan.nodes[node, LEFT + side]
        drives = plan.nodes[node, LEFT_DRIVES + side] == 1
        # A side that cannot hold the last event has no drivers, however fresh its rows.
        walk[_NEXT + side] = state[child, FRESH] if drives else state[child, END]
        walk[_FROM + side] = state[child, START]
        walk[_UNTIL + side] = state[child, FRESH]


@njit
def next_driver(walk, node, plan, state, ints):
    """Step to the next driver in order of arrival; False if there is none."""
    left, right = plan.nodes[node, LEFT], plan.nodes[node, RIGHT]
    has_left = walk[_NEXT] < state[left, END]
    has_right = walk[_NEXT + 1] < state[right, END]
    if has_left and has_right:
        mine = state[left, INT_OFFSET] + plan.nodes[left, ARRIVAL] * state[left, CAPACITY]
        its = state[right, INT_OFFSET] + plan.nodes[right, ARRIVAL] * state[right, CAPACITY]
        side = 0 if ints[mine + walk[_NEXT]] <= ints[its + walk[_NEXT + 1]] else 1
    elif has_left:
        side = 0
    elif has_right:
        side = 1
    else:
        return False
    walk[_SIDE] = side
    walk[_DRIVER] = walk[_NEXT + side]
    walk[_X] = left if side == 0 else right
    walk[_Y] = right if side == 0 else left
    walk[_NEXT + side] += 1
    if plan.nodes[node, LEFT_DRIVES + 1 - side] == 1:
        # Both sides drive: what the other side has driven so far came before this driver.
        walk[_UNTIL + side] = walk[_NEXT + side]
    return True


@njit
def narrow(walk, node, plan, state, ints, scratch):
    """The range of siblings that time allows on their sorted column; sets bounds for the rest."""
    x, y, driver, side = walk[_X], walk[_Y], walk[_DRIVER], walk[_SIDE]
    x_capacity, x_ints = state[x, CAPACITY], state[x, INT_OFFSET]
    latest = ints[x_ints + plan.nodes[x, LATEST] * x_capacity + driver]
    sorted_column = plan.nodes[y, LATEST]
    begin = state[y, INT_OFFSET] + sorted_column * state[y, CAPACITY]
    column = ints[begin : begin + state[y, END]]

    # Drivers come in order of time, so both ends of the range only ever move forward.
    start, stop = walk[_FROM + 1 - side], walk[_UNTIL + 1 - side]
    oldest = latest - plan.window
    while start < len(column) and column[start] < oldest:
        start += 1
    walk[_FROM + 1 - side] = start
    if plan.nodes[node, LEFT_DRIVES + 1 - side] == 0:
        # Rows of an earlier batch may share the driver's timestamp.
        while stop > start and column[stop - 1] >= latest:
            stop -= 1
        while stop < len(column) and column[stop] < latest:
            stop += 1
        walk[_UNTIL + 1 - side] = stop

    low, high = scratch.low, scratch.high
    first, last = plan.spans[node, BOUNDS_LEFT + side], plan.spans[node, BOUNDS_LEFT + side + 1]
    for rule in range(first, last):
        low[plan.rules[rule, 1]] = _LOWEST
        high[plan.rules[rule, 1]] = _HIGHEST
    for rule in range(first, last):
        kind, bounded, source = plan.rules[rule, 0], plan.rules[rule, 1], plan.rules[rule, 2]
        if kind == WITHIN:
            low[bounded] = max(low[bounded], oldest)
        else:
            value = ints[x_ints + source * x_capacity + driver]
            if kind == AFTER:
                low[bounded] = max(low[bounded], value + 1)
            else:
                high[bounded] = min(high[bounded], value - 1)
    for rule in range(first, last):
        if plan.rules[rule, 1] == sorted_column:
            start = first_at_least(column, start, stop, low[sorted_column])
            stop = first_above(column, start, stop, high[sorted_column])
            break
    return start, stop


@njit
def is_exact(walk, node, plan):
    """Whether every sibling in the range joins, so that none needs to be tested."""
    side = walk[_SIDE]
    tested = plan.spans[node, TESTED_LEFT + side + 1] - plan.spans[node, TESTED_LEFT + side]
    return tested == 0 and plan.spans[node, DISTINCT] == plan.spans[node, PROGRAM + 1]


@njit
def choose(exact, start, size, walk, node, plan, state, ints, floats, scratch):
    """Put the rows of the siblings that join into ``scratch.chosen``; gives how many they are.

    The siblings are ``size`` rows from ``start`` on; all of them join if ``exact``.
    """
    chosen = scratch.chosen
    if exact:
        for row in range(size):
            chosen[row] = start + row
        return size
    mask = scratch.mask[:size]
    x, y, driver, side = walk[_X], walk[_Y], walk[_DRIVER], walk[_SIDE]
    rules, spans = plan.rules, plan.spans
    x_capacity, y_capacity = state[x, CAPACITY], state[y, CAPACITY]
    x_ints, y_ints = state[x, INT_OFFSET] + driver, state[y, INT_OFFSET] + start
    x_floats, y_floats = state[x, FLOAT_OFFSET] + driver, state[y, FLOAT_OFFSET] + start
    mask[:] = 1
    for rule in range(spans[node, TESTED_LEFT + side], spans[node, TESTED_LEFT + side + 1]):
        column = rules[rule, 0]
        begin = y_ints + column * y_capacity
        low, high = scratch.low[column], scratch.high[column]
        keep_between(mask, ints[begin : begin + size], low, high)
    for rule in range(spans[node, DISTINCT], spans[node, DISTINCT + 1]):
        mine, its = rules[rule, side], rules[rule, 1 - side]
        begin = y_ints + its * y_capacity
        keep_other(mask, ints[begin : begin + size], ints[x_ints + mine * x_capacity])
    for rule in range(spans[node, COMPARE], spans[node, COMPARE + 1]):
        mine, its, operator = rules[rule, side], rules[rule, 1 - side], rules[rule, 2]
        if side == 1:
            operator = FLIPPED[operator]
        begin = y_floats + its * y_capacity
        value = floats[x_floats + mine * x_capacity]
        keep_compared(mask, operator, value, floats[begin : begin + size])
    first, last = spans[node, PROGRAM], spans[node, PROGRAM + 1]
    if first < last:
        run_program(
            mask,
            plan,
            first,
            last,
            scratch.stack,
            side == 0,
            floats,
            x_floats,
            x_capacity,
            y_floats,
            y_capacity,
        )
    found = 0
    for row in range(size):
        # Always written, kept only if it joins: no branch to mispredict.
        chosen[found] = start + row
        found += int(mask[row])
    return found


@njit
def append(more, walk, node, plan, state, ints, floats, scratch):
    """Write one row at ``node`` for the driver and each of ``more`` chosen siblings."""
    x, y, driver = walk[_X], walk[_Y], walk[_DRIVER]
    nodes, spans, chosen = plan.nodes, plan.spans, scratch.chosen
    capacity = state[node, CAPACITY]
    base = state[node, INT_OFFSET] + state[node, END]

    x_column = state[x, INT_OFFSET] + driver
    begin = base + nodes[node, LATEST] * capacity
    ints[begin : begin + more] = ints[x_column + nodes[x, LATEST] * state[x, CAPACITY]]
    if nodes[node, ARRIVAL] >= 0:
        begin = base + nodes[node, ARRIVAL] * capacity
        ints[begin : begin + more] = ints[x_column + nodes[x, ARRIVAL] * state[x, CAPACITY]]
    earliest = ints[x_column + nodes[x, EARLIEST] * state[x, CAPACITY]]
    begin = base + nodes[node, EARLIEST] * capacity
    column = ints[begin : begin + more]
    source = state[y, INT_OFFSET] + nodes[y, EARLIEST] * state[y, CAPACITY]
    for row in range(more):
        column[row] = min(earliest, ints[source + chosen[row]])

    for rule in range(spans[node, COPY_INT], spans[node, COPY_INT + 1]):
        begin = base + plan.rules[rule, 2] * capacity
        copy_ints(rule, ints[begin : begin + more], more, walk, plan, state, ints, scratch)
    base = state[node, FLOAT_OFFSET] + state[node, END]
    for rule in range(spans[node, COPY_FLOAT], spans[node, COPY_FLOAT + 1]):
        side, its = plan.rules[rule, 0], plan.rules[rule, 1]
        begin = base + plan.rules[rule, 2] * capacity
        target = floats[begin : begin + more]
        if side == walk[_SIDE]:
            target[:] = floats[state[x, FLOAT_OFFSET] + its * state[x, CAPACITY] + driver]
        else:
            begin = state[y, FLOAT_OFFSET] + its * state[y, CAPACITY]
            for row in range(more):
                target[row] = floats[begin + chosen[row]]


@njit
def copy_ints(rule, column, more, walk, plan, state, ints, scratch):
    """Fill ``column`` as the rule says: from the driver, or from the chosen siblings."""
    side, its = plan.rules[rule, 0], plan.rules[rule, 1]
    if side == walk[_SIDE]:
        x = walk[_X]
        column[:] = ints[state[x, INT_OFFSET] + its * state[x, CAPACITY] + walk[_DRIVER]]
    else:
        y = walk[_Y]
        begin = state[y, INT_OFFSET] + its * state[y, CAPACITY]
        for row in range(more):
            column[row] = ints[begin + scratch.chosen[row]]


@njit
def spans_of_fresh(node, plan, state, ints):
    """The sum over fresh rows of latest minus earliest timestamp."""
    capacity, base = state[node, CAPACITY], state[node, INT_OFFSET]
    first = base + plan.nodes[node, EARLIEST] * capacity
    last = base + plan.nodes[node, LATEST] * capacity
    total = 0
    for row in range(state[node, FRESH], state[node, END]):
        total += ints[last + row] - ints[first + row]
    return total
