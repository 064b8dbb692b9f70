"""Dynamic programming over the prefixes of orders."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.kernels.log_sums import log_add


@njit
def cheapest_order(sizes: np.ndarray, n: int) -> np.ndarray:
    """The order of least Cost_ord.

    Parameters
    ----------
    sizes : ndarray of float64, shape (2^n,)
        ln PM of every set of variables.
    n : int

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    # best[S]: ln of the least cost of an order of S. Minimizing needs no logarithm or exponential.
    best = np.empty(1 << n)
    best[0] = -np.inf
    for mask in range(1, 1 << n):
        least = np.inf
        rest = mask
        while rest:
            bit = rest & -rest
            rest ^= bit
            least = min(least, best[mask ^ bit])
        best[mask] = log_add(sizes[mask], least)
    order = np.empty(n, dtype=np.int64)
    mask = (1 << n) - 1
    for position in range(n - 1, -1, -1):
        last = -1
        least = np.inf
        for i in range(n):
            # `<=` puts the latest written of equally good variables last.
            if (mask >> i) & 1 and best[mask ^ (1 << i)] <= least:
                last = i
                least = best[mask ^ (1 << i)]
        order[position] = last
        mask ^= 1 << last
    return order
