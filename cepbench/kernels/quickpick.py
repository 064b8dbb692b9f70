"""Random join trees, built edge by edge and given up as soon as they cost more than the best."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.clock import now
from cepbench.kernels.jit import njit
from cepbench.kernels.log_sums import log_add

#: The clock is looked at after so many trees.
_TREES_PER_LOOK = 64


@njit
def best_random_tree(
    edges: np.ndarray,
    log_factor: np.ndarray,
    log_bound: np.ndarray,
    log_selectivity: np.ndarray,
    log_order_factor: np.ndarray,
    log_alpha: float,
    last: int,
    rng: np.random.Generator,
    most_trees: int,
    deadline: int,
) -> tuple[np.ndarray, int]:
    """The tree of least Cost_tree among random ones, in O(n² + edges) each.

    A tree is made by taking edges in random order: one whose ends are in two trees joins them.
    Trees that no edge is left to join are then joined in random order.

    Parameters
    ----------
    edges : ndarray of int64, shape (m, 2)
        Pairs of variables, in any order; their order changes.
    log_factor, log_bound : ndarray of float64, shape (n,)
        As in :func:`cepbench.kernels.subset_sizes.log_subset_sizes`.
    log_selectivity : ndarray of float64, shape (n, n)
        The diagonal is not read.
    log_order_factor : ndarray of float64, shape (n + 1,)
    log_alpha : float
        ln of what the size of each sibling on the path up from leaf ``last`` is multiplied by, on
        top of its own cost.
    last : int
        Negative for none, and then ``log_alpha`` is not read.
    rng : numpy.random.Generator
    most_trees, deadline : int
        The search ends after so many trees, or when the clock shows this, after one in any case.

    Returns
    -------
    joins : ndarray of int64, shape (n − 1, 2)
        Of the best tree, in the order in which they were made: the earliest written variables of
        both halves, the earlier one first.
    trees : int
        How many were begun.
    """
    n = len(log_factor)
    leaves = -np.inf
    for v in range(n):
        leaves = log_add(log_factor[v] + log_bound[v] + log_order_factor[1], leaves)
    # Of each tree, at the place of its earliest written variable: what is multiplied by its least
    # bound and the factor for its number of members, and what each two trees multiply each other by.
    products = np.empty(n)
    least = np.empty(n)
    members = np.empty(n, dtype=np.int64)
    between = np.empty((n, n))
    tree_of = np.empty(n, dtype=np.int64)
    roots = np.empty(n, dtype=np.int64)
    joins = np.empty((n - 1, 2), dtype=np.int64)
    best = np.empty((n - 1, 2), dtype=np.int64)
    lowest = np.inf
    clock = np.empty(2, dtype=np.int64)
    trees = 0
    while trees < most_trees and (
        trees == 0 or trees % _TREES_PER_LOOK > 0 or now(clock) < deadline
    ):
        trees += 1
        # Slices would take five times as long to compile.
        for v in range(n):
            products[v] = log_factor[v]
            least[v] = log_bound[v]
            members[v] = 1
            tree_of[v] = v
            for w in range(n):
                between[v, w] = log_selectivity[v, w]
        holder = last
        cost = leaves
        made = 0
        left = len(edges)
        while made < n - 1 and cost < lowest:
            if left > 0:
                # The edges that were not taken yet are the first ones.
                at = int(rng.random() * left)
                left -= 1
                a, b = edges[at, 0], edges[at, 1]
                edges[at, 0], edges[at, 1] = edges[left, 0], edges[left, 1]
                edges[left, 0], edges[left, 1] = a, b
                a, b = tree_of[a], tree_of[b]
                if a == b:
                    continue
            else:
                a, b = _two_trees(tree_of, roots, rng)
            i, j = min(a, b), max(a, b)
            joins[made, 0], joins[made, 1] = i, j
            made += 1
            if holder in (i, j):
                other = j if holder == i else i
                waiting = products[other] + least[other] + log_order_factor[members[other]]
                cost = log_add(log_alpha + waiting, cost)
                holder = i
            products[i] += products[j] + between[i, j]
            least[i] = min(least[i], least[j])
            members[i] += members[j]
            cost = log_add(products[i] + least[i] + log_order_factor[members[i]], cost)
            for v in range(n):
                between[i, v] += between[j, v]
                if tree_of[v] == j:
                    tree_of[v] = i
            for v in range(n):
                between[v, i] = between[i, v]
        if cost < lowest:
            lowest = cost
            for join in range(n - 1):
                best[join, 0], best[join, 1] = joins[join, 0], joins[join, 1]
    return best, trees


@njit
def _two_trees(tree_of: np.ndarray, roots: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
    """Two of the trees by chance; ``roots`` is room for them."""
    count = 0
    for v in range(len(tree_of)):
        if tree_of[v] == v:
            roots[count] = v
            count += 1
    first = int(rng.random() * count)
    second = int(rng.random() * (count - 1))
    if second >= first:
        second += 1
    return roots[first], roots[second]
