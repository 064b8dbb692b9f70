"""Counts of pairs and triples of events whose neighbours are compared, by trees over ranks of values.

The items are two that are compared, or three of which the middle one is compared with either neighbour, or
both, by the same value of its own. So many histories end in an event of the middle item as it has first
events: the number falls by one with each first event that expires and passes the comparison, for the
oldest event was before all others. Expired first events are *marks* in a tree over ranks of values; a
node has the sum of the numbers of its events::

    sum of both halves - marks in one half * events in the other one that pass the comparison

and an event of the last item adds up those of a range of values. All of this takes time in proportion to
the logarithm of the number of events in the window. The matches of an expiring first event, to be
subtracted from those in the window, are counted likewise: events of the last item are marks in a second
tree, of how many histories go on from an event of the middle item.

An event that is forbidden between two items removes the earlier item's events before it from the tree,
each of them once. Marks then are of first events before the oldest such event in the window, and middle ones behind it
wait in a tree without marks until it expires. Middle events that no longer go on are in such a tree as well, until
first events before them have expired. Of two items with NOT between them the earlier one is the middle one, in
which one history ends. If what is forbidden is compared with the item before it, that is the middle one, whose
events are in a heap: a forbidden event closes those with the smallest or the greatest values.

Ranks are those of a chunk of events about as long as the window, and of those in the window before it. Behind
a chunk marks are subtracted from the numbers of events, and trees are built anew. A chunk of few events takes
no trees: each of its events is compared with all in the window.

Of an AND an event completes matches as any item, with those before it, and those that it was in go with
it. An event of the middle item has two numbers, of the first and of the last items that it passes with: those
that enter are marks of the opposite sign, and an event of the first item adds up how many of the last one
there are with the events of the middle item that it passes with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.sequence_counts.kernels.numbers import DIGIT_BITS
from cepbench.engines.sequence_counts.kernels.tables import COUNTED as IS_COUNTED
from cepbench.kernels.instructions import GREATER, GREATER_EQUAL, compares
from cepbench.kernels.jit import njit, njit_in_place

# The items that an event may be of, as bits; the second one of two is the middle one.
FIRST, MIDDLE, LAST, ITEMS = 1, 2, 4, 7
#: The bit of events whose matches have been counted.
COUNTED = 8
#: The bits of events that are forbidden before an event of the middle item, and before one of the last of three.
BARS_MIDDLE, BARS_LAST = 16, 32
#: The bits of events that forbid those to go on from middle events with which they are compared, and of the latter.
CLOSES, CLOSED = 64, 128

# Rows of a table. First events before the first one, and middle events before the second one, stand before an
# event forbidden behind them; middle events from the third one on stand behind one in the window.
OPEN_FIRST, OPEN_MIDDLE, WAITING = range(3)
HEAP_SIZE, BOUNDS = 3, 4

# What is known of a partition: the matches in its window, of 62 bits and what is beyond, and how many events it
# stores and has stored at most.
LOW, HIGH, STORED, PEAK, PARTITION_COLUMNS = range(5)

# Fields of a node.
ALIVE = 0  # first events in the window
MARKS, EVENTS, SUM = 1, 2, 3
FIELDS = 4

#: The bits of a middle event, which is open with the first one alone.
_OPEN = MIDDLE | CLOSED

#: The fewest events of a chunk.
_FEWEST = 64

_LOWEST = (1 << DIGIT_BITS) - 1
#: Bits of the lower part of a sum.
HALF_BITS = 2 * DIGIT_BITS


class Comparisons(NamedTuple):
    """What is compared in a SEQ or an AND of plain items, with NOT between those of a SEQ."""

    items: int  #: 2 or 3
    is_ordered: bool  #: SEQ
    kept: int  #: the bits of the items whose events are stored
    goes_on: (
        bool  #: whether there is a tree of how many histories go on from events of the middle item
    )
    is_alone: bool  #: whether there is no first item
    waits: bool  #: whether histories may end in events of the middle item that wait
    closes: (
        bool  #: whether histories may have gone on from events of the middle item that are closed
    )
    begins: np.ndarray  #: int64 (items,): the flag of the events of each item
    prevents: (
        np.ndarray
    )  #: int64 (items,): the flags of those that are forbidden before each item but the first
    closing: int  #: the flag of events that are forbidden before the last item, and compared with the middle one
    #: The columns of the values of such an event and of the middle one, and the operator between them.
    closing_value: int
    closed_value: int
    operator: int
    columns: np.ndarray  #: int64 (columns,): those of events whose values are read
    #: int64 (2, 3): whether a smaller, an equal and a greater value than that of the middle item passes in the first
    #: item, and in the last one
    passes: np.ndarray
    users: np.ndarray  #: int64 (columns,): the items whose events have the value of a column
    places: (
        np.ndarray
    )  #: int64 (3,): the column of each item, behind the others if it is not compared
    window: int
    counts_window: bool  #: whether all matches in the window are counted
    weighted: int  #: the bit of the item whose events have weights; 0 if all count once
    # A scan takes less than trees where so few events are stored, or so few are new.
    short: int
    few: int


class Stored(NamedTuple):
    """The events in the window, by partition; see :class:`Table`."""

    sizes: np.ndarray  #: int64 (partitions,)
    times: np.ndarray
    items: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray


class Table(NamedTuple):
    """The events in the window and then new ones, by partition."""

    spans: np.ndarray  #: int64 (partitions + 1,)
    fresh: np.ndarray  #: int64 (partitions,): the first new event
    until: int  #: events from here on only complete matches
    times: np.ndarray  #: int64 (n,)
    items: np.ndarray  #: int64 (n,)
    values: np.ndarray  #: float64 (columns, n)
    weights: np.ndarray  #: int64 (n,); empty if all are 1
    #: int64 (2, n): of events of the middle item how many histories end in them, and less how many go on
    #: from them, before marks are subtracted
    numbers: np.ndarray
    samples: np.ndarray  #: int64 (n,): the row of ``out`` for the value after an event; -1 for none


class Trees(NamedTuple):
    """Trees over the ranks of a chunk, int64 (2 * leaves, FIELDS); without leaves there are none."""

    leaves: int
    ending: np.ndarray  #: of histories that end in events of the middle item
    going_on: np.ndarray  #: of how many go on from them
    # Without marks; empty without NOT.
    waiting: np.ndarray  #: as ``ending``, of those that wait
    closed: np.ndarray  #: as ``going_on``, of those before an event forbidden behind them
    heap: (
        np.ndarray
    )  #: int64 (n,): rows of open middle events, those with the value that is closed first in front


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
    table = _arranged(plan, stored, events, samples, done)
    kept = _count_table(plan, table, totals, found, out)
    return _of_kept(table, kept)


@njit
def _arranged(plan, stored, events, samples, done):
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
def _of_kept(table, kept):
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
            behind = _behind_chunk(plan, table, first, end)
            events = behind - low
            _find_bounds(plan, table, bounds, low, first)
            if (behind - first) * (events - plan.short) < plan.few * events:
                if plan.is_ordered:
                    low = _count_by_scans(
                        plan, table, bounds, totals, found, out, partition, low, first, behind
                    )
                else:
                    low = _count_in_any_order(
                        plan, table, ranks, none, none, 0, totals, found, out, partition, low, first,
                        behind,
                    )  # fmt: skip
                first = behind
                continue
            if not ranks.size:
                ranks = np.zeros((len(plan.users) + 1, len(table.times)), np.int64)
            distinct, leaves = _rank(plan, table, ranks, low, behind), 1
            while leaves < distinct:
                leaves *= 2
            if 2 * leaves > len(ending):
                ending = np.empty((2 * leaves, FIELDS), np.int64)
                going_on = np.empty((2 * leaves, FIELDS), np.int64)
                waiting = np.empty((2 * leaves * plan.waits, FIELDS), np.int64)
                closed = np.empty((2 * leaves * plan.closes, FIELDS), np.int64)
            waits, opened = min(bounds[WAITING], first), bounds[OPEN_FIRST]
            _build(plan, table, ranks, bounds, ending, leaves, 0, opened, first, low, waits, True)
            if plan.goes_on:
                _build(
                    plan, table, ranks, bounds, going_on, leaves, 1, low, first, low, waits, True
                )
            if plan.waits:
                _build(plan, table, ranks, bounds, waiting, leaves, 0, 0, 0, waits, first, True)
            if plan.closes:
                _build(plan, table, ranks, bounds, closed, leaves, 1, 0, 0, low, waits, False)
            if plan.is_ordered:
                trees = Trees(leaves, ending, going_on, waiting, closed, heap)
                low = _count_chunk(
                    plan, table, ranks, trees, bounds, totals, found, out, partition, low, first, behind
                )  # fmt: skip
            else:
                low = _count_in_any_order(
                    plan, table, ranks, ending, going_on, leaves, totals, found, out, partition, low,
                    first, behind,
                )  # fmt: skip
            waits = min(bounds[WAITING], behind)
            _subtract_marks(plan, table, ranks, bounds, ending, leaves, 0, low, waits)
            if plan.goes_on:
                _subtract_marks(plan, table, ranks, bounds, going_on, leaves, 1, low, behind)
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
                bounds[WAITING] = _behind_timestamp(table, row, first)


@njit_in_place
def _behind_timestamp(table, row, end):
    """Behind the events at the timestamp of a row."""
    behind = row + 1
    while behind < end and table.times[behind] == table.times[row]:
        behind += 1
    return behind


@njit_in_place
def _behind_chunk(plan, table, first, end):
    """Behind the events of a window from the first one on, and a few at least."""
    times, behind = table.times, first + 1
    while behind < end and (
        times[behind] - times[first] <= plan.window
        or behind - first < _FEWEST
        or times[behind] == times[behind - 1]
    ):
        behind += 1
    return behind


@njit
def _rank(plan, table, ranks, low, behind):
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
def _build(
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
            tree[leaf, ALIVE] += _weight(plan, table, item, row)
    for row in range(begin, end):
        if table.items[row] & MIDDLE and _is_open(table, bounds, row) == are_open:
            leaf, weight = leaves + ranks[plan.places[1], row], _weight(plan, table, MIDDLE, row)
            tree[leaf, EVENTS] += weight
            tree[leaf, SUM] += weight * table.numbers[which, row]
    for node in range(leaves - 1, 0, -1):
        for field in range(FIELDS):
            tree[node, field] = tree[2 * node, field] + tree[2 * node + 1, field]


@njit_in_place
def _is_open(table, bounds, row):
    """Whether histories may go on from an event of the middle item."""
    return row >= bounds[OPEN_MIDDLE] and table.items[row] & CLOSED == 0


@njit_in_place
def _subtract_marks(plan, table, ranks, bounds, tree, leaves, which, begin, end):
    """Subtract all marks from the numbers of some events."""
    below = 0
    for leaf in range(leaves, 2 * leaves):
        tree[leaf, ALIVE] = below
        below += tree[leaf, MARKS]
    for row in range(begin, end):
        if table.items[row] & MIDDLE and _is_open(table, bounds, row):
            leaf = leaves + ranks[plan.places[1], row]
            table.numbers[which, row] -= _passing(
                plan.passes, which, tree[leaf, ALIVE], tree[leaf, MARKS], below
            )


@njit_in_place
def _count_chunk(
    plan, table, ranks, trees, bounds, totals, found, out, partition, low, first, behind
):
    """Process the events of a chunk, whose trees have those before it; returns the first row in the window."""
    times, items = table.times, table.items
    if plan.closing:
        bounds[HEAP_SIZE] = 0
        _enter_heap(plan, table, trees, bounds, low, first)
    while first < behind:
        now, last = times[first], _behind_timestamp(table, first, behind)
        while low < first and times[low] < now - plan.window:
            low = _expire(plan, table, ranks, trees, bounds, totals, partition, low, first)
        for row in range(first, last):
            number = _complete(plan, table, ranks, trees, bounds, row)
            _report(plan, table, totals, found, out, partition, row, number)
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
                        _close(plan, table, ranks, trees, bounds, row)
                bounds[OPEN_MIDDLE] = first
            if plan.closing:
                for row in range(first, last):
                    if items[row] & CLOSES:
                        _close_by_value(plan, table, ranks, trees, bounds, row, low)
                _enter_heap(plan, table, trees, bounds, first, last)
            if bars & BARS_MIDDLE:
                for row in range(max(low, bounds[OPEN_FIRST]), first):
                    if items[row] & FIRST:
                        rank, weight = ranks[plan.places[0], row], _weight(plan, table, FIRST, row)
                        _change(plan.passes, 0, trees.ending, trees.leaves, rank, -weight, 0, 0, 0)
                bounds[OPEN_FIRST] = first
                bounds[WAITING] = min(bounds[WAITING], last)
        first = last
    return low


@njit_in_place
def _report(plan, table, totals, found, out, partition, row, number):
    """Add up the matches that an event completes, and write the value after it if it is asked for."""
    if table.items[row] & COUNTED == 0:
        _add(found, 0, number)
        if plan.counts_window:
            _add(totals, partition, number)
    if table.samples[row] >= 0:
        low_bits, high_bits = number, 0
        if plan.counts_window:
            low_bits, high_bits = totals[partition, LOW], totals[partition, HIGH]
        sample = table.samples[row]
        out[sample, 0] = low_bits & _LOWEST
        out[sample, 1] = low_bits >> DIGIT_BITS & _LOWEST
        out[sample, 2] = (low_bits >> HALF_BITS) + high_bits


@njit_in_place
def _count_by_scans(plan, table, bounds, totals, found, out, partition, low, first, behind):
    """Process the events of a chunk, each by a scan of those in the window; returns the first row in the window."""
    times, items, numbers = table.times, table.items, table.numbers
    while first < behind:
        now, last = times[first], _behind_timestamp(table, first, behind)
        while low < first and times[low] < now - plan.window:
            expired, low = low, low + 1
            totals[partition, STORED] -= items[expired] & plan.kept != 0
            if plan.is_alone and plan.goes_on and items[expired] & MIDDLE:
                its = _weight(plan, table, MIDDLE, expired)
                _add(totals, partition, its * numbers[1, expired])
            if items[expired] & FIRST:
                weight = _weight(plan, table, FIRST, expired)
                later = _behind_timestamp(table, expired, first)
                for row in range(later, _behind_barred(plan, table, later, first)):
                    if items[row] & MIDDLE and _pass(plan, table, 0, expired, row):
                        its = weight * _weight(plan, table, MIDDLE, row)
                        if plan.goes_on:
                            _add(totals, partition, its * numbers[1, row])
                        elif plan.counts_window:
                            _add(totals, partition, -its)
                        numbers[0, row] -= weight
        for row in range(first, last):
            number = 0
            if items[row] & LAST:
                for other in range(max(low, bounds[OPEN_MIDDLE]), first):
                    if items[other] & _OPEN == MIDDLE and _pass(plan, table, 1, row, other):
                        number += _weight(plan, table, MIDDLE, other) * numbers[0, other]
                number *= _weight(plan, table, LAST, row)
            if items[row] & MIDDLE:
                ending = int(plan.is_alone)
                for other in range(max(low, bounds[OPEN_FIRST]), first):
                    if items[other] & FIRST and _pass(plan, table, 0, other, row):
                        ending += _weight(plan, table, FIRST, other)
                numbers[0, row] = ending
                if plan.items == 2:
                    number = _weight(plan, table, MIDDLE, row) * ending
            _report(plan, table, totals, found, out, partition, row, number)
        if now < table.until:
            bars = 0
            for row in range(first, last):
                bars |= items[row]
                if plan.goes_on and items[row] & LAST:
                    for other in range(max(low, bounds[OPEN_MIDDLE]), first):
                        if items[other] & _OPEN == MIDDLE and _pass(plan, table, 1, row, other):
                            numbers[1, other] -= _weight(plan, table, LAST, row)
                totals[partition, STORED] += items[row] & plan.kept != 0
            totals[partition, PEAK] = max(totals[partition, PEAK], totals[partition, STORED])
            if bars & CLOSES:
                for row in range(first, last):
                    for other in range(max(low, bounds[OPEN_MIDDLE]), first):
                        if items[row] & CLOSES and _closes(plan, table, row, other):
                            items[other] |= CLOSED
            if bars & BARS_LAST:
                bounds[OPEN_MIDDLE] = first
            if bars & BARS_MIDDLE:
                bounds[OPEN_FIRST] = first
        first = last
    return low


@njit_in_place
def _behind_barred(plan, table, begin, end):
    """Behind the events at the timestamp of the first of some that is forbidden before the middle item."""
    if plan.kept & BARS_MIDDLE:
        for row in range(begin, end):
            if table.items[row] & BARS_MIDDLE:
                return _behind_timestamp(table, row, end)
    return end


@njit_in_place
def _count_in_any_order(
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
                _add(totals, partition, -number)
            totals[partition, STORED] -= items[low] & plan.kept != 0
            low += 1
        number = _beside_others(plan, table, ranks, ending, going_on, leaves, row, low, row)
        _report(plan, table, totals, found, out, partition, row, number)
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
        its = _weight(plan, table, MIDDLE, row)
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
                if items[other] & MIDDLE and _pass(plan, table, which, row, other):
                    beside = numbers[1 - which, other] if plan.items == 3 else 1
                    its += _weight(plan, table, MIDDLE, other) * beside
        else:
            rank = ranks[plan.places[2 * which], row]
            if plan.items == 3:
                tree = ending if which else going_on
                below = _below(plan.passes, 1 - which, tree, leaves, rank)
                its = _numbers(plan.passes, 1 - which, tree, leaves, rank, below)
            else:
                events = _below(plan.passes, 0, ending, leaves, rank)[EVENTS]
                its = _beside(
                    plan.passes, 0, events, ending[leaves + rank, EVENTS], ending[1, EVENTS]
                )
        number += _weight(plan, table, item, row) * its
    return number


@njit_in_place
def _alive(plan, table, ranks, tree, leaves, which, row, low, behind):
    """The first or last items' events with which an event of the middle item passes."""
    if leaves == 0:
        number, item = 0, LAST if which else FIRST
        for other in range(low, behind):
            if table.items[other] & item and _pass(plan, table, which, other, row):
                number += _weight(plan, table, item, other)
        return number
    rank = ranks[plan.places[1], row]
    below = _below(plan.passes, which, tree, leaves, rank)[ALIVE]
    return _passing(plan.passes, which, below, tree[leaves + rank, ALIVE], tree[1, ALIVE])


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
                weight = sign * _weight(plan, table, item, row)
                for other in range(low, behind):
                    if items[other] & MIDDLE and _pass(plan, table, which, row, other):
                        numbers[which, other] += weight
            continue
        rank, weight = ranks[plan.places[1], row], sign * _weight(plan, table, MIDDLE, row)
        if is_middle and sign < 0:
            _change(passes, which, tree, leaves, rank, 0, 0, weight, weight * numbers[which, row])
        if is_outer:
            its, at = sign * _weight(plan, table, item, row), ranks[plan.places[2 * which], row]
            _change(passes, which, tree, leaves, at, its, -its, 0, 0)
        if is_middle and sign > 0:
            # It is not beside itself.
            below, leaf = _below(passes, which, tree, leaves, rank)[MARKS], leaves + rank
            numbers[which, row] += _passing(passes, which, below, tree[leaf, MARKS], tree[1, MARKS])
            _change(passes, which, tree, leaves, rank, 0, 0, weight, weight * numbers[which, row])


@njit_in_place
def _pass(plan, table, which, row, middle):
    """Whether a first or a last item's event passes the comparison with a middle one."""
    place = plan.places[2 * which]
    if place == len(plan.users):
        return True
    one, two = table.values[place, row], table.values[plan.places[1], middle]
    return plan.passes[which, int(one >= two) + int(one > two)] != 0


@njit_in_place
def _complete(plan, table, ranks, trees, bounds, row):
    """The number of matches that an event completes; one of the middle item is given its own number."""
    tree, leaves = trees.ending, trees.leaves
    item, passes, number = table.items[row], plan.passes, 0
    seen, below = -1, (0, 0, 0, 0)
    if item & LAST:
        seen = ranks[plan.places[2], row]
        below = _below(passes, 0, tree, leaves, seen)
        number = _numbers(passes, 0, tree, leaves, seen, below)
        if plan.waits:
            waiting = _below(passes, 0, trees.waiting, leaves, seen)
            number += _numbers(passes, 0, trees.waiting, leaves, seen, waiting)
        number *= _weight(plan, table, LAST, row)
    if item & MIDDLE:
        rank = ranks[plan.places[1], row]
        if rank != seen:
            below = _below(passes, 0, tree, leaves, rank)
        leaf = leaves + rank
        if plan.is_alone:
            table.numbers[0, row] = 1
        elif row < bounds[WAITING]:
            table.numbers[0, row] = _passing(
                passes, 0, below[ALIVE] + below[MARKS], tree[leaf, ALIVE] + tree[leaf, MARKS],
                tree[1, ALIVE] + tree[1, MARKS],
            )  # fmt: skip
        else:
            table.numbers[0, row] = _passing(
                passes, 0, below[ALIVE], tree[leaf, ALIVE], tree[1, ALIVE]
            )
        if plan.items == 2:
            number = _weight(plan, table, MIDDLE, row) * table.numbers[0, row]
    return number


@njit_in_place
def _let_go_on(plan, table, ranks, trees, bounds, first, last):
    """Add the events of a timestamp to the tree of those that go on, first those with which others go on."""
    tree, leaves = trees.going_on, trees.leaves
    passes, items = plan.passes, table.items
    for row in range(first, last):
        if items[row] & LAST:
            weight = _weight(plan, table, LAST, row)
            _change(passes, 1, tree, leaves, ranks[plan.places[2], row], 0, weight, 0, 0)
    for row in range(first, last):
        if items[row] & MIDDLE:
            rank = ranks[plan.places[1], row]
            number = _marks(passes, 1, tree, leaves, rank)
            table.numbers[1, row] = number
            if row < bounds[WAITING]:
                weight = _weight(plan, table, MIDDLE, row)
                _change(passes, 1, tree, leaves, rank, 0, 0, weight, weight * number)


@njit_in_place
def _marks(passes, which, tree, leaves, rank):
    """The marks with which a value passes."""
    below = _below(passes, which, tree, leaves, rank)[MARKS]
    return _passing(passes, which, below, tree[leaves + rank, MARKS], tree[1, MARKS])


@njit_in_place
def _insert(plan, table, ranks, trees, bounds, row):
    """Add an event to the tree of those in which histories end."""
    item, passes, leaves = table.items[row] & (FIRST | MIDDLE), plan.passes, trees.leaves
    one, two = ranks[plan.places[0], row], ranks[plan.places[1], row]
    alive = events = number = 0
    if item & MIDDLE:
        events = _weight(plan, table, MIDDLE, row)
        number = events * table.numbers[0, row]
        if row >= bounds[WAITING]:
            _change(passes, 0, trees.waiting, leaves, two, 0, 0, events, number)
            item, events, number = item & FIRST, 0, 0
    if item == 0:
        return
    if item & FIRST:
        alive = _weight(plan, table, FIRST, row)
    if one != two and item & FIRST and item & MIDDLE:
        _change(passes, 0, trees.ending, leaves, one, alive, 0, 0, 0)
        alive = 0
    _change(
        passes, 0, trees.ending, leaves, two if item & MIDDLE else one, alive, 0, events, number
    )


@njit_in_place
def _close(plan, table, ranks, trees, bounds, row):
    """Let no histories go on from an event of the middle item."""
    passes, leaves = plan.passes, trees.leaves
    rank, weight = ranks[plan.places[1], row], _weight(plan, table, MIDDLE, row)
    number, is_waiting = weight * table.numbers[0, row], row >= bounds[WAITING]
    if is_waiting:
        _change(passes, 0, trees.waiting, leaves, rank, 0, 0, -weight, -number)
    else:
        _change(passes, 0, trees.ending, leaves, rank, 0, 0, -weight, -number)
    if plan.goes_on:
        number = table.numbers[1, row]
        table.numbers[1, row] -= _marks(passes, 1, trees.going_on, leaves, rank)
        if not is_waiting:
            _change(passes, 1, trees.going_on, leaves, rank, 0, 0, -weight, -weight * number)
            if plan.closes:
                number = weight * table.numbers[1, row]
                _change(passes, 1, trees.closed, leaves, rank, 0, 0, weight, number)


@njit_in_place
def _close_by_value(plan, table, ranks, trees, bounds, row, low):
    """Let no histories go on from the events of the middle item that are compared with a forbidden one."""
    heap = trees.heap
    while bounds[HEAP_SIZE]:
        front = heap[0]
        if front >= low and _is_open(table, bounds, front):
            if not _closes(plan, table, row, front):
                return
            _close(plan, table, ranks, trees, bounds, front)
            table.items[front] |= CLOSED
        # The last one takes its place, and sinks.
        bounds[HEAP_SIZE] -= 1
        size, place = bounds[HEAP_SIZE], 0
        sinking = heap[size]
        while 2 * place + 1 < size:
            child = 2 * place + 1
            if child + 1 < size and _is_before(plan, table, heap[child + 1], heap[child]):
                child += 1
            if not _is_before(plan, table, heap[child], sinking):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = sinking


@njit_in_place
def _enter_heap(plan, table, trees, bounds, begin, end):
    """Add the open events of the middle item among some to the heap."""
    heap = trees.heap
    for row in range(begin, end):
        # A missing value is compared with none.
        value = table.values[plan.closed_value, row]
        if table.items[row] & MIDDLE and value == value and _is_open(table, bounds, row):
            place = bounds[HEAP_SIZE]
            bounds[HEAP_SIZE] += 1
            while place and _is_before(plan, table, row, heap[(place - 1) // 2]):
                heap[place] = heap[(place - 1) // 2]
                place = (place - 1) // 2
            heap[place] = row


@njit_in_place
def _is_before(plan, table, one, two):
    """Whether an event of the middle item is closed by all that close another one, by its value."""
    values, column = table.values, plan.closed_value
    if plan.operator in (GREATER, GREATER_EQUAL):
        return values[column, one] < values[column, two]
    return values[column, one] > values[column, two]


@njit_in_place
def _closes(plan, table, row, middle):
    """Whether a forbidden event is one behind an event of the middle item."""
    one, two = table.values[plan.closing_value, row], table.values[plan.closed_value, middle]
    return compares(plan.operator, one, two)


@njit_in_place
def _expire(plan, table, ranks, trees, bounds, totals, partition, low, first):
    """Remove the events of the oldest timestamp; returns the first row behind them."""
    passes, leaves, bars = plan.passes, trees.leaves, 0
    ending, going_on = trees.ending, trees.going_on
    last = _behind_timestamp(table, low, first)
    # First those of the middle item, which do not go on from a first event at their timestamp.
    for row in range(low, last):
        bars |= table.items[row]
        if table.items[row] & MIDDLE:
            rank, weight = ranks[plan.places[1], row], _weight(plan, table, MIDDLE, row)
            is_open = _is_open(table, bounds, row)
            if is_open:
                number = weight * table.numbers[0, row]
                _change(passes, 0, ending, leaves, rank, 0, 0, -weight, -number)
            if plan.goes_on:
                number = weight * table.numbers[1, row]
                if plan.is_alone:
                    marks = _marks(passes, 1, going_on, leaves, rank) if is_open else 0
                    _add(totals, partition, number - weight * marks)
                if is_open:
                    _change(passes, 1, going_on, leaves, rank, 0, 0, -weight, -number)
                elif plan.closes:
                    _change(passes, 1, trees.closed, leaves, rank, 0, 0, -weight, -number)
    if bars & BARS_MIDDLE:
        _end_waiting(plan, table, ranks, trees, bounds, first)
    for row in range(low, last):
        totals[partition, STORED] -= table.items[row] & plan.kept != 0
        if table.items[row] & FIRST:
            rank, weight = ranks[plan.places[0], row], _weight(plan, table, FIRST, row)
            if plan.goes_on:
                below = _below(passes, 1, going_on, leaves, rank)
                number = _numbers(passes, 1, going_on, leaves, rank, below)
                if plan.closes:
                    below = _below(passes, 1, trees.closed, leaves, rank)
                    number += _numbers(passes, 1, trees.closed, leaves, rank, below)
                _add(totals, partition, weight * number)
            elif plan.counts_window:
                events = _below(passes, 0, ending, leaves, rank)[EVENTS]
                number = _beside(
                    passes, 0, events, ending[leaves + rank, EVENTS], ending[1, EVENTS]
                )
                _add(totals, partition, -weight * number)
            alive = weight * (row >= bounds[OPEN_FIRST])
            _change(passes, 0, ending, leaves, rank, -alive, weight * (plan.items == 3), 0, 0)
    return last


@njit_in_place
def _end_waiting(plan, table, ranks, trees, bounds, first):
    """Let first events that expire be marks for the middle ones that waited, up to the next forbidden event."""
    passes, leaves, numbers = plan.passes, trees.leaves, table.numbers
    begin = bounds[WAITING]
    end = _behind_barred(plan, table, begin, first)
    is_barred = False
    for row in range(begin, end):
        is_barred |= table.items[row] & BARS_MIDDLE != 0
        if table.items[row] & MIDDLE == 0:
            continue
        rank, weight = ranks[plan.places[1], row], _weight(plan, table, MIDDLE, row)
        if _is_open(table, bounds, row):
            number = weight * numbers[0, row]
            _change(passes, 0, trees.waiting, leaves, rank, 0, 0, -weight, -number)
            numbers[0, row] += _marks(passes, 0, trees.ending, leaves, rank)
            number = weight * numbers[0, row]
            _change(passes, 0, trees.ending, leaves, rank, 0, 0, weight, number)
            if plan.goes_on:
                number = weight * numbers[1, row]
                _change(passes, 1, trees.going_on, leaves, rank, 0, 0, weight, number)
        elif plan.closes:
            number = weight * numbers[1, row]
            _change(passes, 1, trees.closed, leaves, rank, 0, 0, weight, number)
    bounds[WAITING] = end if is_barred else len(table.times)


@njit_in_place
def _below(passes, which, tree, leaves, rank):
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
def _numbers(passes, which, tree, leaves, rank, below):
    """The sum of the numbers of events that a value passes, given the fields below its rank."""
    leaf = leaves + rank
    marks = passes[which, 0] * below[MARKS] + passes[which, 2] * (
        tree[1, MARKS] - below[MARKS] - tree[leaf, MARKS]
    )
    own = tree[leaf, SUM] - marks * tree[leaf, EVENTS]
    return _beside(passes, 1 - which, below[SUM], own, tree[1, SUM])


@njit_in_place
def _passing(passes, which, below, equal, total):
    """The part of a sum over first or last items that passes a comparison with a middle one."""
    return (
        passes[which, 0] * below
        + passes[which, 1] * equal
        + passes[which, 2] * (total - below - equal)
    )


@njit_in_place
def _beside(passes, which, below, equal, total):
    """The part of a sum over middle items that passes a comparison with a first or a last one."""
    return _passing(passes, which, total - below - equal, equal, total)


@njit_in_place
def _change(passes, which, tree, leaves, rank, alive, marks, events, total):
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


@njit_in_place
def _weight(plan, table, item, row):
    """The weight of an event as one of an item."""
    return table.weights[row] if plan.weighted == item else 1


@njit_in_place
def _add(sums, row, number):
    """Add to a sum of 62 bits and what is beyond."""
    low = sums[row, LOW] + number
    sums[row, LOW] = low & ((1 << HALF_BITS) - 1)
    sums[row, HIGH] += low >> HALF_BITS
