"""Hierarchical instance stacks [liu2011]_, section III-B: events stored once, with pointers.

A stack numbers its events from 0. A pointer leads from an event to the last strictly earlier one of
another stack; a keyed pointer, to the last of those with an equal value. It is the number of that
event, -1 for none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.kernels.hashing import bucket_of
from cepbench.kernels.jit import njit_in_place


class Graph(NamedTuple):
    """The hierarchical pattern graph: which stacks point to which.

    The pointers of a label lead to the last earlier event, those of label 0, or to the last one of
    which a value is equal, those of all others.
    """

    edge_spans: np.ndarray  #: int64 (stacks + 1,): the edges that leave each stack
    edges: np.ndarray  #: int64 (edges, 4): place of its pointers, target, key or -1, own column
    keys: np.ndarray  #: int64 (keys,): the column of each key
    keyed: np.ndarray  #: bool (keys, stacks): whether events of a stack are found by a key
    places: np.ndarray  #: int64 (labels, stacks, stacks): place of the pointers from and to a stack
    key_of: np.ndarray  #: int64 (labels,): -1 for label 0


class Events(NamedTuple):
    """Events in the order of arrival."""

    stacks: np.ndarray  #: int64 (n,): of each event
    times: np.ndarray  #: int64 (n,)
    positions: np.ndarray  #: int64 (n,)
    values: np.ndarray  #: float64 (columns, n): what conditions read
    passed: np.ndarray  #: bool (filters, n): whether it satisfies each filter


class Stacks(NamedTuple):
    """The events of all stacks, one stack after the other, with room at the end of each."""

    events: Events  #: arrays over rows
    pointers: np.ndarray  #: int64 (places, rows)
    previous: np.ndarray  #: int64 (keys, rows): last one before it in its stack with its value
    origins: np.ndarray  #: int64 (stacks,): the row of event 0
    sizes: np.ndarray  #: int64 (stacks,)
    latest: np.ndarray  #: int64 (stacks, 2): time of the last event, number of those before it
    chains: np.ndarray  #: int64 (buckets,): a hash table; key and stack as one number, or -1
    heads: np.ndarray  #: float64 (buckets,): a value
    lasts: np.ndarray  #: int64 (buckets,): the last event with that value


@njit_in_place
def push(fresh, stacks, graph, rows):
    """Append events to their stacks, and set their pointers.

    ``rows``: int64 (n,), written in place: the row of each event.
    """
    events, previous = stacks.events, stacks.previous
    for i in range(len(fresh.stacks)):
        stack, time = fresh.stacks[i], fresh.times[i]
        number = stacks.sizes[stack]
        row = stacks.origins[stack] + number
        rows[i] = row
        events.stacks[row] = stack
        events.times[row] = time
        events.positions[row] = fresh.positions[i]
        for column in range(len(events.values)):
            events.values[column, row] = fresh.values[column, i]
        for number_of_filter in range(len(events.passed)):
            events.passed[number_of_filter, row] = fresh.passed[number_of_filter, i]
        if number == 0 or stacks.latest[stack, 0] < time:
            stacks.latest[stack, 0] = time
            stacks.latest[stack, 1] = number
        for edge in range(graph.edge_spans[stack], graph.edge_spans[stack + 1]):
            place, target, key, column = graph.edges[edge]
            if key < 0:
                at_once = stacks.sizes[target] > 0 and stacks.latest[target, 0] == time
                found = (stacks.latest[target, 1] if at_once else stacks.sizes[target]) - 1
            else:
                found = -1
                value = events.values[column, row]
                if value == value:
                    bucket = _bucket(stacks, key * len(stacks.sizes) + target, value)
                    if stacks.chains[bucket] >= 0:
                        found = stacks.lasts[bucket]
                origin = stacks.origins[target]
                while found >= 0 and events.times[origin + found] == time:
                    found = previous[key, origin + found]
            stacks.pointers[place, row] = found
        for key in range(len(graph.keys)):
            if not graph.keyed[key, stack]:
                continue
            value = events.values[graph.keys[key], row]
            previous[key, row] = -1
            if value == value:
                chain = key * len(stacks.sizes) + stack
                bucket = _bucket(stacks, chain, value)
                if stacks.chains[bucket] >= 0:
                    previous[key, row] = stacks.lasts[bucket]
                stacks.chains[bucket] = chain
                stacks.heads[bucket] = value
                stacks.lasts[bucket] = number
        stacks.sizes[stack] += 1


@njit_in_place
def _bucket(stacks, chain, value):
    """The bucket of a value in a chain, or an empty one for it."""
    mask = len(stacks.chains) - 1
    bucket = (bucket_of(value, mask + 1) + 31 * chain) & mask
    while stacks.chains[bucket] >= 0 and (
        stacks.chains[bucket] != chain or stacks.heads[bucket] != value
    ):
        bucket = (bucket + 1) & mask
    return bucket
