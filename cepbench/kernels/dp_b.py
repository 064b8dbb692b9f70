"""Dynamic programming over all bushy trees."""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.kernels.log_sums import PLAIN_RANGE, log_add


@njit
def _cheapest_split(best: np.ndarray, mask: int) -> tuple[int, float]:
    """The left half of the best split of a set of two or more, and ln of the halves' cost."""
    # Each split is met once: its left half holds the first variable.
    first = mask & -mask
    rest = mask ^ first
    least = np.inf
    chosen = 0
    more = 0
    while more != rest:
        left = first | more
        a = best[left]
        b = best[mask ^ left]
        if a < b:
            a, b = b, a
        # A sum is above its larger part, so most splits end here, without any exponential.
        if a < least:
            total = a + math.log1p(math.exp(b - a))
            if total < least:
                least = total
                chosen = left
        more = (more - rest) & rest
    return chosen, least


@njit
def _cheapest_plain_split(best: np.ndarray, mask: int) -> tuple[int, float]:
    """The same where ``best`` and the cost are plain numbers."""
    first = mask & -mask
    rest = mask ^ first
    least = np.inf
    chosen = 0
    more = 0
    while more != rest:
        left = first | more
        total = best[left] + best[mask ^ left]
        if total < least:
            least = total
            chosen = left
        more = (more - rest) & rest
    return chosen, least


@njit
def cheapest_tree(sizes: np.ndarray, log_alpha: float, last: int, n: int) -> np.ndarray:
    """The tree of least Cost_tree, in which each sibling on the path up from ``last`` costs more.

    Parameters
    ----------
    sizes : ndarray of float64, shape (2^n,)
        ln PM of every set of variables.
    log_alpha : float
        ln of what the size of such a sibling is multiplied by, on top of its own cost.
    last : int
        Index of a variable; negative for none, and then ``log_alpha`` is not read.
    n : int

    Returns
    -------
    ndarray of int64, shape (n − 1, 2)
        Bit masks of each inner node and of its left child, parents first.
    """
    lowest, highest = sizes[1:].min(), sizes[1:].max()
    if last < 0:
        log_alpha = 0.0
    middle = (lowest + highest) / 2
    if highest - lowest + abs(log_alpha) < PLAIN_RANGE:
        plain = np.empty(1 << n)
        for mask in range(1, 1 << n):
            plain[mask] = math.exp(sizes[mask] - middle)
        return _tree(plain, math.exp(log_alpha), last, n, True)
    return _tree(sizes, log_alpha, last, n, False)


@njit
def _tree(sizes: np.ndarray, alpha: float, last: int, n: int, is_plain: bool) -> np.ndarray:
    """The tree, from plain numbers or from logarithms."""
    # best[S]: the least cost of a tree over S; half[S]: of the same as one of two halves of a set
    # that holds `last`. One of the halves holds it, and the other one is its sibling.
    best = np.empty(1 << n)
    half = np.empty(1 << n) if last >= 0 else best
    for mask in range(1, 1 << n):
        with_last = last >= 0 and (mask >> last) & 1
        halves = half if with_last else best
        if not mask & (mask - 1):
            best[mask] = sizes[mask]
        elif is_plain:
            best[mask] = sizes[mask] + _cheapest_plain_split(halves, mask)[1]
        else:
            best[mask] = log_add(sizes[mask], _cheapest_split(halves, mask)[1])
        if with_last:
            half[mask] = best[mask]
        elif last >= 0 and is_plain:
            half[mask] = best[mask] + alpha * sizes[mask]
        elif last >= 0:
            half[mask] = log_add(best[mask], alpha + sizes[mask])
    nodes = np.empty((n - 1, 2), dtype=np.int64)
    if n > 1:
        nodes[0, 0] = (1 << n) - 1
    known = 1
    for node in range(n - 1):
        mask = nodes[node, 0]
        halves = half if last >= 0 and (mask >> last) & 1 else best
        if is_plain:
            left = _cheapest_plain_split(halves, mask)[0]
        else:
            left = _cheapest_split(halves, mask)[0]
        nodes[node, 1] = left
        for child in (left, mask ^ left):
            if child & (child - 1):
                nodes[known, 0] = child
                known += 1
    return nodes
