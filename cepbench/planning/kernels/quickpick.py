"""Random join trees, built edge by edge and abandoned as soon as they cost more than the best."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.clock import now
from cepbench.kernels.jit import njit
from cepbench.planning.kernels.adjacency import adjacency
from cepbench.planning.kernels.log_sums import log_add
from cepbench.planning.kernels.terms import CostTerms

#: Trees between two readings of the clock.
_TREES_PER_LOOK = 64


@njit
def best_random_tree(
    edges: np.ndarray,
    terms: CostTerms,
    rng: np.random.Generator,
    most_trees: int,
    deadline: int,
) -> tuple[np.ndarray, int]:
    """The tree of least Cost_tree among random ones, in O((n + edges) log n) each.

    A tree is built by drawing edges in random order; an edge between two trees joins them. Trees
    that remain without edges between them are joined in random order. Of two trees the one with
    fewer variables is scanned for the edges between them and relabelled, so each variable is
    scanned at most log₂ n times.

    The edges, int64, shape (m, 2), permuted in place, are the pairs of variables whose selectivity
    is not 1; others are not read. At least one tree is built.

    Returns the joins of the best tree in their order, int64, shape (n − 1, 2), as the earliest
    written variables of both sides, the earlier one first; and the number of trees begun.
    """
    log_factor, log_bound = terms.log_factor, terms.log_bound
    log_selectivity, log_order_factor = terms.log_selectivity, terms.log_order_factor
    last = terms.last
    n = len(log_factor)
    leaves = -np.inf
    for v in range(n):
        leaves = log_add(log_factor[v] + log_bound[v] + log_order_factor[1], leaves)
    first_edge, neighbours = adjacency(edges, n)
    # A tree is identified by one of its variables, its root in the union-find structure. At the
    # index of the root: its earliest written variable, its size without bound and temporal order,
    # its smallest bound and its number of members.
    earliest = np.empty(n, dtype=np.int64)
    products = np.empty(n)
    least = np.empty(n)
    members = np.empty(n, dtype=np.int64)
    tree_of = np.empty(n, dtype=np.int64)
    # The members of a tree as a linked list from the root to the last one.
    following = np.empty(n, dtype=np.int64)
    chain_end = np.empty(n, dtype=np.int64)
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
        for v in range(n):
            earliest[v] = tree_of[v] = chain_end[v] = v
            products[v] = log_factor[v]
            least[v] = log_bound[v]
            members[v] = 1
            following[v] = -1
        holder = last
        cost = leaves
        made = 0
        left = len(edges)
        count = 0
        while made < n - 1 and cost < lowest:
            if left > 0:
                # The edges not drawn yet are the first ones.
                at = int(rng.random() * left)
                left -= 1
                a, b = edges[at, 0], edges[at, 1]
                edges[at, 0], edges[at, 1] = edges[left, 0], edges[left, 1]
                edges[left, 0], edges[left, 1] = a, b
                a, b = tree_of[a], tree_of[b]
                if a == b:
                    continue
            else:
                if count == 0:
                    count = _list_trees(tree_of, roots)
                x, y = int(rng.random() * count), int(rng.random() * (count - 1))
                y += int(y >= x)
                a, b = roots[x], roots[y]
                if members[a] < members[b]:
                    y = x
                # The smaller tree is removed; the last one takes its place.
                count -= 1
                roots[y] = roots[count]
            if members[a] < members[b]:
                a, b = b, a
            i, j = min(earliest[a], earliest[b]), max(earliest[a], earliest[b])
            joins[made, 0], joins[made, 1] = i, j
            made += 1
            if last >= 0 and holder in (a, b):
                other = b if holder == a else a
                waiting = products[other] + least[other] + log_order_factor[members[other]]
                cost = log_add(terms.log_weight + waiting, cost)
                holder = a
            between = 0.0
            v = b
            while v >= 0:
                for edge in range(first_edge[v], first_edge[v + 1]):
                    if tree_of[neighbours[edge]] == a:
                        between += log_selectivity[v, neighbours[edge]]
                v = following[v]
            v = b
            while v >= 0:
                tree_of[v] = a
                v = following[v]
            following[chain_end[a]] = b
            chain_end[a] = chain_end[b]
            earliest[a] = i
            products[a] += products[b] + between
            least[a] = min(least[a], least[b])
            members[a] += members[b]
            cost = log_add(products[a] + least[a] + log_order_factor[members[a]], cost)
        if cost < lowest:
            lowest = cost
            for join in range(n - 1):
                best[join, 0], best[join, 1] = joins[join, 0], joins[join, 1]
    return best, trees


@njit
def _list_trees(tree_of: np.ndarray, roots: np.ndarray) -> int:
    """Write the roots of all trees to ``roots``; returns their number."""
    count = 0
    for v in range(len(tree_of)):
        if tree_of[v] == v:
            roots[count] = v
            count += 1
    return count
