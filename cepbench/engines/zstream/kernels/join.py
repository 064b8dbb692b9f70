"""Joins of records with the events of a leaf, or with records grouped by one of their events.

A record is one row number for each of its events; nothing else is copied. ``records`` are int32
(columns, n). A record of the outer buffer has a range of rows of the *key*, which is the inner leaf, or
the leaf of one event of the inner records. It is the intersection of the ranges of its events, see
:mod:`cepbench.engines.zstream.kernels.bounds`. Conditions are bitmaps over it, see
:mod:`cepbench.engines.zstream.kernels.bits`.

``within`` is int32 (2, n), as :func:`find_limits` writes it. Kernels that write records take ``positions``, int64, of events, one leaf after the other, empty to write row numbers; ``offsets``,
int64, where the positions of the leaf of each column of the result are; and ``targets``, int64, the
row of the result that each column is written to. The columns of the key come last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.zstream.kernels.bits import (
    WORD,
    bits_between,
    bits_in,
    lowest,
    lowest_bit,
    word_at,
)
from cepbench.kernels.jit import njit_in_place


class Ranges(NamedTuple):
    """What restricts the rows of the key for a record of the outer buffer."""

    lows: np.ndarray  #: int64 (k, 2): column of the record, offset in ``bounds``: at least that row
    highs: np.ndarray  #: int64 (k, 2): the same: rows below that
    bounds: np.ndarray  #: int32, by row of a leaf, one leaf after the other
    tables: np.ndarray  #: int64 (t, 2): column of the record, offset in ``origins``
    origins: np.ndarray  #: int64, by row of a leaf: its bit of row 0 of the key
    words: np.ndarray  #: uint64
    ranks: np.ndarray  #: int32
    first: int  #: the first row of the key
    stop: int  #: the row behind the last one


class Groups(NamedTuple):
    """Inner records by the row of their key, and within a group by the row of their first event."""

    stops: np.ndarray  #: int64 (keys + 1,): key ``y`` has ``stops[y] … stops[y + 1] - 1``
    base: int  #: what row of the key has number 0
    at: np.ndarray  #: int64 (keys,): working space, the first record not too early
    firsts: np.ndarray  #: int32 (records,): rows of first events; empty if they are not restricted
    lows: np.ndarray  #: int64 (k, 2): column of the outer record, offset in ``bounds``


_NO_BITS, _ONE = np.uint64(0), np.uint64(1)

# More rows than this are counted by ranks, if there is one table.
_LONG = 2 * WORD


@njit_in_place
def word_of(records, r, ranges, row):
    """Which of the 64 rows from ``row`` on satisfy all conditions with a record."""
    word = word_at(
        ranges.words, ranges.origins[ranges.tables[0, 1] + records[ranges.tables[0, 0], r]] + row
    )
    for k in range(1, len(ranges.tables)):
        word &= word_at(
            ranges.words,
            ranges.origins[ranges.tables[k, 1] + records[ranges.tables[k, 0], r]] + row,
        )
    return word


@njit_in_place
def find_limits(records, begin, lows, highs, bounds, first, stop, firsts, stops):
    """The range of rows of the key for some records, found column by column.

    ``begin``: the first of these records. ``lows``, ``highs``, ``bounds``, ``first``, ``stop``: see
    :class:`Ranges`. ``firsts``, ``stops``: int32 (n,), written in place: the first row, and the one
    behind the last, no earlier than it. They are contiguous, as loops over others do not vectorize.
    """
    firsts[:] = first
    stops[:] = stop
    # The only record of a pattern of one variable has no column.
    is_column = len(records) == 1 and len(firsts) > 0
    row = np.int64(records[0, begin]) if is_column else np.int64(0)
    if is_column and row + len(firsts) - 1 == records[0, begin + len(firsts) - 1]:
        # What successive rows of a leaf set is read without looking the rows up, which vectorizes.
        for k in range(len(lows)):
            its = bounds[lows[k, 1] + row : lows[k, 1] + row + len(firsts)]
            for r in range(len(firsts)):
                firsts[r] = max(firsts[r], its[r])
        for k in range(len(highs)):
            its = bounds[highs[k, 1] + row : highs[k, 1] + row + len(stops)]
            for r in range(len(stops)):
                stops[r] = min(stops[r], its[r])
        for r in range(len(stops)):
            stops[r] = max(stops[r], firsts[r])
        return
    for k in range(len(lows)):
        rows, offset = records[lows[k, 0], begin : begin + len(firsts)], lows[k, 1]
        for r in range(len(firsts)):
            firsts[r] = max(firsts[r], bounds[np.uint64(offset + rows[r])])
    for k in range(len(highs)):
        rows, offset = records[highs[k, 0], begin : begin + len(stops)], highs[k, 1]
        for r in range(len(stops)):
            stops[r] = min(stops[r], bounds[np.uint64(offset + rows[r])])
    for r in range(len(stops)):
        stops[r] = max(stops[r], firsts[r])


@njit_in_place
def count_events(records, ranges, firsts, stops, sizes):
    """The number of events of the key that join each record. Returns their sum.

    ``firsts``, ``stops``: int32 (n,), as :func:`find_limits` has written them. ``sizes``: int64
    (n,) or (0,), written in place, unless it is empty.
    """
    total = np.int64(0)
    tables = len(ranges.tables)
    if tables == 0:
        for r in range(records.shape[1]):
            total += np.int64(stops[r] - firsts[r])
        for r in range(len(sizes)):
            sizes[r] = stops[r] - firsts[r]
        return total
    for r in range(records.shape[1]):
        low, high = np.int64(firsts[r]), np.int64(stops[r])
        size = high - low
        if tables == 1 and size > _LONG:
            origin = ranges.origins[ranges.tables[0, 1] + records[ranges.tables[0, 0], r]]
            size = bits_between(ranges.words, ranges.ranks, origin + low, origin + high)
        else:
            size = np.int64(0)
            for row in range(low, high, WORD):
                size += bits_in(word_of(records, r, ranges, row) & lowest(high - row))
        total += size
        if len(sizes) > 0:
            sizes[r] = size
    return total


@njit_in_place
def total_events(records, ranges, found, sizes):
    """The number of events of the key that join all records, found block by block.

    ``found``: int32 (2, records in a block), working space, which stays in the caches. ``sizes``:
    int64 (0,).
    """
    total = np.int64(0)
    for begin in range(0, records.shape[1], found.shape[1]):
        end = min(begin + found.shape[1], records.shape[1])
        firsts, stops = found[0, : end - begin], found[1, : end - begin]
        find_limits(
            records, begin, ranges.lows, ranges.highs, ranges.bounds, ranges.first, ranges.stop,
            firsts, stops,
        )  # fmt: skip
        total += count_events(records[:, begin:end], ranges, firsts, stops, sizes)
    return total


@njit_in_place
def join_events(records, ranges, within, sizes, positions, offsets, targets, found):
    """Write the records joined with the events of the key.

    ``sizes``: int64 (n,), as :func:`count_events` has written them. ``found``: int32 or int64
    (columns + 1, sum of sizes), written in place.
    """
    end = 0
    columns, tables = len(records), len(ranges.tables)
    for r in range(records.shape[1]):
        if sizes[r] == 0:
            continue
        begin = end
        end += sizes[r]
        low, high = np.int64(within[0, r]), np.int64(within[1, r])
        _repeat(records, r, positions, offsets, targets, begin, end, found)
        target = targets[columns]
        if tables > 0:
            at = begin
            for row in range(low, high, WORD):
                word = word_of(records, r, ranges, row) & lowest(high - row)
                while word != _NO_BITS:
                    found[target, at] = _written(
                        row + lowest_bit(word), columns, positions, offsets
                    )
                    word &= word - _ONE
                    at += 1
            continue
        # Slices from 0 on, so that loops vectorize.
        its = found[target, begin:end]
        if len(positions) > 0:
            events = positions[offsets[columns] + low : offsets[columns] + high]
            for at in range(len(its)):
                its[at] = events[at]
        else:
            for at in range(len(its)):
                its[at] = low + at


@njit_in_place
def _written(row, column, positions, offsets):
    """What stands for an event of a column: its position, if there are any, or its row."""
    return positions[offsets[column] + row] if len(positions) > 0 else np.int64(row)


@njit_in_place
def _repeat(records, r, positions, offsets, targets, begin, end, found):
    """Write the events of a record to all places from ``begin`` on."""
    for column in range(len(records)):
        value = _written(records[column, r], column, positions, offsets)
        its = found[targets[column], begin:end]
        for at in range(len(its)):
            its[at] = value


@njit_in_place
def _begin(key, least, groups):
    """The first record of a group whose first event is not too early.

    Outer records mostly come in the order of time, so that this only ever moves on.
    """
    at = groups.at[key]
    if len(groups.lows) > 0:
        while at < groups.stops[key + 1] and groups.firsts[at] < least:
            at += 1
        while at > groups.stops[key] and groups.firsts[at - 1] >= least:
            at -= 1
        groups.at[key] = at
    return at


@njit_in_place
def _least(records, r, groups, bounds):
    """The earliest row of the first event of inner records that join an outer one."""
    least = np.int64(0)
    for k in range(len(groups.lows)):
        least = max(least, bounds[groups.lows[k, 1] + records[groups.lows[k, 0], r]])
    return least


@njit_in_place
def count_groups(records, ranges, within, groups, lengths, sums, sizes):
    """The number of inner records that join each outer record. Returns their sum.

    ``lengths``, ``sums``: int64 (keys,) and (keys + 1,), working space. ``sizes``: int64 (n,) or
    (0,), written in place, unless it is empty.
    """
    total = 0
    # Sizes of the groups of keys begin … end, for records that begin no earlier than ``known``, and
    # their sums up to each key.
    known, begin, end = np.int64(-1), 0, 0
    for r in range(records.shape[1]):
        low, high = np.int64(within[0, r]), np.int64(within[1, r])
        size = np.int64(0)
        if low < high:
            low, high = low - groups.base, high - groups.base
            least = _least(records, r, groups, ranges.bounds)
            if least != known or low < begin or low > end:
                known, begin, end = least, low, low
                sums[low] = 0
            for key in range(end, high):
                lengths[key] = groups.stops[key + 1] - _begin(key, least, groups)
                sums[key + 1] = sums[key] + lengths[key]
            end = max(end, high)
            if len(ranges.tables) == 0:
                size = sums[high] - sums[low]
            else:
                for row in range(low, high, WORD):
                    word = word_of(records, r, ranges, row + groups.base)
                    size += _sum_of(word, lengths, sums, row, min(high, row + WORD))
        total += size
        if len(sizes) > 0:
            sizes[r] = size
    return total


@njit_in_place
def _sum_of(word, numbers, sums, first, stop):
    """The sum of those of up to 64 numbers whose bits are set."""
    total = np.int64(0)
    count = stop - first
    word &= lowest(count)
    bits = bits_in(word)
    if bits == count:
        total = sums[stop] - sums[first]
    elif 4 * bits < count:
        while word != _NO_BITS:
            total += numbers[first + lowest_bit(word)]
            word &= word - _ONE
    else:
        block = numbers[first : first + count]
        for at in range(count):
            total += np.int64((word >> np.uint64(at)) & _ONE) * block[at]
    return total


@njit_in_place
def join_groups(records, inner, ranges, within, groups, sizes, positions, offsets, targets, found):
    """Write the outer records joined with inner ones.

    ``inner``: int32 (inner columns, m), in the order of ``groups``. ``sizes``: int64 (n,), as
    :func:`count_groups` has written them. ``found``: int32 or int64 (columns + inner columns, sum
    of sizes), written in place.
    """
    end = 0
    columns = len(records)
    for r in range(records.shape[1]):
        if sizes[r] == 0:
            continue
        begin = at = end
        end += sizes[r]
        low, high = np.int64(within[0, r]), np.int64(within[1, r])
        least = _least(records, r, groups, ranges.bounds)
        _repeat(records, r, positions, offsets, targets, begin, end, found)
        for row in range(low, high, WORD):
            word = lowest(high - row)
            if len(ranges.tables) > 0:
                word &= word_of(records, r, ranges, row)
            while word != _NO_BITS:
                key = row + lowest_bit(word)
                word &= word - _ONE
                start = _begin(key - groups.base, least, groups)
                stop = groups.stops[key - groups.base + 1]
                for column in range(len(inner)):
                    target = targets[columns + column]
                    for place in range(stop - start):
                        found[target, at + place] = _written(
                            inner[column, start + place], columns + column, positions, offsets
                        )
                at += stop - start


@njit_in_place
def mark(rows, base, marks):
    """Mark events that are in a record.

    ``rows``: int32 (n,). ``base``: the row of the first mark. ``marks``: int8, written in place: 1
    for those.
    """
    for row in rows:
        marks[row - base] = 1


@njit_in_place
def total_span(first_times, first_rows, last_times, last_rows):
    """The sum over records of the time from their first to their last event.

    ``first_times``, ``last_times``: int64, timestamps of the two leaves. ``first_rows``,
    ``last_rows``: int32 (n,).
    """
    total = 0
    for r in range(len(first_rows)):
        total += last_times[last_rows[r]] - first_times[first_rows[r]]
    return total
