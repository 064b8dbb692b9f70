"""Choosing the events of a batch by type, and sorting them by type in two passes."""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def count_types(codes, counts):
    """Count the events of each type.

    ``codes``: integer (events,), the code of each event's type.
    ``counts``: int64 (types,), all zero; written in place.
    """
    for row in range(len(codes)):
        counts[codes[row]] += 1


@njit_in_place
def rows_by_type(codes, ends, wanted, rows):
    """Sort the rows of the events of some types by type, in order within each type.

    ``codes``: integer (events,), the code of each event's type.
    ``ends``: int64 (types,), index in ``rows`` of the first event of each wanted type, and the last
    index of ``rows`` for all other types; updated in place to the end of each wanted type.
    ``wanted``: int64 (types,), 1 for wanted types, 0 for others.
    ``rows``: int64 (events of wanted types + 1,), written in place; the last element is undefined.
    """
    for row in range(len(codes)):
        # Events of other types are written too, to the last element: no branch to mispredict.
        kind = codes[row]
        rows[ends[kind]] = row
        ends[kind] += wanted[kind]


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
def any_flagged(codes, table):
    """Whether any event is of a type that has flags; arguments as for :func:`rows_with_flags`."""
    row = 0
    while row < len(codes) and table[codes[row]] == 0:
        row += 1
    return row < len(codes)


@njit_in_place
def rows_by_place(codes, places, starts, rows):
    """Sort the rows of events by place, of which events of a type may have several. Returns their number.

    ``codes``: integer (events,), the code of each event's type.
    ``places``: int64 (layers, types), the place of each type, from 0 on, or the number of all places for
    none; each place is in one layer.
    ``starts``: int64 (number of places + 2,), all zero; written in place: where the rows of each place
    begin, and the number of rows; the last element is undefined.
    ``rows``: int64 (one more than rows,), written in place: the rows of each place, in order.
    """
    none = len(starts) - 2
    for layer in range(len(places)):
        place_of = places[layer]
        for row in range(len(codes)):
            starts[place_of[codes[row]] + 1] += 1
    for place in range(none):
        starts[place + 1] += starts[place]
    number = starts[none]
    if number == 0:
        return number
    # While rows are written, the start of a place is that of its next row. What has no place is written
    # too, behind all rows: no branch to mispredict.
    for layer in range(len(places)):
        place_of = places[layer]
        for row in range(len(codes)):
            place = place_of[codes[row]]
            rows[starts[place]] = row
            starts[place] += place < none
    for place in range(none, 0, -1):
        starts[place] = starts[place - 1]
    starts[0] = 0
    return number
