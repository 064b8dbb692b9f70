"""The automaton over a batch of events, for all its runs at once.

Of an event's partition all runs are visited, those of later states first, so that none is visited
twice. Runs that an event changes are entered in their table when all of it has been visited.

Source: [agrawal2008]_, sections 5.2.1 and 5.2.2.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.runs.kernels.graph import NONE, add_event, room
from cepbench.engines.sase.kernels import partitions, starts, tables
from cepbench.engines.sase.kernels.conditions import holds, update
from cepbench.engines.sase.kernels.profile import (
    LEFT,
    SELECTED,
    elapse,
    note,
    note_asked,
    note_read,
)
from cepbench.engines.sase.kernels.runs import (
    chain,
    copied,
    equivalent,
    free,
    link,
    merge,
    new_run,
    settle,
    settle_apart,
    unchain,
    unlink,
)
from cepbench.kernels.batches import NEVER
from cepbench.kernels.jit import njit, njit_in_place

_NO_RUN = np.int64(-1)


@njit
def advance(plan, state, events):
    """Process a batch of events, from where ``state.progress`` says.

    Returns whether all events have been processed; else a table is full, see
    :mod:`cepbench.engines.sase.kernels.room`.
    """
    runs, progress, counters = state.runs, state.progress, state.counters
    rows, times = events.rows, events.times
    at, phase, partition = progress[tables.AT], progress[tables.PHASE], progress[tables.CURRENT]
    at_state, run, pending = (
        progress[tables.AT_STATE],
        progress[tables.AT_RUN],
        progress[tables.PENDING],
    )
    while at < len(rows):
        row = rows[at]
        now, flags = times[row], events.flags[row]
        if counters[tables.FREE_RUNS] == len(runs) and flags & plan.bits[tables.BEGIN] == 0:
            phase = tables.ARRIVES
            at += 1
            continue
        earliest = now - plan.window
        tied = row + 1 == len(times) or times[row + 1] == now
        if phase == tables.ARRIVES:
            while (
                counters[tables.WAITING] >= 0 and runs[counters[tables.WAITING], tables.LAST] < now
            ):
                if not _has_room(plan, state, _partition_of(state, counters[tables.WAITING]), 1):
                    return _interrupted(progress, at, phase, partition, at_state, run, pending)
                run = counters[tables.WAITING]
                counters[tables.WAITING] = runs[run, tables.WAITS_BEFORE]
                runs[run, tables.WAITS] = 0
                if runs[run, tables.STATE] >= 0:
                    unlink(state, run, plan)
                    settle_apart(state, run, plan, runs[run, tables.LAST] == now, earliest)
            partition = partitions.find(plan, state, events, row)
            phase = tables.STARTS
            if partition >= 0:
                phase = tables.VISITS
                at_state = plan.states
                run, pending = _NO_RUN, _NO_RUN
        # Each of its runs is visited and may be settled, and one may start.
        is_roomy = phase == tables.VISITS and _has_room(
            plan, state, partition, 2 * state.partitions[partition, tables.OF_RUNS] + 1
        )
        while phase == tables.VISITS:
            # Apart from the visits, whose many addresses are computed for each state.
            while run < 0 and pending < 0 and at_state > 1:
                at_state -= 1
                if plan.dies or flags & plan.relevant[at_state]:
                    run = _first(partition, at_state, now, plan, state)
            if run < 0 and pending < 0:
                phase = tables.STARTS
                break
            while run >= 0:
                if counters[tables.WIDENS] or not (
                    is_roomy or _has_room(plan, state, partition, 1)
                ):
                    return _interrupted(progress, at, phase, partition, at_state, run, pending)
                if plan.unites[at_state]:
                    run = _begin_all(run, at_state, row, tied, plan, state, events)
                    continue
                following = runs[run, tables.NEXT]
                pending = _visit(run, at_state, row, tied, pending, plan, state, events)
                run = following
            while pending >= 0:
                if counters[tables.WIDENS] or not (
                    is_roomy or _has_room(plan, state, partition, 1)
                ):
                    return _interrupted(progress, at, phase, partition, at_state, run, pending)
                following = runs[pending, tables.NEXT]
                # The times of the last events of blocked runs do not matter.
                settle(state, pending, plan, tied and runs[pending, tables.LAST] == now, earliest)
                pending = following
        if flags & plan.bits[tables.BEGIN]:
            if not _has_room(plan, state, partition, 1):
                return _interrupted(progress, at, phase, partition, at_state, run, pending)
            _start(row, partition, tied, plan, state, events)
        elapse(state.profile, rows, at, times)
        phase = tables.ARRIVES
        at += 1
    return not _interrupted(
        progress, np.int64(0), tables.ARRIVES, partition, at_state, run, pending
    )


@njit_in_place
def _interrupted(progress, at, phase, partition, at_state, run, pending):
    progress[tables.AT], progress[tables.PHASE], progress[tables.CURRENT] = at, phase, partition
    progress[tables.AT_STATE], progress[tables.AT_RUN], progress[tables.PENDING] = (
        at_state,
        run,
        pending,
    )
    return False


@njit_in_place
def _first(partition, at_state, now, plan, state):
    """The first run to visit in a table: those before the first event of an item wait for a later time
    than that of their last event, unless they end at an event that they do not take.
    """
    waits = plan.kinds[at_state] == tables.SINGLE and not plan.dies
    if waits and state.heads[partition, at_state, tables.SINCE] == now:
        return state.heads[partition, at_state, tables.EARLIER]
    return state.heads[partition, at_state, tables.FIRST]


@njit_in_place
def _partition_of(state, run):
    """The partition of a run, if it has not ended."""
    return state.runs[run, tables.PARTITION] if state.runs[run, tables.STATE] >= 0 else -1


@njit_in_place
def _has_room(plan, state, partition, steps):
    """Whether some steps have room: each for two runs, their histories, and a partition."""
    counters = state.counters
    if (
        counters[tables.FREE_RUNS] < 2 * steps
        or counters[tables.FREE_PARTITION] < 0
        or counters[tables.WIDENS] == 1
    ):
        return False
    if plan.reports and counters[tables.ROOTS] + 2 * steps > state.roots.shape[1]:
        return False
    if not plan.counts:
        return room(state.graph) >= tables.NODES_A_STEP * steps
    return counters[tables.TOP_CELL] + cells_a_step(state, partition) * steps <= len(state.cells)


@njit_in_place
def cells_a_step(state, partition):
    """Cells that a step may take: two blocks, each for all starts of the partition."""
    if partition < 0:
        return 8
    its = state.partitions[partition]
    return 4 * (its[tables.NEXT_START] - its[tables.OLDEST] + 2)


@njit_in_place
def _visit(run, at_state, row, tied, pending, plan, state, events):
    """Make all moves of a run on an event; returns the runs to be settled."""
    runs, now = state.runs, events.times[row]
    if runs[run, tables.LATEST] < now - plan.window:
        free(state, run, plan)
        return pending
    forbidden = plan.forbidden[at_state]
    if forbidden and runs[run, tables.DOOMED] < now:
        return _forbid(run, at_state, pending, plan, state)
    state.tallies[tables.VISITED] += 1
    note_read(run, at_state, plan, state, now - plan.window)
    pending = _move(run, at_state, row, pending, plan, state, events)
    if (
        events.flags[row] & forbidden
        and runs[run, tables.STATE] == at_state
        and runs[run, tables.LAST] < now
        and _is_forbidden(run, at_state, row, plan, state, events)
    ):
        runs[run, tables.DOOMED] = now
        if plan.kinds[at_state] == tables.SINGLE and not tied:
            free(state, run, plan)
    return pending


@njit_in_place
def _move(run, at_state, row, pending, plan, state, events):
    runs, vector = state.runs, state.vectors[run]
    now, flags = events.times[row], events.flags[row]
    edge = tables.EDGES * at_state
    state.tallies[tables.EVALUATED] += 1
    if plan.kinds[at_state] == tables.SINGLE:
        if (
            flags & plan.bits[edge + tables.BEGIN]
            and runs[run, tables.LAST] < now
            and holds(edge + tables.BEGIN, row, vector, plan, state, events)
        ):
            note(state.profile, at_state, SELECTED)
            _begin(run, at_state, row, plan, state, events)
        elif plan.dies:
            free(state, run, plan)
        return pending
    after = at_state + 1
    state.tallies[tables.EVALUATED] += after < plan.states
    if (
        after < plan.states
        and flags & plan.bits[tables.EDGES * after + tables.BEGIN]
        and runs[run, tables.LAST] < now
        and holds(tables.EDGES * after + tables.BEGIN, row, vector, plan, state, events)
    ):
        state.tallies[tables.EVALUATED] += 1
        if holds(edge + tables.PROCEED, row, vector, plan, state, events):
            note(state.profile, at_state, LEFT)
            _begin(run, after, row, plan, state, events)
    if flags & plan.bits[edge + tables.TAKE] and holds(
        edge + tables.TAKE, row, vector, plan, state, events
    ):
        note(state.profile, at_state, SELECTED)
        pending = _take(run, at_state, row, pending, plan, state, events)
    elif plan.dies:
        free(state, run, plan)
    return pending


@njit
def _is_forbidden(run, at_state, row, plan, state, events):
    """Whether an event is one that a NOT behind the run's last event forbids."""
    first = tables.EDGES * plan.states
    for place in range(plan.forbid_spans[at_state], plan.forbid_spans[at_state + 1]):
        state.tallies[tables.EVALUATED] += 1
        if events.flags[row] & plan.bits[first + place] and holds(
            first + place, row, state.vectors[run], plan, state, events
        ):
            return True
    return False


@njit
def _forbid(run, at_state, pending, plan, state):
    """End a run that a forbidden event has come before; one in a loop may go on, but not leave it."""
    if plan.kinds[at_state] == tables.SINGLE:
        free(state, run, plan)
        return pending
    unlink(state, run, plan)
    runs = state.runs
    runs[run, tables.STATE] = at_state - 1
    runs[run, tables.DOOMED] = NEVER
    runs[run, tables.NEXT] = pending
    return run


@njit
def _begin_all(run, at_state, row, tied, plan, state, events):
    """Begin an item from a run and those after it in its table; all copies of them are equivalent.

    Returns the next run, for which there may be no room; -1 after the last one.
    """
    return _begun(run, at_state, row, tied, plan, state, events)


@njit_in_place
def _begun(run, at_state, row, tied, plan, state, events):
    runs, vectors, now = state.runs, state.vectors, events.times[row]
    partition, target, edge = (
        runs[run, tables.PARTITION],
        plan.targets[at_state],
        tables.EDGES * at_state + tables.BEGIN,
    )
    earliest = now - plan.window
    union = _NO_RUN
    while run >= 0 and _has_room(plan, state, partition, 1):
        following = runs[run, tables.NEXT]
        if runs[run, tables.LATEST] < earliest:
            free(state, run, plan)
        else:
            state.tallies[tables.VISITED] += 1
            state.tallies[tables.EVALUATED] += 1
            note_read(run, at_state, plan, state, earliest)
            if runs[run, tables.LAST] < now and holds(edge, row, vectors[run], plan, state, events):
                state.tallies[tables.SPLIT] += 1
                note(state.profile, at_state, SELECTED)
                waits = False
                if union < 0:
                    union, waits = equivalent(
                        state, plan, partition, target, vectors[run], now, tied
                    )
                if union < 0:
                    union = copied(state, run, target, earliest)
                    runs[union, tables.LAST] = now
                    link(state, union, plan, waits)
                else:
                    starts.merge(state, union, run, earliest)
                    runs[union, tables.LATEST] = max(
                        runs[union, tables.LATEST], runs[run, tables.LATEST]
                    )
                    runs[union, tables.LAST] = now
                    state.tallies[tables.MERGED] += 1
        run = following
    return run


@njit_in_place
def _take(run, at_state, row, pending, plan, state, events):
    """Stay in a loop with an event."""
    runs, now = state.runs, events.times[row]
    edge, target = tables.EDGES * at_state, plan.targets[at_state]
    if plan.ignores:
        run = copied(state, run, target, now - plan.window)
        state.tallies[tables.SPLIT] += 1
    changed = update(edge + tables.TAKE, row, state.vectors[run], plan, events)
    if target != at_state:
        changed = True  # it is no longer blocked
    elif (
        changed
        and not plan.ignores
        and pending < 0
        and runs[run, tables.PREVIOUS] & runs[run, tables.NEXT] < 0
    ):
        # Alone in its table, it is equivalent to none.
        unchain(state, run, plan)
        chain(state, run, plan)
        changed = False
    runs[run, tables.LAST], runs[run, tables.DOOMED] = now, NEVER
    state.tallies[tables.WRITTEN] += 1
    if not plan.counts:
        runs[run, tables.NODE] = add_event(
            state.graph, events.first + row, plan.items[at_state], runs[run, tables.NODE]
        )
    if _completes(at_state, row, state.vectors[run], plan, state, events):
        _accept(run, state.vectors[run], runs[run, tables.NODE], row, plan, state, events)
    if plan.ignores:
        runs[run, tables.NEXT] = pending
        return run
    if changed:
        unlink(state, run, plan)
        runs[run, tables.STATE], runs[run, tables.NEXT] = target, pending
        return run
    return pending


@njit_in_place
def _completes(at_state, row, vector, plan, state, events):
    """Whether a loop behind which the pattern ends proceeds with the event that it has taken."""
    if not plan.accepts[at_state]:
        return False
    state.tallies[tables.EVALUATED] += 1
    complete = holds(tables.EDGES * at_state + tables.PROCEED, row, vector, plan, state, events)
    note_asked(state.profile, at_state, complete)
    return complete


@njit_in_place
def _begin(run, at_state, row, plan, state, events):
    """Begin an item with an event, by the run itself or by a copy of it."""
    # Not a parameter, since for a constant the kernels would be compiled again.
    stays = plan.ignores or state.runs[run, tables.STATE] != at_state
    node = NONE
    state.tallies[tables.WRITTEN] += 1
    if not plan.counts:
        node = add_event(
            state.graph, events.first + row, plan.items[at_state], state.runs[run, tables.NODE]
        )
    state.tallies[tables.SPLIT] += stays
    if plan.targets[at_state] == plan.states:
        _accept(run, state.vectors[run], node, row, plan, state, events)
        if not stays:
            free(state, run, plan)
    else:
        _enter(run, at_state, row, stays, node, plan, state, events)


@njit
def _enter(run, at_state, row, stays, node, plan, state, events):
    """Enter the state behind an item's first event, which is ``node`` of the match graph."""
    runs, vectors, now = state.runs, state.vectors, events.times[row]
    partition, target = runs[run, tables.PARTITION], plan.targets[at_state]
    scratch = vectors[len(vectors) - 1]
    for column in range(vectors.shape[1]):
        scratch[column] = vectors[run, column]
    update(tables.EDGES * at_state + tables.BEGIN, row, scratch, plan, events)
    if _completes(target, row, scratch, plan, state, events):
        _accept(run, scratch, node, row, plan, state, events)
    tied = row + 1 == len(events.times) or events.times[row + 1] == now
    earliest = now - plan.window
    equal, waits = equivalent(state, plan, partition, target, scratch, now, tied)
    if equal >= 0:
        merge(state, equal, run, node, now, earliest, plan)
        if not stays:
            free(state, run, plan)
        return
    if stays:
        run = copied(state, run, target, earliest)
    else:
        unlink(state, run, plan)
        runs[run, tables.STATE] = target
    for column in range(vectors.shape[1]):
        vectors[run, column] = scratch[column]
    runs[run, tables.LAST], runs[run, tables.NODE], runs[run, tables.DOOMED] = now, node, NEVER
    link(state, run, plan, waits)


@njit
def _start(row, partition, tied, plan, state, events):
    """Begin a run with an event."""
    runs, vectors, now = state.runs, state.vectors, events.times[row]
    scratch = vectors[len(vectors) - 1]
    for column in range(vectors.shape[1]):
        scratch[column] = 0.0
    update(tables.BEGIN, row, scratch, plan, events)
    target = plan.targets[0]
    state.tallies[tables.STARTED] += 1
    state.tallies[tables.WRITTEN] += 1
    node = NONE
    if not plan.counts:
        node = add_event(state.graph, events.first + row, plan.items[0], NONE)
    if target == plan.states or _completes(target, row, scratch, plan, state, events):
        state.found[0] += plan.counts
        if plan.reports:
            _report(np.int64(1) if plan.counts else node, scratch, row, plan, state, events)
    if target == plan.states:
        return
    if partition < 0:
        if partitions.is_missing(plan, events, row):
            return
        partition = partitions.add(plan, state, events, row)
    run = new_run(state, target, partition)
    for column in range(vectors.shape[1]):
        vectors[run, column] = scratch[column]
    runs[run, tables.LATEST] = runs[run, tables.LAST] = now
    runs[run, tables.NODE] = node
    if plan.counts:
        starts.begin(state, run, state.partitions[partition, tables.NEXT_START], now)
        state.partitions[partition, tables.NEXT_START] += 1
    settle_apart(state, run, plan, tied, now - plan.window)


@njit_in_place
def _accept(run, vector, node, row, plan, state, events):
    """Report the unexpired histories of a run, which end in ``node``, as matches with this V."""
    if plan.counts:
        starts.expire(state, run, events.times[row] - plan.window)
        starts.add_found(state, run)
        if plan.reports:
            _report(state.totals[run, 0], vector, row, plan, state, events)
    else:
        _report(node, vector, row, plan, state, events)


@njit_in_place
def _report(root, vector, row, plan, state, events):
    """Note matches: a root of the match graph, or their number and values."""
    place = state.counters[tables.ROOTS]
    state.roots[0, place] = root
    state.roots[1, place] = events.first + row
    for number in range(len(plan.returned)):
        state.values[number, place] = vector[plan.returned[number]]
    state.counters[tables.ROOTS] = place + 1
