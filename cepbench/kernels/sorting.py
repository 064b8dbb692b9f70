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
