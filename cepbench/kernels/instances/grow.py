"""Instances grow: one takes up an event, or two of sibling nodes become one at their parent.

Every new instance holds the event that has just arrived. It is made of one row that holds that
event and one that does not, so each pair of rows is tested once, when the later one has come into
being, and the window is that of the arriving event: what is within it fits.

A Kleene variable's set grows by events of ascending positions, each set from the one without its
last member: a state of the chain that an instance re-enters with every further event.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.counts import COMPARED
from cepbench.kernels.instances.conditions import clauses_hold, fits
from cepbench.kernels.instances.lists import append, bind, event_at, place_of
from cepbench.kernels.instances.matches import accept, has_room
from cepbench.kernels.instances.negation import is_negated
from cepbench.kernels.instances.tables import (
    BEFORE,
    CAPACITY,
    END,
    FIRST,
    FIRST_CELL,
    FIRST_CHECK,
    FIRST_LIVE,
    FRESH,
    INNER,
    INSTANCES,
    IS_ROOT,
    IS_STORED,
    LAST_CHECK,
    LEFT,
    LEFT_DRIVES,
    MAKES,
    MEMBER,
    NEXT_CELL,
    NEXT_EVENT,
    NO_CELLS,
    NO_INSTANCES,
    NO_MATCHES,
    OK,
    OLDEST,
    OUTER,
    PASSES,
    PHASE,
    RIGHT,
    RIGHT_DRIVES,
    ROW,
    SIZE,
    START,
    STEP,
    TOO_MANY,
)
from cepbench.kernels.jit import njit_in_place

# Which rows meet: PHASE. The outer row is the one that holds the event.
_TAKE_LEFT = 0  # of the left child, with old rows of the right one
_GROW_NEW = 1  # of the node itself: its set grows by old events of the right child
_TAKE_RIGHT = 2  # of the right child, with old rows of the left one, if there is a left one
_GROW_OLD = 3  # of the right child: old sets of the node itself grow by it
_PHASES = 4

# Literals would make Numba compile what is called with them once more.
_ALL, _NEWEST = np.int64(0), np.int64(1)


@njit_in_place
def combine(node, limit, reports, plan, state, scratch, matches, members):
    """Make all instances of a node that hold the event that has just arrived.

    Parameters
    ----------
    node : int
    limit : int
        How many instances may be stored.
    reports : bool
        Whether to write matches (else they are only counted).
    plan, state, scratch : Plan, State, Scratch
    matches : int64 array, shape (columns, capacity)
    members : int64 array, shape (capacity,)
        Positions of the sets of matches.

    Returns
    -------
    outcome : int
        ``OK``, ``TOO_MANY``, or what there is no room for, to be called again then.
    """
    at, nodes = scratch.progress, plan.nodes
    while at[PHASE] < _PHASES:
        phase = at[PHASE]
        outer, inner = nodes[node, RIGHT], nodes[node, LEFT]
        drives = nodes[node, RIGHT_DRIVES] == 1
        if phase < _TAKE_RIGHT:
            outer, inner = inner, outer
            drives = nodes[node, LEFT_DRIVES] == 1
        if phase == _GROW_NEW:
            outer = node
        elif phase == _GROW_OLD:
            inner = node
        grows = phase in (_GROW_NEW, _GROW_OLD)
        if drives and (nodes[node, MAKES] >= 0 or not grows):
            outcome = _meet(
                node, outer, inner, limit, reports, plan, state, scratch, matches, members
            )
            if outcome != OK:
                return outcome
        at[PHASE] += 1
        at[OUTER] = at[INNER] = -1
    at[PHASE] = 0
    return OK


@njit_in_place
def _meet(node, outer_node, inner_node, limit, reports, plan, state, scratch, matches, members):
    """Test each fresh row of one node with each old row of another."""
    at, lists, bound = scratch.progress, state.lists, scratch.bound
    phase, makes = at[PHASE], plan.nodes[node, MAKES]
    grows = phase in (_GROW_NEW, _GROW_OLD)
    if at[OUTER] < 0:
        at[OUTER] = lists[outer_node, FRESH]
    while at[OUTER] < lists[outer_node, END]:
        row = at[OUTER]
        bind(outer_node, row, plan, state, scratch)
        before, event, passes = np.int64(-1), np.int64(-1), True
        if outer_node < plan.leaves:
            first = event = bound[outer_node]
        else:
            place = place_of(outer_node, row, plan, state)
            first = state.arena[place + FIRST]
            passes = state.arena[place + PASSES] == 1
        # A row without a sibling is joined once, with nothing.
        begin, end = np.int64(0), np.int64(1)
        if inner_node >= 0:
            begin, end = lists[inner_node, START], lists[inner_node, FRESH]
        if phase == _GROW_NEW:
            before = bound[makes]
            newest = state.cells[before & (len(state.cells) - 1), MEMBER]
            begin = _first_after(newest, inner_node, begin, end, state)
        elif not passes:
            end = begin
        for other in range(max(begin, at[INNER]), end):
            its_first = first
            if inner_node >= plan.leaves:
                place = place_of(inner_node, other, plan, state)
                its_first = state.arena[place + FIRST]
                if its_first < state.totals[FIRST_LIVE] or not (
                    grows or state.arena[place + PASSES] == 1
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
                state.counts[node, COMPARED] += 1
            if not fits(node, plan, state, scratch):
                continue
            outcome = _room(node, reports, plan, state, scratch, matches, members)
            if outcome == OK:
                outcome = _make(
                    node, min(first, its_first), before, limit,
                    reports, plan, state, scratch, matches, members,
                )  # fmt: skip
            if outcome != OK:
                at[INNER] = other
                if inner_node >= 0:
                    state.counts[node, COMPARED] -= 1
                return outcome
        at[OUTER] += 1
        at[INNER] = -1
    return OK


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
    if plan.nodes[node, IS_STORED] == 1 and state.lists[node, END] == state.lists[node, CAPACITY]:
        return NO_INSTANCES
    if plan.nodes[node, MAKES] >= 0 and totals[NEXT_CELL] - totals[FIRST_CELL] == len(state.cells):
        return NO_CELLS
    if (
        reports
        and plan.nodes[node, IS_ROOT] == 1
        and not has_room(state, scratch, matches, members)
    ):
        return NO_MATCHES
    return OK


@njit_in_place
def _make(node, first, before, limit, reports, plan, state, scratch, matches, members):
    """Make an instance of what is bound, if all its other conditions hold."""
    bound, makes, totals = scratch.bound, plan.nodes[node, MAKES], state.totals
    last = totals[NEXT_EVENT] - 1
    if makes >= 0:
        cell = totals[NEXT_CELL]
        _write_cell(cell, bound[makes], before, state)
        bound[makes] = cell
        if not clauses_hold(
            plan.spans[node, STEP], plan.spans[node, STEP + 1], _NEWEST, plan, state, scratch
        ):
            return OK
        totals[NEXT_CELL] += 1
    passes = clauses_hold(
        plan.spans[node, ROW], plan.spans[node, ROW + 1], _ALL, plan, state, scratch
    ) and not is_negated(
        node, plan.nodes[node, FIRST_CHECK], plan.nodes[node, LAST_CHECK], first, last,
        plan, state, scratch,
    )  # fmt: skip
    if not passes and makes < 0:
        return OK
    if plan.nodes[node, IS_STORED] == 1:
        if totals[INSTANCES] >= limit:
            return TOO_MANY
        append(node, first, last, np.int64(passes), plan, state, scratch)
    if passes and plan.nodes[node, IS_ROOT] == 1 and not plan.late:
        accept(node, reports, plan, state, scratch, matches, members)
    return OK


@njit_in_place
def _write_cell(cell, event, before, state):
    """Write the cell of a set that grows by an event."""
    cells, mask = state.cells, len(state.cells) - 1
    cells[cell & mask, MEMBER], cells[cell & mask, BEFORE] = event, before
    cells[cell & mask, OLDEST], cells[cell & mask, SIZE] = event, 1
    if before >= 0:
        cells[cell & mask, OLDEST] = cells[before & mask, OLDEST]
        cells[cell & mask, SIZE] = cells[before & mask, SIZE] + 1
