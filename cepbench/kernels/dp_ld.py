"""Dynamic programming over the prefixes of orders."""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.clock import now
from cepbench.kernels.jit import njit
from cepbench.kernels.log_sums import PLAIN_RANGE, log_add

#: Sets that differ only in their first few variables lie side by side, and are done side by side:
#: the processor takes several at once.
_LOW = 4
_BLOCK = 1 << _LOW

#: The clock is looked at after so many sets, a multiple of :data:`_BLOCK`.
_SETS_PER_LOOK = 1 << 18


@njit
def cheapest_order(
    sizes: np.ndarray,
    log_delay: np.ndarray,
    last: int,
    n: int,
    most_sets: int,
    deadline: int,
) -> np.ndarray:
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
    most_sets, deadline : int
        The search ends after so many sets, or when the clock shows this.

    Returns
    -------
    ndarray of int64, shape (n,) or (0,)
        Empty if the search was ended.
    """
    lowest, highest = sizes[1:].min(), sizes[1:].max()
    if last >= 0:
        lowest, highest = min(lowest, log_delay.min()), max(highest, log_delay.max())
    is_plain = highest - lowest < PLAIN_RANGE
    costs = sizes
    delay = log_delay
    if is_plain:
        middle = (lowest + highest) / 2
        costs = np.empty(1 << n)
        for mask in range(1 << n):
            costs[mask] = math.exp(sizes[mask] - middle)
        delay = np.exp(log_delay - middle) if last >= 0 else np.zeros(n)
    best = np.empty(1 << n)
    best[0] = 0.0 if is_plain else -np.inf
    clock = np.empty(2, dtype=np.int64)
    block = min(_BLOCK, 1 << n)
    least = np.empty(_BLOCK)
    delayed = np.empty(_BLOCK)
    for begin in range(0, 1 << n, block):
        if begin >= most_sets or (begin % _SETS_PER_LOOK == 0 and now(clock) >= deadline):
            return np.empty(0, dtype=np.int64)
        if is_plain and block == _BLOCK:
            _fill_block(best, costs, delay, last, n, begin, least, delayed)
        else:
            for mask in range(max(begin, 1), begin + block):
                _fill_one(best, costs, delay, last, n, mask, is_plain)
    return _collect(best, delay, last, n, is_plain)


@njit
def _fill_block(
    best: np.ndarray,
    costs: np.ndarray,
    delay: np.ndarray,
    last: int,
    n: int,
    begin: int,
    least: np.ndarray,
    delayed: np.ndarray,
) -> None:
    """The least costs of orders over the sets from ``begin`` on, in plain numbers."""
    for low in range(_BLOCK):
        least[low] = np.inf
        # Whether what comes after the set is delayed: `last` is in it.
        delayed[low] = float(last >= 0 and ((begin + low) >> last) & 1)
    for i in range(_LOW, n):
        if (begin >> i) & 1:
            before = begin ^ (1 << i)
            more = 0.0 if i == last else delay[i]
            for low in range(_BLOCK):
                cost = best[before + low] + more * delayed[low]
                least[low] = cost if cost < least[low] else least[low]
    for low in range(_BLOCK):
        if begin + low == 0:
            continue
        for i in range(_LOW):
            if (low >> i) & 1:
                more = 0.0 if i == last else delay[i]
                cost = best[begin + (low ^ (1 << i))] + more * delayed[low]
                least[low] = cost if cost < least[low] else least[low]
        best[begin + low] = costs[begin + low] + least[low]


@njit
def _fill_one(
    best: np.ndarray,
    costs: np.ndarray,
    delay: np.ndarray,
    last: int,
    n: int,
    mask: int,
    is_plain: bool,
) -> None:
    """The least cost of an order over one set, from plain numbers or from logarithms."""
    least = np.inf
    for i in range(n):
        if (mask >> i) & 1:
            least = min(least, _before(best, delay, last, mask, i, is_plain))
    best[mask] = costs[mask] + least if is_plain else log_add(costs[mask], least)


@njit
def _before(
    best: np.ndarray, delay: np.ndarray, last: int, mask: int, i: int, is_plain: bool
) -> float:
    """The least cost of all but the last prefix of ``mask``, if i is taken up last."""
    rest = mask ^ (1 << i)
    if last < 0 or not (rest >> last) & 1:
        return best[rest]
    return best[rest] + delay[i] if is_plain else log_add(best[rest], delay[i])


@njit
def _collect(best: np.ndarray, delay: np.ndarray, last: int, n: int, is_plain: bool) -> np.ndarray:
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
def log_bound(sizes: np.ndarray, n: int) -> float:
    """ln of a cost that no order is below: the smallest set of each size, summed."""
    least = np.full(n + 1, np.inf)
    members = np.zeros(1 << n, dtype=np.int8)
    for mask in range(1, 1 << n):
        members[mask] = members[mask >> 1] + (mask & 1)
        least[members[mask]] = min(least[members[mask]], sizes[mask])
    total = -np.inf
    for size in range(1, n + 1):
        total = log_add(least[size], total)
    return total
