"""Events sorted by their type, in one pass over a batch."""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def rows_by_type(codes, ends, rows):
    """Sort the rows of a batch by the type of their events, in order within each type.

    Parameters
    ----------
    codes : integer array, shape (events,)
        The code of each event's type.
    ends : int64 array, shape (types,)
        Where in ``rows`` each type begins; written in place: where it ends.
    rows : int64 array, shape (events,)
        Written in place.
    """
    for row in range(len(codes)):
        # Also those of types that nobody wants: no branch to mispredict.
        kind = codes[row]
        rows[ends[kind]] = row
        ends[kind] += 1
