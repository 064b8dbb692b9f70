"""What engines share that construct the sequences of a SEQ depth first, from the last item on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.kernels.clauses import operate
from cepbench.kernels.instructions import KEEP_IF_TRUE, LOAD_LEFT
from cepbench.kernels.jit import njit

# Kinds of rules: (column of the candidate, other column, operator, owner of the other column), and
# programs of a stack machine, see cepbench.kernels.instructions, in which LOAD_LEFT names column and
# owner. An owner is an item, or a negated item behind these.
COMPARE, PROGRAM, RULE_KINDS = 0, 1, 2

# What PROGRESS holds between calls.
ITEM, WRITTEN, FOUND, PROGRESS = 0, 1, 2, 3

# Columns of TALLIES, by item.
EXTENDED, COMPARED, TALLIES = 0, 1, 2


class Scratch(NamedTuple):
    """Working space, and the construction where it paused.

    Initially ``progress`` is ``(items, 0, 0)``, and ``at`` and ``sizes`` end with 0 and 1.
    """

    candidates: np.ndarray  #: int64 (items, longest range): rows to be chosen at each item
    sizes: np.ndarray  #: int64 (items + 1,): how many there are; behind the items, 1
    at: np.ndarray  #: int64 (items + 1,): and how many of them have been chosen
    bound: np.ndarray  #: int64 (owners,): the rows chosen
    values: np.ndarray  #: float64: what conditions read, one column after the other
    origins: np.ndarray  #: int64 (columns,): where row 0 of each column would be in ``values``
    stack: np.ndarray  #: float64 (STACK,)
    progress: np.ndarray  #: int64 (PROGRESS,)
    tallies: np.ndarray  #: int64 (items, TALLIES)


@njit
def programs_hold(first, last, plan, scratch):
    """Whether the programs ``plan.rules[first:last]`` hold; a function of its own, not inlined."""
    stack, values = scratch.stack, scratch.values
    top = 0
    for rule in range(first, last):
        opcode, argument = plan.rules[rule, 0], plan.rules[rule, 1]
        if opcode == LOAD_LEFT:
            stack[top] = values[scratch.origins[argument] + scratch.bound[plan.rules[rule, 2]]]
            top += 1
        elif opcode == KEEP_IF_TRUE:
            if stack[top - 1] == 0.0:
                return False
            top = 0
        else:
            top = operate(opcode, argument, plan.constants, stack, top)
    return True
