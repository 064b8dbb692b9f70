"""Runs apart: each event is read once, by all runs of its partition.

Source: [agrawal2008]_, section 5.2.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.sase.kernels.moves import (
    COUNTERS_OF_ENDS,
    ENDS,
    SETTLED,
    moves,
    selects,
)
from cepbench.engines.sase.kernels.profile import elapse, note_moves, note_stored
from cepbench.engines.sase.kernels.tables import (
    BEGIN,
    FOUND,
    LEAVES,
    OWN,
    PEAK_RUNS,
    SPLIT,
    STARTED,
    STAYS,
    VISITED,
)
from cepbench.engines.sase.kernels.versioned_buffer import (
    CREATED,
    DIGIT,
    END_DIGIT,
    END_ENTRY,
    END_FIRST,
    END_PREFIX,
    END_STACK,
    ENTRY,
    NONE,
    OF_DIGIT,
    OF_PREFIX,
    POSITION,
    PREFIX,
    PREVIOUS,
    PREVIOUS_STACK,
    STACK,
    TIME,
    first_since,
)
from cepbench.kernels.jit import njit_in_place

# Columns of RUNS: the computation state but for V, then what else is known of a run.
RUN_STATE = 0  # -1: no run
RUN_PREFIX, RUN_DIGIT = 1, 2  # its version
RUN_STACK, RUN_ENTRY = 3, 4  # its last event
START = 5  # timestamp of its first event
LAST = 6  # timestamp of its last event
ORIGIN = 7  # position of its first event
PARTITION = 8
FOLLOWING = 9  # in the list of its partition, or of free runs
RUN_COLUMNS = 10

# Further COUNTERS[...]: the first free run and the number of free ones; numbers of the first version
# kept and of the next one; selections logged; the row of the batch, and the run, to go on with.
(
    FREE, FREE_RUNS, FIRST_VERSION, NEXT_VERSION, LOGGED, AT, AT_RUN, COUNTERS,
) = range(COUNTERS_OF_ENDS, COUNTERS_OF_ENDS + 8)  # fmt: skip

#: The values of ``AT_RUN`` when an event arrives and when all runs have read it.
ARRIVES, STARTS = -2, -1

#: What the moves of a run on an event may need: runs, selections, and versions.
_RUNS, SELECTIONS, VERSIONS = 2, 2, 4

# Columns of TOPS, by stack: the number of the next event, and the position of the last one.
NEXT_ENTRY, LAST_POSITION, TOPS = range(3)


class State(NamedTuple):
    """Runs, and what they share."""

    runs: np.ndarray  #: int64 (capacity, RUN_COLUMNS)
    vectors: np.ndarray  #: float64 (capacity, columns): V
    heads: np.ndarray  #: int64 (partitions,): the first run of each
    versions: np.ndarray  #: int64 (capacity, VERSION_COLUMNS): a ring, a power of two
    tops: np.ndarray  #: int64 (states, TOPS)
    log: np.ndarray  #: int64 (n, LOG_COLUMNS)
    ends: np.ndarray  #: int64 (n, END_COLUMNS)
    counters: np.ndarray  #: int64 (COUNTERS,)


@njit_in_place
def advance_apart(plan, state, machine, events, partitions, counts, prunes):
    """Process a batch of events, from where ``state.counters`` says.

    ``partitions``: int64 (rows,), of each row of ``events.rows``. ``counts``: whether matches are
    only counted. ``prunes``: whether a match ends all runs of its partition, as OUTPUT non_overlap
    does.

    Returns whether all events have been processed; else a table is full.
    """
    runs, counters = state.runs, state.counters
    while counters[AT] < len(events.rows):
        row = events.rows[counters[AT]]
        partition = partitions[counters[AT]]
        now, flags = events.times[row], events.flags[row]
        if counters[AT_RUN] == ARRIVES:
            # Runs that go on are entered anew.
            counters[AT_RUN] = state.heads[partition]
            state.heads[partition] = NONE
        while counters[AT_RUN] != ARRIVES:
            if (
                counters[FREE_RUNS] < _RUNS
                or counters[LOGGED] + SELECTIONS > len(state.log)
                or counters[ENDS] + SELECTIONS > len(state.ends)
                or counters[NEXT_VERSION] - counters[FIRST_VERSION] + VERSIONS > len(state.versions)
            ):
                return False
            run = counters[AT_RUN]
            if run == STARTS:
                counters[AT_RUN] = ARRIVES
                if flags & plan.bits[BEGIN] == 0:
                    break
                run = _new_run(state, machine, partition)
                machine.tallies[STARTED] += 1
                runs[run, RUN_STATE] = 0
                runs[run, RUN_PREFIX], runs[run, RUN_DIGIT] = NONE, machine.tallies[STARTED]
                runs[run, RUN_STACK], runs[run, RUN_ENTRY] = NONE, NONE
                runs[run, START], runs[run, ORIGIN] = now, events.first + row
                found = OWN
            else:
                counters[AT_RUN] = runs[run, FOLLOWING]
                note_stored(machine.profile, runs[run, RUN_STATE], -1)
                if runs[run, START] < now - plan.window:
                    _free(state, run)
                    continue
                at_state = runs[run, RUN_STATE]
                found = STAYS
                if plan.dies or flags & plan.relevant[at_state]:
                    machine.tallies[VISITED] += 1
                    found = moves(
                        at_state, runs[run, LAST], row, state.vectors[run], plan, machine, events
                    )
                    note_moves(machine.profile, at_state, found)
            for move in (LEAVES, OWN):
                if found & move:
                    copies = move == LEAVES or found & STAYS != 0
                    leaves = move == LEAVES
                    _select(run, leaves, copies, row, plan, state, machine, events, counts)
            if found & STAYS:
                _enter(state, run, machine)
            elif found & OWN == 0:
                _free(state, run)
        if prunes and counters[ENDS] > counters[SETTLED]:
            _report(state, partition, machine)
        elapse(machine.profile, events.rows, counters[AT], events.times)
        counters[AT] += 1
    return True


@njit_in_place
def _new_run(state, machine, partition):
    """A run from the pool."""
    counters = state.counters
    run = counters[FREE]
    counters[FREE] = state.runs[run, FOLLOWING]
    counters[FREE_RUNS] -= 1
    state.runs[run, PARTITION] = partition
    live = len(state.runs) - counters[FREE_RUNS]
    machine.tallies[PEAK_RUNS] = max(machine.tallies[PEAK_RUNS], live)
    return run


@njit_in_place
def _free(state, run):
    """Return a run to the pool."""
    state.runs[run, RUN_STATE] = NONE
    state.runs[run, FOLLOWING] = state.counters[FREE]
    state.counters[FREE] = run
    state.counters[FREE_RUNS] += 1


@njit_in_place
def _enter(state, run, machine):
    """Enter a run in the list of its partition."""
    note_stored(machine.profile, state.runs[run, RUN_STATE], 1)
    partition = state.runs[run, PARTITION]
    state.runs[run, FOLLOWING] = state.heads[partition]
    state.heads[partition] = run


@njit_in_place
def _longer(state, prefix, digit, now):
    """The prefix of the versions that begin with a version."""
    number = state.counters[NEXT_VERSION]
    state.counters[NEXT_VERSION] = number + 1
    place = number & (len(state.versions) - 1)
    state.versions[place, PREFIX] = prefix
    state.versions[place, DIGIT] = digit
    state.versions[place, CREATED] = now
    return number


@njit_in_place
def _select(run, leaves, copies, row, plan, state, machine, events, counts):
    """Select an event: by the run itself, or by a copy with a version of its own."""
    runs, counters, now = state.runs, state.counters, events.times[row]
    stack = runs[run, RUN_STATE] + leaves
    target = plan.targets[stack]
    prefix, digit = runs[run, RUN_PREFIX], runs[run, RUN_DIGIT]
    if leaves or (copies and target == stack):
        prefix, digit = _longer(state, prefix, digit, now), 0
    entry = _log(run, stack, prefix, digit, row, state, events)
    if copies:
        # The next instance of splitting at this state.
        runs[run, RUN_DIGIT] += 1
        machine.tallies[SPLIT] += 1
        if target < plan.states:
            copy = _new_run(state, machine, runs[run, PARTITION])
            for field in (START, ORIGIN):
                runs[copy, field] = runs[run, field]
            for column in range(state.vectors.shape[1]):
                state.vectors[copy, column] = state.vectors[run, column]
            run = copy
    if selects(stack, row, state.vectors[run], plan, machine, events):
        if counts:
            machine.tallies[FOUND] += 1
        else:
            end = counters[ENDS]
            counters[ENDS] = end + 1
            state.ends[end, END_PREFIX], state.ends[end, END_DIGIT] = prefix, digit
            state.ends[end, END_STACK], state.ends[end, END_ENTRY] = stack, entry
            state.ends[end, END_FIRST] = runs[run, ORIGIN]
    if target == plan.states:
        if not copies:
            _free(state, run)
        return
    if target != stack:
        # Versions have a digit for each state up to the current one.
        prefix, digit = _longer(state, prefix, digit, now), 0
    runs[run, RUN_STATE] = target
    runs[run, RUN_PREFIX], runs[run, RUN_DIGIT] = prefix, digit
    runs[run, RUN_STACK], runs[run, RUN_ENTRY] = stack, entry
    runs[run, LAST] = now
    _enter(state, run, machine)


@njit_in_place
def _log(run, stack, prefix, digit, row, state, events):
    """Log a selection; returns the number of the event in its stack."""
    tops, log, position = state.tops, state.log, events.first + row
    if tops[stack, LAST_POSITION] != position:
        tops[stack, LAST_POSITION] = position
        tops[stack, NEXT_ENTRY] += 1
    entry = tops[stack, NEXT_ENTRY] - 1
    place = state.counters[LOGGED]
    state.counters[LOGGED] = place + 1
    log[place, STACK], log[place, ENTRY] = stack, entry
    log[place, POSITION], log[place, TIME] = position, events.times[row]
    log[place, OF_PREFIX], log[place, OF_DIGIT] = prefix, digit
    log[place, PREVIOUS_STACK] = state.runs[run, RUN_STACK]
    log[place, PREVIOUS] = state.runs[run, RUN_ENTRY]
    return entry


@njit_in_place
def _report(state, partition, machine):
    """End all runs of a partition in which runs have accepted; those that started last remain."""
    counters, ends = state.counters, state.ends
    latest = -1
    for end in range(counters[SETTLED], counters[ENDS]):
        latest = max(latest, ends[end, END_FIRST])
    kept = counters[SETTLED]
    for end in range(counters[SETTLED], counters[ENDS]):
        if ends[end, END_FIRST] == latest:
            for field in range(ends.shape[1]):
                ends[kept, field] = ends[end, field]
            kept += 1
    counters[ENDS] = counters[SETTLED] = kept
    run = state.heads[partition]
    while run >= 0:
        following = state.runs[run, FOLLOWING]
        note_stored(machine.profile, state.runs[run, RUN_STATE], -1)
        _free(state, run)
        run = following
    state.heads[partition] = NONE


@njit_in_place
def add_runs(state, old):
    """Enter the runs from number ``old`` on in the pool."""
    for run in range(old, len(state.runs)):
        _free(state, run)


@njit_in_place
def enter_all(state, partitions, machine):
    """Enter the first runs, which are in no list, in those of their partitions, which are empty.

    ``partitions``: int64 (runs,).
    """
    for run in range(len(partitions)):
        state.runs[run, PARTITION] = partitions[run]
        _enter(state, run, machine)


@njit_in_place
def prune_versions(state, earliest):
    """Remove the versions created before ``earliest``, which no live run has."""
    counters = state.counters
    counters[FIRST_VERSION] = first_since(
        state.versions[:, CREATED], counters[FIRST_VERSION], counters[NEXT_VERSION], earliest
    )
