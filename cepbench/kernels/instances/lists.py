"""The lists of nodes: buffers of events at the leaves, instances above, each in order of creation.

An instance leaves when its first event is out of the window [kolchinsky2018]_, section 2.2. How
many are within the window is counted by their first events, exactly; records of others are removed
from an arena once they outnumber those within it.
"""

from __future__ import annotations

from cepbench.kernels.counts import CREATED, LIFETIME
from cepbench.kernels.instances.tables import (
    BEFORE,
    BUFFERED,
    CELLS,
    END,
    FIRST,
    FIRST_CELL,
    FIRST_EVENT,
    FIRST_LIVE,
    INSTANCES,
    IS_NEGATED,
    IS_ROOT,
    LAST,
    LIVE,
    MEMBER,
    NEXT_CELL,
    NEXT_EVENT,
    NOW,
    OFFSET,
    PASSES,
    RETAINED,
    SLOTS,
    SOONEST,
    START,
    TIME,
    USED,
    VARIABLES,
    WIDTH,
)
from cepbench.kernels.jit import njit, njit_in_place

#: Expired records are left in an arena until there are so many more than others.
_SLACK = 64


@njit_in_place
def place_of(node, row, plan, state):
    """Where in the arena the record of an instance begins.

    Parameters
    ----------
    node, row : int
    plan, state : Plan, State
    """
    return state.lists[node, OFFSET] + row * plan.nodes[node, WIDTH]


@njit_in_place
def event_at(leaf, row, state):
    """The ordinal of an event in a leaf's buffer.

    Parameters
    ----------
    leaf, row : int
    state : State
    """
    return state.buffers[leaf, row & (state.buffers.shape[1] - 1)]


@njit_in_place
def bind(node, row, plan, state, scratch):
    """Bind the variables of a node to the events of one of its rows.

    Parameters
    ----------
    node, row : int
    plan, state, scratch : Plan, State, Scratch
    """
    if node < plan.leaves:
        scratch.bound[node] = event_at(node, row, state)
        return
    place = place_of(node, row, plan, state) + VARIABLES
    first = plan.spans[node, SLOTS]
    for rule in range(first, plan.spans[node, SLOTS + 1]):
        scratch.bound[plan.rules[rule, 0]] = state.arena[place + rule - first]


@njit_in_place
def append(node, first, last, passes, plan, state, scratch):
    """Store an instance of what the variables are bound to; there is room for it.

    Parameters
    ----------
    node : int
    first, last : int
        Ordinals of its first and last event.
    passes : int
        0 for one that is no partial match as it is, but whose set may grow.
    plan, state, scratch : Plan, State, Scratch
    """
    place = place_of(node, state.lists[node, END], plan, state)
    state.arena[place + FIRST], state.arena[place + LAST] = first, last
    state.arena[place + PASSES] = passes
    rules = plan.spans[node, SLOTS]
    for rule in range(rules, plan.spans[node, SLOTS + 1]):
        state.arena[place + VARIABLES + rule - rules] = scratch.bound[plan.rules[rule, 0]]
    state.lists[node, END] += 1
    state.lists[node, LIVE] += 1
    state.lists[node, SOONEST] = min(state.lists[node, SOONEST], first)
    state.totals[INSTANCES] += 1
    mask = len(state.events) - 1
    if not waits_longer(node, plan):
        state.expiring[first & mask, node] += 1
    if passes == 1 and plan.nodes[node, IS_ROOT] == 0:
        state.counts[node, CREATED] += 1
        span = state.events[last & mask, TIME] - state.events[first & mask, TIME]
        state.counts[node, LIFETIME] += plan.window - span


@njit_in_place
def leave(node, first, plan, state):
    """Count an instance out that is removed for another reason than that its window has passed.

    Parameters
    ----------
    node : int
    first : int
        The ordinal of its first event.
    plan, state : Plan, State
    """
    state.lists[node, LIVE] -= 1
    state.totals[INSTANCES] -= 1
    if not waits_longer(node, plan):
        state.expiring[first & (len(state.events) - 1), node] -= 1


@njit_in_place
def is_expired(node, place, plan, state):
    """Whether the record of an instance is there although its window has passed.

    Parameters
    ----------
    node : int
    place : int
        Where in the arena the record begins.
    plan, state : Plan, State
    """
    return state.arena[place + FIRST] < state.totals[FIRST_LIVE] and not waits_longer(node, plan)


@njit_in_place
def waits_longer(node, plan):
    """Whether instances stay when their window has passed, until they have been decided.

    Parameters
    ----------
    node : int
    plan : Plan
    """
    return plan.late and plan.nodes[node, IS_ROOT] == 1


@njit_in_place
def expire(plan, state):
    """Let go what is out of the window at ``totals[NOW]``.

    Parameters
    ----------
    plan, state : Plan, State
    """
    totals, mask = state.totals, len(state.events) - 1
    begin = totals[NOW] - plan.window
    is_changed = False
    while (
        totals[FIRST_LIVE] < totals[NEXT_EVENT]
        and state.events[totals[FIRST_LIVE] & mask, TIME] < begin
    ):
        row = totals[FIRST_LIVE] & mask
        for node in range(plan.leaves, len(plan.nodes)):
            if not waits_longer(node, plan):
                state.lists[node, LIVE] -= state.expiring[row, node]
                totals[INSTANCES] -= state.expiring[row, node]
        totals[FIRST_LIVE] += 1
        is_changed = True
    if not is_changed:
        return
    for leaf in range(plan.leaves):
        oldest = totals[NOW] - plan.nodes[leaf, RETAINED] * plan.window
        while (
            state.lists[leaf, START] < state.lists[leaf, END]
            and state.events[event_at(leaf, state.lists[leaf, START], state) & mask, TIME] < oldest
        ):
            state.lists[leaf, START] += 1
            totals[BUFFERED] -= 1
        state.lists[leaf, LIVE] = state.lists[leaf, END] - state.lists[leaf, START]
    for node in range(plan.leaves, len(plan.nodes)):
        stored = state.lists[node, END] - state.lists[node, START]
        if stored > 2 * state.lists[node, LIVE] + _SLACK:
            compact(node, plan, state)
    oldest = totals[NOW] - plan.retained * plan.window
    while (
        totals[FIRST_EVENT] < totals[FIRST_LIVE]
        and state.events[totals[FIRST_EVENT] & mask, TIME] < oldest
    ):
        totals[FIRST_EVENT] += 1
    totals[FIRST_CELL] = totals[NEXT_CELL]
    if totals[FIRST_EVENT] < totals[NEXT_EVENT]:
        totals[FIRST_CELL] = state.events[totals[FIRST_EVENT] & mask, CELLS]


@njit_in_place
def compact(node, plan, state):
    """Remove the records of instances out of the window, and move the others to the front.

    Parameters
    ----------
    node : int
    plan, state : Plan, State
    """
    kept = 0
    for row in range(state.lists[node, START], state.lists[node, END]):
        if not is_expired(node, place_of(node, row, plan, state), plan, state):
            move(node, row, kept, plan, state)
            kept += 1
    state.lists[node, START], state.lists[node, END] = 0, kept


@njit_in_place
def move(node, source, target, plan, state):
    """Overwrite one record of a node with another.

    Parameters
    ----------
    node, source, target : int
    plan, state : Plan, State
    """
    if source != target:
        begin, end = place_of(node, source, plan, state), place_of(node, target, plan, state)
        for column in range(plan.nodes[node, WIDTH]):
            state.arena[end + column] = state.arena[begin + column]


@njit
def drop_used(plan, state):
    """Remove instances and buffered events that a match has consumed; negated events stay.

    Parameters
    ----------
    plan, state : Plan, State
    """
    mask = len(state.events) - 1
    for leaf in range(plan.leaves):
        if plan.nodes[leaf, IS_NEGATED] == 1:
            continue
        kept = state.lists[leaf, START]
        for row in range(state.lists[leaf, START], state.lists[leaf, END]):
            event = event_at(leaf, row, state)
            if state.events[event & mask, USED] == 0:
                state.buffers[leaf, kept & mask] = event
                kept += 1
        state.totals[BUFFERED] -= state.lists[leaf, END] - kept
        state.lists[leaf, END] = state.lists[leaf, LIVE] = kept
        state.lists[leaf, LIVE] -= state.lists[leaf, START]
    for node in range(plan.leaves, len(plan.nodes)):
        kept = state.lists[node, START]
        for row in range(state.lists[node, START], state.lists[node, END]):
            place = place_of(node, row, plan, state)
            # What an expired record refers to may be stored no more.
            if is_expired(node, place, plan, state):
                continue
            if _is_used(node, place + VARIABLES, plan, state):
                leave(node, state.arena[place + FIRST], plan, state)
            else:
                move(node, row, kept, plan, state)
                kept += 1
        state.lists[node, END] = kept


@njit_in_place
def _is_used(node, place, plan, state):
    """Whether an instance whose variables begin at ``place`` holds an event that is consumed."""
    first = plan.spans[node, SLOTS]
    for rule in range(first, plan.spans[node, SLOTS + 1]):
        if is_used(state.arena[place + rule - first], plan.rules[rule, 1] == 1, state):
            return True
    return False


@njit_in_place
def is_used(bound, is_set, state):
    """Whether an event, or one of a set, has been consumed.

    Parameters
    ----------
    bound : int
        The ordinal of the event, or of the set's newest cell.
    is_set : bool
    state : State
    """
    mask, cell_mask = len(state.events) - 1, len(state.cells) - 1
    if not is_set:
        return state.events[bound & mask, USED] == 1
    while bound >= 0:
        if state.events[state.cells[bound & cell_mask, MEMBER] & mask, USED] == 1:
            return True
        bound = state.cells[bound & cell_mask, BEFORE]
    return False
