"""Rows of a root that is stored: which of them are matches, and when they may be given out.

They are stored if more has to be seen of them or of the stream: a negated event that may still
come, a condition on a set, or, where an event may be in one match only, the matches before.
"""

from __future__ import annotations

from cepbench.kernels.candidates import OUTER_BLOCK
from cepbench.kernels.checks import reject_negated
from cepbench.kernels.consume import choose_disjoint, consume
from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.rows import move_row, swap_rows
from cepbench.kernels.tables import (
    CAPACITY,
    CREATED,
    EARLIEST,
    END,
    FOUND,
    FRESH,
    INT_OFFSET,
    LATEST,
    NO_ROOM,
    OK,
    OUTPUT,
    START,
    WAITS_EARLIEST,
    WAITS_NOT,
)


@njit_in_place
def give_out(
    now, reported, positions, plan, state, counts, ints, floats, members, scratch, matches
):
    """Give out the rows of the root whose time has come.

    Parameters
    ----------
    now : int
        Timestamp up to which all events have been seen, later ones not.
    reported : int
        How many matches are in ``matches`` already.
    positions : bool
        Whether to write them (else they are only counted).
    plan : Plan
    state, counts : int64 arrays
    ints, floats : 1-d arrays
        The arenas.
    members : int64 array, shape (2, capacity)
    scratch : Scratch
    matches : int64 array, shape (columns, capacity)

    Returns
    -------
    outcome : int
        ``OK``, or ``NO_ROOM`` for ``scratch.rectangle[FOUND]`` matches, to be called again then.
    given : int
        How many were given out.
    """
    root = len(plan.nodes) - 1
    due = _gather_due(now, plan, state, counts, ints, floats, members, scratch)
    first = state[root, START]
    given = due
    if plan.consuming:
        given = choose_disjoint(first, due, plan, state, ints, floats, members)
    if positions and reported + given > matches.shape[1]:
        scratch.rectangle[FOUND] = given
        return NO_ROOM, 0
    if positions:
        for rule in range(plan.spans[root, OUTPUT], plan.spans[root, OUTPUT + 1]):
            base = state[root, INT_OFFSET] + plan.rules[rule, 0] * state[root, CAPACITY] + first
            target = matches[plan.rules[rule, 1]]
            for row in range(given):
                target[reported + row] = ints[base + row]
    counts[root, CREATED] -= due - given
    if plan.consuming and given > 0:
        consume(first, given, first + due, plan, state, ints, floats, members)
    state[root, START] = first + due
    if state[root, START] == state[root, END]:
        state[root, START] = state[root, END] = 0
    state[root, FRESH] = state[root, END]
    return OK, given


@njit_in_place
def _gather_due(now, plan, state, counts, ints, floats, members, scratch):
    """Bring the rows whose time has come to the front, negated ones removed; gives their number."""
    root = len(plan.nodes) - 1
    first, end = state[root, START], state[root, END]
    if plan.waits == WAITS_NOT:
        return end - first
    column = plan.nodes[root, EARLIEST if plan.waits == WAITS_EARLIEST else LATEST]
    base = state[root, INT_OFFSET] + column * state[root, CAPACITY]
    due = 0
    for row in range(first, end):
        if ints[base + row] + plan.window < now:
            swap_rows(root, first + due, row, plan, state, ints, floats)
            due += 1
    # Those that stand all late checks to the very front; the rest leave a gap, closed from the end.
    kept = 0
    for begin in range(0, due, OUTER_BLOCK):
        outers = min(OUTER_BLOCK, due - begin)
        for place in range(outers):
            scratch.alive[place] = 1
        for check in range(plan.late_first, plan.late_last):
            reject_negated(
                check, first + begin, outers, plan, state, counts, ints, floats, members, scratch
            )
        for place in range(outers):
            if scratch.alive[place] == 1:
                move_row(root, first + begin + place, first + kept, plan, state, ints, floats)
                kept += 1
    gap = due - kept
    for row in range(min(gap, end - first - due)):
        move_row(root, end - 1 - row, first + kept + row, plan, state, ints, floats)
    counts[root, CREATED] -= gap
    state[root, END] -= gap
    return kept
