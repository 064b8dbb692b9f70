"""The events of a chunk of an AND, each beside those in the window, by trees or by scans."""

from __future__ import annotations

from cepbench.engines.sequence_counts.kernels.order_statistics.tables import (
    ALIVE,
    EVENTS,
    FIRST,
    LAST,
    MARKS,
    MIDDLE,
    PEAK,
    STORED,
    add_to,
    passes_with,
    report_matches,
    weight_of,
)
from cepbench.engines.sequence_counts.kernels.order_statistics.trees import (
    change_leaf,
    fields_below,
    numbers_of,
    passing,
    passing_beside,
)
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def count_in_any_order(
    plan, table, ranks, ending, going_on, leaves, totals, found, out, partition, low, first, behind
):
    """Process the events of a chunk of an AND, by trees or, without leaves, by scans; returns the first row in
    the window."""
    times, items = table.times, table.items
    for row in range(first, behind):
        while low < row and times[low] < times[row] - plan.window:
            _move(plan, table, ranks, ending, going_on, leaves, low, low + 1, row, -1)
            number = _beside_others(plan, table, ranks, ending, going_on, leaves, low, low + 1, row)
            if plan.counts_window:
                add_to(totals, partition, -number)
            totals[partition, STORED] -= items[low] & plan.kept != 0
            low += 1
        number = _beside_others(plan, table, ranks, ending, going_on, leaves, row, low, row)
        report_matches(plan, table, totals, found, out, partition, row, number)
        _move(plan, table, ranks, ending, going_on, leaves, row, low, row, 1)
        if times[row] < table.until:
            totals[partition, STORED] += items[row] & plan.kept != 0
            totals[partition, PEAK] = max(totals[partition, PEAK], totals[partition, STORED])
    # These come again, before others at their timestamp.
    row = behind
    while row > first and times[row - 1] >= table.until:
        row -= 1
        _move(plan, table, ranks, ending, going_on, leaves, row, low, row, -1)
    return low


@njit_in_place
def _beside_others(plan, table, ranks, ending, going_on, leaves, row, low, behind):
    """The matches of an AND of an event and some others, which are in the trees."""
    number, items, numbers = 0, table.items, table.numbers
    if items[row] & MIDDLE:
        its = weight_of(plan, table, MIDDLE, row)
        for which in range(plan.items - 1):
            its *= _alive(
                plan, table, ranks, going_on if which else ending, leaves, which, row, low, behind
            )
        number += its
    # An event of an outer item goes with how many of the other one there are beside the middle one.
    for which in range(plan.items - 1):
        item, its = LAST if which else FIRST, 0
        if items[row] & item == 0:
            continue
        if leaves == 0:
            for other in range(low, behind):
                if items[other] & MIDDLE and passes_with(plan, table, which, row, other):
                    beside = numbers[1 - which, other] if plan.items == 3 else 1
                    its += weight_of(plan, table, MIDDLE, other) * beside
        else:
            rank = ranks[plan.places[2 * which], row]
            if plan.items == 3:
                tree = ending if which else going_on
                below = fields_below(plan.passes, 1 - which, tree, leaves, rank)
                its = numbers_of(plan.passes, 1 - which, tree, leaves, rank, below)
            else:
                events = fields_below(plan.passes, 0, ending, leaves, rank)[EVENTS]
                its = passing_beside(
                    plan.passes, 0, events, ending[leaves + rank, EVENTS], ending[1, EVENTS]
                )
        number += weight_of(plan, table, item, row) * its
    return number


@njit_in_place
def _alive(plan, table, ranks, tree, leaves, which, row, low, behind):
    """The first or last items' events with which an event of the middle item passes."""
    if leaves == 0:
        number, item = 0, LAST if which else FIRST
        for other in range(low, behind):
            if table.items[other] & item and passes_with(plan, table, which, other, row):
                number += weight_of(plan, table, item, other)
        return number
    rank = ranks[plan.places[1], row]
    below = fields_below(plan.passes, which, tree, leaves, rank)[ALIVE]
    return passing(plan.passes, which, below, tree[leaves + rank, ALIVE], tree[1, ALIVE])


@njit_in_place
def _move(plan, table, ranks, ending, going_on, leaves, row, low, behind, sign):
    """Let an event enter beside some others, or leave (sign -1)."""
    items, numbers, passes = table.items, table.numbers, plan.passes
    for which in range(plan.items - 1):
        tree, item = going_on if which else ending, LAST if which else FIRST
        is_middle, is_outer = items[row] & MIDDLE != 0, items[row] & item != 0
        if is_middle and sign > 0:
            numbers[which, row] = _alive(plan, table, ranks, tree, leaves, which, row, low, behind)
        if leaves == 0:
            if is_outer:
                weight = sign * weight_of(plan, table, item, row)
                for other in range(low, behind):
                    if items[other] & MIDDLE and passes_with(plan, table, which, row, other):
                        numbers[which, other] += weight
            continue
        rank, weight = ranks[plan.places[1], row], sign * weight_of(plan, table, MIDDLE, row)
        if is_middle and sign < 0:
            change_leaf(
                passes, which, tree, leaves, rank, 0, 0, weight, weight * numbers[which, row]
            )
        if is_outer:
            its, at = sign * weight_of(plan, table, item, row), ranks[plan.places[2 * which], row]
            change_leaf(passes, which, tree, leaves, at, its, -its, 0, 0)
        if is_middle and sign > 0:
            # It is not beside itself.
            below, leaf = fields_below(passes, which, tree, leaves, rank)[MARKS], leaves + rank
            numbers[which, row] += passing(passes, which, below, tree[leaf, MARKS], tree[1, MARKS])
            change_leaf(
                passes, which, tree, leaves, rank, 0, 0, weight, weight * numbers[which, row]
            )
