"""The consuming strategy: an event may be in one match only [kolchinsky2018]_, section 5.2.

The matches of the any-match strategy are taken in order of the position of their last event, then
of all their positions; each is a match if none of its events is in an earlier one. Rows that hold a
consumed event are evicted.

Positions are compared in the order in which the pattern is written, a set as the tuple of its
positions: (0) comes before (0, 1), and that before (1). A single event is a set of one. Where these
are equal, the shorter match comes first, then that of the earlier branch of an OR.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.rows import move_row, swap_rows
from cepbench.kernels import counts
from cepbench.kernels.jit import njit, njit_in_place
from cepbench.kernels.sorting import sorted_by


@njit
def choose_disjoint(plan, state):
    """Move the matches among the due rows of the roots to the front."""
    due = 0
    for root in range(plan.inner, len(plan.nodes)):
        if plan.nodes[root, tables.IS_ROOT] == 1:
            state.rows[root, tables.GIVEN] = 0
            due += state.rows[root, tables.DUE]
    roots, rows, lasts = np.empty(due, np.int64), np.empty(due, np.int64), np.empty(due, np.int64)
    at = 0
    for root in range(plan.inner, len(plan.nodes)):
        if plan.nodes[root, tables.IS_ROOT] == 1:
            for row in range(
                state.rows[root, tables.START],
                state.rows[root, tables.START] + state.rows[root, tables.DUE],
            ):
                roots[at], rows[at] = root, row
                lasts[at] = _last_position(root, row, plan, state)
                at += 1
    order = _sorted_by(lasts)
    used, number = _room_for(0), 0
    is_match = np.zeros(due, np.uint8)
    first = 0
    while first < due:
        # All rows that end with the same event, which is in at most one match.
        best, at = -1, first
        while at < due and lasts[order[at]] == lasts[order[first]]:
            row = order[at]
            at += 1
            if (
                best < 0
                or _comes_before(roots[row], rows[row], roots[best], rows[best], plan, state)
            ) and not _holds_any(used, roots[row], rows[row], plan, state):
                best = row
        if best >= 0:
            is_match[best] = 1
            number += _size(roots[best], rows[best], plan, state)
            if 2 * number > len(used):
                used = _in_more_room(used, number)
            _use(used, roots[best], rows[best], plan, state)
        first = at
    for row in range(due):
        if is_match[row] == 1:
            root = roots[row]
            target = state.rows[root, tables.START] + state.rows[root, tables.GIVEN]
            swap_rows(root, rows[row], target, plan, state)
            state.rows[root, tables.GIVEN] += 1


@njit
def consume(plan, state):
    """Evict the rows that hold an event of a match that :func:`choose_disjoint` moved to the front."""
    number = 0
    for root in range(plan.inner, len(plan.nodes)):
        if plan.nodes[root, tables.IS_ROOT] == 1:
            for row in range(
                state.rows[root, tables.START],
                state.rows[root, tables.START] + state.rows[root, tables.GIVEN],
            ):
                number += _size(root, row, plan, state)
    used = _room_for(number)
    for root in range(plan.inner, len(plan.nodes)):
        if plan.nodes[root, tables.IS_ROOT] == 1:
            for row in range(
                state.rows[root, tables.START],
                state.rows[root, tables.START] + state.rows[root, tables.GIVEN],
            ):
                _use(used, root, row, plan, state)
    for node in range(len(plan.nodes)):
        is_root = plan.nodes[node, tables.IS_ROOT] == 1
        if (plan.nodes[node, tables.KEPT] == 0 and not is_root) or (
            plan.spans[node, tables.POSITIONS] == plan.spans[node, tables.POSITIONS + 1]
        ):
            continue
        kept = state.rows[node, tables.START] + (state.rows[node, tables.DUE] if is_root else 0)
        for row in range(kept, state.rows[node, tables.END]):
            if not _holds_any(used, node, row, plan, state):
                move_row(node, row, kept, plan, state)
                kept += 1
            elif _makes_sets(node, plan):
                # Sets refer to its rows by number, so the rows remain, but are not joined any more.
                state.ints[
                    state.rows[node, tables.INT_OFFSET] + state.rows[node, tables.CAPACITY] + row
                ] = -1
                kept += 1
        if is_root:
            # Rows of a root count as matches; these are not.
            state.counts[node, counts.CREATED] -= state.rows[node, tables.END] - kept
        state.rows[node, tables.END] = kept


@njit
def _sorted_by(lasts):
    """Stable sort of row numbers by their last positions."""
    if len(lasts) == 0:
        return np.empty(0, np.int64)
    least, most = lasts.min(), lasts.max()
    if most - least > 4 * len(lasts):
        return np.argsort(lasts, kind="mergesort")
    # A step has few events, each of which may complete a large number of rows.
    return sorted_by(lasts, least, most - least + 1)[0]


@njit
def _room_for(number):
    """An empty hash table with room for ``number`` positions."""
    size = 16
    while size < 2 * number:
        size *= 2
    return np.full(size, -1, np.int64)


@njit
def _in_more_room(used, number):
    """A larger table with the same positions."""
    larger = _room_for(2 * number)
    for position in used:
        if position >= 0:
            larger[_place(larger, position)] = position
    return larger


@njit_in_place
def _place(used, position):
    """The slot of a position, or the free slot for it."""
    last = len(used) - 1
    place = position & last
    while used[place] != position and used[place] != -1:
        place = (place + 1) & last
    return place


@njit_in_place
def _makes_sets(node, plan):
    """Whether a node is the leaf of a Kleene variable."""
    rule = plan.spans[node, tables.POSITIONS]
    return plan.rules[rule, 1] == 2


@njit_in_place
def _holds_any(used, node, row, plan, state):
    """Whether a row has an event at one of these positions."""
    for rule in tables.rules_of(node, tables.POSITIONS, plan):
        start, size, is_set = _events(node, row, rule, plan, state)
        for number in range(size):
            position = state.members[1, start + number] if is_set else start
            if used[_place(used, position)] == position:
                return True
    return False


@njit_in_place
def _use(used, node, row, plan, state):
    """Add the positions of a row's events to ``used``."""
    for rule in tables.rules_of(node, tables.POSITIONS, plan):
        start, size, is_set = _events(node, row, rule, plan, state)
        for number in range(size):
            position = state.members[1, start + number] if is_set else start
            used[_place(used, position)] = position


@njit_in_place
def _size(node, row, plan, state):
    """The number of events of a row."""
    total = 0
    for rule in tables.rules_of(node, tables.POSITIONS, plan):
        _, size, _ = _events(node, row, rule, plan, state)
        total += size
    return total


@njit_in_place
def _events(node, row, rule, plan, state):
    """A position, 1 and False; or the start of a set in the pool, its size and True."""
    place = tables.int_column(node, plan.rules[rule, 0], state) + row
    if plan.rules[rule, 1] == 1:
        return state.ints[place], state.ints[place + state.rows[node, tables.CAPACITY]], True
    return state.ints[place], 1, False


@njit_in_place
def _comes_before(node, row, other_node, other, plan, state):
    """Whether a row precedes another one with the same last event, of any root."""
    rule, last_rule = plan.spans[node, tables.POSITIONS], plan.spans[node, tables.POSITIONS + 1]
    rule_other, last_other = (
        plan.spans[other_node, tables.POSITIONS],
        plan.spans[other_node, tables.POSITIONS + 1],
    )
    while rule < last_rule and rule_other < last_other:
        start, size, is_set = _events(node, row, rule, plan, state)
        start_other, size_other, is_set_other = _events(other_node, other, rule_other, plan, state)
        for number in range(min(size, size_other)):
            mine = state.members[1, start + number] if is_set else start
            its = state.members[1, start_other + number] if is_set_other else start_other
            if mine != its:
                return mine < its
        if size != size_other:
            return size < size_other
        rule += 1
        rule_other += 1
    if rule < last_rule or rule_other < last_other:
        return rule == last_rule
    return node < other_node


@njit_in_place
def _last_position(node, row, plan, state):
    last = -1
    for rule in tables.rules_of(node, tables.POSITIONS, plan):
        start, size, is_set = _events(node, row, rule, plan, state)
        # The members of a set are in the order of their positions.
        last = max(last, state.members[1, start + size - 1] if is_set else start)
    return last
