"""Backtracking: one run of a partition at a time; the others are postponed, and read events again.

Source: [agrawal2008]_, section 5.2.3.
"""

from __future__ import annotations

from cepbench.engines.runs.kernels.graph import add_event, room
from cepbench.engines.sase.kernels import tables
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
from cepbench.engines.sase.kernels.profile import note_moves
from cepbench.kernels.batches import NEVER
from cepbench.kernels.jit import njit_in_place

# Further columns of RUNS: node of the last event in the graph; the row from which a run reads; the moves
# on that event that other runs have made.
NODE, FROM, MADE, RUN_COLUMNS = range(COLUMNS_OF_ALL, COLUMNS_OF_ALL + 4)

# Columns of ENDS, by accepting run: node of its last event, position of its first one.
END_NODE, END_FIRST, END_COLUMNS = range(3)

# Further COUNTERS[...]: the partition, by its number in the batch; the run that waits for it, before the
# others in their list, and the row, to begin with next; the singleton run, before the postponed ones in
# their list; the row behind those read; the row of the last event of the match to be reported, and the
# position of its first one; runs split off from one.
(
    CURRENT, SOURCE, NEXT_ROW, TOP, READ, BOUND, LATEST, COPIES, COUNTERS,
) = range(COUNTERS_OF_ALL, COUNTERS_OF_ALL + 9)  # fmt: skip

#: The value of ``SOURCE`` before a partition.
ARRIVES = -2


@njit_in_place
def backtrack(plan, pool, graph, events, numbers, spans, limit, counts, prunes):
    """Process a batch of events, whose rows are by partition, from where ``pool.counters`` says.

    ``numbers``, ``spans``: int64 (partitions,) and (partitions + 1,), the partitions of the events,
    and where in ``events.rows`` each begins. ``limit``: maximum number of runs that are split off from one. ``counts``: whether matches are
    only counted. ``prunes``: whether only the matches of OUTPUT non_overlap are wanted.

    Returns whether all events have been processed; else a table is full, or the limit exceeded.
    """
    runs, counters = pool.runs, pool.counters
    while counters[CURRENT] < len(numbers):
        current = counters[CURRENT]
        partition, end = numbers[current], spans[current + 1]
        if (
            counters[tables.FREE_RUNS] == 0
            or counters[ENDS] == len(pool.ends)
            or counters[COPIES] > limit
            or (room(graph) < 1 and not counts)
        ):
            return False
        if counters[TOP] >= 0:
            _step(plan, pool, graph, events, end, counts, prunes)
            continue
        counters[COPIES] = 0
        if counters[SOURCE] == ARRIVES:
            # Runs that have read all events are entered anew.
            counters[SOURCE] = taken(pool, partition, events.times[events.rows[end - 1]])
            counters[NEXT_ROW] = counters[READ] = spans[current]
        if counters[SOURCE] >= 0:
            run = _popped(pool, SOURCE)
            runs[run, FROM], runs[run, MADE] = spans[current], 0
            _push(pool, run, TOP)
        elif counters[NEXT_ROW] < min(end, counters[BOUND]):
            _start(counters[NEXT_ROW], partition, plan, pool, events)
            counters[NEXT_ROW] += 1
        else:
            counters[SETTLED] = counters[ENDS]
            if counters[BOUND] != NEVER:
                # Later matches begin after this one.
                free_all(pool, partition)
                counters[NEXT_ROW] = counters[BOUND]
            else:
                counters[CURRENT], counters[SOURCE] = current + 1, ARRIVES
            counters[BOUND], counters[LATEST] = NEVER, NONE
    return True


@njit_in_place
def _push(pool, run, first):
    """Enter a run in a list, whose first one is in this counter."""
    pool.runs[run, FOLLOWING] = pool.counters[first]
    pool.counters[first] = run


@njit_in_place
def _popped(pool, first):
    """The first run of a list, which it leaves."""
    run = pool.counters[first]
    pool.counters[first] = pool.runs[run, FOLLOWING]
    return run


@njit_in_place
def _start(at, partition, plan, pool, events):
    """Begin a run in the start state, which reads the event first."""
    row = events.rows[at]
    if events.flags[row] & plan.bits[tables.BEGIN] == 0:
        return
    run = new_run(pool, partition)
    its = pool.runs[run]
    its[NODE] = NONE
    its[START], its[LAST] = events.times[row], events.times[row] - 1
    its[ORIGIN] = events.first + row
    its[FROM], its[MADE] = at, 0
    _push(pool, run, TOP)
    pool.tallies[tables.STARTED] += 1


@njit_in_place
def _step(plan, pool, graph, events, end, counts, prunes):
    """Let the singleton run read an event."""
    counters, tallies = pool.counters, pool.tallies
    run = counters[TOP]
    its = pool.runs[run]
    at, at_state = its[FROM], its[RUN_STATE]
    if at == end or at >= counters[BOUND]:
        _popped(pool, TOP)
        if at == end and counters[BOUND] == NEVER:
            enter(run, events.times[events.rows[end - 1]], True, plan, pool)
        else:
            free(pool, run)
        return
    row = events.rows[at]
    if its[START] < events.times[row] - plan.window:
        free(pool, _popped(pool, TOP))
        return
    if waits(at_state, its[LAST], events.times[row], plan):
        its[FROM] = _behind(events, at, end)
        return
    its[FROM] = at + 1
    if not (plan.dies or events.flags[row] & plan.relevant[at_state]):
        return
    tallies[tables.VISITED] += at_state > 0
    tallies[tables.REPROCESSED] += at < counters[READ]
    counters[READ] = max(counters[READ], at + 1)
    found = tables.OWN
    if at_state > 0:
        found = moves(at_state, its[LAST], row, pool.vectors[run], plan, pool, events)
        note_moves(pool.profile, at_state, found)
    found &= ~its[MADE]
    if found == 0:
        free(pool, _popped(pool, TOP))
        return
    # What brings it nearer to the end.
    move = found & -found
    if found != move:
        # A copy goes on; the run is postponed, to read the event again.
        its[FROM] = at
        its[MADE] |= move
        run = copied(pool, pool, run)
        pool.runs[run, FROM] = at + 1
        _push(pool, run, TOP)
        counters[COPIES] += 1
        tallies[tables.SPLIT] += 1
    pool.runs[run, MADE] = 0
    if move != tables.STAYS:
        _select(
            run, at_state + (move == tables.LEAVES), at, plan, pool, graph, events, counts, prunes
        )


@njit_in_place
def _behind(events, at, end):
    """The first place from ``at`` to ``end`` whose event is later than that at ``at``."""
    now, low, high = events.times[events.rows[at]], at + 1, end
    if events.times[events.rows[end - 1]] == now:
        return end
    while low < high:
        middle = (low + high) // 2
        if events.times[events.rows[middle]] > now:
            high = middle
        else:
            low = middle + 1
    return low


@njit_in_place
def _select(run, at_state, at, plan, pool, graph, events, counts, prunes):
    """Select an event at a state by the singleton run."""
    counters, its = pool.counters, pool.runs[run]
    row, target = events.rows[at], plan.targets[at_state]
    if not counts:
        its[NODE] = add_event(graph, events.first + row, plan.items[at_state], its[NODE])
    its[RUN_STATE], its[LAST] = target, events.times[row]
    if selects(at_state, row, pool.vectors[run], plan, pool, events):
        if counts:
            pool.tallies[tables.FOUND] += 1
        elif not prunes:
            _add_end(pool, run)
        elif its[ORIGIN] >= counters[LATEST] or at + 1 < counters[BOUND]:
            if its[ORIGIN] != counters[LATEST] or at + 1 < counters[BOUND]:
                # It comes before those found.
                counters[ENDS] = counters[SETTLED]
                counters[BOUND], counters[LATEST] = at + 1, its[ORIGIN]
            _add_end(pool, run)
    if target == plan.states:
        free(pool, _popped(pool, TOP))


@njit_in_place
def _add_end(pool, run):
    end = pool.counters[ENDS]
    pool.counters[ENDS] = end + 1
    pool.ends[end, END_NODE], pool.ends[end, END_FIRST] = (
        pool.runs[run, NODE],
        pool.runs[run, ORIGIN],
    )
