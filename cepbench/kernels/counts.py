"""Columns of the tables of metrics that kernels write, and what costs know of how they count."""

from __future__ import annotations

# By node: COUNTS[node, ...].
CREATED = 0  # rows or instances created
COMPARED = 1  # pairs whose conditions were tested one by one
PEAK = 2  # maximum number stored: extensible rows, or instances within the window
LIFETIME = 3  # sum of the times for which each of them was stored, in units of lifetime_shift
NANOSECONDS = 4  # time spent in the node, if measured
COUNT_COLUMNS = 5

# Behind these where a plan is evaluated as given, the work of its operators: COUNTS[node, ...]; that
# of a negation is in the row of its negated leaf.
TRIED = 5  # inputs tried: combinations in order and within the window, inputs of a negation
TESTED = 6  # conditions tested on these, each by itself
MADE = 7  # records made
WORK_COLUMNS = 8

# Maxima over all nodes together: PEAKS[...].
PEAK_PARTIAL_MATCHES = 0
PEAK_EVENTS = 1
PEAK_BYTES = 2
PEAKS = 3

#: Starts from each of which on the matches of a workload are counted at a time.
LANES = 64

#: Bits of the longest lifetime that are summed: more than 2^40 rows may have it.
_LIFETIME_BITS = 22


def lifetime_shift(window: int) -> int:
    """The binary logarithm of the unit in which times up to a window are summed.

    In nanoseconds a few million rows of some minutes are more than 64 bits.
    """
    return max(0, int(window).bit_length() - _LIFETIME_BITS)
