"""Columns of the integer tables of the instance-based engines.

A plan is a tree of nodes, or for branches that consume each other's events several trees. Leaves
come first, one per variable; leaf ``v`` is variable ``v``. Inner nodes follow, children before
parents. Behind the nodes, checks say how an instance is tested against the events of a negated
variable.

An event is stored once, in a ring, and referred to by its ordinal: ``ordinal & (capacity - 1)`` is
its row. Ordinals ascend with positions. Each leaf has a ring of the ordinals of its events, its
buffer. An instance is a record of an inner node: the ordinals of its first and last event, then for
each variable of the node the ordinal of its event. For a Kleene variable it is the ordinal of a
cell: a member, and the cell of the set without that member, so that sets share their prefixes.

Kernels take ``first`` and ``last``, the ordinals of an instance's first and last event; ``limit`` is
how many instances may be stored, and ``reports`` whether matches are written or only counted:
their positions to ``matches``, int64 (columns, capacity), those in sets to ``members``, int64
(capacity,), which is empty if matches have none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Plan(NamedTuple):
    """A plan as kernels read it; no kernel writes into it."""

    nodes: np.ndarray  #: int64 (nodes, NODE_COLUMNS)
    spans: np.ndarray  #: int64 (nodes + checks, RULE_KINDS + 1)
    rules: np.ndarray  #: int64 (rules, RULE_COLUMNS)
    constants: np.ndarray  #: float64, read by programs
    window: int  #: in the unit of the timestamps
    lifetime_shift: int  #: of the window; see :mod:`cepbench.kernels.counts`
    leaves: int  #: how many leaves there are; the others are inner nodes
    retained: int  #: for how many windows events are stored
    late: bool  #: whether matches are deferred, as a negated event may follow all others
    consuming: bool  #: whether an event may be in one match only


class State(NamedTuple):
    """The events, buffers and instances of a run, and its counts.

    Kernels write into the arrays; a full array is replaced by a larger one.
    """

    events: np.ndarray  #: int64 (capacity, EVENT_COLUMNS), a ring by ordinal
    values: np.ndarray  #: float64 (capacity, columns), what conditions read of each event
    expiring: np.ndarray  #: int64 (capacity, nodes): instances whose first event this is
    buffers: np.ndarray  #: int64 (leaves, capacity), rings of ordinals by row
    chosen: np.ndarray  #: int64 (2, capacity), working space: the members of two sets
    arena: np.ndarray  #: int64 (size,), the records of all inner nodes
    cells: np.ndarray  #: int64 (capacity, CELL_COLUMNS), a ring by ordinal
    lists: np.ndarray  #: int64 (nodes, LIST_COLUMNS), where the rows of each node are
    counts: np.ndarray  #: int64 (nodes, COUNT_COLUMNS); see :mod:`cepbench.kernels.counts`
    peaks: np.ndarray  #: int64 (PEAKS,); see the same
    totals: np.ndarray  #: int64 (TOTALS,)


class Batch(NamedTuple):
    """The events of a batch that are bound to at least one leaf."""

    events: np.ndarray  #: int64 (2, events): timestamps, positions
    values: np.ndarray  #: float64 (events, columns)
    starts: np.ndarray  #: int64 (events + 1,), offsets in ``leaves``
    leaves: np.ndarray  #: int64, the leaves of each event


class Scratch(NamedTuple):
    """Working space, without meaning between two batches."""

    progress: np.ndarray  #: int64 (PROGRESS,), the progress within a batch
    bound: np.ndarray  #: int64 (leaves,), the variables of a candidate
    best: np.ndarray  #: int64 (leaves,), those of the best candidate under consuming
    stack: np.ndarray  #: float64 (STACK,)
    slots: (
        np.ndarray
    )  #: int64 (2, SLOT_COLUMNS); see :mod:`cepbench.engines.instances.kernels.conditions`
    clock: np.ndarray  #: int64 (2,), where the system's clock writes
    latencies: np.ndarray  #: int64; see :mod:`cepbench.kernels.clock`; empty: not measured


# The plan: NODES[node, ...]. Numbers of nodes are -1 where absent.
LEFT = 0  # of an inner node; the leaf of a Kleene variable is on the right, maybe without a left
RIGHT = 1
WIDTH = 2  # of a record
LEFT_DRIVES = 3  # 1 if a row of the left child can hold the last event
RIGHT_DRIVES = 4
MAKES = 5  # the Kleene variable whose sets are made here, or -1
IS_ROOT = 6
IS_STORED = 7  # 0 for a root whose instances are reported at once
FIRST_CHECK = 8  # FIRST_CHECK … LAST_CHECK - 1 test a new instance,
LAST_CHECK = 9
LAST_LATE = 10  # and LAST_CHECK … LAST_LATE - 1 a deferred match
BRANCH = 11  # of a root: what to write in the first column of its matches, or -1 for nothing
RETAINED = 12  # of a leaf: for how many windows its events are buffered
IS_NEGATED = 13  # of a leaf
IS_ORDERED = 14  # whether each variable of one child is earlier or later than each of the other
NODE_COLUMNS = 15

# Rules: RULES[SPANS[owner, kind] : SPANS[owner, kind + 1]], the owner being a node or a check.
SLOTS = 0  # (variable, 1 if a set, column of the matches, -): of a record; of a root as written
ORDER = 1  # (x, 1 if a set, y, 1 if a set): x is earlier than y
DISTINCT = 2  # the same: x and y have no event in common
COMPARE = 3  # (x, y, operator, -): values of events, encoded, see VALUE
CLAUSES = 4  # all other conditions on single events
STEP = 5  # clauses on the newest member of a set and those before it
ROW = 6  # clauses on a new instance
RULE_KINDS = 7

#: A value of a variable's event as one number: ``variable * VALUE + column``.
VALUE = 1 << 16

# Events: EVENTS[row, ...].
TIME = 0
POSITION = 1
USED = 2  # 1 for a consumed event
CELLS = 3  # the ordinal of the next cell when it arrived
EVENT_COLUMNS = 4

# Records: the first columns of each; the variables follow.
FIRST = 0
LAST = 1
PASSES = 2  # 0 for an instance that is no partial match yet, but whose set may grow
VARIABLES = 3

# Cells: CELLS[row, ...].
MEMBER = 0  # the ordinal of an event
BEFORE = 1  # the cell of the set without it, or -1
OLDEST = 2  # the ordinal of the set's first event
SIZE = 3  # of the set
CELL_COLUMNS = 4

# Rows of a node, those of a leaf being a ring: LISTS[node, ...].
OFFSET = 0  # in the arena
CAPACITY = 1
START = 2  # rows START..END are stored
END = 3
FRESH = 4  # rows FRESH..END contain the event that has just arrived
LIVE = 5  # how many are within the window
SOONEST = 6  # of deferred matches: the smallest ordinal of any first event
SINCE = 7  # only rows SINCE..END have a last event of the latest timestamp
LIST_COLUMNS = 8

# TOTALS[...].
NOW = 0  # the timestamp of the latest event
FIRST_EVENT = 1  # ordinals FIRST_EVENT..NEXT_EVENT are stored
NEXT_EVENT = 2
FIRST_LIVE = 3  # the first event within the window
FIRST_CELL = 4
NEXT_CELL = 5
INSTANCES = 6  # within the window, of all inner nodes
BUFFERED = 7  # events in all buffers
TOTALS = 8

# The progress within a batch: PROGRESS[...].
AT_EVENT = 0  # the current event
AT_NODE = 1  # -1 before the event has been stored
PHASE = 2
OUTER = 3  # the current row, or -1
INNER = 4
REPORTED = 5  # matches in the current chunk,
MEMBERS = 6  # and positions of their sets
BEST = 7  # the root of the best candidate under consuming, or -1
ARRIVED = 8  # when the event arrived, by the system's clock
PROGRESS = 9

# Outcomes of a run. After NO_… the array is enlarged, and the run resumes.
OK = 0
TOO_MANY = 1
NO_EVENTS = 2
NO_INSTANCES = 3  # at node AT_NODE
NO_CELLS = 4
NO_MATCHES = 5
