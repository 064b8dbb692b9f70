"""Tests of new rows: clauses on sets, and negation."""

from __future__ import annotations

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.candidates import (
    OUTER_BLOCK,
    find_ranges,
    inner_range,
    is_exact,
    set_bounds,
    test,
)
from cepbench.engines.joins.kernels.clauses import clauses_hold
from cepbench.engines.joins.kernels.filters import BLOCK
from cepbench.engines.joins.kernels.rows import move_row
from cepbench.kernels import counts
from cepbench.kernels.jit import njit_in_place

# For literals Numba would compile the called kernels again.
_NONE, _ZERO = np.int64(-1), np.int64(0)


@njit_in_place
def has_checks(node, plan):
    """Whether new rows of a node are tested for clauses on sets or for negation."""
    return (
        plan.spans[node, tables.ROW] < plan.spans[node, tables.ROW + 1]
        or plan.nodes[node, tables.FIRST_CHECK] < plan.nodes[node, tables.LAST_CHECK]
    )


@njit_in_place
def sift(node, plan, state, scratch):
    """Remove the fresh rows of a node that violate a clause or are negated by an event."""
    kept = row = state.rows[node, tables.FRESH]
    while row < state.rows[node, tables.END]:
        outers = min(OUTER_BLOCK, state.rows[node, tables.END] - row)
        for place in range(outers):
            scratch.extras.alive[place] = 1
        for check in range(
            plan.nodes[node, tables.FIRST_CHECK], plan.nodes[node, tables.LAST_CHECK]
        ):
            reject_negated(check, row, outers, plan, state, scratch)
        _reject_broken(node, row, outers, plan, state, scratch)
        for place in range(outers):
            if scratch.extras.alive[place] == 1:
                move_row(node, row + place, kept, plan, state)
                kept += 1
        row += outers
    state.counts[node, counts.CREATED] -= state.rows[node, tables.END] - kept
    state.rows[node, tables.END] = kept


@njit_in_place
def _reject_broken(node, first, outers, plan, state, scratch):
    rules, end = plan.spans[node, tables.ROW], plan.spans[node, tables.ROW + 1]
    if rules == end:
        return
    for place in range(outers):
        if scratch.extras.alive[place] == 1 and not clauses_hold(
            rules, end, _ZERO, node, first + place, _NONE, _NONE, _ZERO, plan, state, scratch
        ):
            scratch.extras.alive[place] = 0


@njit_in_place
def reject_negated(check, first, outers, plan, state, scratch):
    """Set ``scratch.alive`` to 0 for the negated rows among ``outers`` rows from ``first``.

    Rows are those of the left child of ``check``, its right child is the leaf of the negated
    variable; its events are tested as for a join.
    """
    negated = plan.nodes[check, tables.RIGHT]
    if state.rows[negated, tables.START] == state.rows[negated, tables.END]:
        return
    inner_range(
        scratch.rectangle, state.rows[negated, tables.START], state.rows[negated, tables.END]
    )
    set_bounds(check, _ZERO, first, outers, plan, state, scratch)
    find_ranges(check, _ZERO, outers, plan, state, scratch)
    exact = (
        is_exact(check, _ZERO, plan)
        and plan.spans[check, tables.ROW] == plan.spans[check, tables.ROW + 1]
    )
    for place in range(outers):
        start, stop = scratch.starts[place], scratch.stops[place]
        if scratch.extras.alive[place] == 0 or start >= stop:
            continue
        if exact or _any_holds(check, first + place, place, start, stop, plan, state, scratch):
            scratch.extras.alive[place] = 0


@njit_in_place
def _any_holds(check, row, place, start, stop, plan, state, scratch):
    """Whether any of the negated events ``start..stop`` could be added to a row."""
    node, negated = plan.nodes[check, tables.RIGHT - 1], plan.nodes[check, tables.RIGHT]
    rules, end = plan.spans[check, tables.ROW], plan.spans[check, tables.ROW + 1]
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        test(check, _ZERO, row, place, begin, size, plan, state, scratch)
        state.counts[check, counts.COMPARED] += size
        for event in range(size):
            if scratch.mask[event] == 1 and clauses_hold(
                rules, end, _ZERO, node, row, negated, begin + event, _ZERO, plan, state, scratch
            ):
                return True
    return False
