"""DP-B: dynamic programming over all bushy trees, bounded by the cost of a known tree.

All trees have the same leaves and root, so only the cost of the other inner nodes is compared. A
set of variables can be a node of a tree better than the known one only if the inner nodes below it,
the set itself and a lower bound of the nodes outside it together cost less than the inner nodes of
the known tree. All other sets are pruned: no split of them is tried, and they are half of no other
split.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.clock import now
from cepbench.kernels.jit import njit, njit_in_place
from cepbench.planning.kernels.log_sums import log_add

#: Rounding must not prune the known tree itself.
_SLACK = 1.0 + 1e-9

#: Splits between two readings of the clock.
_SPLITS_PER_LOOK = 1 << 20


@njit
def cheapest_tree(
    plain: np.ndarray,
    alone: np.ndarray,
    alpha: float,
    last: int,
    limit: float,
    most_splits: int,
    deadline: int,
) -> tuple[np.ndarray, float, int]:
    """The tree of least Cost_tree, with additional costs of siblings on the path from ``last``.

    ``plain`` is PM of every set of variables, shape (2^n,), and may be infinite above ``limit``.
    The additional cost of such a sibling is ``alone`` of a single variable, shape (n,), and
    ``alpha`` times the size of a larger one; neither is read if ``last`` is negative. The limit is
    the cost of the inner nodes of a known tree, without the root and with the additional cost of
    siblings: the lower, the faster the search.

    Returns the bit masks of each inner node and of its left child, parents first, int64, shape (n −
    1, 2), or (0, 2) if the search did not complete; a lower bound of the cost of the inner nodes of
    any tree, without the root; and the number of splits tried.
    """
    n = len(alone)
    limit *= _SLACK
    best = np.empty(1 << n)
    bound = _budgets(plain, limit, best, np.empty(1 << n))
    # half[S]: the cost of S as one of two halves of a set with `last`. One of the halves has it,
    # the other one is its sibling.
    half = np.empty(1 << n) if last >= 0 else best
    if last >= 0:
        for i in range(n):
            half[1 << i] = 0.0 if i == last else alone[i]
    complete, splits = _fill(plain, alpha, last, best, half, most_splits, deadline)
    if not complete:
        return np.empty((0, 2), dtype=np.int64), bound, splits
    return _collect(best, half, last, n, False), bound, splits


@njit_in_place
def _budgets(plain: np.ndarray, limit: float, budgets: np.ndarray, way: np.ndarray) -> float:
    """The maximum cost of the two halves of each set, negative for a pruned set.

    The nodes outside a set S include those on its path to the root. If its parent is the root, its
    sibling is the rest; otherwise its parent is a larger set P, whose outside costs are added.
    ``way[P]`` is working space for the least cost of P or of a superset together with its outside.
    Returns a lower bound of the cost of the inner nodes of any tree.
    """
    full = len(plain) - 1
    way[full] = np.inf
    budgets[full] = limit
    bound = 0.0
    for mask in range(full - 1, 0, -1):
        rest = full ^ mask
        outside = plain[rest] if rest & (rest - 1) else 0.0
        upwards = np.inf
        while rest:
            bit = rest & -rest
            rest ^= bit
            upwards = min(upwards, way[mask | bit])
        outside = min(outside, upwards)
        if mask & (mask - 1):
            way[mask] = min(plain[mask] + outside, upwards)
            budgets[mask] = max(limit - plain[mask] - outside, -1.0)
        else:
            bound = max(bound, outside)
    return bound


@njit
def _fill(
    plain: np.ndarray,
    alpha: float,
    last: int,
    best: np.ndarray,
    half: np.ndarray,
    most_splits: int,
    deadline: int,
) -> tuple[bool, int]:
    """Replace the budgets in ``best`` by the least cost of a tree over each set, or infinity.

    The splits of a set are given by its subsets with one fixed member. They are enumerated from all
    subsets, or from the list of all unpruned sets with that member, whichever is shorter.
    """
    full = len(plain) - 1
    begin, listed = _room_for_lists(best)
    end = begin[:-1].copy()
    n = len(end)
    clock = np.empty(2, dtype=np.int64)
    splits = 0
    look = _SPLITS_PER_LOOK
    for mask in range(1, full + 1):
        with_last = last >= 0 and (mask >> last) & 1
        if mask & (mask - 1):
            budget = best[mask]
            if budget < 0.0:
                best[mask] = np.inf
                half[mask] = np.inf
                continue
            halves = half if with_last else best
            member, tried = _rarest(mask, begin, end)
            if member < 0:
                least = _least_of_all(halves, mask)
            else:
                least = _least_of_listed(halves, mask, listed, begin[member], end[member])
            splits += tried
            if splits >= min(look, most_splits):
                if splits >= most_splits or now(clock) >= deadline:
                    return False, splits
                look = splits + _SPLITS_PER_LOOK
            if least > budget:
                best[mask] = np.inf
                half[mask] = np.inf
                continue
            best[mask] = least if mask == full else plain[mask] + least
            if with_last:
                half[mask] = best[mask]
            elif last >= 0:
                half[mask] = best[mask] + alpha * plain[mask]
        else:
            best[mask] = 0.0
        if mask != full:
            for i in range(n):
                if (mask >> i) & 1:
                    listed[end[i]] = mask
                    end[i] += 1
    return True, splits


@njit
def _room_for_lists(budgets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The beginnings of the lists of unpruned sets by member, and an array for all lists."""
    n = 0
    while (1 << n) < len(budgets):
        n += 1
    begin = np.zeros(n + 1, dtype=np.int64)
    for mask in range(1, len(budgets) - 1):
        if not mask & (mask - 1) or budgets[mask] >= 0.0:
            for i in range(n):
                begin[i + 1] += (mask >> i) & 1
    begin = np.cumsum(begin)
    return begin, np.empty(begin[n], dtype=np.int32)


@njit_in_place
def _rarest(mask: int, begin: np.ndarray, end: np.ndarray) -> tuple[int, int]:
    """The member of a set with the shortest list, and its length; -1 if there are fewer subsets."""
    members = 0
    fewest = 1 << 62
    rarest = -1
    for i in range(len(end)):
        if (mask >> i) & 1:
            members += 1
            if end[i] - begin[i] < fewest:
                fewest = end[i] - begin[i]
                rarest = i
    subsets = 1 << (members - 1)
    if subsets <= fewest:
        return -1, subsets
    return rarest, fewest


@njit_in_place
def _least_of_all(halves: np.ndarray, mask: int) -> float:
    """The least cost of the two halves of a set, over all its splits."""
    first = mask & -mask
    rest = mask ^ first
    least = np.inf
    more = 0
    while more != rest:
        left = first | more
        least = min(least, halves[left] + halves[mask ^ left])
        more = (more - rest) & rest
    return least


@njit_in_place
def _least_of_listed(
    halves: np.ndarray, mask: int, listed: np.ndarray, begin: int, end: int
) -> float:
    """As :func:`_least_of_all`, over the splits of which one half is in a list."""
    least = np.inf
    for place in range(begin, end):
        left = mask & listed[place]
        if left == listed[place]:
            least = min(least, halves[left] + halves[mask ^ left])
    return least


@njit
def _collect(best: np.ndarray, half: np.ndarray, last: int, n: int, in_logs: bool) -> np.ndarray:
    """The nodes of the best tree; of equally good splits the one with the smallest left half."""
    nodes = np.empty((n - 1, 2), dtype=np.int64)
    nodes[0, 0] = (1 << n) - 1
    found = 1
    for node in range(n - 1):
        mask = nodes[node, 0]
        halves = half if last >= 0 and (mask >> last) & 1 else best
        chosen = _best_split(halves, mask, in_logs)[0]
        nodes[node, 1] = chosen
        for child in (chosen, mask ^ chosen):
            if child & (child - 1):
                nodes[found, 0] = child
                found += 1
    return nodes


@njit
def cheapest_tree_in_logs(
    sizes: np.ndarray,
    log_alpha: float,
    last: int,
    n: int,
    log_limit: float,
    most_splits: int,
    deadline: int,
) -> tuple[np.ndarray, int]:
    """As :func:`cheapest_tree` in log space, for any range; sets are pruned only by their size."""
    full = (1 << n) - 1
    clock = np.empty(2, dtype=np.int64)
    best = np.empty(1 << n)
    half = np.empty(1 << n) if last >= 0 else best
    splits = 0
    look = _SPLITS_PER_LOOK
    for mask in range(1, 1 << n):
        with_last = last >= 0 and (mask >> last) & 1
        if not mask & (mask - 1):
            best[mask] = -np.inf
        elif mask != full and sizes[mask] > log_limit + 1e-9:
            best[mask] = np.inf
        else:
            _, least, tried = _best_split(half if with_last else best, mask, True)
            best[mask] = least if mask == full else log_add(sizes[mask], least)
            splits += tried
            if splits >= min(look, most_splits):
                if splits >= most_splits or now(clock) >= deadline:
                    return np.empty((0, 2), dtype=np.int64), splits
                look = splits + _SPLITS_PER_LOOK
        if with_last:
            half[mask] = best[mask]
        elif last >= 0:
            half[mask] = log_add(log_alpha + sizes[mask], best[mask])
    return _collect(best, half, last, n, True), splits


@njit
def _best_split(halves: np.ndarray, mask: int, in_logs: bool) -> tuple[int, float, int]:
    """The left half of the best split of a set, the halves' cost, and the splits tried."""
    first = mask & -mask
    rest = mask ^ first
    least = np.inf
    chosen = first
    more = 0
    tried = 0
    while more != rest:
        left = first | more
        a = halves[left]
        b = halves[mask ^ left]
        if a < b:
            a, b = b, a
        # A sum exceeds its larger part, so most splits need no exponential.
        if a < least or least == np.inf:
            total = a
            if not in_logs:
                total = a + b
            elif a > -np.inf and a < np.inf:
                total = log_add(a, b)
            if total < least:
                least = total
                chosen = left
        tried += 1
        more = (more - rest) & rest
    return chosen, least, tried
