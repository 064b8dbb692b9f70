"""Matches: given out at once, when a negated event can come no more, or one of many that share events.

Under the consuming strategy an event is in one match at most [kolchinsky2018]_, section 5.2. All
matches that end with the same event share it, so that one of them is reported: the first one in the
order of positions as the pattern is written, a set being the tuple of its positions. Its events are
then removed, with every instance that holds one of them.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.clock import record
from cepbench.kernels.counts import CREATED
from cepbench.kernels.instances.conditions import list_members
from cepbench.kernels.instances.lists import (
    bind,
    drop_used,
    leave,
    move,
    place_of,
)
from cepbench.kernels.instances.negation import is_negated
from cepbench.kernels.instances.tables import (
    ARRIVED,
    BEFORE,
    BEST,
    BRANCH,
    END,
    FIRST,
    FIRST_EVENT,
    LAST,
    LAST_CHECK,
    LAST_LATE,
    MEMBER,
    MEMBERS,
    NEVER,
    NEXT_EVENT,
    NO_MATCHES,
    OK,
    PASSES,
    POSITION,
    REPORTED,
    SLOTS,
    SOONEST,
    START,
    TIME,
    USED,
)
from cepbench.kernels.jit import njit, njit_in_place


@njit_in_place
def has_room(state, scratch, matches, members):
    """Whether there is room for one more match, whatever sets it has.

    Parameters
    ----------
    state, scratch : State, Scratch
    matches : int64 array, shape (columns, capacity)
    members : int64 array, shape (capacity,)
        Empty if matches have no sets.
    """
    at, stored = scratch.progress, state.totals[NEXT_EVENT] - state.totals[FIRST_EVENT]
    return at[REPORTED] < matches.shape[1] and (
        len(members) == 0 or at[MEMBERS] + stored <= len(members)
    )


@njit_in_place
def accept(root, reports, plan, state, scratch, matches, members):
    """Take what is bound for a match: give it out, or under consuming compare it with the others.

    Parameters
    ----------
    root : int
    reports : bool
        Whether to write it (else it is only counted).
    plan, state, scratch : Plan, State, Scratch
    matches : int64 array, shape (columns, capacity)
    members : int64 array, shape (capacity,)
    """
    if not plan.consuming:
        _give_out(root, scratch.bound, reports, plan, state, scratch, matches, members)
        return
    best = scratch.progress[BEST]
    if best < 0 or _comes_before(root, best, plan, state, scratch):
        scratch.progress[BEST] = root
        for rule in range(plan.spans[root, SLOTS], plan.spans[root, SLOTS + 1]):
            variable = plan.rules[rule, 0]
            scratch.best[variable] = scratch.bound[variable]


@njit
def consume_best(reports, plan, state, scratch, matches, members):
    """Give out the match that comes before all others of the same last event, if there is one.

    Parameters
    ----------
    reports : bool
    plan, state, scratch : Plan, State, Scratch
    matches : int64 array, shape (columns, capacity)
    members : int64 array, shape (capacity,)
    """
    root = scratch.progress[BEST]
    if root < 0:
        return
    scratch.progress[BEST] = -1
    _give_out(root, scratch.best, reports, plan, state, scratch, matches, members)
    mask, cell_mask = len(state.events) - 1, len(state.cells) - 1
    for rule in range(plan.spans[root, SLOTS], plan.spans[root, SLOTS + 1]):
        at = scratch.best[plan.rules[rule, 0]]
        if plan.rules[rule, 1] == 0:
            state.events[at & mask, USED] = 1
            continue
        while at >= 0:
            state.events[state.cells[at & cell_mask, MEMBER] & mask, USED] = 1
            at = state.cells[at & cell_mask, BEFORE]
    drop_used(plan, state)


@njit
def decide(now, reports, plan, state, scratch, matches, members):
    """Give out the matches that have waited for a negated event and for which none can come.

    Without the consuming strategy an instance is due when its window has passed, and otherwise when
    that of its last event has: then all matches that come before it have been decided.

    Parameters
    ----------
    now : int
        The timestamp up to which all events are known, those of ``now`` itself excluded.
    reports : bool
    plan, state, scratch : Plan, State, Scratch
    matches : int64 array, shape (columns, capacity)
    members : int64 array, shape (capacity,)

    Returns
    -------
    outcome : int
        ``OK``, or ``NO_MATCHES``, to be called again then.
    """
    root = len(plan.nodes) - 1
    if plan.consuming:
        return _decide_in_order(root, now, reports, plan, state, scratch, matches, members)
    lists, mask = state.lists, len(state.events) - 1
    due = now - plan.window
    soonest = lists[root, SOONEST]
    if soonest == NEVER or state.events[soonest & mask, TIME] >= due:
        return OK
    kept, row, soonest = lists[root, START], lists[root, START], NEVER
    outcome = OK
    while row < lists[root, END]:
        place = place_of(root, row, plan, state)
        first = state.arena[place + FIRST]
        if outcome == OK and state.events[first & mask, TIME] < due:
            if reports and not has_room(state, scratch, matches, members):
                # All that is left stays where it is for now.
                outcome = NO_MATCHES
                continue
            leave(root, first, plan, state)
            if state.arena[place + PASSES] == 1:
                bind(root, row, plan, state, scratch)
                if not _is_late_negated(root, place, plan, state, scratch):
                    _give_out(root, scratch.bound, reports, plan, state, scratch, matches, members)
        else:
            move(root, row, kept, plan, state)
            soonest = min(soonest, first)
            kept += 1
        row += 1
    lists[root, END], lists[root, SOONEST] = kept, soonest
    return outcome


@njit_in_place
def _decide_in_order(root, now, reports, plan, state, scratch, matches, members):
    """Decide matches in the order of their last events, of which rows are in order."""
    lists, mask, due = state.lists, len(state.events) - 1, now - plan.window
    while lists[root, START] < lists[root, END]:
        row = lists[root, START]
        last = state.arena[place_of(root, row, plan, state) + LAST]
        if state.events[last & mask, TIME] >= due:
            break
        if reports and not has_room(state, scratch, matches, members):
            return NO_MATCHES
        while row < lists[root, END]:
            place = place_of(root, row, plan, state)
            if state.arena[place + LAST] != last:
                break
            if state.arena[place + PASSES] == 1:
                bind(root, row, plan, state, scratch)
                if not _is_late_negated(root, place, plan, state, scratch):
                    accept(root, reports, plan, state, scratch, matches, members)
            leave(root, state.arena[place + FIRST], plan, state)
            row += 1
        lists[root, START] = row
        consume_best(reports, plan, state, scratch, matches, members)
    stored = lists[root, END] - lists[root, START]
    if lists[root, START] > stored:
        for row in range(stored):
            move(root, lists[root, START] + row, row, plan, state)
        lists[root, START], lists[root, END] = 0, stored
    return OK


@njit_in_place
def _is_late_negated(root, place, plan, state, scratch):
    """Whether an event that followed negates the instance that is bound."""
    return is_negated(
        root, plan.nodes[root, LAST_CHECK], plan.nodes[root, LAST_LATE],
        state.arena[place + FIRST], state.arena[place + LAST], plan, state, scratch,
    )  # fmt: skip


@njit_in_place
def _give_out(root, bound, reports, plan, state, scratch, matches, members):
    """Count a match, and write it if asked to; there is room for it."""
    at, place = scratch.progress, scratch.progress[REPORTED]
    state.counts[root, CREATED] += 1
    at[REPORTED] += 1
    if len(scratch.latencies) > 0:
        record(at[ARRIVED], 1, scratch)
    if not reports:
        return
    mask = len(state.events) - 1
    if plan.nodes[root, BRANCH] >= 0:
        matches[0, place] = plan.nodes[root, BRANCH]
    for rule in range(plan.spans[root, SLOTS], plan.spans[root, SLOTS + 1]):
        its, column = bound[plan.rules[rule, 0]], plan.rules[rule, 2]
        if plan.rules[rule, 1] == 0:
            matches[column, place] = state.events[its & mask, POSITION]
            continue
        size = list_members(its, state.chosen[0], state)
        matches[column, place], matches[column + 1, place] = at[MEMBERS], size
        for member in range(size):
            event = state.chosen[0, member]
            members[at[MEMBERS] + member] = state.events[event & mask, POSITION]
        at[MEMBERS] += size


@njit
def _comes_before(root, best, plan, state, scratch):
    """Whether what is bound comes before the best match of the same last event so far."""
    rule, last = plan.spans[root, SLOTS], plan.spans[root, SLOTS + 1]
    other, last_other = plan.spans[best, SLOTS], plan.spans[best, SLOTS + 1]
    while rule < last and other < last_other:
        size = _listed(rule, scratch.bound, np.int64(0), plan, state)
        size_other = _listed(other, scratch.best, np.int64(1), plan, state)
        for member in range(min(size, size_other)):
            if state.chosen[0, member] != state.chosen[1, member]:
                return state.chosen[0, member] < state.chosen[1, member]
        if size != size_other:
            return size < size_other
        rule += 1
        other += 1
    if rule < last or other < last_other:
        return rule == last
    return root < best


@njit_in_place
def _listed(rule, bound, slot, plan, state):
    """Write the events of a variable to ``state.chosen[slot]``; gives how many there are."""
    its = bound[plan.rules[rule, 0]]
    if plan.rules[rule, 1] == 1:
        return list_members(its, state.chosen[slot], state)
    state.chosen[slot, 0] = its
    return 1
