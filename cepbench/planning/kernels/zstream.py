"""Dynamic programming over the trees with a given order of leaves."""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.planning.kernels.log_sums import log_add
from cepbench.planning.kernels.terms import CostTerms


@njit
def cheapest_cuts(terms: CostTerms) -> np.ndarray:
    """The cut of each interval in the tree of least Cost_tree over leaves 0 … n−1, in O(n³).

    ``cuts[i, j]``, int64, for i < j is the first leaf of the right half of the interval i … j.
    """
    log_factor, log_bound = terms.log_factor, terms.log_bound
    log_selectivity, log_order_factor = terms.log_selectivity, terms.log_order_factor
    last = terms.last
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
    # best is stored symmetrically, so that both halves are read along rows; half is the cost of an
    # interval as one of two halves of an interval with `last`.
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
                half[i, j] = alone if with_last else log_add(alone, terms.log_weight + sizes[i, j])
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
        # A sum exceeds its larger part, so most cuts end here.
        if a < least:
            total = a + math.log1p(math.exp(b - a))
            # `<` keeps the leftmost of equally good cuts.
            if total < least:
                least = total
                chosen = cut
    return chosen, least
