"""Clauses over a single row, for conditions that cannot be tested on a block of candidates.

A clause that reads a set of a Kleene variable, or a negated event and a set, is a separate program,
run for every row. Its rules are a header ``(CLAUSE, slots, -, rules)`` with the number of sets that
it reads and of its rules; for each set ``(SLOT, leaf, start column or -1, loop)``, where -1 is the
set under construction; then instructions ``(opcode, argument, slot, more)`` of a stack machine. It
holds if its program is true for all members, or pairs of members, over which it ranges.

This module has the parts that do not depend on how an engine stores events.
"""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels import instructions
from cepbench.kernels.instructions import calculated, compares
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def members_met(size, loops, newest):
    """The members of a set over which a clause ranges.

    ``loops``: int, ``ONCE``, ``EACH`` or ``FROM_SECOND``.
    ``newest``: int, 1 to test only the newest member, else 0.

    Returns ``first, last``: int, the members ``first..last``; for ``ONCE`` a single iteration
    without a member.
    """
    if loops == instructions.ONCE:
        return 0, 1
    if newest == 1:
        return max(size - 1, loops - instructions.EACH), size
    return loops - instructions.EACH, size


@njit_in_place
def member_read(opcode, at, size):
    """The number of the member that an instruction reads.

    ``opcode``: int, ``LOAD_MEMBER`` … ``LOAD_LAST``.
    ``at``: int, the current member.
    ``size``: int, of the set.
    """
    if opcode == instructions.LOAD_PREVIOUS:
        return at - 1
    if opcode == instructions.LOAD_FIRST:
        return 0
    if opcode == instructions.LOAD_LAST:
        return size - 1
    return at


@njit_in_place
def operate(opcode, argument, constants, stack, top):
    """Run an instruction that reads no event.

    ``constants``: float64 array.
    ``stack``: float64 (STACK,), written in place.
    ``top``: int, number of values on the stack.

    Returns ``top``: int.
    """
    if opcode < instructions.LOAD_LEFT:
        stack[top - 2] = compares(opcode, stack[top - 2], stack[top - 1])
        return top - 1
    if opcode == instructions.LOAD_CONSTANT:
        stack[top] = constants[argument]
        return top + 1
    if opcode == instructions.NEGATE:
        stack[top - 1] = -stack[top - 1]
        return top
    stack[top - 2] = calculated(opcode, stack[top - 2], stack[top - 1])
    return top - 1


@njit_in_place
def aggregated(function, size, total, least, greatest):
    """The aggregate over the members of a set.

    ``function``: int, ``SUM`` … ``COUNT``.
    ``size``: int, number of members.
    ``total``, ``least``, ``greatest``: float, of their values; not read for ``COUNT``.
    """
    if function == instructions.COUNT:
        return float(size)
    if math.isnan(total) or size == 0:
        return np.nan
    if function == instructions.SUM:
        return total
    if function == instructions.AVERAGE:
        return total / size
    return least if function == instructions.LEAST else greatest
