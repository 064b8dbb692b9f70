"""Dynamic programming over the prefixes of orders."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.kernels.log_sums import log_add


@njit
def cheapest_order(sizes: np.ndarray, log_delay: np.ndarray, last: int, n: int) -> np.ndarray:
    """The order of least Cost_ord, in which each variable after ``last`` costs its delay too.

    Parameters
    ----------
    sizes : ndarray of float64, shape (2^n,)
        ln PM of every set of variables.
    log_delay : ndarray of float64, shape (n,)
        Not read if ``last`` is negative.
    last : int
        Index of a variable; negative for none.
    n : int

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    # best[S]: ln of the least cost of an order of S. Minimizing needs no logarithm or exponential
    # unless there are delays.
    best = np.empty(1 << n)
    best[0] = -np.inf
    for mask in range(1, 1 << n):
        least = np.inf
        if last >= 0 and (mask >> last) & 1:
            for i in range(n):
                if (mask >> i) & 1:
                    least = min(least, _before(best, log_delay, last, mask, i))
        else:
            rest = mask
            while rest:
                bit = rest & -rest
                rest ^= bit
                least = min(least, best[mask ^ bit])
        best[mask] = log_add(sizes[mask], least)
    order = np.empty(n, dtype=np.int64)
    mask = (1 << n) - 1
    for position in range(n - 1, -1, -1):
        chosen = -1
        least = np.inf
        for i in range(n):
            if (mask >> i) & 1:
                before = _before(best, log_delay, last, mask, i)
                # `<=` puts the latest written of equally good variables last.
                if before <= least:
                    chosen = i
                    least = before
        order[position] = chosen
        mask ^= 1 << chosen
    return order


@njit
def _before(best: np.ndarray, log_delay: np.ndarray, last: int, mask: int, i: int) -> float:
    """ln of the least cost of all but the last prefix of ``mask``, if i is taken up last."""
    rest = mask ^ (1 << i)
    if last < 0 or not (rest >> last) & 1:
        return best[rest]
    return log_add(best[rest], log_delay[i])
