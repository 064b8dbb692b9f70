"""Chunk by chunk: what new events complete, and which are kept."""

from __future__ import annotations

import numpy as np

from cepbench.engines.sequence_counts.kernels.order_statistics.any_order import count_in_any_order
from cepbench.engines.sequence_counts.kernels.order_statistics.scans import count_by_scans
from cepbench.engines.sequence_counts.kernels.order_statistics.sequences import count_chunk
from cepbench.engines.sequence_counts.kernels.order_statistics.tables import (
    BARS_LAST,
    BARS_MIDDLE,
    BOUNDS,
    CLOSES,
    COUNTED,
    FIELDS,
    OPEN_FIRST,
    OPEN_MIDDLE,
    WAITING,
    Stored,
    Table,
    Trees,
    behind_timestamp,
)
from cepbench.engines.sequence_counts.kernels.order_statistics.trees import (
    build_tree,
    rank_values,
    subtract_marks,
)
from cepbench.engines.sequence_counts.kernels.tables import COUNTED as IS_COUNTED
from cepbench.kernels.jit import njit, njit_in_place

#: The fewest events of a chunk.
_FEWEST = 64


@njit
def count_compared(plan, stored, events, samples, totals, found, out, done):
    """Count the matches that new events complete; returns the events that are kept, as ``stored``.

    ``events``: :class:`~cepbench.engines.sequence_counts.kernels.tables.Events`.
    ``samples``: int64 (len(events.rows),), as in :class:`Table`; empty if there are none.
    ``totals``: int64 (partitions, PARTITION_COLUMNS).
    ``found``: int64 (1, 2), to which all new matches are added.
    ``out``: int64 (samples, 3), the values after events, in digits.
    ``done``: int64 (3,), the first events, and those that enter trees, once for each item.
    """
    table = arranged(plan, stored, events, samples, done)
    kept = _count_table(plan, table, totals, found, out)
    return of_kept(table, kept)


@njit
def arranged(plan, stored, events, samples, done):
    """The stored events of each partition, and the new ones behind them."""
    partitions, columns = len(stored.sizes), len(plan.columns)
    fresh, begins = np.zeros(partitions, np.int64), np.zeros(partitions, np.int64)
    for part, partition in enumerate(events.parts):
        begins[partition] = events.spans[part]
        fresh[partition] = events.spans[part + 1] - events.spans[part]
    size = len(stored.times) + fresh.sum()
    table = Table(
        np.zeros(partitions + 1, np.int64), fresh, events.until, np.empty(size, np.int64),
        np.empty(size, np.int64), np.empty((columns, size)),
        np.empty(size if plan.weighted else 0, np.int64), np.zeros((2, size), np.int64),
        np.full(size, -1, np.int64),
    )  # fmt: skip
    at = old = 0
    for partition in range(partitions):
        for _ in range(stored.sizes[partition]):
            _copy(stored, old, table, at)
            at, old = at + 1, old + 1
        first, number = begins[partition], fresh[partition]
        fresh[partition] = at
        for place in range(first, first + number):
            row, item = events.rows[place], 0
            flags = events.flags[row]
            for its in range(plan.items):
                item |= (flags & plan.begins[its] != 0) << its
                item |= (flags & plan.prevents[its] != 0) << its + 3 & (BARS_MIDDLE | BARS_LAST)
            for column in range(columns):
                value = events.values[plan.columns[column], row]
                table.values[column, at] = value
                if np.isnan(value):
                    item &= ~plan.users[column]
            item |= CLOSES * (flags & plan.closing != 0)
            if events.times[row] < events.until:
                done[0] += item >> plan.is_alone & 1
                for its in range(plan.items):
                    done[1] += item >> its & 1
            if plan.weighted:
                table.weights[at] = events.weights[row]
            if len(samples):
                table.samples[at] = samples[place]
            table.times[at] = events.times[row]
            table.items[at] = item | COUNTED * (flags & IS_COUNTED != 0)
            at += 1
        table.spans[partition + 1] = at
    return table


@njit_in_place
def _copy(one, old, two, at):
    """Copy an event from one table to another one."""
    two.times[at], two.items[at] = one.times[old], one.items[old]
    two.numbers[0, at], two.numbers[1, at] = one.numbers[0, old], one.numbers[1, old]
    for column in range(len(one.values)):
        two.values[column, at] = one.values[column, old]
    if len(one.weights):
        two.weights[at] = one.weights[old]


@njit
def of_kept(table, kept):
    """The events that are kept."""
    partitions, size = len(table.fresh), kept.sum()
    stored = Stored(
        np.zeros(partitions, np.int64), np.empty(size, np.int64), np.empty(size, np.int64),
        np.empty((len(table.values), size)), np.empty(size if len(table.weights) else 0, np.int64),
        np.empty((2, size), np.int64),
    )  # fmt: skip
    at = 0
    for partition in range(partitions):
        for row in range(table.spans[partition], table.spans[partition + 1]):
            if kept[row]:
                _copy(table, row, stored, at)
                stored.sizes[partition] += 1
                at += 1
    return stored


@njit
def _count_table(plan, table, totals, found, out):
    """Count the matches that the new events of a table complete; returns which are kept, bool (n,)."""
    kept = (table.times < table.until) & (table.items & plan.kept != 0)
    ranks, bounds = np.zeros((len(plan.users) + 1, 0), np.int64), np.zeros(BOUNDS, np.int64)
    none = np.zeros((0, FIELDS), np.int64)
    ending = going_on = waiting = closed = none
    heap = np.zeros(len(table.times) if plan.closing else 0, np.int64)
    for partition in range(len(table.fresh)):
        low, first = table.spans[partition], table.fresh[partition]
        end = table.spans[partition + 1]
        while first < end:
            behind = behind_chunk(plan, table, first, end)
            events = behind - low
            _find_bounds(plan, table, bounds, low, first)
            if (behind - first) * (events - plan.short) < plan.few * events:
                if plan.is_ordered:
                    low = count_by_scans(
                        plan, table, bounds, totals, found, out, partition, low, first, behind
                    )
                else:
                    low = count_in_any_order(
                        plan, table, ranks, none, none, 0, totals, found, out, partition, low, first,
                        behind,
                    )  # fmt: skip
                first = behind
                continue
            if not ranks.size:
                ranks = np.zeros((len(plan.users) + 1, len(table.times)), np.int64)
            distinct, leaves = rank_values(plan, table, ranks, low, behind), 1
            while leaves < distinct:
                leaves *= 2
            if 2 * leaves > len(ending):
                ending = np.empty((2 * leaves, FIELDS), np.int64)
                going_on = np.empty((2 * leaves, FIELDS), np.int64)
                waiting = np.empty((2 * leaves * plan.waits, FIELDS), np.int64)
                closed = np.empty((2 * leaves * plan.closes, FIELDS), np.int64)
            waits, opened = min(bounds[WAITING], first), bounds[OPEN_FIRST]
            build_tree(
                plan, table, ranks, bounds, ending, leaves, 0, opened, first, low, waits, True
            )
            if plan.goes_on:
                build_tree(
                    plan, table, ranks, bounds, going_on, leaves, 1, low, first, low, waits, True
                )
            if plan.waits:
                build_tree(plan, table, ranks, bounds, waiting, leaves, 0, 0, 0, waits, first, True)
            if plan.closes:
                build_tree(plan, table, ranks, bounds, closed, leaves, 1, 0, 0, low, waits, False)
            if plan.is_ordered:
                trees = Trees(leaves, ending, going_on, waiting, closed, heap)
                low = count_chunk(
                    plan, table, ranks, trees, bounds, totals, found, out, partition, low, first, behind
                )  # fmt: skip
            else:
                low = count_in_any_order(
                    plan, table, ranks, ending, going_on, leaves, totals, found, out, partition, low,
                    first, behind,
                )  # fmt: skip
            waits = min(bounds[WAITING], behind)
            subtract_marks(plan, table, ranks, bounds, ending, leaves, 0, low, waits)
            if plan.goes_on:
                subtract_marks(plan, table, ranks, bounds, going_on, leaves, 1, low, behind)
            first = behind
        kept[table.spans[partition] : low] = False
    return kept


@njit_in_place
def _find_bounds(plan, table, bounds, low, first):
    """Where the events in the window are divided by those that are forbidden."""
    bounds[OPEN_FIRST] = bounds[OPEN_MIDDLE] = low
    bounds[WAITING] = len(table.times)
    if plan.kept & (BARS_MIDDLE | BARS_LAST) == 0:
        return
    begin = low
    for row in range(low, first):
        if table.times[row] > table.times[begin]:
            begin = row
        if table.items[row] & BARS_LAST:
            bounds[OPEN_MIDDLE] = begin
        if table.items[row] & BARS_MIDDLE:
            bounds[OPEN_FIRST] = begin
            if bounds[WAITING] > first:
                bounds[WAITING] = behind_timestamp(table, row, first)


@njit_in_place
def behind_chunk(plan, table, first, end):
    """Behind the events of a window from the first one on, and a few at least."""
    times, behind = table.times, first + 1
    while behind < end and (
        times[behind] - times[first] <= plan.window
        or behind - first < _FEWEST
        or times[behind] == times[behind - 1]
    ):
        behind += 1
    return behind
