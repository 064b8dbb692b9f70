"""Tests of rows that have come into being: clauses on sets, and negation."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.joins.candidates import (
    OUTER_BLOCK,
    find_ranges,
    inner_range,
    is_exact,
    set_bounds,
    test,
)
from cepbench.kernels.joins.clauses import clauses_hold
from cepbench.kernels.joins.filters import BLOCK
from cepbench.kernels.joins.rows import move_row
from cepbench.kernels.joins.tables import (
    COMPARED,
    CREATED,
    END,
    FIRST_CHECK,
    FRESH,
    LAST_CHECK,
    RIGHT,
    ROW,
    START,
)

# Literals would make Numba compile what is called with them once more.
_NONE, _ZERO = np.int64(-1), np.int64(0)


@njit_in_place
def has_checks(node, plan):
    """Whether new rows of a node are tested for clauses on sets or for negation.

    Parameters
    ----------
    node : int
    plan : Plan
    """
    return (
        plan.spans[node, ROW] < plan.spans[node, ROW + 1]
        or plan.nodes[node, FIRST_CHECK] < plan.nodes[node, LAST_CHECK]
    )


@njit_in_place
def sift(node, plan, state, scratch):
    """Remove those of the fresh rows of a node that break a clause, or that an event negates.

    Parameters
    ----------
    node : int
    plan, state, scratch : Plan, NodeState, Scratch
    """
    kept = row = state.rows[node, FRESH]
    while row < state.rows[node, END]:
        outers = min(OUTER_BLOCK, state.rows[node, END] - row)
        for place in range(outers):
            scratch.alive[place] = 1
        for check in range(plan.nodes[node, FIRST_CHECK], plan.nodes[node, LAST_CHECK]):
            reject_negated(check, row, outers, plan, state, scratch)
        _reject_broken(node, row, outers, plan, state, scratch)
        for place in range(outers):
            if scratch.alive[place] == 1:
                move_row(node, row + place, kept, plan, state)
                kept += 1
        row += outers
    state.counts[node, CREATED] -= state.rows[node, END] - kept
    state.rows[node, END] = kept


@njit_in_place
def _reject_broken(node, first, outers, plan, state, scratch):
    rules, end = plan.spans[node, ROW], plan.spans[node, ROW + 1]
    if rules == end:
        return
    for place in range(outers):
        if scratch.alive[place] == 1 and not clauses_hold(
            rules, end, _ZERO, node, first + place, _NONE, _NONE, _ZERO, plan, state, scratch
        ):
            scratch.alive[place] = 0


@njit_in_place
def reject_negated(check, first, outers, plan, state, scratch):
    """Set ``scratch.alive`` to 0 for those of ``outers`` rows from ``first`` on that are negated.

    Rows are those of the left child of ``check``, its right child is the leaf of the negated
    variable; events there are tested as if they were to be joined.

    Parameters
    ----------
    check, first, outers : int
        At most ``OUTER_BLOCK`` rows.
    plan, state, scratch : Plan, NodeState, Scratch
    """
    negated = plan.nodes[check, RIGHT]
    if state.rows[negated, START] == state.rows[negated, END]:
        return
    inner_range(scratch.rectangle, state.rows[negated, START], state.rows[negated, END])
    set_bounds(check, _ZERO, first, outers, plan, state, scratch)
    find_ranges(check, _ZERO, outers, plan, state, scratch)
    exact = is_exact(check, _ZERO, plan) and plan.spans[check, ROW] == plan.spans[check, ROW + 1]
    for place in range(outers):
        start, stop = scratch.starts[place], scratch.stops[place]
        if scratch.alive[place] == 0 or start >= stop:
            continue
        if exact or _any_holds(check, first + place, place, start, stop, plan, state, scratch):
            scratch.alive[place] = 0


@njit_in_place
def _any_holds(check, row, place, start, stop, plan, state, scratch):
    """Whether any of the negated events ``start..stop`` could be added to a row."""
    node, negated = plan.nodes[check, RIGHT - 1], plan.nodes[check, RIGHT]
    rules, end = plan.spans[check, ROW], plan.spans[check, ROW + 1]
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        test(check, _ZERO, row, place, begin, size, plan, state, scratch)
        state.counts[check, COMPARED] += size
        for event in range(size):
            if scratch.mask[event] == 1 and clauses_hold(
                rules, end, _ZERO, node, row, negated, begin + event, _ZERO, plan, state, scratch
            ):
                return True
    return False
