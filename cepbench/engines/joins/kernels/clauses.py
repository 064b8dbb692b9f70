"""Clauses over a row of the join engine; see :mod:`cepbench.kernels.clauses`."""

from __future__ import annotations

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.kernels import instructions
from cepbench.kernels.clauses import aggregated, member_read, members_met, operate
from cepbench.kernels.jit import njit_in_place

# What is known of a set: SLOTS[slot, ...].
_LEAF, _BEGIN, _SIZE, _LOOPS, _AT = range(5)
SLOT_COLUMNS = 5


@njit_in_place
def clauses_hold(first, last, newest, node, row, other_node, other, size, plan, state, scratch):
    """Whether all clauses in ``plan.rules[first:last]`` hold.

    A row or other row may be -1, for none. ``newest``: 1 to test only the newest member of the set under construction, else 0.
    ``size``: of the set under construction, which
    lies behind the used part of the pool; else 0.
    """
    at = first
    slots = scratch.extras.slots
    while at < last:
        used, end = plan.rules[at, 1], at + plan.rules[at, 3]
        for slot in range(2):
            slots[slot, _SIZE], slots[slot, _LOOPS] = 1, instructions.ONCE
        for slot in range(used):
            rule = at + 1 + slot
            slots[slot, _LEAF] = plan.rules[rule, 1]
            slots[slot, _LOOPS] = plan.rules[rule, 3]
            if plan.rules[rule, 2] < 0:
                slots[slot, _BEGIN], slots[slot, _SIZE] = state.used[0], size
            else:
                column = tables.int_column(node, plan.rules[rule, 2], state) + row
                slots[slot, _BEGIN] = state.ints[column]
                slots[slot, _SIZE] = state.ints[column + state.rows[node, tables.CAPACITY]]
        first_0, last_0 = members_met(slots[0, _SIZE], slots[0, _LOOPS], newest)
        first_1, last_1 = members_met(slots[1, _SIZE], slots[1, _LOOPS], newest)
        for i in range(first_0, last_0):
            slots[0, _AT] = i
            for j in range(first_1, last_1):
                slots[1, _AT] = j
                if not _is_true(
                    at + 1 + used, end, node, row, other_node, other, plan, state, scratch
                ):
                    return False
        at = end
    return True


@njit_in_place
def _is_true(first, last, node, row, other_node, other, plan, state, scratch):
    """Run one clause's instructions for the present members."""
    values, slots = scratch.extras.values, scratch.extras.slots
    top = 0
    for instruction in range(first, last):
        opcode, argument = plan.rules[instruction, 0], plan.rules[instruction, 1]
        slot = plan.rules[instruction, 2]
        if opcode == instructions.LOAD_LEFT:
            values[top] = state.floats[tables.float_column(node, argument, state) + row]
            top += 1
        elif opcode == instructions.LOAD_RIGHT:
            values[top] = state.floats[tables.float_column(other_node, argument, state) + other]
            top += 1
        elif opcode == instructions.LOAD_INTEGER:
            values[top] = state.ints[tables.int_column(node, argument, state) + row]
            top += 1
        elif opcode == instructions.LOAD_OTHER_INTEGER:
            values[top] = state.ints[tables.int_column(other_node, argument, state) + other]
            top += 1
        elif instructions.LOAD_MEMBER <= opcode <= instructions.LOAD_LAST:
            at = member_read(opcode, slots[slot, _AT], slots[slot, _SIZE])
            values[top] = _float_of(slot, at, argument, slots, state)
            top += 1
        elif opcode == instructions.LOAD_MEMBER_INTEGER:
            at = slots[slot, _AT]
            values[top] = _int_of(slot, at, argument, slots, state)
            top += 1
        elif opcode == instructions.AGGREGATE:
            more = plan.rules[instruction, 3]
            size = slots[slot, _AT] if more >= 8 else slots[slot, _SIZE]
            values[top] = _aggregate(more % 8, slot, size, argument, slots, state)
            top += 1
        elif opcode == instructions.BEGIN_SPAN:
            values[0], values[1], values[2] = np.inf, -np.inf, 0.0
            top = 3
        elif opcode == instructions.SPAN_INTEGER:
            _widen(values, state.ints[tables.int_column(node, argument, state) + row])
        elif opcode == instructions.SPAN_SET:
            for at in range(slots[slot, _SIZE]):
                _widen(values, _int_of(slot, at, argument, slots, state))
        elif opcode == instructions.END_SPAN:
            values[0] = values[1] - values[0] + 1.0 == values[2]
            top = 1
        elif opcode == instructions.KEEP_IF_TRUE:
            return values[top - 1] != 0.0
        else:
            top = operate(opcode, argument, plan.constants, values, top)
    return True


@njit_in_place
def _float_of(slot, at, column, slots, state):
    """The value of a member of a set."""
    leaf = slots[slot, _LEAF]
    row = state.members[0, slots[slot, _BEGIN] + at] - state.rows[leaf, tables.SHIFT]
    return state.floats[tables.float_column(leaf, column, state) + row]


@njit_in_place
def _int_of(slot, at, column, slots, state):
    leaf = slots[slot, _LEAF]
    row = state.members[0, slots[slot, _BEGIN] + at] - state.rows[leaf, tables.SHIFT]
    return state.ints[tables.int_column(leaf, column, state) + row]


@njit_in_place
def _widen(values, integer):
    values[0] = min(values[0], integer)
    values[1] = max(values[1], integer)
    values[2] += 1.0


@njit_in_place
def _aggregate(function, slot, size, column, slots, state):
    """An aggregate over the first ``size`` members of a set."""
    total, least, greatest = 0.0, np.inf, -np.inf
    for at in range(0 if function == instructions.COUNT else size):
        value = _float_of(slot, at, column, slots, state)
        total += value
        least, greatest = min(least, value), max(greatest, value)
    return aggregated(function, size, total, least, greatest)
