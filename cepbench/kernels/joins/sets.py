"""Kleene closure: a row of the left child and every set of events of a Kleene variable that fits it.

Of each row's events those that fit one by one are found first; then their sets, in lexicographic
order, each member after the one before it. A set that breaks a condition on neighbours is not
extended. Sets with an event of this step, or of a row of this step, are new; the others were made
before.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.joins.buffers import has_room
from cepbench.kernels.joins.candidates import (
    OUTER_BLOCK,
    choose,
    find_ranges,
    inner_range,
    is_exact,
    set_bounds,
    test,
)
from cepbench.kernels.joins.clauses import clauses_hold
from cepbench.kernels.joins.filters import BLOCK
from cepbench.kernels.joins.tables import (
    CAPACITY,
    COMPARED,
    COPY_FLOAT,
    COPY_INT,
    CREATED,
    EARLIEST,
    END,
    FLOAT_OFFSET,
    FOUND,
    FRESH,
    INT_OFFSET,
    LATEST,
    LEFT,
    NO_MEMBERS,
    NO_ROOM,
    OK,
    OUTER,
    RIGHT,
    RIGHT_DRIVES,
    SET,
    SET_EARLIEST,
    SET_LATEST,
    SET_LIMIT,
    SET_STEP,
    SHIFT,
    START,
    STEP,
    TOO_LARGE,
    TOO_MANY,
    TURN,
)

_HIGHEST = np.iinfo(np.int64).max
# Literals would make Numba compile what is called with them once more.
_NONE, _ZERO, _ONE = np.int64(-1), np.int64(0), np.int64(1)

#: Of one row no more sets than two to this power are stored, …
MOST_STORED = 20
#: … visited one by one to be counted, …
MOST_VISITED = 34
#: … or counted without that, as only the window bounds them.
_MOST_COUNTED = 62

# Of the pool, where the set being made and the events to choose from are: members[0] has ordinals
# and leaf rows, members[1] positions and which candidate was taken at each depth.


@njit_in_place
def join_sets(node, counting, limit, plan, state, scratch, matches):
    """Join fresh rows of the left child with sets of events, and others with sets that are new.

    Parameters
    ----------
    node : int
    counting : bool
        Whether to count rows instead of storing them; only at the root.
    limit : int
        How many rows may be stored.
    plan, state : Plan, NodeState
    scratch : Scratch
        ``scratch.rectangle[TURN]`` is -1 for a node not begun, and again for one that is done.
    matches : int64 array, shape (columns of the root, capacity)

    Returns
    -------
    outcome : int
        ``OK``, ``TOO_MANY``, ``TOO_LARGE``, or ``NO_ROOM`` or ``NO_MEMBERS``: for
        ``scratch.rectangle[FOUND]`` rows or members, to be called again then.
    """
    rectangle = scratch.rectangle
    x, y = plan.nodes[node, LEFT], plan.nodes[node, RIGHT]
    some_new = plan.nodes[node, RIGHT_DRIVES] == 1 and state.rows[y, FRESH] < state.rows[y, END]
    if rectangle[TURN] < 0:
        rectangle[TURN] = 0
        state.rows[node, FRESH] = state.rows[node, END]
        if x < 0:
            rectangle[OUTER] = 0
        else:
            rectangle[OUTER] = state.rows[x, START] if some_new else state.rows[x, FRESH]
    last = 1 if x < 0 else state.rows[x, END]
    inner_range(rectangle, state.rows[y, START], state.rows[y, END])
    for first in range(rectangle[OUTER], last, OUTER_BLOCK):
        outers = min(OUTER_BLOCK, last - first)
        if x < 0:
            scratch.starts[0], scratch.stops[0] = state.rows[y, START], state.rows[y, END]
        else:
            set_bounds(node, _ZERO, first, outers, plan, state, scratch)
            find_ranges(node, _ZERO, outers, plan, state, scratch)
        for row in range(outers):
            start, stop = scratch.starts[row], scratch.stops[row]
            is_new = x >= 0 and first + row >= state.rows[x, FRESH]
            if start >= stop or not (is_new or stop > state.rows[y, FRESH]):
                continue
            outcome = _sets_of_row(
                node, first + row, row, is_new, counting, limit, plan, state, scratch, matches
            )
            if outcome != OK:
                rectangle[OUTER] = first + row
                return outcome
    rectangle[TURN] = -1
    return OK


@njit_in_place
def _sets_of_row(node, outer, row, is_new, counting, limit, plan, state, scratch, matches):
    """All new sets of one row of the left child: either all of them, or none for want of room."""
    capacity = state.members.shape[1]
    y = plan.nodes[node, RIGHT]
    start, stop = scratch.starts[row], scratch.stops[row]
    if state.used[0] + stop - start > capacity:
        scratch.rectangle[FOUND] = 2 * (stop - start)
        return NO_MEMBERS
    number = _candidates(node, outer, row, plan, state, scratch)
    front = capacity - (stop - start)
    if number == 0 or not (is_new or state.members[0, front + number - 1] >= state.rows[y, FRESH]):
        return OK
    free = (
        plan.nodes[node, SET_LIMIT] == 0
        and plan.nodes[node, SET_STEP] < 0
        and plan.spans[node, STEP] == plan.spans[node, STEP + 1]
    )
    if free:
        sets = _count_sets(node, outer, is_new, front, number, plan, state)
        if sets < 0 or (not counting and sets > 1 << MOST_STORED):
            return TOO_LARGE
        if counting:
            state.counts[node, CREATED] += sets
            return OK
    return _enumerate(
        node, outer, is_new, front, number, counting, limit, plan, state, scratch, matches
    )


@njit_in_place
def _candidates(node, outer, row, plan, state, scratch):
    """Write the leaf's rows that fit a row one by one to the end of the pool; gives their number."""
    members = state.members
    start, stop = scratch.starts[row], scratch.stops[row]
    front = members.shape[1] - (stop - start)
    exact = plan.nodes[node, LEFT] < 0 or is_exact(node, _ZERO, plan)
    number = 0
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        if exact:
            for place in range(size):
                members[0, front + number + place] = begin + place
            number += size
            continue
        test(node, _ZERO, outer, row, begin, size, plan, state, scratch)
        state.counts[node, COMPARED] += size
        found = choose(begin, size, scratch.mask, scratch.chosen)
        for place in range(found):
            members[0, front + number + place] = scratch.chosen[place]
        number += found
    return _not_consumed(front, number, plan.nodes[node, RIGHT], state)


@njit_in_place
def _not_consumed(front, number, y, state):
    """Leave out events that were consumed: their position is -1."""
    kept = 0
    positions = state.rows[y, INT_OFFSET] + state.rows[y, CAPACITY]
    for place in range(number):
        state.members[0, front + kept] = state.members[0, front + place]
        kept += int(state.ints[positions + state.members[0, front + place]] >= 0)
    return kept


@njit_in_place
def _earliest_of(node, outer, plan, state):
    """The earliest timestamp of the left child's row; of none the highest number."""
    x = plan.nodes[node, LEFT]
    if x < 0:
        return _HIGHEST
    return state.ints[
        state.rows[x, INT_OFFSET] + plan.nodes[x, EARLIEST] * state.rows[x, CAPACITY] + outer
    ]


@njit_in_place
def _count_sets(node, outer, is_new, front, number, plan, state):
    """How many new sets there are if only the window bounds them; -1 for more than 2^62."""
    members = state.members
    y = plan.nodes[node, RIGHT]
    earliest = _earliest_of(node, outer, plan, state)
    total = 0
    beyond = 0  # the first candidate that is too late for the present first member
    olds = 0
    while olds < number and members[0, front + olds] < state.rows[y, FRESH]:
        olds += 1
    for first in range(number):
        timestamp = state.ints[state.rows[y, INT_OFFSET] + members[0, front + first]]
        latest = min(earliest, timestamp) + plan.window
        beyond = max(beyond, first + 1)
        while (
            beyond < number
            and state.ints[state.rows[y, INT_OFFSET] + members[0, front + beyond]] <= latest
        ):
            beyond += 1
        if beyond - first - 1 >= _MOST_COUNTED:
            return -1
        total += 1 << (beyond - first - 1)
        if not is_new and first < olds:
            # Sets of old events only were made before.
            total -= 1 << (min(beyond, olds) - first - 1)
        if total >= 1 << _MOST_COUNTED:
            return -1
    return total


@njit_in_place
def _enumerate(node, outer, is_new, front, number, counting, limit, plan, state, scratch, matches):
    ints, members = state.ints, state.members
    x, y = plan.nodes[node, LEFT], plan.nodes[node, RIGHT]
    is_root = node == len(plan.nodes) - 1 and not plan.stored
    first_step, last_step = plan.spans[node, STEP], plan.spans[node, STEP + 1]
    times = state.rows[y, INT_OFFSET]
    positions = times + state.rows[y, CAPACITY]
    step_column = plan.nodes[node, SET_STEP]
    steps = times + step_column * state.rows[y, CAPACITY]
    most = plan.nodes[node, SET_LIMIT]
    earliest = _earliest_of(node, outer, plan, state)
    began = tail = state.used[0]
    shift, fresh = state.rows[y, SHIFT], state.rows[y, FRESH]
    made = visited = depth = at = 0
    most_visited = 1 << (MOST_VISITED if counting else MOST_STORED)
    latest = _HIGHEST
    while True:
        if at == number or (depth == most and most > 0):
            if depth == 0:
                break
            depth -= 1
            at = members[1, front + depth] + 1
            continue
        event = members[0, front + at]
        timestamp = ints[times + event]
        if depth == 0:
            latest = min(earliest, timestamp) + plan.window
        if timestamp > latest:
            at = number
            continue
        # Room for the set with this member, and for the next one beside it.
        if tail + 2 * (depth + 1) > front:
            _take_back(node, made, counting, began, state)
            needed = members.shape[1] - front + tail - began + 2 * (depth + 1)
            scratch.rectangle[FOUND] = 2 * needed
            return NO_MEMBERS
        members[0, tail + depth] = event + shift
        if step_column >= 0 and depth > 0:
            before = members[0, tail + depth - 1] - shift
            if ints[steps + event] - ints[steps + before] != 1:
                at += 1
                continue
        members[1, tail + depth] = ints[positions + event]
        if depth > 0 and first_step < last_step:
            state.counts[node, COMPARED] += 1
            if not clauses_hold(
                first_step, last_step, _ONE, x, outer, _NONE, _NONE, depth + 1, plan, state, scratch
            ):
                at += 1
                continue
        members[1, front + depth] = at
        depth += 1
        at += 1
        visited += 1
        if visited > most_visited:
            return TOO_LARGE
        if not is_new and event < fresh:
            continue
        if not counting:
            end = state.rows[node, END]
            if end - state.rows[node, START] + 1 > limit:
                return TOO_MANY
            if not (end < matches.shape[1] if is_root else has_room(node, 1, plan, state)):
                _take_back(node, made, counting, began, state)
                scratch.rectangle[FOUND] = 2 * made + 1
                return NO_ROOM
            _write(node, outer, tail, depth, plan, state, matches)
            for place in range(depth):
                members[0, tail + depth + place] = members[0, tail + place]
                members[1, tail + depth + place] = members[1, tail + place]
            tail += depth
            state.used[0] = tail
        made += 1
        state.counts[node, CREATED] += 1
    return OK


@njit_in_place
def _take_back(node, made, counting, began, state):
    """Remove the rows that were made for a row of the left child, which is joined again later."""
    state.counts[node, CREATED] -= made
    state.used[0] = began
    if not counting:
        state.rows[node, END] -= made


@njit_in_place
def _write(node, outer, begin, size, plan, state, matches):
    """Append the row of a row of the left child and the set ``members[:, begin : begin + size]``."""
    ints = state.ints
    nodes, spans = plan.nodes, plan.spans
    x, y = nodes[node, LEFT], nodes[node, RIGHT]
    end = state.rows[node, END]
    state.rows[node, END] = end + 1
    y_row = state.members[0, begin] - state.rows[y, SHIFT]
    if node == len(nodes) - 1 and not plan.stored:
        for rule in range(spans[node, COPY_INT], spans[node, COPY_INT + 1]):
            source = _source(rule, x, outer, y, y_row, INT_OFFSET, plan, state)
            matches[plan.rules[rule, 2], end] = ints[source]
        if nodes[node, SET] >= 0:
            matches[nodes[node, SET], end] = begin
            matches[nodes[node, SET] + 1, end] = size
        return
    capacity = state.rows[node, CAPACITY]
    base = state.rows[node, INT_OFFSET] + end
    earliest = ints[state.rows[y, INT_OFFSET] + y_row]
    latest = ints[
        state.rows[y, INT_OFFSET] + state.members[0, begin + size - 1] - state.rows[y, SHIFT]
    ]
    if nodes[node, SET_EARLIEST] >= 0:
        ints[base + nodes[node, SET_EARLIEST] * capacity] = earliest
    if nodes[node, SET_LATEST] >= 0:
        ints[base + nodes[node, SET_LATEST] * capacity] = latest
    if nodes[node, SET] >= 0:
        ints[base + nodes[node, SET] * capacity] = begin
        ints[base + (nodes[node, SET] + 1) * capacity] = size
    if x >= 0:
        x_ints = state.rows[x, INT_OFFSET] + outer
        earliest = min(earliest, ints[x_ints + nodes[x, EARLIEST] * state.rows[x, CAPACITY]])
        latest = max(latest, ints[x_ints + nodes[x, LATEST] * state.rows[x, CAPACITY]])
    ints[base + nodes[node, EARLIEST] * capacity] = earliest
    ints[base + nodes[node, LATEST] * capacity] = latest
    for rule in range(spans[node, COPY_INT], spans[node, COPY_INT + 1]):
        source = _source(rule, x, outer, y, y_row, INT_OFFSET, plan, state)
        ints[base + plan.rules[rule, 2] * capacity] = ints[source]
    base = state.rows[node, FLOAT_OFFSET] + end
    for rule in range(spans[node, COPY_FLOAT], spans[node, COPY_FLOAT + 1]):
        source = _source(rule, x, outer, y, y_row, FLOAT_OFFSET, plan, state)
        state.floats[base + plan.rules[rule, 2] * capacity] = state.floats[source]


@njit_in_place
def _source(rule, x, outer, y, y_row, offset, plan, state):
    """Where in its arena the value is that a rule copies."""
    if plan.rules[rule, 0] == 0:
        return state.rows[x, offset] + plan.rules[rule, 1] * state.rows[x, CAPACITY] + outer
    return state.rows[y, offset] + plan.rules[rule, 1] * state.rows[y, CAPACITY] + y_row
