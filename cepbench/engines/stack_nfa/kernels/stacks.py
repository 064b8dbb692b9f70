"""Stacks of instances, sorted by partition and time, and the ranges of rows between them."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.hashing import bucket_of
from cepbench.kernels.jit import njit, njit_in_place


@njit_in_place
def first_rows(codes, times, other_codes, others, shift, found):
    """For each instance the first row of another stack that is not before it, shifted in time.

    One merge scan of both stacks. The range of rows between two of these is within the partition
    of the instance.

    ``codes``: int64 (n,), partitions, ascending.
    ``times``: int64 (n,), ascending within a partition.
    ``other_codes``, ``others``: int64 (m,), partitions and times of the other stack.
    ``shift``: int, added to ``times``.
    ``found``: int64 (n,), written in place; rows of later partitions count as later.
    """
    i = row = 0
    while i < len(times) and row < len(others):
        # Without a branch to mispredict: an instance's row is overwritten until it is the one.
        other, code = other_codes[row], codes[i]
        before = (other < code) | ((other == code) & (others[row] < times[i] + shift))
        found[i] = row
        row += int(before)
        i += 1 - int(before)
    found[i:] = row


@njit
def number_partitions(coarse, values):
    """Divide partitions by the values of another attribute.

    ``coarse``: int64 (n,), numbers of partitions; 0 for none. ``values``: float64 (n,), NaN is in
    no partition.

    Returns ``fine``: int64 (n,), numbers from 1 on, in the order of appearance; 0 for none.
    ``largest``: int.
    """
    buckets = 1
    while buckets < 2 * len(values):
        buckets *= 2
    heads = np.full(buckets, -1, np.int64)
    fine = np.zeros(len(values), np.int64)
    largest = 0
    for row in range(len(values)):
        value, code = values[row], coarse[row]
        if code == 0 or value != value:
            continue
        bucket = (bucket_of(value, buckets) + code) & (buckets - 1)
        while heads[bucket] >= 0 and (
            values[heads[bucket]] != value or coarse[heads[bucket]] != code
        ):
            bucket = (bucket + 1) & (buckets - 1)
        if heads[bucket] < 0:
            heads[bucket] = row
            largest += 1
            fine[row] = largest
        else:
            fine[row] = fine[heads[bucket]]
    return fine, largest
