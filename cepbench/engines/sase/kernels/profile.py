"""What is counted at the states of an automaton, for explanations.

A profile is a table with a row a state. It is empty if nothing is to be counted, which costs runs the
test of its length.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.sase.kernels import starts
from cepbench.engines.sase.kernels.tables import LEAVES, OWN, Plan
from cepbench.kernels.exact import DIGIT_BITS
from cepbench.kernels.jit import njit, njit_in_place

# Columns: events read by runs; those for which begin or, in a loop, take held, and those for which
# proceed did; tests of whether the set of the last item is complete; runs stored, the most of them,
# and their sum over events; runs that would have read the events if none were merged.
READS, SELECTED, LEFT, ASKED, STORED, MOST, SUM, APART, PROFILE_COLUMNS = range(9)


def empty_profile(plan: Plan, *, watched: bool) -> np.ndarray:
    """A profile of an automaton; without rows if nothing is to be counted."""
    return np.zeros((plan.states if watched else 0, PROFILE_COLUMNS))


@njit_in_place
def note(profile, at_state, column):
    """Count an occurrence."""
    if len(profile) > 0:
        profile[at_state, column] += 1.0


@njit_in_place
def note_asked(profile, at_state, holds):
    """Count a test of whether the set of the last item is complete, and its result."""
    if len(profile) > 0:
        profile[at_state, ASKED] += 1.0
        profile[at_state, LEFT] += holds


@njit_in_place
def note_moves(profile, at_state, found):
    """Count an event read by a run that is apart, and the edges that it passes, see
    :func:`cepbench.engines.sase.kernels.moves.moves`.
    """
    if len(profile) > 0:
        profile[at_state, READS] += 1.0
        profile[at_state, APART] += 1.0
        profile[at_state, SELECTED] += found & OWN != 0
        profile[at_state, LEFT] += found & LEAVES != 0


@njit_in_place
def note_read(run, at_state, plan, state, earliest):
    """Count an event read by a merged run, and the histories that it stands for."""
    if len(state.profile) > 0:
        _note_read(run, at_state, plan, state, earliest)


@njit
def _note_read(run, at_state, plan, state, earliest):
    """As :func:`note_read`; a function of its own, not inlined."""
    state.profile[at_state, READS] += 1.0
    if plan.counts:
        starts.expire(state, run, earliest)
        for digit in range(state.totals.shape[1]):
            weight = 2.0 ** (DIGIT_BITS * digit)
            state.profile[at_state, APART] += state.totals[run, digit] * weight


@njit_in_place
def note_stored(profile, at_state, more):
    """Note that so many more runs are stored in a state, 1 or -1."""
    if len(profile) > 0:
        profile[at_state, STORED] += more
        profile[at_state, MOST] = max(profile[at_state, MOST], profile[at_state, STORED])


@njit_in_place
def elapse(profile, rows, at, times):
    """Note that the runs stored after a row of a batch are there until the next one."""
    if len(profile) > 0:
        until = rows[at + 1] if at + 1 < len(rows) else len(times)
        for at_state in range(len(profile)):
            profile[at_state, SUM] += profile[at_state, STORED] * (until - rows[at])
