"""Hash buckets of values."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def bucket_of(value, buckets):
    """The bucket of a value; equal values have the same one.

    ``buckets``: int, a power of two.
    """
    # -0.0 equals 0.0. No product exceeds 64 bits.
    bits = np.float64(value + 0.0).view(np.int64)
    mixed = ((bits >> 32) & 0x7FFFFFFF) * 2654435 + (bits & 0x7FFFFFFF) * 40503
    return (mixed ^ (mixed >> 15) ^ (mixed >> 30)) & (buckets - 1)
