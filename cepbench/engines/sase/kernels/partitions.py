"""Partitions: the events that share the values of ``[attribute]``, found by hash."""

from __future__ import annotations

from cepbench.engines.sase.kernels.tables import (
    FREE_PARTITION,
    NEXT_PARTITION,
    NEXT_START,
    OF_RUNS,
    OLDEST,
)
from cepbench.kernels.hashing import bucket_of
from cepbench.kernels.jit import njit, njit_in_place

_NONE = -1


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
        partition = state.partitions[partition, NEXT_PARTITION]
    return _NONE


@njit_in_place
def add(plan, state, events, row):
    """A new partition for an event; -1 if a value is missing, so that nothing equals it."""
    for key in range(len(plan.keys)):
        value = events.values[plan.keys[key], row]
        if value != value:
            return _NONE
    partition = state.counters[FREE_PARTITION]
    state.counters[FREE_PARTITION] = state.partitions[partition, NEXT_PARTITION]
    for key in range(len(plan.keys)):
        state.keys[partition, key] = events.values[plan.keys[key], row]
    for at_state in range(plan.states):
        state.heads[partition, at_state, :] = _NONE
    its = state.partitions[partition]
    its[OF_RUNS] = its[NEXT_START] = its[OLDEST] = 0
    bucket = _bucket_of_event(plan, state, events, row)
    its[NEXT_PARTITION] = state.partition_buckets[bucket]
    state.partition_buckets[bucket] = partition
    return partition


@njit
def chain_all(plan, state):
    """Enter all partitions in their buckets anew."""
    state.partition_buckets[:] = _NONE
    if len(plan.keys) == 0:
        return
    for partition in range(len(state.partitions)):
        if state.partitions[partition, OF_RUNS] >= 0:
            mixed = 0
            for key in range(len(plan.keys)):
                mixed = _mixed(mixed, state.keys[partition, key])
            bucket = mixed & (len(state.partition_buckets) - 1)
            state.partitions[partition, NEXT_PARTITION] = state.partition_buckets[bucket]
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
