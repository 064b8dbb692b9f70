"""Columns of the tables in which the engines' kernels count."""

from __future__ import annotations

# At each node: COUNTS[node, ...].
CREATED = 0  # rows or instances that came into being
COMPARED = 1  # pairs whose conditions were tested one by one
PEAK = 2  # the most that could still be extended, or were within the window, at any moment
LIFETIME = 3  # sum over them of the time for which that was so
NANOSECONDS = 4  # time that went into the node, if that is measured
COUNT_COLUMNS = 5

# The most of all nodes together: PEAKS[...].
PEAK_PARTIAL_MATCHES = 0
PEAK_EVENTS = 1
PEAK_BYTES = 2
PEAKS = 3
