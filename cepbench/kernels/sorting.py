"""Choosing the events of a batch by type, and sorting by small numbers in two passes."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit, njit_in_place


@njit
def sorted_by(numbers, base, count):
    """Sort by numbers of a small range, stably.

    ``numbers``: integer (n,), at least ``base`` and below ``base + count``.

    Returns ``order``: int64 (n,). ``stops``: int64 (count + 1,); those with the number ``base + k`` are
    ``order[stops[k] : stops[k + 1]]``.
    """
    stops = np.zeros(count + 1, np.int64)
    for number in numbers:
        # Unsigned indices are never counted from the end.
        stops[np.uint64(number - base + 1)] += 1
    for k in range(count):
        stops[k + 1] += stops[k]
    at = stops[:-1].copy()
    order = np.empty(len(numbers), np.int64)
    for place in range(len(numbers)):
        k = np.uint64(numbers[place] - base)
        order[np.uint64(at[k])] = place
        at[k] += 1
    return order, stops


@njit_in_place
def rows_with_flags(codes, table, flags, rows):
    """The events of types that have flags.

    ``codes``: integer (events,), the code of each event's type.
    ``table``: int64 (types,), the flags of each type.
    ``flags``, ``rows``: int64 (events,), written in place: the flags of each event, and the rows of
    those that have some.

    Returns int, how many have some.
    """
    number = 0
    for row in range(len(codes)):
        flag = table[codes[row]]
        flags[row], rows[number] = flag, row
        number += flag != 0
    return number


@njit_in_place
def places_held(held, places):
    """The places at which a test holds. Returns int, how many there are.

    ``held``: bool (events,).
    ``places``: int64 (events + 1,), written in place; those behind the number returned are undefined.
    """
    number = 0
    for place in range(len(held)):
        # Without a branch to mispredict.
        places[number] = place
        number += held[place]
    return number


@njit_in_place
def any_flagged(codes, table):
    """Whether any event is of a type that has flags; arguments as for :func:`rows_with_flags`."""
    row = 0
    while row < len(codes) and table[codes[row]] == 0:
        row += 1
    return row < len(codes)


@njit_in_place
def rows_by_place(codes, places, starts, ends, chosen, rows):
    """Sort the rows of events by place, of which events of a type may have several. Returns their number.

    ``codes``: integer (events,), the code of each event's type.
    ``places``: int64 (layers, types), the place of each type, from 0 on, or the number of all places for
    none; each place is in one layer.
    ``starts``: int64 (number of places + 1,), all zero; written in place: where the rows of each place
    begin, and the number of rows.
    ``ends``: int64 (layers,), ``chosen``: int64 (one more than rows,), working space.
    ``rows``: int64 (rows,), written in place: the rows of each place, in order.
    """
    none = len(starts) - 1
    number = 0
    # What has no place is overwritten: no branch to mispredict, and no counter that most events have.
    for layer in range(len(places)):
        for row in range(len(codes)):
            chosen[number] = row
            number += places[layer, codes[row]] < none
        ends[layer] = number
    at = 0
    for layer in range(len(places)):
        while at < ends[layer]:
            starts[places[layer, codes[chosen[at]]]] += 1
            at += 1
    behind = 0
    for place in range(none):
        behind += starts[place]
        starts[place] = behind
    starts[none] = number
    # From the last row on, so that each start is where it is to be at the end.
    for layer in range(len(places)):
        for at in range(ends[layer] - 1, ends[layer - 1] - 1 if layer else -1, -1):
            place = places[layer, codes[chosen[at]]]
            starts[place] -= 1
            rows[starts[place]] = chosen[at]
    return number
