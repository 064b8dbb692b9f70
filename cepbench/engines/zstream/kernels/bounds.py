"""Time ranges as row numbers, by one merge scan of two leaves."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.instructions import compares
from cepbench.kernels.jit import njit, njit_in_place

#: The timestamps of no event at all; the latter can be shifted.
BEFORE_ALL, AFTER_ALL = np.iinfo(np.int64).min, np.iinfo(np.int64).max - 1

#: A leaf with so many times fewer events than another one is searched for rather than scanned.
_RARE = 16
_BLOCK = 16


@njit_in_place
def first_rows(times, others, first, shift, found):
    """For each event the first row of another leaf that is not before it, shifted in time.

    ``times``: int64 (n,), ascending. ``others``: int64 (m,), ascending timestamps of the other
    leaf. ``first``: the result is at least this. ``shift``: added to ``times``. ``found``: int32
    (n,), written in place; ``m`` where there is none.
    """
    events, rows = len(times), len(others) - first
    if events * _RARE < rows:
        row = first
        for i in range(events):
            row = _next_row(others, row, times[i] + shift)
            found[i] = row
        return
    if rows * _RARE < events:
        i = 0
        for row in range(first, len(others)):
            behind = _next_row(times, i, others[row] - shift + 1)
            found[i:behind] = row
            i = behind
        found[i:] = len(others)
        return
    # The scan has no branches, since which leaf has the next event cannot be predicted; what is left
    # is the wait for one load after the other, so that four parts are scanned side by side.
    part = events // 4
    i, j, k, m = 0, part, 2 * part, 3 * part
    end_i, end_j, end_k = j, k, m
    a = b = c = d = first
    if part > 0:
        b = _first_row(others, first, times[j] + shift)
        c = _first_row(others, first, times[k] + shift)
        d = _first_row(others, first, times[m] + shift)
    # Rows ascend, so that none is behind the last one before d is.
    while i < end_i and j < end_j and k < end_k and m < events and d < len(others):
        i, a = _step(times, others, shift, i, a, found)
        j, b = _step(times, others, shift, j, b, found)
        k, c = _step(times, others, shift, k, c, found)
        m, d = _step(times, others, shift, m, d, found)
    _scan(times, others, shift, i, end_i, a, found)
    _scan(times, others, shift, j, end_j, b, found)
    _scan(times, others, shift, k, end_k, c, found)
    _scan(times, others, shift, m, events, d, found)


@njit_in_place
def _step(times, others, shift, i, row, found):
    """Move on to the next row or to the next event."""
    # Unsigned indices are never counted from the end.
    is_before = np.int64(others[np.uint64(row)] < times[np.uint64(i)] + shift)
    found[np.uint64(i)] = row
    return i + 1 - is_before, row + is_before


@njit_in_place
def _scan(times, others, shift, i, end, row, found):
    """The first rows for the events i … end - 1, from a row on."""
    while i < end and row < len(others):
        i, row = _step(times, others, shift, i, row, found)
    found[i:end] = row


@njit_in_place
def _first_row(others, first, time):
    """The first row from ``first`` on that is not before a time."""
    stop = len(others)
    while first < stop:
        middle = (first + stop) // 2
        if others[middle] < time:
            first = middle + 1
        else:
            stop = middle
    return first


@njit_in_place
def _next_row(others, row, time):
    """The same, probably some rows on: by blocks, which vectorize."""
    while row + _BLOCK <= len(others) and others[row + _BLOCK - 1] < time:
        row += _BLOCK
    count = 0
    for other in others[row : row + _BLOCK]:
        count += np.int64(other < time)
    return row + count


@njit_in_place
def negating_times(
    rows, values, first, negated, its_values, its_first, comparisons, is_after, found
):
    """The timestamp of the event that negates each event [mei2009]_, Algorithm 2.

    The latest negated event before it, or the earliest one after it, that passes all comparisons;
    ``BEFORE_ALL`` or ``AFTER_ALL`` if there is none.

    Returns the number of pairs tested.

    Parameters
    ----------
    rows : int32 array, shape (n,)
        For each event the first negated event that is not before it, or if ``is_after`` after it.
    values : float64 array, shape (columns, at least first + n)
    first : int
        The row of the first event.
    negated : int64 array, shape (m,)
        Ascending timestamps of the negated events.
    its_values : float64 array, shape (columns, at least m)
    its_first : int
        The first row to look at.
    comparisons : int64 array, shape (k, 3)
        Column of the event, column of the negated event, operator.
    is_after : bool
        Whether to look after each event rather than before it.
    found : int64 array, shape (n,)
        Written in place.
    """
    tested = 0
    for i in range(len(rows)):
        step, at = (1, rows[i]) if is_after else (-1, rows[i] - 1)
        found[i] = AFTER_ALL if is_after else BEFORE_ALL
        while its_first <= at < len(negated):
            passes = True
            for k in range(len(comparisons)):
                passes &= compares(
                    comparisons[k, 2],
                    values[comparisons[k, 0], first + i],
                    its_values[comparisons[k, 1], at],
                )
            tested += len(comparisons) > 0
            if passes:
                found[i] = negated[at]
                break
            at += step
    return tested


@njit
def any_passes(records, lows, highs, events, comparisons):
    """Which records some event of a range passes all comparisons with.

    ``lows``, ``highs``: int64 (n,), the range of events of each record. ``events``: float64
    (columns, m). ``comparisons``: int64 (k, 2), column of the event, operator.

    Returns
    -------
    passing : bool array, shape (n,)
    tested : int
        The number of pairs tested.
    """
    passing = np.zeros(records.shape[1], np.bool_)
    tested = 0
    for r in range(records.shape[1]):
        for event in range(highs[r] - 1, lows[r] - 1, -1):
            tested += 1
            passes = True
            for k in range(len(comparisons)):
                passes &= compares(
                    comparisons[k, 1], records[k, r], events[comparisons[k, 0], event]
                )
            if passes:
                passing[r] = True
                break
    return passing, tested
