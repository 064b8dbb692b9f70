"""Instructions of the stack machines that test conditions, and their effect on single numbers.

An instruction is four numbers, ``(opcode, argument, slot, more)``. Truth values are 0 and 1. NaN is
a missing value, and every comparison with it is false.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place

# Operators of a comparison.
LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, UNEQUAL = range(6)
LOAD_LEFT, LOAD_RIGHT, LOAD_CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, EITHER = range(6, 15)
KEEP_IF_TRUE = 15  # ends a clause, which fails if the truth value is 0

# A clause that reads sets begins with (CLAUSE, slots, -, rules), and with a SLOT for each set.
CLAUSE, SLOT = 0, 1
# How a clause ranges over a set: not at all, over all members, over all but the first.
ONCE, EACH, FROM_SECOND = range(3)
LOAD_MEMBER, LOAD_PREVIOUS, LOAD_FIRST, LOAD_LAST = range(16, 20)  # (column, slot): of a member
AGGREGATE = 20  # (column, slot, function + 8 for the members before this one only)
LOAD_INTEGER, LOAD_OTHER_INTEGER = 21, 22  # (integer column) of the row, of the other row
LOAD_MEMBER_INTEGER = 23  # (integer column, slot)
BEGIN_SPAN, SPAN_INTEGER, SPAN_SET, END_SPAN = range(24, 28)  # tests that integers are consecutive:
# (), (integer column), (integer column of the leaf, slot), ()
MODULO = 28  # with the sign of the dividend; NaN for the divisor 0

# Functions of an aggregate. All but COUNT are missing if any member has no value.
SUM, AVERAGE, LEAST, GREATEST, COUNT = range(5)

#: Numbers in an instruction, and in every other rule that kernels read.
RULE_COLUMNS = 4

#: Deepest stack that a program may need.
STACK = 64


@njit_in_place
def compares(operator, left, right):
    """Whether ``left operator right`` holds; never with NaN.

    ``operator``: int, ``LESS`` … ``UNEQUAL``.
    """
    if operator == LESS:
        return left < right
    if operator == LESS_EQUAL:
        return left <= right
    if operator == GREATER:
        return left > right
    if operator == GREATER_EQUAL:
        return left >= right
    if operator == EQUAL:
        return left == right
    return (left < right) | (left > right)


@njit_in_place
def passing(operator, values, other):
    """How many values pass a comparison with another one; a loop an operator, to vectorize.

    ``operator``: int, ``LESS`` … ``UNEQUAL``.
    ``values``: float64 array.
    """
    count = 0
    if operator == LESS:
        for k in range(len(values)):
            count += values[k] < other
    elif operator == LESS_EQUAL:
        for k in range(len(values)):
            count += values[k] <= other
    elif operator == GREATER:
        for k in range(len(values)):
            count += values[k] > other
    elif operator == GREATER_EQUAL:
        for k in range(len(values)):
            count += values[k] >= other
    elif operator == EQUAL:
        for k in range(len(values)):
            count += values[k] == other
    else:
        for k in range(len(values)):
            count += (values[k] < other) | (values[k] > other)
    return count


@njit_in_place
def calculated(opcode, left, right):
    """The result of an arithmetic or logical instruction.

    ``opcode``: int, ``ADD`` … ``DIVIDE``, ``MODULO`` or ``EITHER``.
    """
    if opcode == ADD:
        return left + right
    if opcode == SUBTRACT:
        return left - right
    if opcode == MULTIPLY:
        return left * right
    if opcode == DIVIDE:
        return np.divide(left, right)
    if opcode == MODULO:
        return np.fmod(left, right)
    return max(left, right)
