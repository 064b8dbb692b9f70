"""Dynamic programming over the prefixes of orders."""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.kernels.log_sums import PLAIN_RANGE, log_add


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
    if last < 0:
        return _order(sizes, log_delay, last, n, False)
    lowest = min(sizes[1:].min(), log_delay.min())
    highest = max(sizes[1:].max(), log_delay.max())
    if highest - lowest >= PLAIN_RANGE:
        return _order(sizes, log_delay, last, n, False)
    middle = (lowest + highest) / 2
    plain = np.empty(1 << n)
    for mask in range(1, 1 << n):
        plain[mask] = math.exp(sizes[mask] - middle)
    return _order(plain, np.exp(log_delay - middle), last, n, True)


@njit
def _order(sizes: np.ndarray, delay: np.ndarray, last: int, n: int, is_plain: bool) -> np.ndarray:
    """The order, from plain numbers or from logarithms."""
    # best[S]: the least cost of an order of S. Minimizing needs no logarithm or exponential unless
    # there are delays.
    best = np.empty(1 << n)
    best[0] = 0.0 if is_plain else -np.inf
    for mask in range(1, 1 << n):
        least = np.inf
        if last >= 0 and (mask >> last) & 1:
            for i in range(n):
                if (mask >> i) & 1:
                    least = min(least, _before(best, delay, last, mask, i, is_plain))
        else:
            rest = mask
            while rest:
                bit = rest & -rest
                rest ^= bit
                least = min(least, best[mask ^ bit])
        best[mask] = sizes[mask] + least if is_plain else log_add(sizes[mask], least)
    order = np.empty(n, dtype=np.int64)
    mask = (1 << n) - 1
    for position in range(n - 1, -1, -1):
        chosen = -1
        least = np.inf
        for i in range(n):
            if (mask >> i) & 1:
                before = _before(best, delay, last, mask, i, is_plain)
                # `<=` puts the latest written of equally good variables last.
                if before <= least:
                    chosen = i
                    least = before
        order[position] = chosen
        mask ^= 1 << chosen
    return order


@njit
def _before(
    best: np.ndarray, delay: np.ndarray, last: int, mask: int, i: int, is_plain: bool
) -> float:
    """The least cost of all but the last prefix of ``mask``, if i is taken up last."""
    rest = mask ^ (1 << i)
    if last < 0 or not (rest >> last) & 1:
        return best[rest]
    if is_plain:
        return best[rest] + delay[i]
    return log_add(best[rest], delay[i])
