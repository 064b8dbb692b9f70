"""Negation: tests of an instance against the buffered events of a negated variable."""

from __future__ import annotations

import numpy as np

from cepbench.engines.instances.kernels import tables
from cepbench.engines.instances.kernels.conditions import clauses_hold, fits
from cepbench.engines.instances.kernels.lists import event_at
from cepbench.kernels import counts
from cepbench.kernels.jit import njit_in_place

# Literals would make Numba compile what is called with them once more.
_ALL = np.int64(0)


@njit_in_place
def is_negated(node, first_check, last_check, first, last, plan, state, scratch):
    """Whether an event of a negated variable could be added to the bound instance.

    ``first_check``, ``last_check``: the checks ``first_check..last_check``, one per negated
    variable.
    """
    events, mask = state.events, len(state.events) - 1
    for check in range(first_check, last_check):
        leaf = plan.rules[plan.spans[check, tables.SLOTS], 0]
        earliest = events[last & mask, tables.TIME] - plan.window
        latest = events[first & mask, tables.TIME] + plan.window
        for row in range(state.lists[leaf, tables.START], state.lists[leaf, tables.END]):
            event = event_at(leaf, row, state)
            if events[event & mask, tables.TIME] < earliest:
                continue
            if events[event & mask, tables.TIME] > latest:
                break
            scratch.bound[leaf] = event
            state.counts[node, counts.COMPARED] += 1
            if fits(check, plan, state, scratch) and clauses_hold(
                plan.spans[check, tables.ROW],
                plan.spans[check, tables.ROW + 1],
                _ALL,
                plan,
                state,
                scratch,
            ):
                return True
    return False
