"""The moves that a run may make on an event, and what it becomes by selecting it.

Source: [agrawal2008]_, sections 3.1 and 5.2.1.
"""

from __future__ import annotations

from cepbench.engines.sase.kernels import tables
from cepbench.engines.sase.kernels.conditions import holds, update
from cepbench.engines.sase.kernels.profile import note_asked
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def waits(at_state, last, now, plan):
    """Whether a run lets an event pass that has the timestamp of its last one, ``last``.

    Events of different items are in the order of time; under contiguity the run ends there.
    """
    return last == now and plan.kinds[at_state] == tables.SINGLE and not plan.dies


@njit_in_place
def moves(at_state, last, row, vector, plan, runs, events):
    """The moves that the formulas of a state allow on an event in the run's window and partition.

    ``last``: timestamp of the run's last event. ``runs``: their pool.

    Returns the sum of ``LEAVES``, ``OWN`` and ``STAYS``, of those that it may make.
    """
    now, flags, edge = events.times[row], events.flags[row], tables.EDGES * at_state
    found = tables.STAYS if plan.ignores else 0
    runs.tallies[tables.EVALUATED] += 1
    if plan.kinds[at_state] == tables.LOOP:
        after = edge + tables.EDGES
        if at_state + 1 < plan.states:
            runs.tallies[tables.EVALUATED] += 1
            # Of a further item, for which time must have passed.
            if (
                flags & plan.bits[after + tables.BEGIN]
                and last < now
                and holds(after + tables.BEGIN, row, vector, plan, runs, events)
            ):
                runs.tallies[tables.EVALUATED] += 1
                if holds(edge + tables.PROCEED, row, vector, plan, runs, events):
                    found |= tables.LEAVES
        if flags & plan.bits[edge + tables.TAKE] and holds(
            edge + tables.TAKE, row, vector, plan, runs, events
        ):
            return found | tables.OWN
    elif (
        flags & plan.bits[edge + tables.BEGIN]
        and last < now
        and holds(edge + tables.BEGIN, row, vector, plan, runs, events)
    ):
        return found | tables.OWN
    return found if plan.dies else found | tables.STAYS


@njit_in_place
def selects(at_state, row, vector, plan, runs, events):
    """Enter an event in V at a state, unless the run ends there; returns whether it then accepts."""
    target = plan.targets[at_state]
    if target == plan.states:
        return True
    edge = tables.EDGES * at_state + (
        tables.TAKE if plan.kinds[at_state] == tables.LOOP else tables.BEGIN
    )
    update(edge, row, vector, plan, events)
    if not plan.accepts[target]:
        return False
    # A loop behind which the pattern ends.
    runs.tallies[tables.EVALUATED] += 1
    accepts = holds(tables.EDGES * target + tables.PROCEED, row, vector, plan, runs, events)
    note_asked(runs.profile, target, accepts)
    return accepts
