"""IKKBZ: the best order along the edges of a tree, by merging sequences of least rank."""

from __future__ import annotations

import heapq
import math

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.planning.kernels.adjacency import adjacency
from cepbench.planning.kernels.log_sums import log_add


@njit
def cheapest_order_of_tree(
    log_factor: np.ndarray, log_selectivity: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """The order of least Cost_ord in which each variable is adjacent to an earlier one.

    In O(n² log n): O(n log n) for each first variable. The edges, int64, shape (n − 1, 2), are
    those of a tree over 0 … n−1; selectivities of other pairs are not read. Of equally good orders
    the one whose first variable is written earliest, int64, shape (n,).
    """
    n = len(log_factor)
    begin, adjacent = adjacency(edges, n)
    parent = np.empty(n, dtype=np.int64)
    following = np.empty(n, dtype=np.int64)
    best = np.empty(n, dtype=np.int64)
    least = np.inf
    for root in range(n):
        _hang_up(root, begin, adjacent, parent)
        cost = _join_all(root, log_factor, log_selectivity, parent, following)
        if cost < least:
            least = cost
            at = root
            for position in range(n):
                best[position] = at
                at = following[at]
    return best


@njit
def _hang_up(root: int, begin: np.ndarray, adjacent: np.ndarray, parent: np.ndarray) -> None:
    """The parent of each variable in the tree rooted at ``root``; −1 for the root itself."""
    reached = np.empty(len(parent), dtype=np.int64)
    reached[0] = root
    parent[root] = -1
    count = 1
    for at in range(len(parent)):
        i = reached[at]
        for e in range(begin[i], begin[i + 1]):
            if adjacent[e] != parent[i]:
                parent[adjacent[e]] = i
                reached[count] = adjacent[e]
                count += 1


@njit
def _join_all(
    root: int,
    log_factor: np.ndarray,
    log_selectivity: np.ndarray,
    parent: np.ndarray,
    following: np.ndarray,
) -> float:
    """ln of the cost of the best order that begins with the root; ``following`` gets the order.

    A sequence is identified by its first variable. The one of least rank is appended to the
    sequence of its predecessor, until one sequence is left.
    """
    n = len(log_factor)
    product = np.empty(n)
    for v in range(n):
        product[v] = log_factor[v] if v == root else log_factor[v] + log_selectivity[v, parent[v]]
    # Sums over the products of all prefixes, and of all proper prefixes.
    cost = product.copy()
    earlier = np.full(n, -np.inf)
    first = np.arange(n)
    end = np.arange(n)
    length = np.ones(n, dtype=np.int64)
    following[:] = -1
    heap = [_entry(v, length, product, cost, earlier) for v in range(n) if v != root]
    heapq.heapify(heap)
    while length[root] < n:
        _, _, late, its_length = heapq.heappop(heap)
        if first[late] != late or length[late] != its_length:
            continue  # outdated: it was merged, or has become longer
        early = parent[late]
        while first[early] != early:
            first[early] = first[first[early]]
            early = first[early]
        earlier[early] = log_add(cost[early], product[early] + earlier[late])
        cost[early] = log_add(cost[early], product[early] + cost[late])
        product[early] += product[late]
        length[early] += length[late]
        following[end[early]] = late
        end[early] = end[late]
        first[late] = early
        if early != root:
            heapq.heappush(heap, _entry(early, length, product, cost, earlier))
    return cost[root]


@njit
def _entry(
    v: int, length: np.ndarray, product: np.ndarray, cost: np.ndarray, earlier: np.ndarray
) -> tuple[int, float, int, int]:
    """The sort key of a sequence: a class of ranks, a number increasing with the rank in it, and v.

    With T the product of a sequence and C its cost, the rank is (T − 1) / C, between minus infinity
    and 1. The number is the logarithm that distinguishes ranks of the class best: −ln(−rank) below
    0, ln rank up to 1/2, −ln(1 − rank) above.
    """
    if product[v] == 0.0:
        return 1, 0.0, v, length[v]
    # ln |T − 1| − ln C
    size = max(product[v], 0.0) + math.log(-math.expm1(-abs(product[v]))) - cost[v]
    if product[v] < 0.0:
        return 0, -size, v, length[v]
    if size < -math.log(2.0):
        return 2, size, v, length[v]
    return 3, cost[v] - log_add(0.0, earlier[v]), v, length[v]
