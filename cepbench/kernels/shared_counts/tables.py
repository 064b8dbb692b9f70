"""Tables of the kernel that counts the matches of several sequences at once: program, state, events."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Columns of OPERATIONS.
TABLE, TARGET, SOURCE, WEIGHT, ORDER, OPERATION_COLUMNS = range(6)

# Columns of LINKS.
START, LEFT, LEFT_COLUMN, LEFT_LINK, LINK_COLUMNS = range(5)

# Columns of DEMANDS.
LAST, COLUMN, LINK, HORIZON, DEMAND_COLUMNS = range(5)

# What a new row has in a column, if it is not the weight of its event.
ZERO, ONE = -2, -1

# PROGRESS[...].
ROW, FIRST, STAGE, ASK, UPDATES, PEAK_ROWS, PEAK_COUNTERS, PROGRESS = range(8)

# Of a row: to take it, to give the values after it, to end its timestamp.
TAKING, ASKING, ENDING = range(3)

# Why the kernel returned.
ENDED, NEEDS_ROOM, NEEDS_DIGITS = range(3)

#: Starts whose snapshots are transposed at a time.
BLOCK = 16


class Program(NamedTuple):
    """Tables of counters with a row for each event that begins a segment, and how events change them.

    A *table* has the counters of segments that begin with the same events, and a *link* connects a
    segment with those before it: each row of the table on its right has a snapshot of what came
    before, by the first event of the whole match (the *start*).
    """

    columns: np.ndarray  #: int64 (tables + 1,): of ``inits``, by table
    inits: np.ndarray  #: int64 (columns,): ZERO, ONE or a row of ``Events.weights``
    horizons: np.ndarray  #: int64 (horizons, 2): table, window; first those of all tables in order
    create_spans: np.ndarray  #: int64 (symbols + 1,)
    creates: np.ndarray  #: int64: the tables that get a row
    now_spans: np.ndarray  #: int64 (symbols + 1,)
    now: np.ndarray  #: int64 (·, OPERATION_COLUMNS): done with the event
    later_spans: np.ndarray  #: int64 (symbols + 1,)
    later: np.ndarray  #: int64 (·, OPERATION_COLUMNS): done when the timestamp has ended
    orders: int  #: of ``later``, an even number
    link_spans: np.ndarray  #: int64 (tables + 1,): by the table on the right
    links: np.ndarray  #: int64 (links, LINK_COLUMNS)
    demands: np.ndarray  #: int64 (demands, DEMAND_COLUMNS): the values that can be asked for
    clears: bool  #: whether a value is of the matches that one event completes
    is_maximum: bool
    limit: float  #: of absolute values; infinite if numbers have no bounds
    zero: Any
    one: Any


class Events(NamedTuple):
    """Some events, a row each, in the order of the stream."""

    times: np.ndarray  #: int64 (rows,)
    spans: np.ndarray  #: int64 (rows + 1,): of ``symbols``
    symbols: np.ndarray  #: int64: what the event is in the program
    weights: np.ndarray  #: (weights, rows)
    ask_spans: np.ndarray  #: int64 (rows + 1,): of ``asks``
    asks: np.ndarray  #: int64: the demands whose values after the event are wanted
    counted: int  #: so many rows at the beginning have been taken before
    until: int  #: more events of this timestamp may follow


class State(NamedTuple):
    """Counters. Row ``k`` of a table is at ``k % room`` in every array, ``room`` a power of two."""

    room: int
    times: np.ndarray  #: int64 (tables, room): of the events that began the rows
    cells: np.ndarray  #: (columns, room + padding)
    lows: np.ndarray  #: int64 (horizons,): the first row that has not expired
    seen: np.ndarray  #: int64 (tables,): behind the rows before the current timestamp
    highs: np.ndarray  #: int64 (tables,): behind the last row
    bounds: np.ndarray  #: float64 (columns,): of absolute values
    largest: np.ndarray  #: float64 (1,): of the bounds that events have changed
    #: (links, room, room + padding): by row and start, the sum over this start and all later ones
    snapshots: np.ndarray
    ends: np.ndarray  #: int64 (links, room): behind the last start in a row's snapshot
    sizes: np.ndarray  #: float64 (links, room): a bound of a snapshot's absolute values
    tops: np.ndarray  #: float64 (links,): a bound of ``sizes``
    firsts: np.ndarray  #: int64 (demands,): the first row whose snapshot has an active start
    panels: (
        np.ndarray
    )  #: (demands, BLOCK, room + padding): snapshots of a block of starts, by start
    filled: np.ndarray  #: int64 (demands, 2): the block in a panel, behind its last row
    progress: np.ndarray  #: int64 (PROGRESS,)
    out: np.ndarray  #: (asks,): the values
