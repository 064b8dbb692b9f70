"""The lists of nodes: buffers of events at the leaves, instances above, each in order of creation.

An instance expires when its first event leaves the window [kolchinsky2018]_, section 2.2. Live
instances are counted exactly, by their first events; expired records are compacted once they
outnumber live ones.
"""

from __future__ import annotations

from cepbench.engines.instances.kernels import tables
from cepbench.kernels import counts
from cepbench.kernels.jit import njit, njit_in_place

#: So many more expired records than live ones trigger a compaction.
_SLACK = 64


@njit_in_place
def place_of(node, row, plan, state):
    """The offset in the arena of the record of an instance."""
    return state.lists[node, tables.OFFSET] + row * plan.nodes[node, tables.WIDTH]


@njit_in_place
def event_at(leaf, row, state):
    """The ordinal of an event in a leaf's buffer."""
    return state.buffers[leaf, row & (state.buffers.shape[1] - 1)]


@njit_in_place
def bind(node, row, plan, state, scratch):
    """Bind the variables of a node to the events of one of its rows."""
    if node < plan.leaves:
        scratch.bound[node] = event_at(node, row, state)
        return
    place = place_of(node, row, plan, state) + tables.VARIABLES
    first = plan.spans[node, tables.SLOTS]
    for rule in range(first, plan.spans[node, tables.SLOTS + 1]):
        scratch.bound[plan.rules[rule, 0]] = state.arena[place + rule - first]


@njit_in_place
def append(node, first, last, passes, plan, state, scratch):
    """Append the bound variables as an instance; there is room for it.

    ``passes``: 0 for one that is no partial match yet, but whose set may grow.
    """
    place = place_of(node, state.lists[node, tables.END], plan, state)
    state.arena[place + tables.FIRST], state.arena[place + tables.LAST] = first, last
    state.arena[place + tables.PASSES] = passes
    rules = plan.spans[node, tables.SLOTS]
    for rule in range(rules, plan.spans[node, tables.SLOTS + 1]):
        state.arena[place + tables.VARIABLES + rule - rules] = scratch.bound[plan.rules[rule, 0]]
    state.lists[node, tables.END] += 1
    state.lists[node, tables.LIVE] += 1
    state.lists[node, tables.SOONEST] = min(state.lists[node, tables.SOONEST], first)
    state.totals[tables.INSTANCES] += 1
    mask = len(state.events) - 1
    if not is_deferred(node, plan):
        state.expiring[first & mask, node] += 1
    if passes == 1 and plan.nodes[node, tables.IS_ROOT] == 0:
        state.counts[node, counts.CREATED] += 1
        span = state.events[last & mask, tables.TIME] - state.events[first & mask, tables.TIME]
        state.counts[node, counts.LIFETIME] += (plan.window - span) >> plan.lifetime_shift


@njit_in_place
def uncount(node, first, plan, state):
    """Subtract an instance that is removed before it expires."""
    state.lists[node, tables.LIVE] -= 1
    state.totals[tables.INSTANCES] -= 1
    if not is_deferred(node, plan):
        state.expiring[first & (len(state.events) - 1), node] -= 1


@njit_in_place
def is_expired(node, place, plan, state):
    """Whether the record of an instance is expired.

    ``place``: the offset of the record in the arena.
    """
    return state.arena[place + tables.FIRST] < state.totals[tables.FIRST_LIVE] and not is_deferred(
        node, plan
    )


@njit_in_place
def is_deferred(node, plan):
    """Whether instances of a node stay past their window, until negation has been decided."""
    return plan.late and plan.nodes[node, tables.IS_ROOT] == 1


@njit_in_place
def expire(plan, state):
    """Expire events and instances at time ``totals[NOW]``."""
    totals, mask = state.totals, len(state.events) - 1
    begin = totals[tables.NOW] - plan.window
    is_changed = False
    while (
        totals[tables.FIRST_LIVE] < totals[tables.NEXT_EVENT]
        and state.events[totals[tables.FIRST_LIVE] & mask, tables.TIME] < begin
    ):
        row = totals[tables.FIRST_LIVE] & mask
        for node in range(plan.leaves, len(plan.nodes)):
            if not is_deferred(node, plan):
                state.lists[node, tables.LIVE] -= state.expiring[row, node]
                totals[tables.INSTANCES] -= state.expiring[row, node]
        totals[tables.FIRST_LIVE] += 1
        is_changed = True
    if not is_changed:
        return
    for leaf in range(plan.leaves):
        oldest = totals[tables.NOW] - plan.nodes[leaf, tables.RETAINED] * plan.window
        while (
            state.lists[leaf, tables.START] < state.lists[leaf, tables.END]
            and state.events[
                event_at(leaf, state.lists[leaf, tables.START], state) & mask, tables.TIME
            ]
            < oldest
        ):
            state.lists[leaf, tables.START] += 1
            totals[tables.BUFFERED] -= 1
        state.lists[leaf, tables.LIVE] = (
            state.lists[leaf, tables.END] - state.lists[leaf, tables.START]
        )
    for node in range(plan.leaves, len(plan.nodes)):
        stored = state.lists[node, tables.END] - state.lists[node, tables.START]
        if stored > 2 * state.lists[node, tables.LIVE] + _SLACK:
            compact(node, plan, state)
    oldest = totals[tables.NOW] - plan.retained * plan.window
    while (
        totals[tables.FIRST_EVENT] < totals[tables.FIRST_LIVE]
        and state.events[totals[tables.FIRST_EVENT] & mask, tables.TIME] < oldest
    ):
        totals[tables.FIRST_EVENT] += 1
    totals[tables.FIRST_CELL] = totals[tables.NEXT_CELL]
    if totals[tables.FIRST_EVENT] < totals[tables.NEXT_EVENT]:
        totals[tables.FIRST_CELL] = state.events[totals[tables.FIRST_EVENT] & mask, tables.CELLS]


@njit_in_place
def compact(node, plan, state):
    """Move live records to the front of a node's part of the arena, and drop expired ones."""
    kept = 0
    for row in range(state.lists[node, tables.START], state.lists[node, tables.END]):
        if not is_expired(node, place_of(node, row, plan, state), plan, state):
            move(node, row, kept, plan, state)
            kept += 1
    state.lists[node, tables.START], state.lists[node, tables.END] = 0, kept


@njit_in_place
def move(node, source, target, plan, state):
    """Overwrite one record of a node with another."""
    if source != target:
        begin, end = place_of(node, source, plan, state), place_of(node, target, plan, state)
        for column in range(plan.nodes[node, tables.WIDTH]):
            state.arena[end + column] = state.arena[begin + column]


@njit
def drop_used(plan, state):
    """Remove consumed events from buffers, and instances that hold one; negated events stay."""
    mask = len(state.events) - 1
    for leaf in range(plan.leaves):
        if plan.nodes[leaf, tables.IS_NEGATED] == 1:
            continue
        kept = state.lists[leaf, tables.START]
        for row in range(state.lists[leaf, tables.START], state.lists[leaf, tables.END]):
            event = event_at(leaf, row, state)
            if state.events[event & mask, tables.USED] == 0:
                state.buffers[leaf, kept & mask] = event
                kept += 1
        state.totals[tables.BUFFERED] -= state.lists[leaf, tables.END] - kept
        state.lists[leaf, tables.END] = state.lists[leaf, tables.SINCE] = kept
        state.lists[leaf, tables.LIVE] = kept
        state.lists[leaf, tables.LIVE] -= state.lists[leaf, tables.START]
    for node in range(plan.leaves, len(plan.nodes)):
        kept = state.lists[node, tables.START]
        for row in range(state.lists[node, tables.START], state.lists[node, tables.END]):
            place = place_of(node, row, plan, state)
            # The events of an expired record may have been overwritten.
            if is_expired(node, place, plan, state):
                continue
            if _is_used(node, place + tables.VARIABLES, plan, state):
                uncount(node, state.arena[place + tables.FIRST], plan, state)
            else:
                move(node, row, kept, plan, state)
                kept += 1
        state.lists[node, tables.END] = state.lists[node, tables.SINCE] = kept


@njit_in_place
def _is_used(node, place, plan, state):
    """Whether an instance whose variables begin at ``place`` holds a consumed event."""
    first = plan.spans[node, tables.SLOTS]
    for rule in range(first, plan.spans[node, tables.SLOTS + 1]):
        if is_used(state.arena[place + rule - first], plan.rules[rule, 1] == 1, state):
            return True
    return False


@njit_in_place
def is_used(bound, is_set, state):
    """Whether an event, or one of a set, has been consumed.

    ``bound``: the ordinal of the event, or of the set's newest cell.
    """
    mask, cell_mask = len(state.events) - 1, len(state.cells) - 1
    if not is_set:
        return state.events[bound & mask, tables.USED] == 1
    while bound >= 0:
        if state.events[state.cells[bound & cell_mask, tables.MEMBER] & mask, tables.USED] == 1:
            return True
        bound = state.cells[bound & cell_mask, tables.BEFORE]
    return False
