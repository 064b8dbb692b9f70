"""Matches: reported at once, or after the window of a negated variable; consumption of events.

Under the consuming strategy an event is in at most one match [kolchinsky2018]_, section 5.2. All
candidates with the same last event share it, so one of them is reported: the first in the order of
positions as the pattern is written, where a set is the tuple of its positions. Its events are then
removed, with all instances that hold one of them.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.instances.kernels import tables
from cepbench.engines.instances.kernels.conditions import list_members
from cepbench.engines.instances.kernels.lists import bind, drop_used, move, place_of, uncount
from cepbench.engines.instances.kernels.negation import is_negated
from cepbench.kernels import counts
from cepbench.kernels.batches import NEVER
from cepbench.kernels.clock import record
from cepbench.kernels.jit import njit, njit_in_place


@njit_in_place
def has_room(state, scratch, matches, members):
    """Whether there is room for one more match with sets of any size."""
    at, stored = (
        scratch.progress,
        state.totals[tables.NEXT_EVENT] - state.totals[tables.FIRST_EVENT],
    )
    return at[tables.REPORTED] < matches.shape[1] and (
        len(members) == 0 or at[tables.MEMBERS] + stored <= len(members)
    )


@njit_in_place
def accept(root, reports, plan, state, scratch, matches, members):
    """Report the bound variables as a match, or under consuming compare it with other candidates."""
    if not plan.consuming:
        _report(root, scratch.bound, reports, plan, state, scratch, matches, members)
        return
    best = scratch.progress[tables.BEST]
    if best < 0 or _comes_before(root, best, plan, state, scratch):
        scratch.progress[tables.BEST] = root
        for rule in range(plan.spans[root, tables.SLOTS], plan.spans[root, tables.SLOTS + 1]):
            variable = plan.rules[rule, 0]
            scratch.best[variable] = scratch.bound[variable]


@njit
def consume_best(reports, plan, state, scratch, matches, members):
    """Report the best candidate of the last event, if there is one, and remove its events."""
    root = scratch.progress[tables.BEST]
    if root < 0:
        return
    scratch.progress[tables.BEST] = -1
    _report(root, scratch.best, reports, plan, state, scratch, matches, members)
    mask, cell_mask = len(state.events) - 1, len(state.cells) - 1
    for rule in range(plan.spans[root, tables.SLOTS], plan.spans[root, tables.SLOTS + 1]):
        at = scratch.best[plan.rules[rule, 0]]
        if plan.rules[rule, 1] == 0:
            state.events[at & mask, tables.USED] = 1
            continue
        while at >= 0:
            state.events[state.cells[at & cell_mask, tables.MEMBER] & mask, tables.USED] = 1
            at = state.cells[at & cell_mask, tables.BEFORE]
    drop_used(plan, state)


@njit
def decide(now, reports, plan, state, scratch, matches, members):
    """Report deferred matches that no later event can negate.

    A match is due when its window has passed; under the consuming strategy when the window of its
    last event has passed, for then all matches that precede it have been decided.

    ``now``: all events before this timestamp have arrived.

    Returns ``OK``, or ``NO_MATCHES``, to be called again then.
    """
    root = len(plan.nodes) - 1
    if plan.consuming:
        return _decide_in_order(root, now, reports, plan, state, scratch, matches, members)
    lists, mask = state.lists, len(state.events) - 1
    due = now - plan.window
    soonest = lists[root, tables.SOONEST]
    if soonest == NEVER or state.events[soonest & mask, tables.TIME] >= due:
        return tables.OK
    kept, row, soonest = lists[root, tables.START], lists[root, tables.START], NEVER
    outcome = tables.OK
    while row < lists[root, tables.END]:
        place = place_of(root, row, plan, state)
        first = state.arena[place + tables.FIRST]
        if outcome == tables.OK and state.events[first & mask, tables.TIME] < due:
            if reports and not has_room(state, scratch, matches, members):
                # The remaining rows stay until the next call.
                outcome = tables.NO_MATCHES
                continue
            uncount(root, first, plan, state)
            if state.arena[place + tables.PASSES] == 1:
                bind(root, row, plan, state, scratch)
                if not _is_late_negated(root, place, plan, state, scratch):
                    _report(root, scratch.bound, reports, plan, state, scratch, matches, members)
        else:
            move(root, row, kept, plan, state)
            soonest = min(soonest, first)
            kept += 1
        row += 1
    lists[root, tables.END], lists[root, tables.SOONEST] = kept, soonest
    return outcome


@njit_in_place
def _decide_in_order(root, now, reports, plan, state, scratch, matches, members):
    """Decide matches in the order of their last events, which is the order of the rows."""
    lists, mask, due = state.lists, len(state.events) - 1, now - plan.window
    while lists[root, tables.START] < lists[root, tables.END]:
        row = lists[root, tables.START]
        last = state.arena[place_of(root, row, plan, state) + tables.LAST]
        if state.events[last & mask, tables.TIME] >= due:
            break
        if reports and not has_room(state, scratch, matches, members):
            return tables.NO_MATCHES
        while row < lists[root, tables.END]:
            place = place_of(root, row, plan, state)
            if state.arena[place + tables.LAST] != last:
                break
            if state.arena[place + tables.PASSES] == 1:
                bind(root, row, plan, state, scratch)
                if not _is_late_negated(root, place, plan, state, scratch):
                    accept(root, reports, plan, state, scratch, matches, members)
            uncount(root, state.arena[place + tables.FIRST], plan, state)
            row += 1
        lists[root, tables.START] = row
        consume_best(reports, plan, state, scratch, matches, members)
    stored = lists[root, tables.END] - lists[root, tables.START]
    if lists[root, tables.START] > stored:
        for row in range(stored):
            move(root, lists[root, tables.START] + row, row, plan, state)
        lists[root, tables.START], lists[root, tables.END] = 0, stored
    return tables.OK


@njit_in_place
def _is_late_negated(root, place, plan, state, scratch):
    """Whether a later event negates the bound instance."""
    return is_negated(
        root, plan.nodes[root, tables.LAST_CHECK], plan.nodes[root, tables.LAST_LATE],
        state.arena[place + tables.FIRST], state.arena[place + tables.LAST], plan, state, scratch,
    )  # fmt: skip


@njit_in_place
def _report(root, bound, reports, plan, state, scratch, matches, members):
    """Count a match, and write it if ``reports`` is set; there is room for it."""
    at, place = scratch.progress, scratch.progress[tables.REPORTED]
    state.counts[root, counts.CREATED] += 1
    at[tables.REPORTED] += 1
    if len(scratch.latencies) > 0:
        record(at[tables.ARRIVED], 1, scratch)
    if not reports:
        return
    mask = len(state.events) - 1
    if plan.nodes[root, tables.BRANCH] >= 0:
        matches[0, place] = plan.nodes[root, tables.BRANCH]
    for rule in range(plan.spans[root, tables.SLOTS], plan.spans[root, tables.SLOTS + 1]):
        its, column = bound[plan.rules[rule, 0]], plan.rules[rule, 2]
        if plan.rules[rule, 1] == 0:
            matches[column, place] = state.events[its & mask, tables.POSITION]
            continue
        size = list_members(its, state.chosen[0], state)
        matches[column, place], matches[column + 1, place] = at[tables.MEMBERS], size
        for member in range(size):
            event = state.chosen[0, member]
            members[at[tables.MEMBERS] + member] = state.events[event & mask, tables.POSITION]
        at[tables.MEMBERS] += size


@njit
def _comes_before(root, best, plan, state, scratch):
    """Whether the bound candidate precedes the best one so far."""
    rule, last = plan.spans[root, tables.SLOTS], plan.spans[root, tables.SLOTS + 1]
    other, last_other = plan.spans[best, tables.SLOTS], plan.spans[best, tables.SLOTS + 1]
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
