"""Dynamic programming over the trees whose leaves stand in one given order."""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.kernels.log_sums import log_add


@njit
def cheapest_cuts(
    log_filtered: np.ndarray, log_selectivity: np.ndarray, log_order_factor: np.ndarray
) -> np.ndarray:
    """Where the tree of least Cost_tree over leaves 0 … n−1 cuts each interval, in O(n³).

    Parameters
    ----------
    log_filtered : ndarray of float64, shape (n,)
    log_selectivity : ndarray of float64, shape (n, n)
        The diagonal is not read.
    log_order_factor : ndarray of float64, shape (n + 1,)

    Returns
    -------
    ndarray of int64, shape (n, n)
        ``cuts[i, j]`` for i < j is the first leaf of the right half of the interval i … j.
    """
    n = len(log_filtered)
    sizes = np.empty((n, n))
    for j in range(n):
        added = log_filtered[j]
        sizes[j, j] = added
        for i in range(j - 1, -1, -1):
            added += log_selectivity[i, j]
            sizes[i, j] = sizes[i, j - 1] + added
    # best is kept with both index orders, so that the two halves are read along rows.
    best = np.empty((n, n))
    cuts = np.zeros((n, n), dtype=np.int64)
    for j in range(n):
        best[j, j] = sizes[j, j] + log_order_factor[1]
        for i in range(j - 1, -1, -1):
            least = np.inf
            chosen = i + 1
            for cut in range(i + 1, j + 1):
                a = best[i, cut - 1]
                b = best[j, cut]
                if a < b:
                    a, b = b, a
                # A sum is above its larger part, so most cuts end here.
                if a < least:
                    total = a + math.log1p(math.exp(b - a))
                    # `<` keeps the leftmost of equally good cuts.
                    if total < least:
                        least = total
                        chosen = cut
            best[i, j] = log_add(sizes[i, j] + log_order_factor[j - i + 1], least)
            best[j, i] = best[i, j]
            cuts[i, j] = chosen
    return cuts
