"""The events of a chunk of a SEQ, by trees."""

from __future__ import annotations

from cepbench.engines.sequence_counts.kernels.order_statistics.closing import (
    close_by_value,
    close_row,
    enter_heap,
)
from cepbench.engines.sequence_counts.kernels.order_statistics.tables import (
    ALIVE,
    BARS_LAST,
    BARS_MIDDLE,
    CLOSED,
    CLOSES,
    EVENTS,
    FIRST,
    HEAP_SIZE,
    LAST,
    MARKS,
    MIDDLE,
    OPEN_FIRST,
    OPEN_MIDDLE,
    PEAK,
    STORED,
    WAITING,
    add_to,
    behind_barred,
    behind_timestamp,
    is_open_row,
    report_matches,
    weight_of,
)
from cepbench.engines.sequence_counts.kernels.order_statistics.trees import (
    change_leaf,
    fields_below,
    marks_of,
    numbers_of,
    passing,
    passing_beside,
)
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def count_chunk(
    plan, table, ranks, trees, bounds, totals, found, out, partition, low, first, behind
):
    """Process the events of a chunk, whose trees have those before it; returns the first row in the window."""
    times, items = table.times, table.items
    if plan.closing:
        bounds[HEAP_SIZE] = 0
        enter_heap(plan, table, trees, bounds, low, first)
    while first < behind:
        now, last = times[first], behind_timestamp(table, first, behind)
        while low < first and times[low] < now - plan.window:
            low = _expire(plan, table, ranks, trees, bounds, totals, partition, low, first)
        for row in range(first, last):
            number = _complete(plan, table, ranks, trees, bounds, row)
            report_matches(plan, table, totals, found, out, partition, row, number)
        if now < table.until:
            if plan.goes_on:
                _let_go_on(plan, table, ranks, trees, bounds, first, last)
            bars = 0
            for row in range(first, last):
                _insert(plan, table, ranks, trees, bounds, row)
                totals[partition, STORED] += items[row] & plan.kept != 0
                bars |= items[row]
            totals[partition, PEAK] = max(totals[partition, PEAK], totals[partition, STORED])
            if bars & BARS_LAST:
                for row in range(max(low, bounds[OPEN_MIDDLE]), first):
                    if items[row] & MIDDLE and items[row] & CLOSED == 0:
                        close_row(plan, table, ranks, trees, bounds, row)
                bounds[OPEN_MIDDLE] = first
            if plan.closing:
                for row in range(first, last):
                    if items[row] & CLOSES:
                        close_by_value(plan, table, ranks, trees, bounds, row, low)
                enter_heap(plan, table, trees, bounds, first, last)
            if bars & BARS_MIDDLE:
                for row in range(max(low, bounds[OPEN_FIRST]), first):
                    if items[row] & FIRST:
                        rank, weight = (
                            ranks[plan.places[0], row],
                            weight_of(plan, table, FIRST, row),
                        )
                        change_leaf(
                            plan.passes, 0, trees.ending, trees.leaves, rank, -weight, 0, 0, 0
                        )
                bounds[OPEN_FIRST] = first
                bounds[WAITING] = min(bounds[WAITING], last)
        first = last
    return low


@njit_in_place
def _complete(plan, table, ranks, trees, bounds, row):
    """The number of matches that an event completes; one of the middle item is given its own number."""
    tree, leaves = trees.ending, trees.leaves
    item, passes, number = table.items[row], plan.passes, 0
    seen, below = -1, (0, 0, 0, 0)
    if item & LAST:
        seen = ranks[plan.places[2], row]
        below = fields_below(passes, 0, tree, leaves, seen)
        number = numbers_of(passes, 0, tree, leaves, seen, below)
        if plan.waits:
            waiting = fields_below(passes, 0, trees.waiting, leaves, seen)
            number += numbers_of(passes, 0, trees.waiting, leaves, seen, waiting)
        number *= weight_of(plan, table, LAST, row)
    if item & MIDDLE:
        rank = ranks[plan.places[1], row]
        if rank != seen:
            below = fields_below(passes, 0, tree, leaves, rank)
        leaf = leaves + rank
        if plan.is_alone:
            table.numbers[0, row] = 1
        elif row < bounds[WAITING]:
            table.numbers[0, row] = passing(
                passes, 0, below[ALIVE] + below[MARKS], tree[leaf, ALIVE] + tree[leaf, MARKS],
                tree[1, ALIVE] + tree[1, MARKS],
            )  # fmt: skip
        else:
            table.numbers[0, row] = passing(
                passes, 0, below[ALIVE], tree[leaf, ALIVE], tree[1, ALIVE]
            )
        if plan.items == 2:
            number = weight_of(plan, table, MIDDLE, row) * table.numbers[0, row]
    return number


@njit_in_place
def _let_go_on(plan, table, ranks, trees, bounds, first, last):
    """Add the events of a timestamp to the tree of those that go on, first those with which others go on."""
    tree, leaves = trees.going_on, trees.leaves
    passes, items = plan.passes, table.items
    for row in range(first, last):
        if items[row] & LAST:
            weight = weight_of(plan, table, LAST, row)
            change_leaf(passes, 1, tree, leaves, ranks[plan.places[2], row], 0, weight, 0, 0)
    for row in range(first, last):
        if items[row] & MIDDLE:
            rank = ranks[plan.places[1], row]
            number = marks_of(passes, 1, tree, leaves, rank)
            table.numbers[1, row] = number
            if row < bounds[WAITING]:
                weight = weight_of(plan, table, MIDDLE, row)
                change_leaf(passes, 1, tree, leaves, rank, 0, 0, weight, weight * number)


@njit_in_place
def _insert(plan, table, ranks, trees, bounds, row):
    """Add an event to the tree of those in which histories end."""
    item, passes, leaves = table.items[row] & (FIRST | MIDDLE), plan.passes, trees.leaves
    one, two = ranks[plan.places[0], row], ranks[plan.places[1], row]
    alive = events = number = 0
    if item & MIDDLE:
        events = weight_of(plan, table, MIDDLE, row)
        number = events * table.numbers[0, row]
        if row >= bounds[WAITING]:
            change_leaf(passes, 0, trees.waiting, leaves, two, 0, 0, events, number)
            item, events, number = item & FIRST, 0, 0
    if item == 0:
        return
    if item & FIRST:
        alive = weight_of(plan, table, FIRST, row)
    if one != two and item & FIRST and item & MIDDLE:
        change_leaf(passes, 0, trees.ending, leaves, one, alive, 0, 0, 0)
        alive = 0
    change_leaf(
        passes, 0, trees.ending, leaves, two if item & MIDDLE else one, alive, 0, events, number
    )


@njit_in_place
def _expire(plan, table, ranks, trees, bounds, totals, partition, low, first):
    """Remove the events of the oldest timestamp; returns the first row behind them."""
    passes, leaves, bars = plan.passes, trees.leaves, 0
    ending, going_on = trees.ending, trees.going_on
    last = behind_timestamp(table, low, first)
    # First those of the middle item, which do not go on from a first event at their timestamp.
    for row in range(low, last):
        bars |= table.items[row]
        if table.items[row] & MIDDLE:
            rank, weight = ranks[plan.places[1], row], weight_of(plan, table, MIDDLE, row)
            is_open = is_open_row(table, bounds, row)
            if is_open:
                number = weight * table.numbers[0, row]
                change_leaf(passes, 0, ending, leaves, rank, 0, 0, -weight, -number)
            if plan.goes_on:
                number = weight * table.numbers[1, row]
                if plan.is_alone:
                    marks = marks_of(passes, 1, going_on, leaves, rank) if is_open else 0
                    add_to(totals, partition, number - weight * marks)
                if is_open:
                    change_leaf(passes, 1, going_on, leaves, rank, 0, 0, -weight, -number)
                elif plan.closes:
                    change_leaf(passes, 1, trees.closed, leaves, rank, 0, 0, -weight, -number)
    if bars & BARS_MIDDLE:
        _end_waiting(plan, table, ranks, trees, bounds, first)
    for row in range(low, last):
        totals[partition, STORED] -= table.items[row] & plan.kept != 0
        if table.items[row] & FIRST:
            rank, weight = ranks[plan.places[0], row], weight_of(plan, table, FIRST, row)
            if plan.goes_on:
                below = fields_below(passes, 1, going_on, leaves, rank)
                number = numbers_of(passes, 1, going_on, leaves, rank, below)
                if plan.closes:
                    below = fields_below(passes, 1, trees.closed, leaves, rank)
                    number += numbers_of(passes, 1, trees.closed, leaves, rank, below)
                add_to(totals, partition, weight * number)
            elif plan.counts_window:
                events = fields_below(passes, 0, ending, leaves, rank)[EVENTS]
                number = passing_beside(
                    passes, 0, events, ending[leaves + rank, EVENTS], ending[1, EVENTS]
                )
                add_to(totals, partition, -weight * number)
            alive = weight * (row >= bounds[OPEN_FIRST])
            change_leaf(passes, 0, ending, leaves, rank, -alive, weight * (plan.items == 3), 0, 0)
    return last


@njit_in_place
def _end_waiting(plan, table, ranks, trees, bounds, first):
    """Let first events that expire be marks for the middle ones that waited, up to the next forbidden event."""
    passes, leaves, numbers = plan.passes, trees.leaves, table.numbers
    begin = bounds[WAITING]
    end = behind_barred(plan, table, begin, first)
    is_barred = False
    for row in range(begin, end):
        is_barred |= table.items[row] & BARS_MIDDLE != 0
        if table.items[row] & MIDDLE == 0:
            continue
        rank, weight = ranks[plan.places[1], row], weight_of(plan, table, MIDDLE, row)
        if is_open_row(table, bounds, row):
            number = weight * numbers[0, row]
            change_leaf(passes, 0, trees.waiting, leaves, rank, 0, 0, -weight, -number)
            numbers[0, row] += marks_of(passes, 0, trees.ending, leaves, rank)
            number = weight * numbers[0, row]
            change_leaf(passes, 0, trees.ending, leaves, rank, 0, 0, weight, number)
            if plan.goes_on:
                number = weight * numbers[1, row]
                change_leaf(passes, 1, trees.going_on, leaves, rank, 0, 0, weight, number)
        elif plan.closes:
            number = weight * numbers[1, row]
            change_leaf(passes, 1, trees.closed, leaves, rank, 0, 0, weight, number)
    bounds[WAITING] = end if is_barred else len(table.times)
