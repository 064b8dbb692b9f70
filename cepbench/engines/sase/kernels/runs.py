"""Runs: their tables by partition and state, and the merging of equivalent ones.

Two runs in a state are equivalent if the columns of V that are read in it or later are equal
[agrawal2008]_, section 5.2.2. They become one, with the histories of both and the youngest start.

Differs from the paper: equivalent runs whose last events have different timestamps are merged only
when the later one has passed, because an event of that very timestamp may follow one run only.
"""

from __future__ import annotations

from cepbench.engines.runs.kernels.graph import add_union
from cepbench.engines.sase.kernels import starts, tables
from cepbench.engines.sase.kernels.conditions import hashed, is_equal
from cepbench.engines.sase.kernels.profile import note_stored
from cepbench.kernels.batches import NEVER
from cepbench.kernels.jit import njit, njit_in_place

_NONE = -1


@njit_in_place
def new_run(state, at_state, partition):
    """A run without V and histories, in no table."""
    runs, counters = state.runs, state.counters
    run = counters[tables.FREE_RUN]
    counters[tables.FREE_RUN] = runs[run, tables.NEXT]
    counters[tables.FREE_RUNS] -= 1
    runs[run, tables.STATE] = at_state
    runs[run, tables.PARTITION] = partition
    # It may be in the list of those that wait, from the run that it was before.
    runs[run, tables.IS_LINKED] = runs[run, tables.SIZE] = 0
    runs[run, tables.LOW] = runs[run, tables.HIGH] = 0
    runs[run, tables.DOOMED] = NEVER
    state.partitions[partition, tables.OF_RUNS] += 1
    state.tallies[tables.PEAK_RUNS] = max(
        state.tallies[tables.PEAK_RUNS], len(runs) - counters[tables.FREE_RUNS]
    )
    return run


@njit
def copied(state, run, at_state, earliest):
    """A run with the same V and histories, in no table."""
    copy = new_run(state, at_state, state.runs[run, tables.PARTITION])
    for column in range(state.vectors.shape[1]):
        state.vectors[copy, column] = state.vectors[run, column]
    for field in (tables.LATEST, tables.LAST, tables.NODE):
        state.runs[copy, field] = state.runs[run, field]
    starts.clear(state, copy)
    starts.merge(state, copy, run, earliest)
    return copy


@njit
def free(state, run, plan):
    """End a run."""
    runs, counters = state.runs, state.counters
    if runs[run, tables.IS_LINKED] == 1:
        unlink(state, run, plan)
    starts.release(state, run)
    state.partitions[runs[run, tables.PARTITION], tables.OF_RUNS] -= 1
    runs[run, tables.STATE] = _NONE
    runs[run, tables.NEXT] = counters[tables.FREE_RUN]
    counters[tables.FREE_RUN] = run
    counters[tables.FREE_RUNS] += 1


@njit_in_place
def unlink(state, run, plan):
    """Take a run out of its table."""
    runs = state.runs
    before, after = runs[run, tables.PREVIOUS], runs[run, tables.NEXT]
    partition, at_state = runs[run, tables.PARTITION], runs[run, tables.STATE]
    if (
        plan.kinds[at_state] == tables.SINGLE
        and state.heads[partition, at_state, tables.EARLIER] == run
    ):
        state.heads[partition, at_state, tables.EARLIER] = after
    if before >= 0:
        runs[before, tables.NEXT] = after
    else:
        state.heads[partition, at_state, tables.FIRST] = after
    if after >= 0:
        runs[after, tables.PREVIOUS] = before
    runs[run, tables.IS_LINKED] = 0
    note_stored(state.profile, runs[run, tables.STATE], -1)
    unchain(state, run, plan)


@njit_in_place
def unchain(state, run, plan):
    """Take a run out of the bucket of its V."""
    runs = state.runs
    if plan.masked_spans[runs[run, tables.STATE]] < plan.masked_spans[runs[run, tables.STATE] + 1]:
        bucket = runs[run, tables.BUCKET]
        other = state.buckets[bucket]
        if other == run:
            state.buckets[bucket] = runs[run, tables.CHAIN]
        else:
            while runs[other, tables.CHAIN] != run:
                other = runs[other, tables.CHAIN]
            runs[other, tables.CHAIN] = runs[run, tables.CHAIN]


@njit_in_place
def equivalent(state, plan, partition, at_state, vector, now, tied):
    """A run to merge with one whose last event is ``now``.

    ``tied``: whether more events of this timestamp may come.

    Returns the run or -1, and whether there is one that may be merged once the time has passed.
    """
    runs = state.runs
    first, last = plan.masked_spans[at_state], plan.masked_spans[at_state + 1]
    waits = False
    if first == last:
        run = state.heads[partition, at_state, tables.FIRST]
    else:
        run = state.buckets[_bucket(state, plan, partition, at_state, vector)]
    while run >= 0:
        following = runs[run, tables.NEXT] if first == last else runs[run, tables.CHAIN]
        if (
            runs[run, tables.STATE] == at_state
            and runs[run, tables.PARTITION] == partition
            and runs[run, tables.DOOMED] == NEVER
            and is_equal(state, run, vector, first, last, plan.masked)
        ):
            if not tied or runs[run, tables.LAST] == now:
                return run, False
            waits = True
        run = following
    return _NONE, waits


@njit_in_place
def _bucket(state, plan, partition, at_state, vector):
    first, last = plan.masked_spans[at_state], plan.masked_spans[at_state + 1]
    seed = partition * plan.states + at_state
    return hashed(vector, first, last, plan.masked, seed) & (len(state.buckets) - 1)


@njit_in_place
def link(state, run, plan, waits):
    """Enter a run in the table of its partition and state, the first to be visited."""
    runs = state.runs
    partition, at_state = runs[run, tables.PARTITION], runs[run, tables.STATE]
    head = state.heads[partition, at_state, tables.FIRST]
    runs[run, tables.PREVIOUS], runs[run, tables.NEXT] = _NONE, head
    if head >= 0:
        runs[head, tables.PREVIOUS] = run
    state.heads[partition, at_state, tables.FIRST] = run
    is_single = plan.kinds[at_state] == tables.SINGLE
    if is_single and state.heads[partition, at_state, tables.SINCE] != runs[run, tables.LAST]:
        state.heads[partition, at_state, tables.SINCE] = runs[run, tables.LAST]
        state.heads[partition, at_state, tables.EARLIER] = head
    runs[run, tables.IS_LINKED] = 1
    note_stored(state.profile, at_state, 1)
    chain(state, run, plan)
    if waits and runs[run, tables.WAITS] == 0:
        runs[run, tables.WAITS] = 1
        runs[run, tables.WAITS_BEFORE] = state.counters[tables.WAITING]
        state.counters[tables.WAITING] = run


@njit_in_place
def chain(state, run, plan):
    """Enter a run in the bucket of its V."""
    runs = state.runs
    at_state = runs[run, tables.STATE]
    if plan.masked_spans[at_state] < plan.masked_spans[at_state + 1]:
        bucket = _bucket(state, plan, runs[run, tables.PARTITION], at_state, state.vectors[run])
        runs[run, tables.BUCKET] = bucket
        runs[run, tables.CHAIN] = state.buckets[bucket]
        state.buckets[bucket] = run


@njit
def merge(state, target, source, node, time, earliest, plan):
    """Add a run's histories, which end in ``node``, to an equivalent run."""
    runs = state.runs
    if plan.counts:
        starts.merge(state, target, source, earliest)
    else:
        runs[target, tables.NODE] = add_union(state.graph, runs[target, tables.NODE], node)
    runs[target, tables.LATEST] = max(runs[target, tables.LATEST], runs[source, tables.LATEST])
    runs[target, tables.LAST] = max(runs[target, tables.LAST], time)
    state.tallies[tables.MERGED] += 1


@njit_in_place
def settle(state, run, plan, tied, earliest):
    """Merge a run that is in no table with an equivalent one, or enter it in its table."""
    its = state.runs[run]
    target, waits = equivalent(
        state,
        plan,
        its[tables.PARTITION],
        its[tables.STATE],
        state.vectors[run],
        its[tables.LAST],
        tied,
    )
    if target >= 0:
        merge(state, target, run, its[tables.NODE], its[tables.LAST], earliest, plan)
        free(state, run, plan)
    else:
        link(state, run, plan, waits)


@njit
def settle_apart(state, run, plan, tied, earliest):
    """As :func:`settle`; a function of its own, not inlined."""
    settle(state, run, plan, tied, earliest)
