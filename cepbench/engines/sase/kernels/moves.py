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

    ``last``: timestamp of the run's last event. ``runs``: a pool of runs, or merged ones.

    Returns the sum of ``LEAVES``, ``OWN`` and ``STAYS``, of those that it may make.
    """
    now, flags = events.times[row], events.flags[row]
    is_loop = plan.kinds[at_state] == LOOP
    found = 0
    for step in range(3 if is_loop and at_state + 1 < plan.states else 1):
        # Whether the event is of a further item, for which time must have passed.
        begins = step == 1 or (step == 0 and not is_loop)
        edge = EDGES * at_state + (TAKE if is_loop else BEGIN)
        if step > 0:
            edge = EDGES * (at_state + 1) + BEGIN if step == 1 else EDGES * at_state + PROCEED
        passes = (
            (step == 2 or flags & plan.bits[edge] != 0)
            and (not begins or last < now)
            and holds(edge, row, vector, plan, runs, events)
        )
        if step == 0:
            found = OWN if passes else 0
        elif not passes:
            break
        elif step == 2:
            found |= LEAVES
    runs.tallies[EVALUATED] += step + 1
    if plan.ignores or (found & OWN == 0 and not plan.dies):
        found |= STAYS
    return found


@njit_in_place
def selects(at_state, row, vector, plan, runs, events):
    """Enter an event in V at a state, unless the run ends there; returns whether it then accepts."""
    target = plan.targets[at_state]
    if target == plan.states:
        return True
    edge = EDGES * at_state + (TAKE if plan.kinds[at_state] == LOOP else BEGIN)
    update(edge, row, vector, plan, events)
    return completes(target, row, vector, plan, runs, events)


@njit_in_place
def completes(at_state, row, vector, plan, runs, events):
    """Whether a loop behind which the pattern ends proceeds with the event that it has taken."""
    if not plan.accepts[at_state]:
        return False
    runs.tallies[EVALUATED] += 1
    complete = holds(EDGES * at_state + PROCEED, row, vector, plan, runs, events)
    note_asked(runs.profile, at_state, complete)
    return complete
