"""The paper's cost functions as they are printed, in plain numbers.

They work on any kind of number, so that fractions give exact values of any size. Variables are the
indices 0 … n−1; ``selectivities[i][j]`` is symmetric, with the filters on the diagonal. A structure
is an index, or an operator and its items: ``("SEQ", 0, ("AND", 1, 2))``.
"""

from __future__ import annotations

import itertools
import math
from functools import cache


def members_of(structure):
    """The indices of a structure, as written."""
    if isinstance(structure, int):
        return [structure]
    return [index for item in structure[1:] for index in members_of(item)]


@cache
def arrival_orders(structure):
    """All orders in time that a structure allows, by looking at every permutation."""

    def allowed(part, order):
        if isinstance(part, int):
            return True
        groups = [[order.index(i) for i in members_of(item)] for item in part[1:]]
        in_sequence = part[0] == "AND" or all(
            max(a) < min(b) for a, b in itertools.pairwise(groups)
        )
        return in_sequence and all(allowed(item, order) for item in part[1:])

    members = members_of(structure)
    return [order for order in itertools.permutations(members) if allowed(structure, order)]


def order_in_time(structure):
    """Which pairs get ``e_i.ts < e_j.ts``, section 4: neighbours whose order is always the same."""
    orders = arrival_orders(structure)
    beside = {pair for order in orders for pair in itertools.pairwise(order)}
    return {(i, j) for i, j in beside if all(order.index(i) < order.index(j) for order in orders)}


def neighbours_in_time(structure):
    """Potentially neighbouring pairs, section 5.2, smaller index first."""
    orders = arrival_orders(structure)
    return {tuple(sorted(pair)) for order in orders for pair in itertools.pairwise(order)}


def possible_last(structure):
    """What may arrive last."""
    return {order[-1] for order in arrival_orders(structure)}


def with_conditions(selectivities, pairs, selectivity):
    """The same with one more condition on each of ``pairs``."""
    rows = [list(row) for row in selectivities]
    for i, j in pairs:
        rows[i][j] = rows[i][j] * selectivity
        rows[j][i] = rows[j][i] * selectivity
    return rows


def cardinality(window, rate, *, kleene):
    """W·r, or 2^(W·r) of a Kleene variable (section 4), for which W·r has to be a whole number."""
    expected = window * rate
    if kleene:
        assert expected == int(expected)
        return 2 ** int(expected)
    return expected


def partial_matches(cardinalities, selectivities, members, *, used_up, exact_sequence):
    """PM of a set of variables: section 3.1, or m[k] of section 5.2 where events are used up."""
    members = list(members)
    counts = [cardinalities[i] for i in members]
    matches = min(counts) if used_up else math.prod(counts)
    for position, i in enumerate(members):
        for j in members[position:]:
            matches *= selectivities[i][j]
    return matches / math.factorial(len(members)) if exact_sequence else matches


def order_cost(pm, cardinalities, order, *, alpha, last):
    """Cost_ord, sections 3.1 and 5.2, plus α · Costlat_ord of section 5.1.

    Also of the first few of an order, in which ``last`` may be missing.
    """
    cost = sum(pm(order[:k]) for k in range(1, len(order) + 1))
    if alpha and last in order:
        cost += alpha * sum(cardinalities[i] for i in order[order.index(last) + 1 :])
    return cost


def tree_cost(pm, tree, *, alpha, last):
    """Cost_tree, sections 3.2 and 5.2, plus α · Costlat_tree of section 5.1."""
    cost = sum(pm(leaves_below(node)) for node in nodes_of(tree))
    if alpha:
        cost += alpha * sum(pm(leaves_below(node)) for node in siblings(tree, last))
    return cost


def siblings(tree, last):
    """The other child of every node on the way from the root down to the leaf ``last``."""
    if isinstance(tree, int):
        return []
    left, right = tree
    if last in leaves_below(left):
        return [right, *siblings(left, last)]
    return [left, *siblings(right, last)]


def nodes_of(tree):
    """All nodes in post-order."""
    below = [] if isinstance(tree, int) else [*nodes_of(tree[0]), *nodes_of(tree[1])]
    return [*below, tree]


def leaves_below(tree):
    """The leaves, left to right."""
    return [tree] if isinstance(tree, int) else [*leaves_below(tree[0]), *leaves_below(tree[1])]
