"""Runs that are kept apart: one table of them, in which those that have ended are free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.sase.kernels import partitions, tables
from cepbench.engines.sase.kernels.moves import waits
from cepbench.engines.sase.kernels.profile import note_stored
from cepbench.kernels.jit import njit, njit_in_place

# Columns of RUNS, to which engines add their own.
RUN_STATE = 0  # -1: no run
START, LAST = 1, 2  # timestamps of its first and of its last event
ORIGIN = 3  # position of its first event
PARTITION = 4
FOLLOWING = 5  # in the list that it is in
COLUMNS_OF_ALL = 6

# Columns of HEADS, by partition: the first of the runs that read the next event; the first of those that
# wait until the time of their last event has passed, and this time.
FIRST, WAITING, SINCE, HEADS = range(4)

# COUNTERS[...] behind those of free runs and partitions: accepting runs, and how many of them are certain
# to be reported.
ENDS, SETTLED, COUNTERS_OF_ALL = range(tables.FREE_PARTITION + 1, tables.FREE_PARTITION + 4)

#: No run.
NONE = -1

#: Accepting runs that a step may add at most.
ENDS_A_STEP = 2


class Pool(NamedTuple):
    """Runs, and what they share."""

    runs: np.ndarray  #: int64 (capacity, columns)
    vectors: np.ndarray  #: float64 (capacity, columns): V
    heads: np.ndarray  #: int64 (partitions, HEADS): lists of runs
    partitions: np.ndarray  #: int64 (partitions, PARTITION_COLUMNS)
    keys: np.ndarray  #: float64 (partitions, keys)
    partition_buckets: np.ndarray  #: int64: a power of two
    ends: np.ndarray  #: int64 (n, columns of the engine): accepting runs
    counters: np.ndarray  #: int64
    tallies: np.ndarray  #: int64 (TALLIES,)
    profile: np.ndarray  #: float64 (states or 0, PROFILE_COLUMNS)
    stack: np.ndarray  #: float64 (STACK,)


@njit_in_place
def new_run(pool, partition):
    """A run in the start state, without V."""
    runs, counters = pool.runs, pool.counters
    run = counters[tables.FREE_RUN]
    counters[tables.FREE_RUN] = runs[run, FOLLOWING]
    counters[tables.FREE_RUNS] -= 1
    runs[run, RUN_STATE], runs[run, PARTITION] = 0, partition
    live = len(runs) - counters[tables.FREE_RUNS]
    pool.tallies[tables.PEAK_RUNS] = max(pool.tallies[tables.PEAK_RUNS], live)
    return run


@njit_in_place
def copied(pool, old, run):
    """A copy of a run of an ``old`` pool, or of the same one, in no list."""
    copy = new_run(pool, old.runs[run, PARTITION])
    for field in range(pool.runs.shape[1]):
        pool.runs[copy, field] = old.runs[run, field]
    for column in range(pool.vectors.shape[1]):
        pool.vectors[copy, column] = old.vectors[run, column]
    return copy


@njit_in_place
def enter(run, now, tied, plan, pool):
    """Enter a run in a list of its partition; ``tied``: whether more events may come at ``now``."""
    runs, partition = pool.runs, pool.runs[run, PARTITION]
    note_stored(pool.profile, runs[run, RUN_STATE], 1)
    if tied and waits(runs[run, RUN_STATE], runs[run, LAST], now, plan):
        pool.heads[partition, SINCE] = now
        _link(pool, run, partition, WAITING)
    else:
        _link(pool, run, partition, FIRST)


@njit_in_place
def _link(pool, run, partition, which):
    pool.runs[run, FOLLOWING] = pool.heads[partition, which]
    pool.heads[partition, which] = run


@njit_in_place
def taken(pool, partition, now):
    """The first of the runs of a partition that read events until ``now``, which leave their list."""
    if pool.heads[partition, SINCE] < now:
        _wake(pool, partition)
    run = pool.heads[partition, FIRST]
    pool.heads[partition, FIRST] = NONE
    return run


@njit_in_place
def _wake(pool, partition):
    """Let the runs of a partition that wait read the next event."""
    run = pool.heads[partition, WAITING]
    pool.heads[partition, WAITING] = NONE
    while run >= 0:
        following = pool.runs[run, FOLLOWING]
        _link(pool, run, partition, FIRST)
        run = following


@njit_in_place
def free_all(pool, partition):
    """End all runs of a partition."""
    _wake(pool, partition)
    run = pool.heads[partition, FIRST]
    while run >= 0:
        following = pool.runs[run, FOLLOWING]
        note_stored(pool.profile, pool.runs[run, RUN_STATE], -1)
        free(pool, run)
        run = following
    pool.heads[partition, FIRST] = NONE


@njit_in_place
def free(pool, run):
    """End a run that is in no list."""
    pool.runs[run, RUN_STATE] = NONE
    pool.runs[run, FOLLOWING] = pool.counters[tables.FREE_RUN]
    pool.counters[tables.FREE_RUN] = run
    pool.counters[tables.FREE_RUNS] += 1


@njit_in_place
def add_runs(pool, old):
    """Let the runs from number ``old`` on be free ones, of which the first are used first."""
    for run in range(len(pool.runs) - 1, old - 1, -1):
        free(pool, run)


@njit
def keep(plan, pool, old, earliest):
    """Copy the runs of an ``old`` pool that began at ``earliest`` or later, with their partitions.

    All runs are in lists; there is room for them in the pool, which has none yet.
    """
    if len(plan.keys) == 0:
        partitions.new(pool)  # the only one, which is never removed
    for partition in range(len(old.partitions)):
        if old.partitions[partition, tables.OF_RUNS] < 0:
            continue
        kept = 0 if len(plan.keys) == 0 else NONE
        for which in (FIRST, WAITING):
            run = old.heads[partition, which]
            while run >= 0:
                if old.runs[run, START] < earliest:
                    note_stored(pool.profile, old.runs[run, RUN_STATE], -1)
                else:
                    if kept < 0:
                        kept = partitions.copied(pool, old, partition)
                    copy = copied(pool, old, run)
                    pool.runs[copy, PARTITION] = kept
                    _link(pool, copy, kept, which)
                run = old.runs[run, FOLLOWING]
        if kept >= 0:
            pool.heads[kept, SINCE] = old.heads[partition, SINCE]
    partitions.chain_all(plan, pool)
