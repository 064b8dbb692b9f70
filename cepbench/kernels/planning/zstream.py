"""Dynamic programming over the trees whose leaves stand in one given order."""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.kernels.planning.log_sums import log_add


@njit
def cheapest_cuts(
    log_factor: np.ndarray,
    log_bound: np.ndarray,
    log_selectivity: np.ndarray,
    log_order_factor: np.ndarray,
    log_alpha: float,
    last: int,
) -> np.ndarray:
    """Where the tree of least Cost_tree over leaves 0 … n−1 cuts each interval, in O(n³).

    Parameters
    ----------
    log_factor, log_bound : ndarray of float64, shape (n,)
        As in :func:`cepbench.kernels.planning.subset_sizes.log_subset_sizes`.
    log_selectivity : ndarray of float64, shape (n, n)
        The diagonal is not read.
    log_order_factor : ndarray of float64, shape (n + 1,)
    log_alpha : float
        ln of what the size of each sibling on the path up from leaf ``last`` is multiplied by, on
        top of its own cost.
    last : int
        Negative for none, and then ``log_alpha`` is not read.

    Returns
    -------
    ndarray of int64, shape (n, n)
        ``cuts[i, j]`` for i < j is the first leaf of the right half of the interval i … j.
    """
    n = len(log_factor)
    sizes = np.empty((n, n))
    for j in range(n):
        added = log_factor[j]
        sizes[j, j] = added
        for i in range(j - 1, -1, -1):
            added += log_selectivity[i, j]
            sizes[i, j] = sizes[i, j - 1] + added
    for i in range(n):
        least = np.inf
        for j in range(i, n):
            least = min(least, log_bound[j])
            sizes[i, j] += least + log_order_factor[j - i + 1]
    # best is kept with both index orders, so that the two halves are read along rows; half is
    # the cost of an interval as one of two halves of one that holds `last`.
    best = np.empty((n, n))
    half = np.empty((n, n)) if last >= 0 else best
    cuts = np.zeros((n, n), dtype=np.int64)
    for j in range(n):
        for i in range(j, -1, -1):
            with_last = i <= last <= j
            if i == j:
                best[i, j] = sizes[i, j]
            else:
                cut, least = _cheapest_cut(half if with_last else best, i, j)
                best[i, j] = log_add(sizes[i, j], least)
                best[j, i] = best[i, j]
                cuts[i, j] = cut
            if last >= 0:
                alone = best[i, j]
                half[i, j] = alone if with_last else log_add(alone, log_alpha + sizes[i, j])
                half[j, i] = half[i, j]
    return cuts


@njit
def _cheapest_cut(halves: np.ndarray, i: int, j: int) -> tuple[int, float]:
    """The first leaf of the right half of the best cut of i … j, and ln of the halves' cost."""
    least = np.inf
    chosen = i + 1
    for cut in range(i + 1, j + 1):
        a = halves[i, cut - 1]
        b = halves[j, cut]
        if a < b:
            a, b = b, a
        # A sum is above its larger part, so most cuts end here.
        if a < least:
            total = a + math.log1p(math.exp(b - a))
            # `<` keeps the leftmost of equally good cuts.
            if total < least:
                least = total
                chosen = cut
    return chosen, least
