"""Conditions on a block of candidates: loops over one column each, so that they vectorize.

The operator is constant within a loop, so the compiler generates one loop per operator. A mask,
uint8 (rows,), is 1 for the candidates that satisfy all conditions so far, and written in place. A
column is int64 (rows,) for bounds and float64 (rows,) for comparisons.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.instructions import (
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    KEEP_IF_TRUE,
    LESS,
    LESS_EQUAL,
    LOAD_CONSTANT,
    LOAD_LEFT,
    LOAD_RIGHT,
    NEGATE,
    UNEQUAL,
    calculated,
    compares,
)
from cepbench.kernels.jit import njit_in_place

#: Candidates tested together; a column of them fits the L1 cache.
BLOCK = 1024

# Bounds without effect.
LOWEST = np.iinfo(np.int64).min
HIGHEST = np.iinfo(np.int64).max

#: ``FLIPPED[operator]`` is the operator after exchanging the sides of a comparison.
FLIPPED = np.array([GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, EQUAL, UNEQUAL])


@njit_in_place
def keep_between(mask, column, low, high):
    """Drop candidates whose value is outside of [low, high)."""
    for row in range(len(column)):
        mask[row] &= (column[row] >= low) & (column[row] < high)


@njit_in_place
def keep_other(mask, column, value):
    """Drop candidates whose value equals ``value``."""
    for row in range(len(column)):
        mask[row] &= column[row] != value


@njit_in_place
def keep_compared(mask, operator, value, column):
    """Drop candidates for which ``value operator column`` does not hold (never with NaN)."""
    for row in range(len(column)):
        if not compares(operator, value, column[row]):
            mask[row] = 0


@njit_in_place
def count_between(column, low, high):
    """The number of values within [low, high)."""
    total = 0
    for row in range(len(column)):
        total += int((column[row] >= low) & (column[row] < high))
    return total


@njit_in_place
def count_between_both(column, low, high, second, second_low, second_high):
    """The number of rows with values within [low, high) and [second_low, second_high)."""
    total = 0
    if high == HIGHEST and second_low == LOWEST:
        # The case of rows bounded on both sides by the window.
        for row in range(len(column)):
            total += int((column[row] >= low) & (second[row] < second_high))
        return total
    for row in range(len(column)):
        total += int(
            (column[row] >= low)
            & (column[row] < high)
            & (second[row] >= second_low)
            & (second[row] < second_high)
        )
    return total


@njit_in_place
def count_compared(operator, value, column):
    """The number of values for which ``value operator column`` holds."""
    total = 0
    for row in range(len(column)):
        total += int(compares(operator, value, column[row]))
    return total


@njit_in_place
def run_program(mask, plan, first, last, stack, driver_is_left, floats, driver, sibling):
    """Drop candidates for which a clause of a program does not hold.

    Candidates are ``rows`` rows of the sibling; each is tested with the one row of the driver.

    ``mask``: uint8 (rows,), written in place.
    ``first``, ``last``: int, the program is ``plan.rules[first:last]``.
    ``stack``: float64 (STACK, BLOCK), working space.
    ``floats``: float64 (size,), the arena.
    ``driver``, ``sibling``: (int, int), offsets of column 0 of the driver's row and of the first
    candidate, and distances between columns.
    """
    size = len(mask)
    top = 0
    for instruction in range(first, last):
        opcode, argument = plan.rules[instruction, 0], plan.rules[instruction, 1]
        if opcode in (LOAD_LEFT, LOAD_RIGHT):
            if (opcode == LOAD_LEFT) == driver_is_left:
                stack[top, :size] = floats[driver[0] + argument * driver[1]]
            else:
                begin = sibling[0] + argument * sibling[1]
                for row in range(size):
                    stack[top, row] = floats[begin + row]
            top += 1
        elif opcode == LOAD_CONSTANT:
            stack[top, :size] = plan.constants[argument]
            top += 1
        elif opcode == NEGATE:
            for row in range(size):
                stack[top - 1, row] = -stack[top - 1, row]
        elif opcode == KEEP_IF_TRUE:
            top -= 1
            for row in range(size):
                mask[row] &= stack[top, row] != 0.0
        else:
            top -= 1
            left, right = stack[top - 1, :size], stack[top, :size]
            # Two loops, each of which the compiler specializes for the instruction.
            if opcode < LOAD_LEFT:
                for row in range(size):
                    left[row] = compares(opcode, left[row], right[row])
            else:
                for row in range(size):
                    left[row] = calculated(opcode, left[row], right[row])
