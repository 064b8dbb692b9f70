"""Tables of the kernels that count matches of a sequence: the pattern, the state, the events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: A flag of events that have been counted as the last ones of matches.
COUNTED = 1 << 62

# Columns of SPANS, by partition.
LOW, HIGH = 0, 1  # its rows, without the last one
MIDDLE = 2  # by start: the first row that a leading NOT prevents; else the first one of the back
PREVENTED = 3  # timestamp of the latest event that prevents later starts
SPAN_COLUMNS = 4

# PROGRESS[...].
PARTITION, FIRST, ITEM, AT, IS_LARGE, STARTED, PROGRESS = range(7)


class Sequence(NamedTuple):
    """A SEQ of plain and Kleene items.

    The histories of a column end in one item, without a negated event since. A Kleene item with a NOT
    behind it has a second column, of all histories that a further element extends. Column 0 is that
    of the one history without events.
    """

    by_start: bool  #: whether counts are kept by start
    begins: np.ndarray  #: int64 (items,): the flag of events that may begin an item
    takes: np.ndarray  #: int64 (items,): the flag of further elements; 0 for plain items
    prevents: np.ndarray  #: int64 (items,): flags of events that are forbidden before an item
    sources: np.ndarray  #: int64 (items,): the column of histories that an item continues
    columns: np.ndarray  #: int64 (items,): the column of histories that end in it; -1 for none
    loops: np.ndarray  #: int64 (items,): the column that further elements extend; -1 for none
    changes: int  #: flags of events that change the product
    spans: np.ndarray  #: int64 (2 * items + 1,): rules of an item's begin, and of its take
    rules: np.ndarray  #: int64 (rules, 3): column of the event, of the start, operator
    kept: np.ndarray  #: int64: the columns of an event whose values a start keeps
    window: int


class Events(NamedTuple):
    """Some events."""

    rows: np.ndarray  #: int64: those that concern the pattern, by partition and then by position
    times: np.ndarray  #: int64 (n,)
    flags: np.ndarray  #: int64 (n,)
    values: np.ndarray  #: float64 (columns, n)
    spans: np.ndarray  #: int64 (partitions + 1,): of ``rows``
    until: int  #: more events of this timestamp may follow


class State(NamedTuple):
    """Counts of histories.

    By start, a row is an event that may begin a match. Else it is an event of the window, with row 0 of
    the product of the matrices from its timestamp to the middle, see
    :mod:`cepbench.kernels.sequence_counts.window_product`.
    """

    times: np.ndarray  #: int64 (rows,)
    marks: np.ndarray  #: int64 (rows,): PREVENTED before a start; else the flags of an event
    values: np.ndarray  #: float64 (kept, rows): of starts
    cells: np.ndarray  #: int64 (columns, rows[, digits])
    back: (
        np.ndarray
    )  #: int64 (columns, partitions * columns[, digits]): the product since the middle
    suffix: np.ndarray  #: int64 (columns, columns[, digits]): working space
    spans: np.ndarray  #: int64 (partitions, SPAN_COLUMNS)
    fits: np.ndarray  #: int64 (rows,): working space
    found: np.ndarray  #: int64 (digits,): matches
    progress: np.ndarray  #: int64 (PROGRESS,)
