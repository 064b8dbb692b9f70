"""The tables of events in the window and of new ones, and what all ways to count read of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.sequence_counts.kernels.numbers import DIGIT_BITS
from cepbench.kernels.jit import njit_in_place

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


@njit_in_place
def is_open_row(table, bounds, row):
    """Whether histories may go on from an event of the middle item."""
    return row >= bounds[OPEN_MIDDLE] and table.items[row] & CLOSED == 0


@njit_in_place
def behind_timestamp(table, row, end):
    """Behind the events at the timestamp of a row."""
    behind = row + 1
    while behind < end and table.times[behind] == table.times[row]:
        behind += 1
    return behind


@njit_in_place
def behind_barred(plan, table, begin, end):
    """Behind the events at the timestamp of the first of some that is forbidden before the middle item."""
    if plan.kept & BARS_MIDDLE:
        for row in range(begin, end):
            if table.items[row] & BARS_MIDDLE:
                return behind_timestamp(table, row, end)
    return end


@njit_in_place
def passes_with(plan, table, which, row, middle):
    """Whether a first or a last item's event passes the comparison with a middle one."""
    place = plan.places[2 * which]
    if place == len(plan.users):
        return True
    one, two = table.values[place, row], table.values[plan.places[1], middle]
    return plan.passes[which, int(one >= two) + int(one > two)] != 0


@njit_in_place
def weight_of(plan, table, item, row):
    """The weight of an event as one of an item."""
    return table.weights[row] if plan.weighted == item else 1


@njit_in_place
def report_matches(plan, table, totals, found, out, partition, row, number):
    """Add up the matches that an event completes, and write the value after it if it is asked for."""
    if table.items[row] & COUNTED == 0:
        add_to(found, 0, number)
        if plan.counts_window:
            add_to(totals, partition, number)
    if table.samples[row] >= 0:
        low_bits, high_bits = number, 0
        if plan.counts_window:
            low_bits, high_bits = totals[partition, LOW], totals[partition, HIGH]
        sample = table.samples[row]
        out[sample, 0] = low_bits & _LOWEST
        out[sample, 1] = low_bits >> DIGIT_BITS & _LOWEST
        out[sample, 2] = (low_bits >> HALF_BITS) + high_bits


@njit_in_place
def add_to(sums, row, number):
    """Add to a sum of 62 bits and what is beyond."""
    low = sums[row, LOW] + number
    sums[row, LOW] = low & ((1 << HALF_BITS) - 1)
    sums[row, HIGH] += low >> HALF_BITS
