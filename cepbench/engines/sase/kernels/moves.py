"""The moves that a run may make on an event, and what it becomes by selecting it.

Source: [agrawal2008]_, sections 3.1 and 5.2.1.
"""

from __future__ import annotations

from cepbench.engines.sase.kernels.conditions import holds, update
from cepbench.engines.sase.kernels.profile import note_asked
from cepbench.engines.sase.kernels.tables import (
    BEGIN,
    EDGES,
    EVALUATED,
    LEAVES,
    LOOP,
    OWN,
    PROCEED,
    STAYS,
    TAKE,
)
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def moves(at_state, last, row, vector, plan, runs, events):
    """The moves that the formulas of a state allow on an event in the run's window and partition.

    ``last``: timestamp of the run's last event. ``runs``: their pool.

    Returns the sum of ``LEAVES``, ``OWN`` and ``STAYS``, of those that it may make.
    """
    now, flags, edge = events.times[row], events.flags[row], EDGES * at_state
    found = STAYS if plan.ignores else 0
    runs.tallies[EVALUATED] += 1
    if plan.kinds[at_state] == LOOP:
        after = edge + EDGES
        if at_state + 1 < plan.states:
            runs.tallies[EVALUATED] += 1
            # Of a further item, for which time must have passed.
            if (
                flags & plan.bits[after + BEGIN]
                and last < now
                and holds(after + BEGIN, row, vector, plan, runs, events)
            ):
                runs.tallies[EVALUATED] += 1
                if holds(edge + PROCEED, row, vector, plan, runs, events):
                    found |= LEAVES
        if flags & plan.bits[edge + TAKE] and holds(edge + TAKE, row, vector, plan, runs, events):
            return found | OWN
    elif (
        flags & plan.bits[edge + BEGIN]
        and last < now
        and holds(edge + BEGIN, row, vector, plan, runs, events)
    ):
        return found | OWN
    return found if plan.dies else found | STAYS


@njit_in_place
def selects(at_state, row, vector, plan, runs, events):
    """Enter an event in V at a state, unless the run ends there; returns whether it then accepts."""
    target = plan.targets[at_state]
    if target == plan.states:
        return True
    edge = EDGES * at_state + (TAKE if plan.kinds[at_state] == LOOP else BEGIN)
    update(edge, row, vector, plan, events)
    if not plan.accepts[target]:
        return False
    # A loop behind which the pattern ends.
    runs.tallies[EVALUATED] += 1
    accepts = holds(EDGES * target + PROCEED, row, vector, plan, runs, events)
    note_asked(runs.profile, target, accepts)
    return accepts
