"""Whole plan spaces, and the plan generators' rules taken literally."""

from __future__ import annotations

import itertools

import numpy as np


def all_orders(n):
    """All n! orders."""
    return [list(order) for order in itertools.permutations(range(n))]


def all_trees(members):
    """All (2n − 3)!! bushy trees over ``members``, cross products included.

    Children have no order here, for no cost depends on it: the first member is on the left.
    """
    if len(members) == 1:
        return [members[0]]
    first, rest = members[0], members[1:]
    found = []
    for count in range(len(rest)):
        for beside in itertools.combinations(rest, count):
            left = [first, *beside]
            right = [member for member in rest if member not in beside]
            found.extend(itertools.product(all_trees(left), all_trees(right)))
    return found


def connected_trees(members, adjacent):
    """All bushy trees over ``members`` in which every join has adjacent variables on both sides."""
    if len(members) == 1:
        return [members[0]]
    first, rest = members[0], members[1:]
    found = []
    for count in range(len(rest)):
        for beside in itertools.combinations(rest, count):
            left = [first, *beside]
            right = [member for member in rest if member not in beside]
            if any(adjacent(i, j) for i in left for j in right):
                trees = connected_trees(left, adjacent), connected_trees(right, adjacent)
                found.extend(itertools.product(*trees))
    return found


def trees_with_few_cross_products(members, adjacent):
    """All bushy trees in which only whole parts of the graph of conditions meet without one."""
    parts = []
    for i in members:
        beside = [part for part in parts if any(adjacent(i, j) for j in part)]
        joined = sorted([i, *(j for part in beside for j in part)])
        parts = [part for part in parts if part not in beside] + [joined]

    def with_parts(tree, trees):
        if isinstance(tree, tuple):
            return tuple(with_parts(half, trees) for half in tree)
        return trees[tree]

    return [
        with_parts(above, trees)
        for trees in itertools.product(*(connected_trees(part, adjacent) for part in parts))
        for above in all_trees(list(range(len(parts))))
    ]


def trees_over(leaves):
    """All trees whose leaves, left to right, are ``leaves``: a Catalan number of them."""
    if len(leaves) == 1:
        return [leaves[0]]
    return [
        pair
        for cut in range(1, len(leaves))
        for pair in itertools.product(trees_over(leaves[:cut]), trees_over(leaves[cut:]))
    ]


def leaves_of(tree):
    """The leaves of nested pairs, left to right."""
    return leaves_of(tree[0]) + leaves_of(tree[1]) if isinstance(tree, tuple) else [tree]


def neighbours(order):
    """All orders that a swap of two positions or a cyclic shift of three makes of ``order``."""
    n = len(order)
    for i, j in itertools.combinations(range(n), 2):
        swapped = list(order)
        swapped[i], swapped[j] = order[j], order[i]
        yield swapped
    for i, j, k in itertools.combinations(range(n), 3):
        for x, y, z in ((j, k, i), (k, i, j)):
            shifted = list(order)
            shifted[i], shifted[j], shifted[k] = order[x], order[y], order[z]
            yield shifted


def greedy_order(n, cost_of_prefix):
    """At each step the variable whose appending costs least, the first of equally good ones."""
    order = []
    while len(order) < n:
        left = [i for i in range(n) if i not in order]
        order.append(min(left, key=lambda i: cost_of_prefix([*order, i])))
    return order


def smallest_joins(n, added):
    """Again and again the two trees whose join adds least, the first of equally good pairs.

    ``added(left, right)`` gets the leaves of both.
    """
    trees = list(range(n))
    while len(trees) > 1:
        # Trees stand in the order of their earliest leaves.
        left, right = min(
            itertools.combinations(trees, 2),
            key=lambda pair: added(leaves_of(pair[0]), leaves_of(pair[1])),
        )
        trees[trees.index(left)] = (left, right)
        trees.remove(right)
    return trees[0]


def frequency_order(rates):
    """Repeatedly the rarest of those that are left, the first of equally rare ones."""
    left = list(range(len(rates)))
    order = []
    while left:
        rarest = left[0]
        for i in left[1:]:
            if rates[i] < rates[rarest]:
                rarest = i
        order.append(rarest)
        left.remove(rarest)
    return order


def descent(order, moves, cost):
    """First improvement, round and round, until every move was met once without being taken.

    A move (i, j, k) gives position i what j had, j what k had and k what i had.
    """
    order = list(order)
    met = at = 0
    while met < len(moves):
        i, j, k = moves[at]
        at = (at + 1) % len(moves)
        moved = list(order)
        moved[i] = order[j]
        if j == k:
            moved[j] = order[i]
        else:
            moved[j], moved[k] = order[k], order[i]
        if cost(moved) < cost(order):
            order, met = moved, 0
        else:
            met += 1
    return order


def order_along_conditions(members, adjacent, selectivity, cost):
    """The cheapest order that follows a spanning tree of the most selective conditions.

    ``cost(order, edges)`` counts the conditions of these edges alone. All in plain terms: Kruskal's
    algorithm, then all orders along the tree.
    """
    pairs = [pair for pair in itertools.combinations(members, 2) if adjacent(*pair)]
    part = {i: {i} for i in members}
    edges = set()
    for i, j in sorted(pairs, key=lambda pair: (selectivity(*pair), pair)):
        if j not in part[i]:
            edges |= {(i, j), (j, i)}
            joined = part[i] | part[j]
            part.update(dict.fromkeys(joined, joined))
    orders = connected_orders(len(members), lambda i, j: (members[i], members[j]) in edges)
    named = [[members[i] for i in order] for order in orders]
    return min(named, key=lambda order: cost(order, edges))


def connected_orders(n, adjacent):
    """All orders in which each variable but the first is adjacent to an earlier one."""

    def grown(order):
        if len(order) == n:
            yield order
        for i in range(n):
            if i not in order and (not order or any(adjacent(i, j) for j in order)):
                yield from grown([*order, i])

    return list(grown([]))


def plain_bushy_cost(sizes, n, alpha=0.0, last=-1):
    """The least cost of a tree by dynamic programming over all splits of all sets, none left out.

    ``sizes`` has a plain number for every bit mask.
    """
    best = np.zeros(1 << n)
    # What a set costs as one of two halves of a set that holds ``last``.
    half = np.zeros(1 << n)
    for mask in range(1, 1 << n):
        bits = [1 << i for i in range(n) if mask >> i & 1]
        best[mask] = sizes[mask]
        with_last = last >= 0 and mask >> last & 1
        if len(bits) > 1:
            lefts = np.array(bits[:1])
            for bit in bits[1:]:
                lefts = np.concatenate([lefts, lefts | bit])
            lefts = lefts[lefts != mask]
            costs = half if with_last else best
            best[mask] += (costs[lefts] + costs[mask ^ lefts]).min()
        half[mask] = best[mask] if with_last else best[mask] + alpha * sizes[mask]
    return best[-1]
