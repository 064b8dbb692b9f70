"""Sorting the events of a batch by type, in two passes."""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def count_types(codes, counts):
    """Count the events of each type.

    Parameters
    ----------
    codes : integer array, shape (events,)
        The code of each event's type.
    counts : int64 array, shape (types,)
        All zero; written in place.
    """
    for row in range(len(codes)):
        counts[codes[row]] += 1


@njit_in_place
def rows_by_type(codes, ends, wanted, rows):
    """Sort the rows of the events of some types by type, in order within each type.

    Parameters
    ----------
    codes : integer array, shape (events,)
        The code of each event's type.
    ends : int64 array, shape (types,)
        Index in ``rows`` of the first event of each wanted type, and the last index of ``rows`` for
        all other types; updated in place to the end of each wanted type.
    wanted : int64 array, shape (types,)
        1 for wanted types, 0 for others.
    rows : int64 array, shape (events of wanted types + 1,)
        Written in place; the last element is undefined.
    """
    for row in range(len(codes)):
        # Events of other types are written too, to the last element: no branch to mispredict.
        kind = codes[row]
        rows[ends[kind]] = row
        ends[kind] += wanted[kind]
