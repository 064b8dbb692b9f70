"""Conditions on the bound variables, tested one candidate at a time.

``scratch.bound`` has the ordinal of an event for each plain variable and the ordinal of a cell for
each Kleene variable; the variable whose set is being extended is bound to the new event.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.instances.kernels import tables
from cepbench.kernels import instructions
from cepbench.kernels.clauses import aggregated, member_read, members_met, operate
from cepbench.kernels.instructions import compares
from cepbench.kernels.jit import njit, njit_in_place

# A set that a clause reads: SLOTS[slot, ...].
_SIZE, _LOOPS, _AT = range(3)
SLOT_COLUMNS = 3

# Literals would make Numba compile what is called with them once more.
_ALL = np.int64(0)


@njit_in_place
def fits(owner, plan, state, scratch):
    """Whether the bound events satisfy the conditions of a node or a check on single events.

    ``owner``: a node or a check.
    """
    rules, spans, bound = plan.rules, plan.spans, scratch.bound
    events, cells = state.events, state.cells
    mask, cell_mask = len(events) - 1, len(cells) - 1
    for rule in range(spans[owner, tables.ORDER], spans[owner, tables.ORDER + 1]):
        x, y = bound[rules[rule, 0]], bound[rules[rule, 2]]
        if rules[rule, 1] == 1:
            x = cells[x & cell_mask, tables.MEMBER]
        if rules[rule, 3] == 1:
            y = cells[y & cell_mask, tables.OLDEST]
        if events[x & mask, tables.TIME] >= events[y & mask, tables.TIME]:
            return False
    for rule in range(spans[owner, tables.DISTINCT], spans[owner, tables.DISTINCT + 1]):
        x, y = bound[rules[rule, 0]], bound[rules[rule, 2]]
        if _share_an_event(x, rules[rule, 1] == 1, y, rules[rule, 3] == 1, state):
            return False
    for rule in range(spans[owner, tables.COMPARE], spans[owner, tables.COMPARE + 1]):
        left, right = rules[rule, 0], rules[rule, 1]
        x, y = bound[left // tables.VALUE] & mask, bound[right // tables.VALUE] & mask
        if not compares(
            rules[rule, 2],
            state.values[x, left % tables.VALUE],
            state.values[y, right % tables.VALUE],
        ):
            return False
    return clauses_hold(
        spans[owner, tables.CLAUSES], spans[owner, tables.CLAUSES + 1], _ALL, plan, state, scratch
    )


@njit_in_place
def _share_an_event(x, x_is_set, y, y_is_set, state):
    """Whether two variables have an event in common."""
    cells, mask = state.cells, len(state.cells) - 1
    if not x_is_set and not y_is_set:
        return x == y
    # From the newest members to the oldest.
    while True:
        one = cells[x & mask, tables.MEMBER] if x_is_set else x
        other = cells[y & mask, tables.MEMBER] if y_is_set else y
        if one == other:
            return True
        if one > other:
            if not x_is_set:
                return False
            x = cells[x & mask, tables.BEFORE]
            if x < 0:
                return False
        else:
            if not y_is_set:
                return False
            y = cells[y & mask, tables.BEFORE]
            if y < 0:
                return False


@njit_in_place
def clauses_hold(first, last, newest, plan, state, scratch):
    """Whether all clauses in ``plan.rules[first:last]`` hold.

    ``newest``: 1 to test only the newest member of a set, else 0.
    """
    return first == last or _all_hold(first, last, newest, plan, state, scratch)


@njit
def _all_hold(first, last, newest, plan, state, scratch):
    """As :func:`clauses_hold`; a function of its own, which is not inlined."""
    at = first
    slots = scratch.slots
    while at < last:
        used, end = plan.rules[at, 1], at + plan.rules[at, 3]
        for slot in range(2):
            slots[slot, _SIZE], slots[slot, _LOOPS] = 1, instructions.ONCE
        for slot in range(used):
            rule = at + 1 + slot
            slots[slot, _LOOPS] = plan.rules[rule, 3]
            slots[slot, _SIZE] = list_members(
                scratch.bound[plan.rules[rule, 1]], state.chosen[slot], state
            )
        first_0, last_0 = members_met(slots[0, _SIZE], slots[0, _LOOPS], newest)
        first_1, last_1 = members_met(slots[1, _SIZE], slots[1, _LOOPS], newest)
        for i in range(first_0, last_0):
            slots[0, _AT] = i
            for j in range(first_1, last_1):
                slots[1, _AT] = j
                if not _is_true(at + 1 + used, end, plan, state, scratch):
                    return False
        at = end
    return True


@njit_in_place
def list_members(cell, members, state):
    """Write the ordinals of a set's events to ``members``, ascending, and return their number.

    ``cell``: the ordinal of the set's newest cell.
    """
    cells, mask = state.cells, len(state.cells) - 1
    size = cells[cell & mask, tables.SIZE]
    for place in range(size - 1, -1, -1):
        members[place] = cells[cell & mask, tables.MEMBER]
        cell = cells[cell & mask, tables.BEFORE]
    return size


@njit_in_place
def _is_true(first, last, plan, state, scratch):
    """Run one clause's instructions for the current members."""
    stack, slots, rules = scratch.stack, scratch.slots, plan.rules
    mask = len(state.events) - 1
    top = 0
    for instruction in range(first, last):
        opcode, argument = rules[instruction, 0], rules[instruction, 1]
        slot = rules[instruction, 2]
        if opcode == instructions.LOAD_LEFT:
            event = scratch.bound[argument // tables.VALUE] & mask
            stack[top] = state.values[event, argument % tables.VALUE]
            top += 1
        elif instructions.LOAD_MEMBER <= opcode <= instructions.LOAD_LAST:
            at = member_read(opcode, slots[slot, _AT], slots[slot, _SIZE])
            stack[top] = state.values[state.chosen[slot, at] & mask, argument]
            top += 1
        elif opcode == instructions.AGGREGATE:
            more = rules[instruction, 3]
            size = slots[slot, _AT] if more >= 8 else slots[slot, _SIZE]
            stack[top] = _aggregate(more % 8, slot, size, argument, state)
            top += 1
        elif opcode == instructions.KEEP_IF_TRUE:
            return stack[top - 1] != 0.0
        else:
            top = operate(opcode, argument, plan.constants, stack, top)
    return True


@njit_in_place
def _aggregate(function, slot, size, column, state):
    """An aggregate over the first ``size`` members of a set."""
    mask = len(state.events) - 1
    total, least, greatest = 0.0, np.inf, -np.inf
    for at in range(0 if function == instructions.COUNT else size):
        value = state.values[state.chosen[slot, at] & mask, column]
        total += value
        least, greatest = min(least, value), max(greatest, value)
    return aggregated(function, size, total, least, greatest)
