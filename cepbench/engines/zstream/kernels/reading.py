"""Reading the events of a leaf from a batch, without branches: types cannot be predicted."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def read_times(codes, timestamps, code, found):
    """The timestamps of the events of one type. Returns their number.

    ``codes``: int32 (events,), the code of each event's type. ``timestamps``: int64 (events,).
    ``found``: int64 (at least events,), written in place; what is behind the result is undefined.
    """
    count = 0
    for row in range(len(codes)):
        found[count] = timestamps[row]
        count += np.int64(codes[row] == code)
    return count


@njit_in_place
def read_events(codes, timestamps, code, first, times, rows):
    """As :func:`read_times`, with the rows of these events.

    ``first``: the row of the first event. ``times``, ``rows``: int64 (at least events,), written in
    place.
    """
    count = 0
    for row in range(len(codes)):
        times[count] = timestamps[row]
        rows[count] = first + row
        count += np.int64(codes[row] == code)
    return count
