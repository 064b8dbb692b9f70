"""Tables of the kernel that counts the matches of several sequences at once: program, state, events."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Columns of OPERATIONS.
TABLE, TARGET, SOURCE, WEIGHT, ORDER, OPERATION_COLUMNS = range(6)

# Columns of LINKS.
LEFT, LEFT_COLUMN, LINK_COLUMNS = range(3)

# Columns of DEMANDS.
LAST, COLUMN, LINK, HORIZON, DEMAND_COLUMNS = range(5)

# What a new row has in a column, if it is not the weight of its event.
ZERO, ONE = -2, -1

# PROGRESS[...].
ROW, FIRST, STAGE, ASK, UPDATES, CREATED, READ, PRODUCTS, PEAK_ROWS, PEAK_COUNTERS, PROGRESS = (
    range(11)
)

# Of a row: to take it, to give the values after it, to end its timestamp.
TAKING, ASKING, ENDING = range(3)

# Why the kernel returned.
ENDED, NEEDS_ROOM, NEEDS_LOG, NEEDS_DIGITS = range(4)

# Columns of a log.
TO, FROM, ENTRY_ROW, LOG_COLUMNS = range(4)

# FROM, if it is no column of the lanes.
CLEARS, BEGINS = -1, -2  # TO a column; a start of that row

# TO of a new row on the right that is to keep the counts before it: from here on down, by link.
CONNECTS = -1

# Columns of REPLAYS.
BASE = 0  # the first start that is counted
FOLLOWED = 1  # behind the entries of the log that are counted
REPLAY_COLUMNS = 2

#: Lanes whose counts before a row lie together, in a cache line.
TILE = 8


class Program(NamedTuple):
    """Tables of counters with a row for each event that begins a segment, and how events change them.

    A *table* has the counters of segments that begin with the same events. What comes before the last
    segment of a query, its *left*, is counted in *lanes* from a log of what changes them: lane ``p`` has the matches
    whose first event (the *start*) is start ``BASE + p`` or a later one. A *link* connects both: each
    row of the table on its right has the counts of the lanes when the row began.
    """

    columns: np.ndarray  #: int64 (tables + 1,): of ``inits``, by table
    inits: np.ndarray  #: int64 (columns,): ZERO, ONE or a row of ``Events.weights``
    horizons: np.ndarray  #: int64 (horizons, 2): table, window; first those of all tables in order
    create_spans: np.ndarray  #: int64 (symbols + 1,)
    creates: np.ndarray  #: int64: the tables that get a row
    now_spans: np.ndarray  #: int64 (symbols + 1,)
    now: np.ndarray  #: int64 (·, OPERATION_COLUMNS): done with the event
    later_spans: np.ndarray  #: int64 (symbols + 1,)
    later: (
        np.ndarray
    )  #: int64 (·, OPERATION_COLUMNS): done when the timestamp has ended, or logged for a
    #: left, whose bitwise negation is in place of a table
    orders: int  #: of ``later``, an even number
    link_spans: np.ndarray  #: int64 (tables + 1,): by the table on the right
    links: np.ndarray  #: int64 (links, LINK_COLUMNS)
    lefts: np.ndarray  #: int64 (lefts,): the horizon of their starts
    left_columns: np.ndarray  #: int64 (lefts + 1,): of ``left_inits``, by left
    left_inits: np.ndarray  #: int64 (lanes' columns,): ZERO, ONE or a row of ``Events.weights``
    begun_spans: np.ndarray  #: int64 (tables + 1,)
    begun: np.ndarray  #: int64: the lefts whose starts are the rows of a table
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
    log_room: int  #: a power of two; entry ``k`` is at ``k % log_room``
    logs: np.ndarray  #: int64 (lefts, log_room, LOG_COLUMNS)
    log_weights: np.ndarray  #: (lefts, log_room): by what the entry is multiplied
    log_highs: np.ndarray  #: int64 (lefts,): behind the last entry
    marks: np.ndarray  #: int64 (lefts, room): the first entries of starts
    replays: np.ndarray  #: int64 (lefts, REPLAY_COLUMNS)
    lanes: np.ndarray  #: (lanes' columns, LANES)
    lane_bounds: np.ndarray  #: float64 (lanes' columns,): of absolute values
    panels: np.ndarray  #: (links, LANES / TILE, room, TILE): the counts before each row, by lane
    tops: np.ndarray  #: float64 (links,): a bound of their absolute values
    firsts: np.ndarray  #: int64 (links,): the first row of a panel; -1 if there is none
    queue: (
        np.ndarray
    )  #: int64 (·, 2): working space for the operations of a timestamp, and their events
    ends: np.ndarray  #: int64 (orders / 2 + 1,): working space
    progress: np.ndarray  #: int64 (PROGRESS,)
    out: np.ndarray  #: (asks,): the values
