"""Descent to a local minimum of Cost_ord by swaps and 3-cycles of an order's positions."""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.jit import njit

#: A move counts if it lowers the prefixes that it changes by more than this part of their sum:
#: far above rounding, so that the descent cannot run in a circle.
_LEAST_GAIN = 1e-9


@njit
def descend(
    order: np.ndarray,
    moves: np.ndarray,
    log_filtered: np.ndarray,
    log_selectivity: np.ndarray,
    log_order_factor: np.ndarray,
) -> None:
    """Improve ``order`` in place until none of ``moves`` lowers its cost.

    The first move that lowers the cost is taken, and the search goes on behind it, round and
    round, until it has met every move once without taking one. To try a move takes O(n), to take
    it O(n²).

    Parameters
    ----------
    order : ndarray of int64, shape (n,)
    moves : ndarray of int64, shape (m, 3)
        Positions i, j, k: position i gets what j had, j what k had, k what i had. A swap of i and
        j is (i, j, j).
    log_filtered : ndarray of float64, shape (n,)
    log_selectivity : ndarray of float64, shape (n, n)
        The diagonal is not read.
    log_order_factor : ndarray of float64, shape (n + 1,)
    """
    n = len(order)
    conditions = log_selectivity.copy()
    for v in range(n):
        conditions[v, v] = 0.0
    # growth[p, v]: what variable v brings to the first p of the order (conditions[v, v] is 0, so
    # it does not matter whether v is one of them); sizes[p]: ln PM of the first p + 1, without
    # the factor for the order in time.
    growth = np.empty((n + 1, n))
    growth[0, :] = log_filtered
    sizes = np.empty(n)
    _refresh(order, 0, n, sizes, growth, conditions)
    trial = np.empty(n)
    met = 0
    at = 0
    while met < len(moves):
        i, j, k = moves[at, 0], moves[at, 1], moves[at, 2]
        at = (at + 1) % len(moves)
        first, end = min(i, j, k), max(i, j, k)
        if _lowers(order, i, j, k, sizes, growth, conditions, log_order_factor, trial):
            held = order[i]
            order[i] = order[j]
            order[j] = order[k]
            order[k] = held
            _refresh(order, first, end, sizes, growth, conditions)
            met = 0
        else:
            met += 1


@njit
def _refresh(
    order: np.ndarray,
    first: int,
    end: int,
    sizes: np.ndarray,
    growth: np.ndarray,
    conditions: np.ndarray,
) -> None:
    """Bring ``sizes`` and ``growth`` up to date after positions first … end have moved."""
    for p in range(first, end):
        size = growth[p, order[p]]
        if p > 0:
            size += sizes[p - 1]
        sizes[p] = size
        growth[p + 1, :] = growth[p, :] + conditions[order[p], :]


@njit
def _lowers(
    order: np.ndarray,
    i: int,
    j: int,
    k: int,
    sizes: np.ndarray,
    growth: np.ndarray,
    conditions: np.ndarray,
    log_order_factor: np.ndarray,
    trial: np.ndarray,
) -> bool:
    """Whether a move lowers the sum of the prefixes that it changes."""
    first, end = min(i, j, k), max(i, j, k)
    # Only prefixes that end inside the moved stretch get other members, and each of them just one
    # other: up to the middle position what comes to the first for what was there, from there on
    # what leaves the last for that one of the other two which is not in the prefix any more.
    if j == k:
        middle, comes, leaves = end, order[end], order[first]
    else:
        middle = i + j + k - first - end
        source = j if first == i else (k if first == j else i)
        comes = order[source]
        leaves = order[first] if source == middle else order[middle]
    largest = -np.inf
    any_lower = False
    for p in range(first, end):
        old = order[first] if p < middle else leaves
        new = comes if p < middle else order[end]
        change = growth[p + 1, new] - growth[p + 1, old] - conditions[new, old]
        any_lower |= change < 0.0
        factor = log_order_factor[p + 1]
        largest = max(largest, sizes[p] + factor)
        trial[p] = sizes[p] + change + factor
    if not any_lower:
        return False
    # Relative to the largest old prefix: nothing overflows, and the rest of the cost, the same
    # before and after, cannot drown the difference.
    before = 0.0
    for p in range(first, end):
        before += math.exp(sizes[p] + log_order_factor[p + 1] - largest)
    limit = before * (1.0 - _LEAST_GAIN)
    highest = math.log(limit)
    after = 0.0
    for p in range(first, end):
        if trial[p] - largest >= highest:
            return False
        after += math.exp(trial[p] - largest)
        if after >= limit:
            return False
    return True
