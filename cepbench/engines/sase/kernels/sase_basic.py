"""Runs apart: each event is read once, by all runs of its partition.

Source: [agrawal2008]_, section 5.2.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.sase.kernels import partitions, tables
from cepbench.engines.sase.kernels.moves import moves, selects, waits
from cepbench.engines.sase.kernels.pool import (
    COLUMNS_OF_ALL,
    COUNTERS_OF_ALL,
    ENDS,
    FOLLOWING,
    LAST,
    NONE,
    ORIGIN,
    RUN_STATE,
    SETTLED,
    START,
    copied,
    enter,
    free,
    free_all,
    new_run,
    taken,
)
from cepbench.engines.sase.kernels.profile import elapse, note_moves, note_stored
from cepbench.engines.sase.kernels.versioned_buffer import (
    CREATED,
    DIGIT,
    END_DIGIT,
    END_ENTRY,
    END_FIRST,
    END_PREFIX,
    END_STACK,
    ENTRY,
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

# Further columns of RUNS: the version of a run; its last event, by stack and number there.
RUN_PREFIX, RUN_DIGIT, RUN_STACK, RUN_ENTRY, RUN_COLUMNS = range(COLUMNS_OF_ALL, COLUMNS_OF_ALL + 5)

# Further COUNTERS[...]: numbers of the first version kept and of the next one; selections logged; the
# row of the batch, and the run, to go on with.
(
    FIRST_VERSION, NEXT_VERSION, LOGGED, AT, AT_RUN, COUNTERS,
) = range(COUNTERS_OF_ALL, COUNTERS_OF_ALL + 6)  # fmt: skip

#: The values of ``AT_RUN`` when an event arrives and when all runs have read it.
ARRIVES, STARTS = -2, -1

#: What the moves of a run on an event may need: runs, selections, and versions.
_RUNS, SELECTIONS, VERSIONS = 2, 2, 4

# Columns of TOPS, by stack: the number of the next event, and the position of the last one.
NEXT_ENTRY, LAST_POSITION, TOPS = range(3)


class State(NamedTuple):
    """What runs have selected since the buffer was updated."""

    versions: np.ndarray  #: int64 (capacity, VERSION_COLUMNS): a ring, a power of two
    tops: np.ndarray  #: int64 (states, TOPS)
    log: np.ndarray  #: int64 (n, LOG_COLUMNS)


@njit_in_place
def advance_apart(plan, pool, state, events, counts, prunes):
    """Process a batch of events, from where ``pool.counters`` says.

    ``counts``: whether matches are only counted. ``prunes``: whether a match ends all runs of its partition, as OUTPUT non_overlap
    does.

    Returns whether all events have been processed; else a table is full.
    """
    runs, counters = pool.runs, pool.counters
    while counters[AT] < len(events.rows):
        row = events.rows[counters[AT]]
        now, flags = events.times[row], events.flags[row]
        tied = row + 1 == len(events.times) or events.times[row + 1] == now
        partition = partitions.find(plan, pool, events, row)
        if partition < 0 and flags & plan.bits[tables.BEGIN]:
            if counters[tables.FREE_PARTITION] < 0:
                return False
            partition = partitions.add(plan, pool, events, row)
        if partition >= 0 and counters[AT_RUN] == ARRIVES:
            # Runs that go on are entered anew.
            counters[AT_RUN] = taken(pool, partition, now)
        while counters[AT_RUN] != ARRIVES:
            if (
                counters[tables.FREE_RUNS] < _RUNS
                or counters[LOGGED] + SELECTIONS > len(state.log)
                or counters[ENDS] + SELECTIONS > len(pool.ends)
                or counters[NEXT_VERSION] - counters[FIRST_VERSION] + VERSIONS > len(state.versions)
            ):
                return False
            run = counters[AT_RUN]
            if run == STARTS:
                counters[AT_RUN] = ARRIVES
                if flags & plan.bits[tables.BEGIN] == 0:
                    break
                run = new_run(pool, partition)
                pool.tallies[tables.STARTED] += 1
                runs[run, RUN_PREFIX], runs[run, RUN_DIGIT] = NONE, pool.tallies[tables.STARTED]
                runs[run, RUN_STACK], runs[run, RUN_ENTRY] = NONE, NONE
                runs[run, START], runs[run, ORIGIN] = now, events.first + row
                found = tables.OWN
            else:
                counters[AT_RUN] = runs[run, FOLLOWING]
                note_stored(pool.profile, runs[run, RUN_STATE], -1)
                if runs[run, START] < now - plan.window:
                    free(pool, run)
                    continue
                at_state = runs[run, RUN_STATE]
                found = tables.STAYS
                is_read = plan.dies or flags & plan.relevant[at_state]
                if is_read and not waits(at_state, runs[run, LAST], now, plan):
                    pool.tallies[tables.VISITED] += 1
                    found = moves(
                        at_state, runs[run, LAST], row, pool.vectors[run], plan, pool, events
                    )
                    note_moves(pool.profile, at_state, found)
            for move in (tables.LEAVES, tables.OWN):
                if found & move:
                    copies = move == tables.LEAVES or found & tables.STAYS != 0
                    leaves = move == tables.LEAVES
                    _select(run, leaves, copies, row, tied, plan, pool, state, events, counts)
            if found & tables.STAYS:
                enter(run, now, tied, plan, pool)
            elif found & tables.OWN == 0:
                free(pool, run)
        if prunes and counters[ENDS] > counters[SETTLED]:
            _report(pool, partition)
        elapse(pool.profile, events.rows, counters[AT], events.times)
        counters[AT] += 1
    return True


@njit_in_place
def _longer(pool, state, prefix, digit, now):
    """The prefix of the versions that begin with a version."""
    number = pool.counters[NEXT_VERSION]
    pool.counters[NEXT_VERSION] = number + 1
    place = number & (len(state.versions) - 1)
    state.versions[place, PREFIX] = prefix
    state.versions[place, DIGIT] = digit
    state.versions[place, CREATED] = now
    return number


@njit_in_place
def _select(run, leaves, copies, row, tied, plan, pool, state, events, counts):
    """Select an event: by the run itself, or by a copy with a version of its own."""
    runs, counters, now = pool.runs, pool.counters, events.times[row]
    stack = runs[run, RUN_STATE] + leaves
    target = plan.targets[stack]
    prefix, digit = runs[run, RUN_PREFIX], runs[run, RUN_DIGIT]
    if leaves or (copies and target == stack):
        prefix, digit = _longer(pool, state, prefix, digit, now), 0
    entry = _log(run, stack, prefix, digit, row, pool, state, events)
    if copies:
        # The next instance of splitting at this state.
        runs[run, RUN_DIGIT] += 1
        pool.tallies[tables.SPLIT] += 1
        if target < plan.states:
            run = copied(pool, pool, run)
    if selects(stack, row, pool.vectors[run], plan, pool, events):
        if counts:
            pool.tallies[tables.FOUND] += 1
        else:
            end = counters[ENDS]
            counters[ENDS] = end + 1
            pool.ends[end, END_PREFIX], pool.ends[end, END_DIGIT] = prefix, digit
            pool.ends[end, END_STACK], pool.ends[end, END_ENTRY] = stack, entry
            pool.ends[end, END_FIRST] = runs[run, ORIGIN]
    if target == plan.states:
        if not copies:
            free(pool, run)
        return
    if target != stack:
        # Versions have a digit for each state up to the current one.
        prefix, digit = _longer(pool, state, prefix, digit, now), 0
    runs[run, RUN_STATE] = target
    runs[run, RUN_PREFIX], runs[run, RUN_DIGIT] = prefix, digit
    runs[run, RUN_STACK], runs[run, RUN_ENTRY] = stack, entry
    runs[run, LAST] = now
    enter(run, now, tied, plan, pool)


@njit_in_place
def _log(run, stack, prefix, digit, row, pool, state, events):
    """Log a selection; returns the number of the event in its stack."""
    tops, log, position = state.tops, state.log, events.first + row
    if tops[stack, LAST_POSITION] != position:
        tops[stack, LAST_POSITION] = position
        tops[stack, NEXT_ENTRY] += 1
    entry = tops[stack, NEXT_ENTRY] - 1
    place = pool.counters[LOGGED]
    pool.counters[LOGGED] = place + 1
    log[place, STACK], log[place, ENTRY] = stack, entry
    log[place, POSITION], log[place, TIME] = position, events.times[row]
    log[place, OF_PREFIX], log[place, OF_DIGIT] = prefix, digit
    log[place, PREVIOUS_STACK] = pool.runs[run, RUN_STACK]
    log[place, PREVIOUS] = pool.runs[run, RUN_ENTRY]
    return entry


@njit_in_place
def _report(pool, partition):
    """End all runs of a partition in which runs have accepted; those that started last remain."""
    counters, ends = pool.counters, pool.ends
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
    free_all(pool, partition)


@njit_in_place
def prune_versions(pool, state, earliest):
    """Remove the versions created before ``earliest``, which no live run has."""
    counters = pool.counters
    counters[FIRST_VERSION] = first_since(
        state.versions[:, CREATED], counters[FIRST_VERSION], counters[NEXT_VERSION], earliest
    )
