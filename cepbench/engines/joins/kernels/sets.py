"""Kleene closure: joins of a row of the left child with every set of events that fits it.

The events that fit a row one by one are found first, then their sets in lexicographic order. A set
that violates a condition on neighbours is not extended. Only sets with an event or a row of this
step are new; the others were created before. Under contiguity a set is a run of neighbours, which is
followed from the event of the row that is next to it, and a run that broke is not extended.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.buffers import has_room
from cepbench.engines.joins.kernels.candidates import (
    OUTER_BLOCK,
    choose,
    find_ranges,
    inner_range,
    is_exact,
    set_bounds,
    test,
)
from cepbench.engines.joins.kernels.clauses import clauses_hold
from cepbench.engines.joins.kernels.filters import BLOCK
from cepbench.kernels import counts
from cepbench.kernels.jit import njit_in_place

_HIGHEST = np.iinfo(np.int64).max
# For literals Numba would compile the called kernels again.
_NONE, _ZERO, _ONE = np.int64(-1), np.int64(0), np.int64(1)

#: Binary logarithms of the maximum numbers of sets of one row to store, …
MOST_STORED = 20
#: … to count one by one, …
MOST_VISITED = 34
#: … or to count in closed form, if only the window bounds them.
_MOST_COUNTED = 62

#: Events tested at once of a run, which is short mostly.
_RUN_BLOCK = 32

# Of the pool, where the set being made and the events to choose from are: members[0] has ordinals
# and leaf rows, members[1] positions and which candidate was taken at each depth.


@njit_in_place
def join_sets(node, counting, limit, plan, state, scratch, matches):
    """Join fresh rows of the left child with all sets of events, and other rows with new sets.

    Returns ``OK``, ``TOO_MANY``, ``TOO_LARGE``, or ``NO_ROOM`` or ``NO_MEMBERS``: for
    ``scratch.rectangle[FOUND]`` rows or members, to be called again then.
    """
    rectangle = scratch.rectangle
    x, y = plan.nodes[node, tables.LEFT], plan.nodes[node, tables.RIGHT]
    some_new = (
        plan.nodes[node, tables.RIGHT_DRIVES] == 1
        and state.rows[y, tables.FRESH] < state.rows[y, tables.END]
    )
    if rectangle[tables.TURN] < 0:
        rectangle[tables.TURN] = 0
        state.rows[node, tables.FRESH] = state.rows[node, tables.END]
        if x < 0:
            rectangle[tables.OUTER] = 0
        else:
            rectangle[tables.OUTER] = (
                state.rows[x, tables.START] if some_new else state.rows[x, tables.FRESH]
            )
    last = 1 if x < 0 else state.rows[x, tables.END]
    inner_range(rectangle, state.rows[y, tables.START], state.rows[y, tables.END])
    for first in range(rectangle[tables.OUTER], last, OUTER_BLOCK):
        outers = min(OUTER_BLOCK, last - first)
        if x < 0:
            scratch.starts[0], scratch.stops[0] = (
                state.rows[y, tables.START],
                state.rows[y, tables.END],
            )
        else:
            set_bounds(node, _ZERO, first, outers, plan, state, scratch)
            find_ranges(node, _ZERO, outers, plan, state, scratch)
        for row in range(outers):
            start, stop = scratch.starts[row], scratch.stops[row]
            is_new = x >= 0 and first + row >= state.rows[x, tables.FRESH]
            if start >= stop or not (is_new or stop > state.rows[y, tables.FRESH]):
                continue
            outcome = _sets_of_row(
                node, first + row, row, is_new, counting, limit, plan, state, scratch, matches
            )
            if outcome != tables.OK:
                rectangle[tables.OUTER] = first + row
                return outcome
    rectangle[tables.TURN] = -1
    return tables.OK


@njit_in_place
def _sets_of_row(node, outer, row, is_new, counting, limit, plan, state, scratch, matches):
    """Create all new sets of one row of the left child, or none if there is not room for all."""
    capacity = state.members.shape[1]
    y = plan.nodes[node, tables.RIGHT]
    start, stop = scratch.starts[row], scratch.stops[row]
    if state.used[0] + stop - start > capacity:
        scratch.rectangle[tables.FOUND] = 2 * (stop - start)
        return tables.NO_MEMBERS
    front = capacity - (stop - start)
    if plan.nodes[node, tables.SET_RUN] & tables.BEGINS:
        return _enumerate(
            node, outer, row, is_new, front, _ZERO, counting, limit, plan, state, scratch, matches
        )
    number = _candidates(node, outer, row, plan, state, scratch)
    if number == 0 or not (
        is_new or state.members[0, front + number - 1] >= state.rows[y, tables.FRESH]
    ):
        return tables.OK
    free = (
        plan.nodes[node, tables.SET_LIMIT] == 0
        and plan.nodes[node, tables.SET_STEP] < 0
        and plan.spans[node, tables.STEP] == plan.spans[node, tables.STEP + 1]
    )
    if free:
        sets = _count_sets(node, outer, is_new, front, number, plan, state)
        if sets < 0 or (not counting and sets > 1 << MOST_STORED):
            return tables.TOO_LARGE
        if counting:
            if sets > _HIGHEST - state.counts[node, counts.CREATED]:
                return tables.TOO_LARGE
            state.counts[node, counts.CREATED] += sets
            return tables.OK
    return _enumerate(
        node, outer, row, is_new, front, number, counting, limit, plan, state, scratch, matches
    )


@njit_in_place
def _candidates(node, outer, row, plan, state, scratch):
    """Write the leaf's rows that fit a row to the end of the pool; returns their number."""
    members = state.members
    start, stop = scratch.starts[row], scratch.stops[row]
    front = members.shape[1] - (stop - start)
    if plan.nodes[node, tables.SET_RUN] & tables.ENDS:
        return _run_before(node, outer, row, front, plan, state, scratch)
    exact = plan.nodes[node, tables.LEFT] < 0 or is_exact(node, _ZERO, plan)
    number = 0
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        if exact:
            for place in range(size):
                members[0, front + number + place] = begin + place
            number += size
            continue
        test(node, _ZERO, outer, row, begin, size, plan, state, scratch)
        state.counts[node, counts.COMPARED] += size
        found = choose(begin, size, scratch.mask, scratch.chosen)
        for place in range(found):
            members[0, front + number + place] = scratch.chosen[place]
        number += found
    return _not_consumed(front, number, plan.nodes[node, tables.RIGHT], state)


@njit_in_place
def _run_before(node, outer, row, front, plan, state, scratch):
    """As :func:`_candidates`, if the row has the event behind a set: those that lead to it, one by one."""
    members, capacity = state.members, state.members.shape[1]
    column = plan.nodes[node, tables.SET_STEP]
    steps = tables.int_column(plan.nodes[node, tables.RIGHT], column, state)
    wanted = scratch.high[column, row] - 1
    place = capacity
    unbroken = True
    while unbroken and scratch.starts[row] < scratch.stops[row]:
        size = min(_RUN_BLOCK, scratch.stops[row] - scratch.starts[row])
        scratch.stops[row] -= size
        test(node, _ZERO, outer, row, scratch.stops[row], size, plan, state, scratch)
        state.counts[node, counts.COMPARED] += size
        found = choose(scratch.stops[row], size, scratch.mask, scratch.chosen)
        while found > 0 and unbroken:
            found -= 1
            unbroken = state.ints[steps + scratch.chosen[found]] == wanted
            if unbroken:
                place -= 1
                wanted -= 1
                members[0, place] = scratch.chosen[found]
    for at in range(capacity - place):
        members[0, front + at] = members[0, place + at]
    return capacity - place


@njit_in_place
def _run_on(node, outer, row, front, number, plan, state, scratch):
    """Let the run of ``number`` events go on, if the next ones have not been looked for yet; returns their
    number.
    """
    column = plan.nodes[node, tables.SET_STEP]
    steps = tables.int_column(plan.nodes[node, tables.RIGHT], column, state)
    had, begin = number, scratch.starts[row]
    while number == had and begin < scratch.stops[row]:
        size = min(_RUN_BLOCK, scratch.stops[row] - begin)
        test(node, _ZERO, outer, row, begin, size, plan, state, scratch)
        state.counts[node, counts.COMPARED] += size
        found = choose(begin, size, scratch.mask, scratch.chosen)
        begin += size
        for place in range(found):
            if state.ints[steps + scratch.chosen[place]] != scratch.low[column, row] + number:
                begin = scratch.stops[row]
                break
            state.members[0, front + number] = scratch.chosen[place]
            number += 1
    scratch.starts[row] = begin
    return number


@njit_in_place
def _not_consumed(front, number, y, state):
    """Drop consumed events, whose position is -1."""
    kept = 0
    positions = state.rows[y, tables.INT_OFFSET] + state.rows[y, tables.CAPACITY]
    for place in range(number):
        state.members[0, front + kept] = state.members[0, front + place]
        kept += int(state.ints[positions + state.members[0, front + place]] >= 0)
    return kept


@njit_in_place
def _earliest_of(node, outer, plan, state):
    """The earliest timestamp of the left child's row; without a row the largest integer."""
    x = plan.nodes[node, tables.LEFT]
    if x < 0:
        return _HIGHEST
    return state.ints[tables.int_column(x, plan.nodes[x, tables.EARLIEST], state) + outer]


@njit_in_place
def _count_sets(node, outer, is_new, front, number, plan, state):
    """The number of new sets if only the window bounds them; -1 for more than 2^62."""
    members = state.members
    y = plan.nodes[node, tables.RIGHT]
    times = state.rows[y, tables.INT_OFFSET]
    earliest = _earliest_of(node, outer, plan, state)
    total = 0
    beyond = 0  # the first candidate that is too late for the current first member
    olds = 0
    while olds < number and members[0, front + olds] < state.rows[y, tables.FRESH]:
        olds += 1
    for first in range(number):
        timestamp = state.ints[times + members[0, front + first]]
        latest = min(earliest, timestamp) + plan.window
        beyond = max(beyond, first + 1)
        while beyond < number and state.ints[times + members[0, front + beyond]] <= latest:
            beyond += 1
        if beyond - first - 1 >= _MOST_COUNTED:
            return -1
        total += 1 << (beyond - first - 1)
        if not is_new and first < olds:
            # Sets of old events only were created before.
            total -= 1 << (min(beyond, olds) - first - 1)
        if total >= 1 << _MOST_COUNTED:
            return -1
    return total


@njit_in_place
def _enumerate(
    node, outer, row, is_new, front, number, counting, limit, plan, state, scratch, matches
):
    ints, members = state.ints, state.members
    x, y = plan.nodes[node, tables.LEFT], plan.nodes[node, tables.RIGHT]
    is_root = node == len(plan.nodes) - 1 and not plan.stored
    first_step, last_step = plan.spans[node, tables.STEP], plan.spans[node, tables.STEP + 1]
    times = state.rows[y, tables.INT_OFFSET]
    positions = times + state.rows[y, tables.CAPACITY]
    step_column = plan.nodes[node, tables.SET_STEP]
    steps = tables.int_column(y, step_column, state)
    run = plan.nodes[node, tables.SET_RUN]
    # Where a run broke no later event can follow.
    alone, begins = run & tables.ALONE > 0, run & tables.BEGINS > 0
    last = scratch.high[step_column, row] - 1 if run & tables.ENDS else _NONE
    most = plan.nodes[node, tables.SET_LIMIT]
    earliest = _earliest_of(node, outer, plan, state)
    began = tail = state.used[0]
    shift, fresh = state.rows[y, tables.SHIFT], state.rows[y, tables.FRESH]
    made = visited = depth = at = 0
    most_visited = 1 << (MOST_VISITED if counting else MOST_STORED)
    latest = _HIGHEST
    while True:
        if at == number and begins:
            number = _run_on(node, outer, row, front, number, plan, state, scratch)
        if at == number or (depth == most and most > 0):
            if depth == 0 or begins:
                break
            depth -= 1
            at = members[1, front + depth] + 1
            continue
        event = members[0, front + at]
        timestamp = ints[times + event]
        if depth == 0:
            latest = min(earliest, timestamp) + plan.window
        # Room for the set with this member, and for the next one beside it.
        if tail + 2 * (depth + 1) > front:
            _take_back(node, made, counting, began, state)
            needed = members.shape[1] - front + tail - began + 2 * (depth + 1)
            scratch.rectangle[tables.FOUND] = 2 * needed
            return tables.NO_MEMBERS
        members[0, tail + depth] = event + shift
        fits = timestamp <= latest
        if fits and step_column >= 0 and depth > 0:
            before = members[0, tail + depth - 1] - shift
            fits = ints[steps + event] - ints[steps + before] == 1
        members[1, tail + depth] = ints[positions + event]
        if fits and depth > 0 and first_step < last_step:
            state.counts[node, counts.COMPARED] += 1
            fits = clauses_hold(
                first_step, last_step, _ONE, x, outer, _NONE, _NONE, depth + 1, plan, state, scratch
            )
        if not fits:
            if begins:
                break
            at = number if alone or timestamp > latest else at + 1
            continue
        members[1, front + depth] = at
        depth += 1
        at += 1
        visited += 1
        if visited > most_visited:
            return tables.TOO_LARGE
        if (not is_new and event < fresh) or (last >= 0 and ints[steps + event] != last):
            continue
        if not counting:
            end = state.rows[node, tables.END]
            if end - state.rows[node, tables.START] + 1 > limit:
                return tables.TOO_MANY
            if not (end < matches.shape[1] if is_root else has_room(node, 1, plan, state)):
                _take_back(node, made, counting, began, state)
                scratch.rectangle[tables.FOUND] = 2 * made + 1
                return tables.NO_ROOM
            _write(node, outer, tail, depth, plan, state, matches)
            for place in range(depth):
                members[0, tail + depth + place] = members[0, tail + place]
                members[1, tail + depth + place] = members[1, tail + place]
            tail += depth
            state.used[0] = tail
        made += 1
        state.counts[node, counts.CREATED] += 1
    return tables.OK


@njit_in_place
def _take_back(node, made, counting, began, state):
    """Remove the rows created for a row of the left child, which is joined again later."""
    state.counts[node, counts.CREATED] -= made
    state.used[0] = began
    if not counting:
        state.rows[node, tables.END] -= made


@njit_in_place
def _write(node, outer, begin, size, plan, state, matches):
    """Append a row made of a left row and the set ``members[:, begin : begin + size]``."""
    ints = state.ints
    nodes = plan.nodes
    x, y = nodes[node, tables.LEFT], nodes[node, tables.RIGHT]
    end = state.rows[node, tables.END]
    state.rows[node, tables.END] = end + 1
    y_row = state.members[0, begin] - state.rows[y, tables.SHIFT]
    if node == len(nodes) - 1 and not plan.stored:
        for rule in tables.rules_of(node, tables.COPY_INT, plan):
            source = _source(rule, x, outer, y, y_row, tables.INT_OFFSET, plan, state)
            matches[plan.rules[rule, 2], end] = ints[source]
        if nodes[node, tables.SET] >= 0:
            matches[nodes[node, tables.SET], end] = begin
            matches[nodes[node, tables.SET] + 1, end] = size
        return
    capacity = state.rows[node, tables.CAPACITY]
    base = state.rows[node, tables.INT_OFFSET] + end
    times = state.rows[y, tables.INT_OFFSET]
    earliest = ints[times + y_row]
    latest = ints[times + state.members[0, begin + size - 1] - state.rows[y, tables.SHIFT]]
    if nodes[node, tables.SET_EARLIEST] >= 0:
        ints[base + nodes[node, tables.SET_EARLIEST] * capacity] = earliest
    if nodes[node, tables.SET_LATEST] >= 0:
        ints[base + nodes[node, tables.SET_LATEST] * capacity] = latest
    if nodes[node, tables.SET_ENDS] >= 0:
        steps = tables.int_column(y, nodes[node, tables.SET_STEP], state)
        last = state.members[0, begin + size - 1] - state.rows[y, tables.SHIFT]
        ints[base + nodes[node, tables.SET_ENDS] * capacity] = ints[steps + y_row]
        ints[base + (nodes[node, tables.SET_ENDS] + 1) * capacity] = ints[steps + last]
    if nodes[node, tables.SET] >= 0:
        ints[base + nodes[node, tables.SET] * capacity] = begin
        ints[base + (nodes[node, tables.SET] + 1) * capacity] = size
    if x >= 0:
        earliest = min(
            earliest, ints[tables.int_column(x, nodes[x, tables.EARLIEST], state) + outer]
        )
        latest = max(latest, ints[tables.int_column(x, nodes[x, tables.LATEST], state) + outer])
    ints[base + nodes[node, tables.EARLIEST] * capacity] = earliest
    ints[base + nodes[node, tables.LATEST] * capacity] = latest
    for rule in tables.rules_of(node, tables.COPY_INT, plan):
        source = _source(rule, x, outer, y, y_row, tables.INT_OFFSET, plan, state)
        ints[base + plan.rules[rule, 2] * capacity] = ints[source]
    base = state.rows[node, tables.FLOAT_OFFSET] + end
    for rule in tables.rules_of(node, tables.COPY_FLOAT, plan):
        source = _source(rule, x, outer, y, y_row, tables.FLOAT_OFFSET, plan, state)
        state.floats[base + plan.rules[rule, 2] * capacity] = state.floats[source]


@njit_in_place
def _source(rule, x, outer, y, y_row, offset, plan, state):
    """The index in its arena of the value that a rule copies."""
    if plan.rules[rule, 0] == 0:
        return state.rows[x, offset] + plan.rules[rule, 1] * state.rows[x, tables.CAPACITY] + outer
    return state.rows[y, offset] + plan.rules[rule, 1] * state.rows[y, tables.CAPACITY] + y_row
