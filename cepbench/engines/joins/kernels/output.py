"""Stored rows of roots: deciding which are matches, and emitting them.

They are stored if they cannot be decided at once: a negated event may still arrive, a set has a
condition, or events may be consumed by an earlier match that is not known yet.
"""

from __future__ import annotations

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.candidates import OUTER_BLOCK
from cepbench.engines.joins.kernels.checks import reject_negated
from cepbench.engines.joins.kernels.consume import choose_disjoint, consume
from cepbench.engines.joins.kernels.rows import move_row, swap_rows
from cepbench.kernels import counts
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def emit(now, reported, positions, plan, state, scratch, matches):
    """Emit the rows of all roots that are due.

    ``now``: timestamp up to which all events have been seen, and none after it. ``reported``:
    number of matches already in ``matches``. ``positions``: whether to write positions; otherwise
    matches are only counted.

    Returns ``outcome``: int, ``OK``, or ``NO_ROOM`` for ``scratch.rectangle[FOUND]`` matches, to be
    called again then. ``given``: int, number of matches emitted.
    """
    total = 0
    for root in range(plan.inner, len(plan.nodes)):
        if plan.nodes[root, tables.IS_ROOT] == 1:
            due = _gather_due(root, now, plan, state, scratch)
            state.rows[root, tables.DUE] = state.rows[root, tables.GIVEN] = due
            total += due
    if plan.consuming and total > 0:
        choose_disjoint(plan, state)
        total = 0
        for root in range(plan.inner, len(plan.nodes)):
            total += state.rows[root, tables.GIVEN]
    if positions and reported + total > matches.shape[1]:
        scratch.rectangle[tables.FOUND] = total
        return tables.NO_ROOM, 0
    if positions:
        place = reported
        for root in range(plan.inner, len(plan.nodes)):
            _write(root, place, plan, state, matches)
            place += state.rows[root, tables.GIVEN]
    if plan.consuming and total > 0:
        consume(plan, state)
    for root in range(plan.inner, len(plan.nodes)):
        if plan.nodes[root, tables.IS_ROOT] == 1:
            state.counts[root, counts.CREATED] -= (
                state.rows[root, tables.DUE] - state.rows[root, tables.GIVEN]
            )
            state.rows[root, tables.START] += state.rows[root, tables.DUE]
            if state.rows[root, tables.START] == state.rows[root, tables.END]:
                state.rows[root, tables.START] = state.rows[root, tables.END] = 0
            state.rows[root, tables.FRESH] = state.rows[root, tables.END]
    return tables.OK, total


@njit_in_place
def _write(root, place, plan, state, matches):
    """Write the emitted rows of a root to the matches from column ``place`` on."""
    given, branch = state.rows[root, tables.GIVEN], plan.nodes[root, tables.BRANCH]
    if branch >= 0:
        for row in range(given):
            matches[0, place + row] = branch
    for rule in tables.rules_of(root, tables.OUTPUT, plan):
        base = tables.int_column(root, plan.rules[rule, 0], state) + state.rows[root, tables.START]
        target = matches[plan.rules[rule, 1]]
        for row in range(given):
            target[place + row] = state.ints[base + row]


@njit_in_place
def _gather_due(root, now, plan, state, scratch):
    """Move due rows to the front and remove negated ones; returns the number left."""
    first, end = state.rows[root, tables.START], state.rows[root, tables.END]
    if plan.waits == tables.WAITS_NOT:
        return end - first
    column = plan.nodes[
        root, tables.EARLIEST if plan.waits == tables.WAITS_EARLIEST else tables.LATEST
    ]
    base = tables.int_column(root, column, state)
    due = 0
    for row in range(first, end):
        if state.ints[base + row] + plan.window < now:
            swap_rows(root, first + due, row, plan, state)
            due += 1
    # Rows that pass all late checks move to the front; the gap is closed from the end.
    kept = 0
    for begin in range(0, due, OUTER_BLOCK):
        outers = min(OUTER_BLOCK, due - begin)
        for place in range(outers):
            scratch.extras.alive[place] = 1
        for check in range(plan.late_first, plan.late_last):
            reject_negated(check, first + begin, outers, plan, state, scratch)
        for place in range(outers):
            if scratch.extras.alive[place] == 1:
                move_row(root, first + begin + place, first + kept, plan, state)
                kept += 1
    gap = due - kept
    for row in range(min(gap, end - first - due)):
        move_row(root, end - 1 - row, first + kept + row, plan, state)
    state.counts[root, counts.CREATED] -= gap
    state.rows[root, tables.END] -= gap
    return kept
