"""Partitions: the events that share the values of ``[attribute]``, found by hash.

Tables of partitions are in the state of merged runs, and in the pool of runs that are apart; of what is
counted without runs, they are :class:`Table`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.sase.kernels import tables
from cepbench.kernels.hashing import bucket_of
from cepbench.kernels.jit import njit, njit_in_place

_NONE = -1


class Table(NamedTuple):
    """Partitions alone."""

    heads: np.ndarray  #: int64 (partitions, 0): they have no runs
    partitions: np.ndarray  #: int64 (partitions, PARTITION_COLUMNS)
    keys: np.ndarray  #: float64 (partitions, keys)
    partition_buckets: np.ndarray  #: int64: a power of two
    counters: np.ndarray  #: int64


@njit_in_place
def find(plan, state, events, row):
    """The partition of an event that has runs or did once; -1 for none."""
    if len(plan.keys) == 0:
        return 0
    partition = state.partition_buckets[_bucket_of_event(plan, state, events, row)]
    while partition >= 0:
        equal = True
        for key in range(len(plan.keys)):
            equal = equal and state.keys[partition, key] == events.values[plan.keys[key], row]
        if equal:
            return partition
        partition = state.partitions[partition, tables.NEXT_PARTITION]
    return _NONE


@njit_in_place
def add(plan, state, events, row):
    """A new partition for an event, which is alone there if a value is missing: nothing equals it."""
    partition = new(state)
    its = state.partitions[partition]
    for key in range(len(plan.keys)):
        state.keys[partition, key] = events.values[plan.keys[key], row]
    if not is_missing(plan, events, row):
        bucket = _bucket_of_event(plan, state, events, row)
        its[tables.NEXT_PARTITION] = state.partition_buckets[bucket]
        state.partition_buckets[bucket] = partition
    return partition


@njit_in_place
def copied(state, old, partition):
    """A partition with the values of one of an ``old`` state; it is in no bucket yet."""
    copy = new(state)
    for key in range(state.keys.shape[1]):
        state.keys[copy, key] = old.keys[partition, key]
    return copy


@njit_in_place
def new(state):
    """A partition without values, in no bucket."""
    partition = state.counters[tables.FREE_PARTITION]
    state.counters[tables.FREE_PARTITION] = state.partitions[partition, tables.NEXT_PARTITION]
    state.heads[partition] = _NONE
    its = state.partitions[partition]
    its[tables.OF_RUNS] = its[tables.NEXT_START] = its[tables.OLDEST] = 0
    return partition


@njit_in_place
def is_missing(plan, events, row):
    """Whether a value is missing by which events are in partitions."""
    for key in range(len(plan.keys)):
        value = events.values[plan.keys[key], row]
        if value != value:
            return True
    return False


@njit
def number(plan, state, events, begins, numbers, at):
    """Number the partitions of ``events.rows`` from ``at`` on; -1 where there is none yet.

    ``begins``: int, flags of the events that begin one.
    ``numbers``: int64 (rows,). Returns the row behind the last one numbered: there may be no room.
    """
    while at < len(events.rows):
        row = events.rows[at]
        partition = find(plan, state, events, row)
        if partition < 0 and events.flags[row] & begins:
            if state.counters[tables.FREE_PARTITION] < 0:
                break
            partition = add(plan, state, events, row)
        numbers[at] = partition
        at += 1
    return at


@njit
def chain_all(plan, state):
    """Enter all partitions in their buckets anew."""
    state.partition_buckets[:] = _NONE
    if len(plan.keys) == 0:
        return
    for partition in range(len(state.partitions)):
        if state.partitions[partition, tables.OF_RUNS] >= 0:
            mixed, missing = 0, False
            for key in range(len(plan.keys)):
                value = state.keys[partition, key]
                mixed, missing = _mixed(mixed, value), missing or value != value
            if missing:
                continue
            bucket = mixed & (len(state.partition_buckets) - 1)
            state.partitions[partition, tables.NEXT_PARTITION] = state.partition_buckets[bucket]
            state.partition_buckets[bucket] = partition


@njit_in_place
def _bucket_of_event(plan, state, events, row):
    mixed = 0
    for key in range(len(plan.keys)):
        mixed = _mixed(mixed, events.values[plan.keys[key], row])
    return mixed & (len(state.partition_buckets) - 1)


@njit_in_place
def _mixed(mixed, value):
    return (31 * mixed + bucket_of(value, 1 << 30)) & 0x3FFFFFFFFFFF
