"""Events sorted by their type, in two passes over a batch."""

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
        Where in ``rows`` each wanted type begins, and the last place of ``rows`` for all others;
        written in place: where each wanted type ends.
    wanted : int64 array, shape (types,)
        1 for the types that are wanted, 0 for others.
    rows : int64 array, shape (events of wanted types + 1,)
        Written in place; the last place is of no meaning.
    """
    for row in range(len(codes)):
        # Those of other types are written too: no branch to mispredict.
        kind = codes[row]
        rows[ends[kind]] = row
        ends[kind] += wanted[kind]
