"""Trees over ranks of values: numbers of events, and the marks to be subtracted from them."""

from __future__ import annotations

import numpy as np

from cepbench.engines.sequence_counts.kernels.order_statistics.tables import (
    ALIVE,
    EVENTS,
    FIELDS,
    FIRST,
    LAST,
    MARKS,
    MIDDLE,
    SUM,
    is_open_row,
    weight_of,
)
from cepbench.kernels.jit import njit, njit_in_place


@njit
def rank_values(plan, table, ranks, low, behind):
    """Rank the values of some events by item; returns how many differ."""
    size, columns = behind - low, len(plan.users)
    values, places = np.empty(columns * size), np.empty(columns * size, np.int64)
    number = 0
    for column in range(columns):
        for row in range(low, behind):
            values[number] = table.values[column, row]
            places[number] = column * size + row - low
            number += table.items[row] & plan.users[column] != 0
    order = np.argsort(values[:number])
    rank, before = 0, np.nan
    for place in order:
        rank += values[place] > before
        before = values[place]
        column, row = divmod(places[place], size)
        ranks[column, low + row] = rank
    return rank + 1


@njit_in_place
def build_tree(
    plan, table, ranks, bounds, tree, leaves, which, outer, behind_outer, begin, end, are_open
):
    """A tree without marks, of first or last events (``which``) from ``outer`` on, and of the open or the
    other middle ones from ``begin`` to ``end``.
    """
    for node in range(2 * leaves):
        for field in range(FIELDS):
            tree[node, field] = 0
    item = LAST if which else FIRST
    for row in range(outer, behind_outer):
        if table.items[row] & item:
            leaf = leaves + ranks[plan.places[2 * which], row]
            tree[leaf, ALIVE] += weight_of(plan, table, item, row)
    for row in range(begin, end):
        if table.items[row] & MIDDLE and is_open_row(table, bounds, row) == are_open:
            leaf, weight = leaves + ranks[plan.places[1], row], weight_of(plan, table, MIDDLE, row)
            tree[leaf, EVENTS] += weight
            tree[leaf, SUM] += weight * table.numbers[which, row]
    for node in range(leaves - 1, 0, -1):
        for field in range(FIELDS):
            tree[node, field] = tree[2 * node, field] + tree[2 * node + 1, field]


@njit_in_place
def subtract_marks(plan, table, ranks, bounds, tree, leaves, which, begin, end):
    """Subtract all marks from the numbers of some events."""
    below = 0
    for leaf in range(leaves, 2 * leaves):
        tree[leaf, ALIVE] = below
        below += tree[leaf, MARKS]
    for row in range(begin, end):
        if table.items[row] & MIDDLE and is_open_row(table, bounds, row):
            leaf = leaves + ranks[plan.places[1], row]
            table.numbers[which, row] -= passing(
                plan.passes, which, tree[leaf, ALIVE], tree[leaf, MARKS], below
            )


@njit_in_place
def fields_below(passes, which, tree, leaves, rank):
    """The fields of all lower ranks together."""
    node, smaller, greater = leaves + rank, passes[which, 0], passes[which, 2]
    alive = marks = events = total = 0
    while node > 1:
        if node & 1:
            # The half on the left of those so far.
            left = node - 1
            total += (
                tree[left, SUM]
                - smaller * tree[left, MARKS] * events
                - greater * marks * tree[left, EVENTS]
            )
            alive += tree[left, ALIVE]
            marks += tree[left, MARKS]
            events += tree[left, EVENTS]
        node >>= 1
    return alive, marks, events, total - greater * (tree[1, MARKS] - marks) * events


@njit_in_place
def numbers_of(passes, which, tree, leaves, rank, below):
    """The sum of the numbers of events that a value passes, given the fields below its rank."""
    leaf = leaves + rank
    marks = passes[which, 0] * below[MARKS] + passes[which, 2] * (
        tree[1, MARKS] - below[MARKS] - tree[leaf, MARKS]
    )
    own = tree[leaf, SUM] - marks * tree[leaf, EVENTS]
    return passing_beside(passes, 1 - which, below[SUM], own, tree[1, SUM])


@njit_in_place
def passing(passes, which, below, equal, total):
    """The part of a sum over first or last items that passes a comparison with a middle one."""
    return (
        passes[which, 0] * below
        + passes[which, 1] * equal
        + passes[which, 2] * (total - below - equal)
    )


@njit_in_place
def passing_beside(passes, which, below, equal, total):
    """The part of a sum over middle items that passes a comparison with a first or a last one."""
    return passing(passes, which, total - below - equal, equal, total)


@njit_in_place
def marks_of(passes, which, tree, leaves, rank):
    """The marks with which a value passes."""
    below = fields_below(passes, which, tree, leaves, rank)[MARKS]
    return passing(passes, which, below, tree[leaves + rank, MARKS], tree[1, MARKS])


@njit_in_place
def change_leaf(passes, which, tree, leaves, rank, alive, marks, events, total):
    """Add to the fields of a rank."""
    node, smaller, greater = leaves + rank, passes[which, 0], passes[which, 2]
    total -= passes[which, 1] * (marks * (tree[node, EVENTS] + events) + events * tree[node, MARKS])
    while True:
        tree[node, ALIVE] += alive
        tree[node, MARKS] += marks
        tree[node, EVENTS] += events
        tree[node, SUM] += total
        if node == 1:
            return
        if node & 1:
            total -= (
                smaller * events * tree[node - 1, MARKS] + greater * marks * tree[node - 1, EVENTS]
            )
        else:
            total -= (
                greater * events * tree[node + 1, MARKS] + smaller * marks * tree[node + 1, EVENTS]
            )
        node >>= 1
