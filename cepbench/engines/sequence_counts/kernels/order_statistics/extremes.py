"""The largest weight of an item's events in the matches of a SEQ, without a subtraction.

A match lives until its first event expires. So an event of the weighted item counts from the first match that it
is in until the latest start among the matches with it expires. Either is what the nearest passing events tell::

    latest start       of a middle event: the latest passing first one before it
                       of a last event: the latest start of the passing middle ones before it
    first completion   of a middle event: the earliest passing last one behind it
                       of a first event: the first completion of the passing middle ones behind it

The latter is the former with time reversed, and an event that is forbidden before one item is then forbidden
before the other one. A tree over ranks has the nearest event of each range of values; as time goes on, or back, events
only enter, but for middle ones before an event forbidden behind them, which leave together. All of this is found anew
for the events of a chunk and those in the window before it: nothing but events is stored, and a push of few of them
reads the whole window if a value is asked for.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.sequence_counts.kernels.numbers import NO_MATCH
from cepbench.engines.sequence_counts.kernels.order_statistics.count import (
    arranged,
    behind_chunk,
    of_kept,
)
from cepbench.engines.sequence_counts.kernels.order_statistics.tables import (
    BARS_LAST,
    BARS_MIDDLE,
    FIRST,
    LAST,
    MIDDLE,
    PEAK,
    STORED,
)
from cepbench.engines.sequence_counts.kernels.order_statistics.trees import rank_values
from cepbench.kernels.jit import njit, njit_in_place


@njit
def maximize_compared(plan, stored, events, samples, totals, out, done):
    """Find the largest weights in the window with new events; see
    :func:`~cepbench.engines.sequence_counts.kernels.order_statistics.count.count_compared`.
    """
    table = arranged(plan, stored, events, samples, done)
    size = len(table.times)
    kept = (table.times < table.until) & (table.items & plan.kept != 0)
    ranks, reached = np.zeros((len(plan.users) + 1, size), np.int64), np.empty((4, size), np.int64)
    trees = np.empty((2, 0), np.int64)
    for partition in range(len(table.fresh)):
        low, first = table.spans[partition], table.fresh[partition]
        end = table.spans[partition + 1]
        while first < end:
            behind, leaves = behind_chunk(plan, table, first, end), 1
            # Without a value to report, events are only stored.
            if (table.samples[first:behind] >= 0).any():
                most = max(behind - low, rank_values(plan, table, ranks, low, behind))
                while leaves < most:
                    leaves *= 2
                if 2 * leaves > trees.shape[1]:
                    trees = np.empty((2, 2 * leaves), np.int64)
                if plan.weighted != FIRST:
                    _reach(plan, table, ranks, trees, reached, leaves, 0, low, behind)
                if plan.weighted != LAST:
                    _reach(plan, table, ranks, trees, reached, leaves, 1, low, behind)
                _report(plan, table, trees, reached, leaves, out, low, first, behind)
            while first < behind:
                while table.times[low] < table.times[first] - plan.window:
                    totals[partition, STORED] -= table.items[low] & plan.kept != 0
                    low += 1
                totals[partition, STORED] += kept[first]
                totals[partition, PEAK] = max(totals[partition, PEAK], totals[partition, STORED])
                first += 1
        kept[table.spans[partition] : low] = False
    return of_kept(table, kept)


@njit_in_place
def _reach(plan, table, ranks, trees, reached, leaves, which, low, behind):
    """Find the nearest events of the first or the last item (``which``) that the middle ones pass with, and those
    that the events of the other item reach by way of these if they are weighted.

    The nearest are the greatest places: rows or, with time reversed, negative ones. Those that middle events reach are
    written to ``reached[which]``, and those that others do to ``reached[1 - which]``.
    """
    times, items, passes = table.times, table.items, plan.passes
    outer, other = (LAST, FIRST) if which else (FIRST, LAST)
    bars, other_bars = (BARS_LAST, BARS_MIDDLE) if which else (BARS_MIDDLE, BARS_LAST)
    is_outer = plan.items == 2 if which else plan.is_alone
    step = -1 if which else 1
    begin, stop = (behind - 1, low - 1) if which else (low, behind)
    _empty(trees, leaves)
    opened, barred = begin, NO_MATCH
    while begin != stop:
        end, found = begin, 0
        while end != stop and times[end] == times[begin]:
            row, item = end, items[end]
            found, end = found | item, end + step
            if item & MIDDLE:
                reached[which, row] = step * row
                if not is_outer:
                    place = _greatest(
                        trees, 0, leaves, ranks[plan.places[1], row],
                        passes[which, 0], passes[which, 1], passes[which, 2],
                    )  # fmt: skip
                    reached[which, row] = place if place >= barred else NO_MATCH
            if item & other & plan.weighted:
                reached[1 - which, row] = _greatest(
                    trees, 1, leaves, ranks[plan.places[2 - 2 * which], row],
                    passes[1 - which, 2], passes[1 - which, 1], passes[1 - which, 0],
                )  # fmt: skip
        if found & other_bars:
            for row in range(opened, begin, step):
                if items[row] & MIDDLE:
                    node = leaves + ranks[plan.places[1], row]
                    while node and trees[1, node] != NO_MATCH:
                        trees[1, node] = NO_MATCH
                        node >>= 1
            opened = begin
        if found & bars:
            barred = step * begin
        for row in range(begin, end, step):
            if items[row] & outer:
                _enter(trees, 0, leaves, ranks[plan.places[2 * which], row], step * row)
            if items[row] & MIDDLE:
                _enter(trees, 1, leaves, ranks[plan.places[1], row], reached[which, row])
        begin = end


@njit_in_place
def _report(plan, table, trees, reached, leaves, out, low, first, behind):
    """Write the largest weights in the window after the new events of a chunk for which they are asked."""
    times, begin = table.times, low
    # The events that are in a match first by that of a row are a list: its head, and what follows each.
    lives, heads, links = reached[0], reached[2], reached[3]
    for row in range(begin, behind):
        heads[row] = -1
    for row in range(begin, behind):
        if table.items[row] & plan.weighted == 0:
            continue
        life = place = row
        if plan.weighted != FIRST:
            life = reached[int(plan.weighted == LAST), row]
        if plan.weighted != LAST:
            place = reached[int(plan.weighted == MIDDLE), row]
        if life != NO_MATCH and place != NO_MATCH:
            lives[row], links[row] = life, heads[abs(place)]
            heads[abs(place)] = row
    _empty(trees, leaves)
    for row in range(begin, behind):
        event = heads[row]
        while event >= 0:
            _enter(trees, 0, leaves, lives[event] - begin, table.weights[event])
            event = links[event]
        if row >= first and table.samples[row] >= 0:
            while times[low] < times[row] - plan.window:
                low += 1
            out[table.samples[row], 0] = _greatest(trees, 0, leaves, low - begin, 0, 1, 1)


@njit_in_place
def _empty(trees, leaves):
    """Take all out of both trees."""
    for node in range(2 * leaves):
        trees[0, node] = trees[1, node] = NO_MATCH


@njit_in_place
def _enter(trees, tree, leaves, rank, number):
    """Add a number at a rank."""
    node = leaves + rank
    while node and trees[tree, node] < number:
        trees[tree, node] = number
        node >>= 1


@njit_in_place
def _greatest(trees, tree, leaves, rank, below, equal, above):
    """The greatest number at lower ranks, at a rank or at higher ones, as these are wanted, or NO_MATCH."""
    node = leaves + rank
    found = trees[tree, node] if equal else NO_MATCH
    while node > 1:
        if below if node & 1 else above:
            found = max(found, trees[tree, node ^ 1])
        node >>= 1
    return found
