"""Dynamic programming over the prefixes of orders."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.clock import now
from cepbench.kernels.jit import njit, njit_in_place
from cepbench.planning.kernels.log_sums import log_add

#: Sets between two readings of the clock.
_SETS_PER_LOOK = 1 << 18


@njit
def cheapest_order(
    costs: np.ndarray,
    delay: np.ndarray,
    last: int,
    in_logs: bool,
    deadline: int,
) -> np.ndarray:
    """The order of least cost: of its prefixes, and of the delay of each variable after ``last``.

    ``costs`` are those of every set of variables as a prefix, by bit mask, shape (2^n,); ``delay``
    has shape (n,) and is not read if ``last`` is negative. With ``in_logs`` both are logarithms,
    for any range: many times slower. The order has shape (n,), or (0,) if the search did not
    complete.
    """
    n = len(delay)
    best = np.empty(1 << n)
    best[0] = -np.inf if in_logs else 0.0
    clock = np.empty(2, dtype=np.int64)
    for begin in range(1, 1 << n, _SETS_PER_LOOK):
        if now(clock) >= deadline:
            return np.empty(0, dtype=np.int64)
        _fill(best, costs, delay, last, begin, in_logs)
    return _collect(best, delay, last, in_logs)


@njit_in_place
def _fill(
    best: np.ndarray, costs: np.ndarray, delay: np.ndarray, last: int, begin: int, in_logs: bool
) -> None:
    """The least cost of an order of each set, from ``begin`` to the next reading of the clock."""
    n = len(delay)
    for mask in range(begin, min(begin + _SETS_PER_LOOK, 1 << n)):
        least = np.inf
        if last >= 0 and (mask >> last) & 1:
            for i in range(n):
                if (mask >> i) & 1:
                    least = min(least, _before(best, delay, last, mask, i, in_logs))
        else:
            rest = mask
            while rest:
                bit = rest & -rest
                rest ^= bit
                before = best[mask ^ bit]
                if before < least:
                    least = before
        best[mask] = log_add(costs[mask], least) if in_logs else costs[mask] + least


@njit_in_place
def _before(
    best: np.ndarray, delay: np.ndarray, last: int, mask: int, i: int, in_logs: bool
) -> float:
    """The least cost of all prefixes of ``mask`` but itself, if i is its last variable."""
    rest = mask ^ (1 << i)
    if last < 0 or not (rest >> last) & 1:
        return best[rest]
    return log_add(best[rest], delay[i]) if in_logs else best[rest] + delay[i]


@njit
def _collect(best: np.ndarray, delay: np.ndarray, last: int, in_logs: bool) -> np.ndarray:
    """The best order, from its end."""
    n = len(delay)
    order = np.empty(n, dtype=np.int64)
    mask = (1 << n) - 1
    for position in range(n - 1, -1, -1):
        chosen = -1
        least = np.inf
        for i in range(n):
            if (mask >> i) & 1:
                before = _before(best, delay, last, mask, i, in_logs)
                # `<=` puts the latest written of equally good variables last.
                if before <= least:
                    chosen = i
                    least = before
        order[position] = chosen
        mask ^= 1 << chosen
    return order
