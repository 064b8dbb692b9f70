"""Runs: their tables by partition and state, and the merging of equivalent ones.

Two runs in a state are equivalent if the columns of V that are read in it or later are equal
[agrawal2008]_, section 5.2.2. They become one, with the histories of both and the youngest start.

Differs from the paper: equivalent runs whose last events have different timestamps are merged only
when the later one has passed, because an event of that very timestamp may follow one run only.
"""

from __future__ import annotations

from cepbench.engines.runs.kernels.graph import add_union
from cepbench.engines.sase.kernels import starts
from cepbench.engines.sase.kernels.conditions import hashed, is_equal
from cepbench.engines.sase.kernels.profile import note_stored
from cepbench.engines.sase.kernels.tables import (
    BUCKET,
    CHAIN,
    DOOMED,
    EARLIER,
    FIRST,
    FREE_RUN,
    FREE_RUNS,
    HIGH,
    IS_LINKED,
    LAST,
    LATEST,
    LOW,
    MERGED,
    NEXT,
    NODE,
    OF_RUNS,
    PARTITION,
    PEAK_RUNS,
    PREVIOUS,
    SINCE,
    SINGLE,
    SIZE,
    STATE,
    WAITING,
    WAITS,
    WAITS_BEFORE,
)
from cepbench.kernels.batches import NEVER
from cepbench.kernels.jit import njit, njit_in_place

_NONE = -1


@njit_in_place
def new_run(state, at_state, partition):
    """A run without V and histories, in no table."""
    runs, counters = state.runs, state.counters
    run = counters[FREE_RUN]
    counters[FREE_RUN] = runs[run, NEXT]
    counters[FREE_RUNS] -= 1
    runs[run, STATE] = at_state
    runs[run, PARTITION] = partition
    # It may be in the list of those that wait, from the run that it was before.
    runs[run, IS_LINKED] = runs[run, SIZE] = 0
    runs[run, LOW] = runs[run, HIGH] = 0
    runs[run, DOOMED] = NEVER
    state.partitions[partition, OF_RUNS] += 1
    state.tallies[PEAK_RUNS] = max(state.tallies[PEAK_RUNS], len(runs) - counters[FREE_RUNS])
    return run


@njit
def copied(state, run, at_state, earliest):
    """A run with the same V and histories, in no table."""
    copy = new_run(state, at_state, state.runs[run, PARTITION])
    for column in range(state.vectors.shape[1]):
        state.vectors[copy, column] = state.vectors[run, column]
    for field in (LATEST, LAST, NODE):
        state.runs[copy, field] = state.runs[run, field]
    starts.clear(state, copy)
    starts.merge(state, copy, run, earliest)
    return copy


@njit
def free(state, run, plan):
    """End a run."""
    runs, counters = state.runs, state.counters
    if runs[run, IS_LINKED] == 1:
        unlink(state, run, plan)
    starts.release(state, run)
    state.partitions[runs[run, PARTITION], OF_RUNS] -= 1
    runs[run, STATE] = _NONE
    runs[run, NEXT] = counters[FREE_RUN]
    counters[FREE_RUN] = run
    counters[FREE_RUNS] += 1


@njit_in_place
def unlink(state, run, plan):
    """Take a run out of its table."""
    runs = state.runs
    before, after = runs[run, PREVIOUS], runs[run, NEXT]
    partition, at_state = runs[run, PARTITION], runs[run, STATE]
    if plan.kinds[at_state] == SINGLE and state.heads[partition, at_state, EARLIER] == run:
        state.heads[partition, at_state, EARLIER] = after
    if before >= 0:
        runs[before, NEXT] = after
    else:
        state.heads[partition, at_state, FIRST] = after
    if after >= 0:
        runs[after, PREVIOUS] = before
    runs[run, IS_LINKED] = 0
    note_stored(state.profile, runs[run, STATE], -1)
    unchain(state, run, plan)


@njit_in_place
def unchain(state, run, plan):
    """Take a run out of the bucket of its V."""
    runs = state.runs
    if plan.masked_spans[runs[run, STATE]] < plan.masked_spans[runs[run, STATE] + 1]:
        bucket = runs[run, BUCKET]
        other = state.buckets[bucket]
        if other == run:
            state.buckets[bucket] = runs[run, CHAIN]
        else:
            while runs[other, CHAIN] != run:
                other = runs[other, CHAIN]
            runs[other, CHAIN] = runs[run, CHAIN]


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
        run = state.heads[partition, at_state, FIRST]
    else:
        run = state.buckets[_bucket(state, plan, partition, at_state, vector)]
    while run >= 0:
        following = runs[run, NEXT] if first == last else runs[run, CHAIN]
        if (
            runs[run, STATE] == at_state
            and runs[run, PARTITION] == partition
            and runs[run, DOOMED] == NEVER
            and is_equal(state, run, vector, first, last, plan.masked)
        ):
            if not tied or runs[run, LAST] == now:
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
    partition, at_state = runs[run, PARTITION], runs[run, STATE]
    head = state.heads[partition, at_state, FIRST]
    runs[run, PREVIOUS], runs[run, NEXT] = _NONE, head
    if head >= 0:
        runs[head, PREVIOUS] = run
    state.heads[partition, at_state, FIRST] = run
    is_single = plan.kinds[at_state] == SINGLE
    if is_single and state.heads[partition, at_state, SINCE] != runs[run, LAST]:
        state.heads[partition, at_state, SINCE] = runs[run, LAST]
        state.heads[partition, at_state, EARLIER] = head
    runs[run, IS_LINKED] = 1
    note_stored(state.profile, at_state, 1)
    chain(state, run, plan)
    if waits and runs[run, WAITS] == 0:
        runs[run, WAITS] = 1
        runs[run, WAITS_BEFORE] = state.counters[WAITING]
        state.counters[WAITING] = run


@njit_in_place
def chain(state, run, plan):
    """Enter a run in the bucket of its V."""
    runs = state.runs
    at_state = runs[run, STATE]
    if plan.masked_spans[at_state] < plan.masked_spans[at_state + 1]:
        bucket = _bucket(state, plan, runs[run, PARTITION], at_state, state.vectors[run])
        runs[run, BUCKET] = bucket
        runs[run, CHAIN] = state.buckets[bucket]
        state.buckets[bucket] = run


@njit
def merge(state, target, source, node, time, earliest, plan):
    """Add a run's histories, which end in ``node``, to an equivalent run."""
    runs = state.runs
    if plan.counts:
        starts.merge(state, target, source, earliest)
    else:
        runs[target, NODE] = add_union(state.graph, runs[target, NODE], node)
    runs[target, LATEST] = max(runs[target, LATEST], runs[source, LATEST])
    runs[target, LAST] = max(runs[target, LAST], time)
    state.tallies[MERGED] += 1


@njit_in_place
def settle(state, run, plan, tied, earliest):
    """Merge a run that is in no table with an equivalent one, or enter it in its table."""
    runs = state.runs
    target, waits = equivalent(
        state, plan, runs[run, PARTITION], runs[run, STATE], state.vectors[run], runs[run, LAST], tied
    )  # fmt: skip
    if target >= 0:
        merge(state, target, run, runs[run, NODE], runs[run, LAST], earliest, plan)
        free(state, run, plan)
    else:
        link(state, run, plan, waits)


@njit
def settle_apart(state, run, plan, tied, earliest):
    """As :func:`settle`; a function of its own, not inlined."""
    settle(state, run, plan, tied, earliest)
