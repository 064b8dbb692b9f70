"""Runs that are kept apart: one table of them, in which those that have ended are free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.sase.kernels.tables import PEAK_RUNS
from cepbench.kernels.jit import njit_in_place

# Columns of RUNS, to which engines add their own.
RUN_STATE = 0  # -1: no run
START, LAST = 1, 2  # timestamps of its first and of its last event
ORIGIN = 3  # position of its first event
PARTITION = 4
FOLLOWING = 5  # in the list that it is in
COLUMNS_OF_ALL = 6

# The first COUNTERS[...]: the first free run and the number of free ones; accepting runs, and how many
# of them are certain to be reported.
FREE, FREE_RUNS, ENDS, SETTLED, COUNTERS_OF_ALL = range(5)

#: No run.
NONE = -1

#: Accepting runs that a step may add at most.
ENDS_A_STEP = 2


class Pool(NamedTuple):
    """Runs, and what they share."""

    runs: np.ndarray  #: int64 (capacity, columns)
    vectors: np.ndarray  #: float64 (capacity, columns): V
    ends: np.ndarray  #: int64 (n, columns of the engine): accepting runs
    counters: np.ndarray  #: int64
    tallies: np.ndarray  #: int64 (TALLIES,)
    profile: np.ndarray  #: float64 (states or 0, PROFILE_COLUMNS)
    stack: np.ndarray  #: float64 (STACK,)


@njit_in_place
def new_run(pool, partition):
    """A run in the start state, without V."""
    runs, counters = pool.runs, pool.counters
    run = counters[FREE]
    counters[FREE] = runs[run, FOLLOWING]
    counters[FREE_RUNS] -= 1
    runs[run, RUN_STATE], runs[run, PARTITION] = 0, partition
    live = len(runs) - counters[FREE_RUNS]
    pool.tallies[PEAK_RUNS] = max(pool.tallies[PEAK_RUNS], live)
    return run


@njit_in_place
def copied(pool, run):
    """A copy of a run, in no list."""
    copy = new_run(pool, pool.runs[run, PARTITION])
    for field in range(pool.runs.shape[1]):
        pool.runs[copy, field] = pool.runs[run, field]
    for column in range(pool.vectors.shape[1]):
        pool.vectors[copy, column] = pool.vectors[run, column]
    return copy


@njit_in_place
def free(pool, run):
    """End a run that is in no list."""
    pool.runs[run, RUN_STATE] = NONE
    pool.runs[run, FOLLOWING] = pool.counters[FREE]
    pool.counters[FREE] = run
    pool.counters[FREE_RUNS] += 1


@njit_in_place
def add_runs(pool, old):
    """Let the runs from number ``old`` on be free ones, of which the first are used first."""
    for run in range(len(pool.runs) - 1, old - 1, -1):
        free(pool, run)
