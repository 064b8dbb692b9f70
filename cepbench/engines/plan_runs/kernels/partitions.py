"""The place of each event among those of its partition, over batches."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.hashing import bucket_of
from cepbench.kernels.jit import njit_in_place

_LEAST = np.iinfo(np.int64).min


@njit_in_place
def follow(
    values, times, begin, first_position, keys, last, latest, moments, used, heads, chain, found
):
    """Find the rank of events in their partitions, and those before them. Returns the next row.

    That is one without room for its partition, or the number of rows.

    ``values``, ``times``: float64 and int64 (rows,), the partition of each event, which is in none if it
    is missing, and its timestamp.
    ``begin``, ``first_position``: the first row, and the position of row 0.
    ``keys``, ``last``: float64 and int64 (partitions,), of which the first ``used`` are known: their
    values, and the timestamps of their latest events; written in place.
    ``latest``: int64 (partitions, 1 + most), written in place: the number of events of each partition
    and the positions of its latest ones, the last one first; -1 for none.
    ``moments``: int64 (partitions, most), written in place: their timestamps, or the least number.
    ``heads``, ``chain``: int64 (a power of two,) and (partitions,), written in place: the first of the
    partitions of each bucket, and the one after each; -1 for none.
    ``found``: int64 (2 + most, rows), written in place: the rank of each event from 0 on, the
    positions of those before it, and the timestamp of the one ``most`` before.
    """
    most = latest.shape[1] - 1
    for row in range(begin, len(values)):
        value = values[row]
        if value != value:
            found[:, row] = -1
            continue
        bucket = bucket_of(value, len(heads))
        partition = heads[bucket]
        while partition >= 0 and keys[partition] != value:
            partition = chain[partition]
        if partition < 0:
            if used[0] == len(keys):
                return row
            partition = used[0]
            used[0] += 1
            keys[partition] = value
            latest[partition, 0] = 0
            latest[partition, 1:] = -1
            moments[partition] = _LEAST
            chain[partition] = heads[bucket]
            heads[bucket] = partition
        for column in range(most + 1):
            found[column, row] = latest[partition, column]
        last[partition] = times[row]
        latest[partition, 0] += 1
        if most == 0:
            continue
        found[most + 1, row] = moments[partition, most - 1]
        for column in range(most, 1, -1):
            latest[partition, column] = latest[partition, column - 1]
            moments[partition, column - 1] = moments[partition, column - 2]
        latest[partition, 1] = first_position + row
        moments[partition, 0] = times[row]
    return len(values)


@njit_in_place
def enter(keys, used, heads, chain):
    """Enter known partitions in their buckets; arguments as for :func:`follow`."""
    heads[:] = -1
    for partition in range(used):
        bucket = bucket_of(keys[partition], len(heads))
        chain[partition] = heads[bucket]
        heads[bucket] = partition
