"""Reading the events of a leaf from a batch, without branches: types cannot be predicted."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def read_events(codes, timestamps, code, first, times, rows):
    """The timestamps and, unless there is no room for them, the rows of the events of one type. Returns their number.

    ``codes``: int32 (events,), the code of each event's type. ``timestamps``: int64 (events,).
    ``first``: the row of the first event. ``times``, ``rows``: int64 (at least events,), or ``rows`` (0,),
    written in place; what is behind the result is undefined.
    """
    # Unsigned indices are never counted from the end.
    count, has_rows = np.uint64(0), len(rows) > 0
    for row in range(len(codes)):
        times[count] = timestamps[row]
        if has_rows:
            rows[count] = first + row
        count += np.uint64(codes[row] == code)
    return np.int64(count)
