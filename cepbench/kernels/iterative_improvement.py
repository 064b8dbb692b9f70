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
    log_factor: np.ndarray,
    log_bound: np.ndarray,
    log_selectivity: np.ndarray,
    log_order_factor: np.ndarray,
    log_delay: np.ndarray,
    last: int,
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
    log_factor, log_bound : ndarray of float64, shape (n,)
        As in :func:`cepbench.kernels.subset_sizes.log_subset_sizes`.
    log_selectivity : ndarray of float64, shape (n, n)
        The diagonal is not read.
    log_order_factor : ndarray of float64, shape (n + 1,)
    log_delay : ndarray of float64, shape (n,)
        What each variable costs on top if it comes after ``last``.
    last : int
        Index of a variable; negative for none, and then ``log_delay`` is not read.
    """
    n = len(order)
    conditions = log_selectivity.copy()
    for v in range(n):
        conditions[v, v] = 0.0
    # growth[p, v]: what variable v brings to the first p of the order (conditions[v, v] is 0, so
    # it does not matter whether v is one of them); products[p]: ln PM of the first p + 1, without
    # the factor for the order in time and without least[p], the least of their bounds.
    growth = np.empty((n + 1, n))
    growth[0, :] = log_factor
    products = np.empty(n)
    least = np.empty(n)
    _refresh(order, 0, n, products, least, growth, log_bound, conditions)
    sizes = products + least + log_order_factor[1:]
    trial = np.empty(n)
    met = 0
    at = 0
    while met < len(moves):
        i, j, k = moves[at, 0], moves[at, 1], moves[at, 2]
        at = (at + 1) % len(moves)
        first, end = min(i, j, k), max(i, j, k)
        if _lowers(
            order, i, j, k, sizes, least, growth, log_bound, conditions, log_delay, last, trial
        ):
            held = order[i]
            order[i] = order[j]
            order[j] = order[k]
            order[k] = held
            _refresh(order, first, end, products, least, growth, log_bound, conditions)
            for p in range(first, end):
                sizes[p] = products[p] + least[p] + log_order_factor[p + 1]
            met = 0
        else:
            met += 1


@njit
def _refresh(
    order: np.ndarray,
    first: int,
    end: int,
    products: np.ndarray,
    least: np.ndarray,
    growth: np.ndarray,
    log_bound: np.ndarray,
    conditions: np.ndarray,
) -> None:
    """Bring ``products``, ``least`` and ``growth`` up to date after first … end have moved."""
    for p in range(first, end):
        size = growth[p, order[p]]
        bound = log_bound[order[p]]
        if p > 0:
            size += products[p - 1]
            bound = min(bound, least[p - 1])
        products[p] = size
        least[p] = bound
        growth[p + 1, :] = growth[p, :] + conditions[order[p], :]


@njit
def _moved(order: np.ndarray, i: int, j: int, k: int, p: int) -> int:
    """What position p has after a move."""
    if p == k:
        return order[i]
    if p == j:
        return order[k]
    if p == i:
        return order[j]
    return order[p]


@njit
def _lowers(
    order: np.ndarray,
    i: int,
    j: int,
    k: int,
    sizes: np.ndarray,
    least: np.ndarray,
    growth: np.ndarray,
    log_bound: np.ndarray,
    conditions: np.ndarray,
    log_delay: np.ndarray,
    last: int,
    trial: np.ndarray,
) -> bool:
    """Whether a move lowers the sum of the prefixes and delays that it changes."""
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
    bound = np.inf if first == 0 else least[first - 1]
    for p in range(first, end):
        old = order[first] if p < middle else leaves
        new = comes if p < middle else order[end]
        bound = min(bound, log_bound[_moved(order, i, j, k, p)])
        change = growth[p + 1, new] - growth[p + 1, old] - conditions[new, old]
        change += bound - least[p]
        any_lower |= change < 0.0
        largest = max(largest, sizes[p])
        trial[p] = sizes[p] + change
    # Delays change only if `last` stands in the moved stretch; behind it all stays as it was.
    place = end + 1
    if last >= 0:
        for p in range(first, end + 1):
            if order[p] == last:
                place = p
        for p in range(place + 1, end + 1):
            largest = max(largest, log_delay[order[p]])
    if not any_lower and place > end:
        return False
    # Relative to the largest old prefix or delay: nothing overflows, and the rest of the cost,
    # the same before and after, cannot drown the difference.
    before = 0.0
    for p in range(first, end):
        before += math.exp(sizes[p] - largest)
    for p in range(place + 1, end + 1):
        before += math.exp(log_delay[order[p]] - largest)
    limit = before * (1.0 - _LEAST_GAIN)
    highest = math.log(limit)
    after = 0.0
    if place <= end:
        for p in range(end, first, -1):
            moved = _moved(order, i, j, k, p)
            if moved == last:
                break
            if log_delay[moved] - largest >= highest:
                return False
            after += math.exp(log_delay[moved] - largest)
    for p in range(first, end):
        if trial[p] - largest >= highest:
            return False
        after += math.exp(trial[p] - largest)
        if after >= limit:
            return False
    return True
