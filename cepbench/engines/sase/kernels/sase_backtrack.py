"""Backtracking: one run of a partition at a time; the others are postponed, and read events again.

Source: [agrawal2008]_, section 5.2.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.runs.kernels.graph import NONE, add_event, room
from cepbench.engines.sase.kernels.moves import (
    COUNTERS_OF_ENDS,
    ENDS,
    SETTLED,
    moves,
    selects,
)
from cepbench.engines.sase.kernels.profile import note_moves
from cepbench.engines.sase.kernels.tables import (
    BEGIN,
    FOUND,
    LEAVES,
    OWN,
    PEAK_RUNS,
    REPROCESSED,
    SPLIT,
    STARTED,
    STAYS,
    VISITED,
)
from cepbench.kernels.batches import NEVER
from cepbench.kernels.jit import njit_in_place

# Columns of RUNS, by run: state; timestamps of the first and of the last event; position of the first
# event; node of the last event in the graph; the row from which it reads, or the partition of a
# suspended run; the moves on that event that other runs have made.
RUN_STATE, START, LAST, ORIGIN, NODE, FROM, MADE, RUN_COLUMNS = range(8)

# Columns of ENDS, by accepting run: node of its last event, position of its first one.
END_NODE, END_FIRST, END_COLUMNS = range(3)

# Further COUNTERS[...]: the partition; the run that waits for it, and the row, to begin with next;
# runs on the stack, and in the list of those that have read all events; where the partition's begin
# in this; the row behind those read; the row of the last event of the match to be reported, and the
# position of its first one; runs split off from one.
(
    CURRENT, SOURCE, NEXT_ROW, DEPTH, SUSPENDED, BASE, READ, BOUND, LATEST, COPIES, COUNTERS,
) = range(COUNTERS_OF_ENDS, COUNTERS_OF_ENDS + 11)  # fmt: skip


class Runs(NamedTuple):
    """A list of runs."""

    numbers: np.ndarray  #: int64 (capacity, RUN_COLUMNS)
    vectors: np.ndarray  #: float64 (capacity, columns): V


class State(NamedTuple):
    """Runs, and what they share."""

    stack: Runs  #: the singleton run on top of the postponed ones
    waiting: Runs  #: those that had read all events of the last batch, by partition
    suspended: Runs  #: those that have read all events of this one
    ends: np.ndarray  #: int64 (n, END_COLUMNS)
    counters: np.ndarray  #: int64 (COUNTERS,)


@njit_in_place
def backtrack(plan, state, graph, machine, events, spans, waiting, limit, counts, prunes):
    """Process a batch of events, whose rows are by partition, from where ``state.counters`` says.

    ``spans``, ``waiting``: int64 (partitions + 1,), where in ``events.rows`` and in
    ``state.waiting`` each partition begins. ``limit``: maximum number of runs that are split off
    from one. ``counts``: whether matches are only counted. ``prunes``: whether only the matches of
    OUTPUT non_overlap are wanted.

    Returns whether all events have been processed; else a table is full, or the limit exceeded.
    """
    counters, stack = state.counters, state.stack.numbers
    while counters[CURRENT] < len(spans) - 1:
        current = counters[CURRENT]
        end = spans[current + 1]
        if (
            counters[DEPTH] + 1 >= len(stack)
            or counters[SUSPENDED] == len(state.suspended.numbers)
            or counters[ENDS] == len(state.ends)
            or counters[COPIES] > limit
            or (room(graph) < 1 and not counts)
        ):
            return False
        if counters[DEPTH] > 0:
            _step(plan, state, graph, machine, events, end, counts, prunes)
            continue
        counters[COPIES] = 0
        if counters[SOURCE] < waiting[current + 1]:
            _copy(state.waiting, counters[SOURCE], state.stack, 0)
            counters[SOURCE] += 1
            stack[0, FROM], stack[0, MADE] = spans[current], 0
            counters[DEPTH] = 1
        elif counters[NEXT_ROW] < min(end, counters[BOUND]):
            _start(counters[NEXT_ROW], plan, state, machine, events)
            counters[NEXT_ROW] += 1
        else:
            counters[SETTLED] = counters[ENDS]
            if counters[BOUND] != NEVER:
                # Later matches begin after this one.
                counters[SUSPENDED] = counters[BASE]
                counters[NEXT_ROW] = counters[BOUND]
            else:
                counters[CURRENT] = current + 1
                counters[BASE] = counters[SUSPENDED]
                counters[NEXT_ROW] = counters[READ] = end
            counters[BOUND], counters[LATEST] = NEVER, NONE
    return True


@njit_in_place
def _copy(source, place, target, to):
    """Copy a run from one list to another."""
    for field in range(RUN_COLUMNS):
        target.numbers[to, field] = source.numbers[place, field]
    for column in range(source.vectors.shape[1]):
        target.vectors[to, column] = source.vectors[place, column]


@njit_in_place
def _start(at, plan, state, machine, events):
    """Begin a run in the start state, which reads the event first."""
    row, run = events.rows[at], state.stack.numbers[0]
    if events.flags[row] & plan.bits[BEGIN] == 0:
        return
    run[RUN_STATE], run[NODE] = 0, NONE
    run[START], run[LAST] = events.times[row], events.times[row] - 1
    run[ORIGIN] = events.first + row
    run[FROM], run[MADE] = at, 0
    state.counters[DEPTH] = 1
    machine.tallies[STARTED] += 1
    _measure(state, machine)


@njit_in_place
def _measure(state, machine):
    """Note how many runs there are."""
    counters = state.counters
    waiting = len(state.waiting.numbers) - counters[SOURCE]
    live = counters[DEPTH] + counters[SUSPENDED] + waiting
    machine.tallies[PEAK_RUNS] = max(machine.tallies[PEAK_RUNS], live)


@njit_in_place
def _step(plan, state, graph, machine, events, end, counts, prunes):
    """Let the singleton run read an event."""
    counters, tallies = state.counters, machine.tallies
    top = counters[DEPTH] - 1
    run = state.stack.numbers[top]
    at = run[FROM]
    if at == end or at >= counters[BOUND]:
        if at == end and counters[BOUND] == NEVER:
            _copy(state.stack, top, state.suspended, counters[SUSPENDED])
            state.suspended.numbers[counters[SUSPENDED], FROM] = counters[CURRENT]
            counters[SUSPENDED] += 1
        counters[DEPTH] = top
        return
    row, at_state = events.rows[at], run[RUN_STATE]
    if run[START] < events.times[row] - plan.window:
        counters[DEPTH] = top
        return
    run[FROM] = at + 1
    if not (plan.dies or events.flags[row] & plan.relevant[at_state]):
        return
    tallies[VISITED] += at_state > 0
    tallies[REPROCESSED] += at < counters[READ]
    counters[READ] = max(counters[READ], at + 1)
    found = OWN
    if at_state > 0:
        found = moves(at_state, run[LAST], row, state.stack.vectors[top], plan, machine, events)
        note_moves(machine.profile, at_state, found)
    found &= ~run[MADE]
    if found == 0:
        counters[DEPTH] = top
        return
    # What brings it nearer to the end.
    move = found & -found
    if found != move:
        # A copy goes on; the run is postponed, to read the event again.
        run[FROM] = at
        _copy(state.stack, top, state.stack, top + 1)
        run[MADE] |= move
        run = state.stack.numbers[top + 1]
        run[FROM] = at + 1
        counters[DEPTH] = top + 2
        counters[COPIES] += 1
        tallies[SPLIT] += 1
        _measure(state, machine)
    run[MADE] = 0
    if move != STAYS:
        _select(
            at_state + (move == LEAVES), at, plan, state, graph, machine, events, counts, prunes
        )


@njit_in_place
def _select(at_state, at, plan, state, graph, machine, events, counts, prunes):
    """Select an event at a state by the singleton run."""
    counters = state.counters
    top = counters[DEPTH] - 1
    run, row, target = state.stack.numbers[top], events.rows[at], plan.targets[at_state]
    if not counts:
        run[NODE] = add_event(graph, events.first + row, plan.items[at_state], run[NODE])
    run[RUN_STATE], run[LAST] = target, events.times[row]
    if selects(at_state, row, state.stack.vectors[top], plan, machine, events):
        if counts:
            machine.tallies[FOUND] += 1
        elif not prunes:
            _add_end(state, run)
        elif run[ORIGIN] >= counters[LATEST] or at + 1 < counters[BOUND]:
            if run[ORIGIN] != counters[LATEST] or at + 1 < counters[BOUND]:
                # It comes before those found.
                counters[ENDS] = counters[SETTLED]
                counters[BOUND], counters[LATEST] = at + 1, run[ORIGIN]
            _add_end(state, run)
    if target == plan.states:
        counters[DEPTH] = top


@njit_in_place
def _add_end(state, run):
    end = state.counters[ENDS]
    state.counters[ENDS] = end + 1
    state.ends[end, END_NODE], state.ends[end, END_FIRST] = run[NODE], run[ORIGIN]
