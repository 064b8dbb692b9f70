"""Formulas of edges, on an event and the vector V of a run."""

from __future__ import annotations

import numpy as np

from cepbench.engines.sase.kernels import tables
from cepbench.kernels.clauses import operate
from cepbench.kernels.instructions import KEEP_IF_TRUE, LOAD_LEFT, LOAD_RIGHT, compares
from cepbench.kernels.jit import njit, njit_in_place


@njit_in_place
def holds(edge, row, vector, plan, state, events):
    """Whether the conditions of an edge that read V hold; those on the event alone are in its flags."""
    spans, rules = plan.spans, plan.rules
    for rule in range(spans[edge, tables.COMPARE], spans[edge, tables.PROGRAM]):
        if not compares(rules[rule, 2], events.values[rules[rule, 0], row], vector[rules[rule, 1]]):
            return False
    return spans[edge, tables.PROGRAM] == spans[edge, tables.PROGRAM + 1] or _programs_hold(
        edge, row, vector, plan, state, events
    )


@njit
def _programs_hold(edge, row, vector, plan, state, events):
    """As :func:`holds`, of the other conditions; a function of its own, not inlined."""
    rules, stack = plan.rules, state.stack
    top = 0
    for rule in range(plan.spans[edge, tables.PROGRAM], plan.spans[edge, tables.PROGRAM + 1]):
        opcode, argument = rules[rule, 0], rules[rule, 1]
        if opcode == LOAD_LEFT:
            stack[top] = vector[argument]
            top += 1
        elif opcode == LOAD_RIGHT:
            stack[top] = events.values[argument, row]
            top += 1
        elif opcode == KEEP_IF_TRUE:
            if stack[top - 1] == 0.0:
                return False
            top = 0
        else:
            top = operate(opcode, argument, plan.constants, stack, top)
    return True


@njit_in_place
def update(edge, row, vector, plan, events):
    """Enter an event in V; sum, least and greatest of missing values are missing.

    Returns whether V has changed.
    """
    changed = False
    for number in range(plan.update_spans[edge], plan.update_spans[edge + 1]):
        column, source, operation = plan.updates[number]
        old = vector[column]
        if operation == tables.SET_ONE:
            new = 1.0
        elif operation == tables.ADD_ONE:
            new = old + 1.0
        else:
            new = events.values[source, row]
            if operation == tables.ADD:
                new += old
            elif operation == tables.LEAST:
                new = new if new < old or new != new else old
            elif operation == tables.GREATEST:
                new = new if new > old or new != new else old
        vector[column] = new
        changed = changed or _bits(new) != _bits(old)
    return changed


@njit_in_place
def is_equal(state, run, vector, first, last, masked):
    """Whether a run's V has the same masked values; a missing one is equal to a missing one."""
    for place in range(first, last):
        column = masked[place]
        if _bits(state.vectors[run, column]) != _bits(vector[column]):
            return False
    return True


@njit_in_place
def hashed(vector, first, last, masked, seed):
    """A hash of the masked values."""
    mixed = np.int64(seed) * 40503 + 2654435
    for place in range(first, last):
        bits = _bits(vector[masked[place]])
        bits = (bits >> 32) ^ (bits & 0xFFFFFFFF)
        mixed = ((mixed ^ (mixed >> 17)) & 0x3FFFFFFF) * 40503 + (bits & 0x7FFFFFFF) * 2654435
    return mixed ^ (mixed >> 15) ^ (mixed >> 30)


@njit_in_place
def _bits(value):
    return np.float64(value).view(np.int64)
