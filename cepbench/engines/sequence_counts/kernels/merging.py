"""Totals over several partitions, as one of them after the other changes."""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def merge(tree, bases, nodes, values, out, adds, is_maximum):
    """Put values into trees, and take the totals over whole trees.

    Each tree has its root at node 1 and the children of a node at twice its number, counted from the
    base of the tree. A value takes O(log leaves); nothing is subtracted, which suits any semiring.

    ``tree``: (nodes of all trees,), at first all zeros of the semiring.
    ``bases``, ``nodes``: int64 (n,), the tree, and the leaf of it, of each value.
    ``out``: (n,), the totals after each value.
    ``adds``: bool, whether a value is added to that of the leaf, instead of replacing it.
    """
    for k in range(len(values)):
        base, node, value = bases[k], nodes[k], values[k]
        if adds:
            before = tree[base + node]
            value = max(before, value) if is_maximum else before + value
        tree[base + node] = value
        while node > 1:
            node >>= 1
            one, other = tree[base + 2 * node], tree[base + 2 * node + 1]
            tree[base + node] = max(one, other) if is_maximum else one + other
        out[k] = tree[base + 1]
