"""Columns of the tables of metrics that kernels write, and what costs know of how they count."""

from __future__ import annotations

# By node: COUNTS[node, ...].
CREATED = 0  # rows or instances created
COMPARED = 1  # pairs whose conditions were tested one by one
PEAK = 2  # maximum number stored: extensible rows, or instances within the window
LIFETIME = 3  # sum of the times for which each of them was stored
NANOSECONDS = 4  # time spent in the node, if measured
COUNT_COLUMNS = 5

# Maxima over all nodes together: PEAKS[...].
PEAK_PARTIAL_MATCHES = 0
PEAK_EVENTS = 1
PEAK_BYTES = 2
PEAKS = 3

#: Starts from each of which on the matches of a workload are counted at a time.
LANES = 64
