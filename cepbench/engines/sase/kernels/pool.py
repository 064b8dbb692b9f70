"""The table of runs, in which those that have ended are free, and what is in it of runs apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.sase.kernels import tables
from cepbench.kernels.jit import njit_in_place

# Further columns of RUNS that are apart: timestamp and position of the first event.
START, ORIGIN, COLUMNS_APART = range(tables.COLUMNS_OF_ALL, tables.COLUMNS_OF_ALL + 3)

# Further COUNTERS[...] of runs apart: accepting ones, and how many of them are certain to be reported.
ENDS, SETTLED, COUNTERS_APART = range(tables.COUNTERS_OF_ALL, tables.COUNTERS_OF_ALL + 3)

#: No run.
NONE = -1

#: Accepting runs that a step may add at most.
ENDS_A_STEP = 2


class Pool(NamedTuple):
    """Runs that are apart, and what they share."""

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
    run = counters[tables.FREE_RUN]
    counters[tables.FREE_RUN] = runs[run, tables.NEXT]
    counters[tables.FREE_RUNS] -= 1
    runs[run, tables.STATE], runs[run, tables.PARTITION] = 0, partition
    live = len(runs) - counters[tables.FREE_RUNS]
    pool.tallies[tables.PEAK_RUNS] = max(pool.tallies[tables.PEAK_RUNS], live)
    return run


@njit_in_place
def copied(pool, run):
    """A copy of a run, in no list."""
    copy = new_run(pool, pool.runs[run, tables.PARTITION])
    for field in range(pool.runs.shape[1]):
        pool.runs[copy, field] = pool.runs[run, field]
    for column in range(pool.vectors.shape[1]):
        pool.vectors[copy, column] = pool.vectors[run, column]
    return copy


@njit_in_place
def free(pool, run):
    """End a run that is in no list."""
    pool.runs[run, tables.STATE] = NONE
    pool.runs[run, tables.NEXT] = pool.counters[tables.FREE_RUN]
    pool.counters[tables.FREE_RUN] = run
    pool.counters[tables.FREE_RUNS] += 1


@njit_in_place
def add_runs(pool, old):
    """Let the runs from number ``old`` on be free ones."""
    for run in range(old, len(pool.runs)):
        free(pool, run)
