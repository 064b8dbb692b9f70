"""The paper's cost functions as they are printed, in plain numbers.

They work on any kind of number, so that fractions give exact values of any size. Variables are the
indices 0 … n−1; ``selectivities[i][j]`` is symmetric, with the filters on the diagonal.
"""

from __future__ import annotations

import math


def with_order_in_time(selectivities):
    """A SEQ as an AND with ``e_i.ts < e_(i+1).ts`` between neighbours, each of selectivity 1/2.

    Kolchinsky & Schuster 2018, section 4, "Sequence patterns".
    """
    n = len(selectivities)
    rows = [list(row) for row in selectivities]
    for i in range(n - 1):
        rows[i][i + 1] = rows[i][i + 1] / 2
        rows[i + 1][i] = rows[i + 1][i] / 2
    return rows


def order_cost(window, rates, selectivities, order, *, exact_sequence=False):
    """Cost_ord, section 3.1: the sum over k of W^k · ∏ r · ∏ sel over i ≤ j ≤ k."""
    cost = 0
    for k in range(1, len(order) + 1):
        prefix = order[:k]
        matches = window**k
        for i in range(k):
            matches *= rates[prefix[i]]
            for j in range(i, k):
                matches *= selectivities[prefix[i]][prefix[j]]
        if exact_sequence:
            matches /= math.factorial(k)
        cost += matches
    return cost


def tree_cost(window, rates, selectivities, tree, *, exact_sequence=False):
    """Cost_tree, section 3.2, with each leaf's filter in the leaf: the sum of PM over all nodes."""
    return sum(node_sizes(window, rates, selectivities, tree, exact_sequence=exact_sequence))


def node_sizes(window, rates, selectivities, tree, *, exact_sequence=False):
    """PM of every node in post-order: W·r of a leaf, PM(left) · PM(right) · SEL of an inner node."""
    sizes = []

    def visit(node):
        if isinstance(node, int):
            leaves, matches = [node], window * rates[node] * selectivities[node][node]
        else:
            left, left_matches = visit(node[0])
            right, right_matches = visit(node[1])
            leaves, matches = left + right, left_matches * right_matches
            for i in left:
                for j in right:
                    matches *= selectivities[i][j]
        shown = matches / math.factorial(len(leaves)) if exact_sequence else matches
        sizes.append(shown)
        return leaves, matches

    visit(tree)
    return sizes
