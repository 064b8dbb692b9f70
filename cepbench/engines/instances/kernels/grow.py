"""New instances: an instance extended by an event, or two instances of sibling nodes combined.

Every new instance contains the event that has just arrived. It combines one row that contains the
event with one that does not, so each pair of rows is tested once, on the creation of the later one.
All live rows are within the window of that event, so no other test of the window is needed.

The set of a Kleene variable is extended by events of ascending positions, each set from the set
without its last member: a self-loop of the automaton's state.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.instances.kernels import tables
from cepbench.engines.instances.kernels.conditions import clauses_hold, fits
from cepbench.engines.instances.kernels.lists import append, bind, event_at, place_of
from cepbench.engines.instances.kernels.matches import accept, has_room
from cepbench.engines.instances.kernels.negation import is_negated
from cepbench.kernels import counts
from cepbench.kernels.jit import njit_in_place

# Which rows are combined: PHASE. The outer row contains the event, the inner one does not.
_TAKE_LEFT = 0  # new rows of the left child with old rows of the right one
_GROW_NEW = 1  # new instances of the node itself, whose sets are extended by old events
_TAKE_RIGHT = 2  # new rows of the right child with old rows of the left one, if there is one
_GROW_OLD = 3  # the event with old instances of the node itself, whose sets it extends
_PHASES = 4

# Literals would make Numba compile what is called with them once more.
_ALL, _NEWEST = np.int64(0), np.int64(1)


@njit_in_place
def combine(node, limit, reports, plan, state, scratch, matches, members):
    """Create all instances of a node that contain the event that has just arrived.

    Returns ``OK``, ``TOO_MANY``, or what there is no room for; then to be called again.
    """
    at, nodes = scratch.progress, plan.nodes
    while at[tables.PHASE] < _PHASES:
        phase = at[tables.PHASE]
        outer, inner = nodes[node, tables.RIGHT], nodes[node, tables.LEFT]
        drives = nodes[node, tables.RIGHT_DRIVES] == 1
        if phase < _TAKE_RIGHT:
            outer, inner = inner, outer
            drives = nodes[node, tables.LEFT_DRIVES] == 1
        if phase == _GROW_NEW:
            outer = node
        elif phase == _GROW_OLD:
            inner = node
        grows = phase in (_GROW_NEW, _GROW_OLD)
        if drives and (nodes[node, tables.MAKES] >= 0 or not grows):
            outcome = _pair(
                node, outer, inner, limit, reports, plan, state, scratch, matches, members
            )
            if outcome != tables.OK:
                return outcome
        at[tables.PHASE] += 1
        at[tables.OUTER] = at[tables.INNER] = -1
    at[tables.PHASE] = 0
    return tables.OK


@njit_in_place
def _pair(node, outer_node, inner_node, limit, reports, plan, state, scratch, matches, members):
    """Test each new row of one node with each old row of another."""
    at, lists, bound = scratch.progress, state.lists, scratch.bound
    phase, makes = at[tables.PHASE], plan.nodes[node, tables.MAKES]
    grows = phase in (_GROW_NEW, _GROW_OLD)
    if at[tables.OUTER] < 0:
        at[tables.OUTER] = lists[outer_node, tables.FRESH]
    while at[tables.OUTER] < lists[outer_node, tables.END]:
        row = at[tables.OUTER]
        bind(outer_node, row, plan, state, scratch)
        before, event, passes = np.int64(-1), np.int64(-1), True
        if outer_node < plan.leaves:
            first = event = bound[outer_node]
        else:
            place = place_of(outer_node, row, plan, state)
            first = state.arena[place + tables.FIRST]
            passes = state.arena[place + tables.PASSES] == 1
        # Without a left child the outer row is the only one of a candidate.
        begin, end = np.int64(0), np.int64(1)
        if inner_node >= 0:
            begin, end = lists[inner_node, tables.START], lists[inner_node, tables.FRESH]
            # Two events of one timestamp are not in order, unless they are of one set.
            if plan.nodes[node, tables.IS_ORDERED] == 1 and phase != _GROW_OLD:
                end = lists[inner_node, tables.SINCE]
        if phase == _GROW_NEW:
            before = bound[makes]
            newest = state.cells[before & (len(state.cells) - 1), tables.MEMBER]
            begin = _first_after(newest, inner_node, begin, end, state)
        elif not passes:
            end = begin
        for other in range(max(begin, at[tables.INNER]), end):
            its_first = first
            if inner_node >= plan.leaves:
                place = place_of(inner_node, other, plan, state)
                its_first = state.arena[place + tables.FIRST]
                if its_first < state.totals[tables.FIRST_LIVE] or not (
                    grows or state.arena[place + tables.PASSES] == 1
                ):
                    continue
            if inner_node >= 0:
                bind(inner_node, other, plan, state, scratch)
            if inner_node >= 0 and inner_node < plan.leaves:
                its_first = bound[inner_node]
            if makes >= 0:
                if phase == _GROW_OLD:
                    before = bound[makes]
                if phase >= _TAKE_RIGHT:
                    bound[makes] = event
            if inner_node >= 0:
                state.counts[node, counts.COMPARED] += 1
            if not fits(node, plan, state, scratch):
                continue
            outcome = _room(node, reports, plan, state, scratch, matches, members)
            if outcome == tables.OK:
                outcome = _create(
                    node, min(first, its_first), before, limit,
                    reports, plan, state, scratch, matches, members,
                )  # fmt: skip
            if outcome != tables.OK:
                at[tables.INNER] = other
                if inner_node >= 0:
                    state.counts[node, counts.COMPARED] -= 1
                return outcome
        at[tables.OUTER] += 1
        at[tables.INNER] = -1
    return tables.OK


@njit_in_place
def _first_after(event, leaf, begin, end, state):
    """The first of the rows ``begin..end`` of a buffer whose ordinal is larger than ``event``."""
    while begin < end:
        middle = (begin + end) // 2
        if event_at(leaf, middle, state) <= event:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit_in_place
def _room(node, reports, plan, state, scratch, matches, members):
    """Whether there is room for one more instance, and for a match; as an outcome."""
    totals = state.totals
    if (
        plan.nodes[node, tables.IS_STORED] == 1
        and state.lists[node, tables.END] == state.lists[node, tables.CAPACITY]
    ):
        return tables.NO_INSTANCES
    if plan.nodes[node, tables.MAKES] >= 0 and totals[tables.NEXT_CELL] - totals[
        tables.FIRST_CELL
    ] == len(state.cells):
        return tables.NO_CELLS
    if (
        reports
        and plan.nodes[node, tables.IS_ROOT] == 1
        and not has_room(state, scratch, matches, members)
    ):
        return tables.NO_MATCHES
    return tables.OK


@njit_in_place
def _create(node, first, before, limit, reports, plan, state, scratch, matches, members):
    """Create an instance of the bound variables if its remaining conditions hold."""
    bound, makes, totals = scratch.bound, plan.nodes[node, tables.MAKES], state.totals
    last = totals[tables.NEXT_EVENT] - 1
    if makes >= 0:
        cell = totals[tables.NEXT_CELL]
        _write_cell(cell, bound[makes], before, state)
        bound[makes] = cell
        if not clauses_hold(
            plan.spans[node, tables.STEP],
            plan.spans[node, tables.STEP + 1],
            _NEWEST,
            plan,
            state,
            scratch,
        ):
            return tables.OK
        totals[tables.NEXT_CELL] += 1
    passes = clauses_hold(
        plan.spans[node, tables.ROW], plan.spans[node, tables.ROW + 1], _ALL, plan, state, scratch
    ) and not is_negated(
        node, plan.nodes[node, tables.FIRST_CHECK], plan.nodes[node, tables.LAST_CHECK], first, last,
        plan, state, scratch,
    )  # fmt: skip
    if not passes and makes < 0:
        return tables.OK
    if plan.nodes[node, tables.IS_STORED] == 1:
        if totals[tables.INSTANCES] >= limit:
            return tables.TOO_MANY
        append(node, first, last, np.int64(passes), plan, state, scratch)
    if passes and plan.nodes[node, tables.IS_ROOT] == 1 and not plan.late:
        accept(node, reports, plan, state, scratch, matches, members)
    return tables.OK


@njit_in_place
def _write_cell(cell, event, before, state):
    """Write the cell of a set extended by an event."""
    cells, mask = state.cells, len(state.cells) - 1
    cells[cell & mask, tables.MEMBER], cells[cell & mask, tables.BEFORE] = event, before
    cells[cell & mask, tables.OLDEST], cells[cell & mask, tables.SIZE] = event, 1
    if before >= 0:
        cells[cell & mask, tables.OLDEST] = cells[before & mask, tables.OLDEST]
        cells[cell & mask, tables.SIZE] = cells[before & mask, tables.SIZE] + 1
