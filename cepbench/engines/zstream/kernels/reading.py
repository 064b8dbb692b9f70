"""Reading the events of a leaf from a batch, without branches: types cannot be predicted."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def read_times(codes, timestamps, code, found):
    """The timestamps of the events of one type.

    Parameters
    ----------
    codes : int32 array, shape (events,)
        The code of each event's type.
    timestamps : int64 array, shape (events,)
    code : int
    found : int64 array, shape (at least events,)
        Written in place; what is behind the result is undefined.

    Returns
    -------
    int
        Their number.
    """
    count = 0
    for row in range(len(codes)):
        found[count] = timestamps[row]
        count += np.int64(codes[row] == code)
    return count


@njit_in_place
def read_events(codes, timestamps, code, first, times, rows):
    """As :func:`read_times`, with the rows of these events.

    Parameters
    ----------
    codes, timestamps, code
    first : int
        The row of the first event.
    times, rows : int64 arrays, shape (at least events,)
        Written in place.
    """
    count = 0
    for row in range(len(codes)):
        times[count] = timestamps[row]
        rows[count] = first + row
        count += np.int64(codes[row] == code)
    return count
