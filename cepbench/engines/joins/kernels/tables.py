"""The tables of the join kernels, and names of their integer columns.

A plan is a tree of nodes. Leaves come first, one per variable, negated ones after the others; then
checks, which have no rows but define how rows of one node are tested against the events of a
negated variable; then the inner nodes, children before parents, the root last. If branches of an OR
consume each other's events, their trees are one plan, each with its root after its other inner
nodes. Every node holds rows: events at a leaf, partial matches above. Rows are stored by column in
two arenas, one of int64 (timestamps, positions) and one of float64 (what later conditions compare);
column ``c`` of a node starts at ``offset + c * capacity``.

A set of a Kleene variable is two integer columns, the start of its members in the pool and their
number, in the order of their positions. The pool has a row for the ordinals of members, which
identify the event at the leaf (its row is the ordinal minus ``SHIFT`` of the leaf), and one for
their positions.

Kernels take a ``node`` and the ``side`` of its outer rows, 0 for the left child and 1 for the right
one; ``outers`` of these from ``first`` on are a block, and ``row`` is the place of the row ``outer``.
``counting`` says whether rows are counted instead of stored, which only those of the root are;
``limit`` is how many may be stored; ``matches`` is int64 (columns of a match, capacity).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.kernels.jit import njit_in_place


class Plan(NamedTuple):
    """A plan as arrays; read-only for kernels."""

    nodes: np.ndarray  #: int64 (nodes, NODE_COLUMNS)
    spans: np.ndarray  #: int64 (nodes, RULE_KINDS + 1)
    rules: np.ndarray  #: int64 (rules, RULE_COLUMNS)
    constants: np.ndarray  #: float64, read by programs
    window: int  #: in the unit of the timestamps
    lifetime_shift: int  #: of the window; see :mod:`cepbench.kernels.counts`
    inner: int  #: number of the first inner node; leaves and checks come before it
    stored: bool  #: whether rows of the root are stored before they are emitted
    waits: int  #: WAITS_NOT, WAITS_EARLIEST or WAITS_LATEST
    late_first: int  #: checks from here on are those of rows that have waited
    late_last: int
    consuming: bool  #: whether an event may be in one match only; roots are stored then


class NodeState(NamedTuple):
    """Rows stored at the nodes of a plan, and counters.

    Kernels write into the arrays; more capacity for rows or members means new arenas or a new pool.
    """

    rows: np.ndarray  #: int64 (nodes, STATE_COLUMNS), the location of the rows of each node
    counts: np.ndarray  #: int64 (nodes, COUNT_COLUMNS)
    peaks: np.ndarray  #: int64 (PEAKS,)
    ints: np.ndarray  #: int64 (size,), arena of all nodes' integer columns
    floats: np.ndarray  #: float64 (size,), arena of all nodes' float columns
    members: np.ndarray  #: int64 (2, capacity), pool of the members of sets
    used: np.ndarray  #: int64 (1,), used length of the pool


class Batch(NamedTuple):
    """A batch of events: those that each leaf takes, in order of arrival."""

    #: int64 (2 or more, m), leaf after leaf: timestamps, positions, what is known of partitions.
    events: np.ndarray
    starts: np.ndarray  #: int64 (leaves + 1,), where each leaf's events start
    values: np.ndarray  #: float64 (columns, m), undefined where a leaf has fewer columns


class Pace(NamedTuple):
    """How events are divided into steps; see :mod:`cepbench.engines.joins.kernels.steps`."""

    length: int  #: of a moment, in the unit of the timestamps, at least 1
    most: int  #: moments in a step
    enough: int  #: events in a step from which no further moment is added
    cap: int  #: maximum number of events in a step, consecutive by position; 0 for no limit
    watched: bool  #: whether to measure the time spent in each node


class Extras(NamedTuple):
    """Working space of sets, checks and stored roots."""

    slots: np.ndarray  #: int64 (slots, SLOT_COLUMNS); see `clauses`
    values: np.ndarray  #: float64 (STACK,), the stack of a program over a single row
    alive: np.ndarray  #: uint8 (OUTER_BLOCK,), which rows pass all checks


class Scratch(NamedTuple):
    """Working space; its contents are undefined between calls."""

    mask: np.ndarray  #: uint8 (BLOCK,)
    chosen: np.ndarray  #: int64 (BLOCK,)
    stack: np.ndarray  #: float64 (STACK, BLOCK)
    low: np.ndarray  #: int64 (integer columns of any node, OUTER_BLOCK)
    high: np.ndarray  #: the same
    starts: np.ndarray  #: int64 (OUTER_BLOCK,)
    stops: np.ndarray  #: the same
    outer_of: np.ndarray  #: int64 (MOST_PAIRS,); see :mod:`cepbench.engines.joins.kernels.pairs`
    inner_of: np.ndarray  #: the same
    guide: np.ndarray  #: int64 (GUIDE + 1,), index of a sorted column
    rectangle: np.ndarray  #: int64 (RECTANGLE,), the rows being joined
    progress: np.ndarray  #: int64 (PROGRESS,); see :mod:`cepbench.engines.joins.kernels.advance`
    clock: np.ndarray  #: int64 (2,), buffer of the system's clock
    latencies: np.ndarray  #: int64; see :mod:`cepbench.kernels.clock`; empty: not measured
    heads: np.ndarray  #: int64 (INDEXED,); see :mod:`cepbench.engines.joins.kernels.equality`
    chain: np.ndarray  #: the same
    extremes: np.ndarray  #: float64 (BLOCKS,); see :mod:`cepbench.engines.joins.kernels.blocks`
    moments: (
        np.ndarray
    )  #: int64 (moments of a step,); see :mod:`cepbench.engines.joins.kernels.advance`
    live: np.ndarray  #: int64 (2, moments of a step): events and partial matches at each moment
    before: np.ndarray  #: int64 (nodes, COUNT_COLUMNS), the counts before the step
    ahead: np.ndarray  #: int64 (leaves,), the first event of each leaf that is not of this step
    due: np.ndarray  #: int64 (leaves,), its timestamp
    #: None for a plan without sets, checks and stored roots: kernels are compiled for it without
    #: the code that these need, which takes most of the time.
    extras: Extras | None


# The plan: NODES[node, ...], never written by a kernel. Column numbers are -1 where absent.
LEFT = 0  # child nodes; -1 for a leaf
RIGHT = 1
INTS = 2  # number of integer columns
FLOATS = 3  # number of float columns
EARLIEST = 4  # integer column with the smallest timestamp of the row
LATEST = 5  # the same for the largest timestamp
SORTED = 6  # 1 if rows are stored in order of their largest timestamp
LEFT_DRIVES = 7  # 1 if a row of the left child can hold the last event of a joined row
RIGHT_DRIVES = 8
KEPT = 9  # 1 if rows are stored for later rows of the sibling
RETAINED = 10  # number of windows for which a leaf's events are stored
KIND = 11  # JOINS or SETS
SET = 12  # of a node that makes sets: its columns for the start and (next) the size of the set,
# or -1; at a root that is not stored they are columns of the matches
SET_EARLIEST = 13  # and those for the earliest and latest timestamp of the set, or -1
SET_LATEST = 14
SET_LIMIT = 15  # maximum number of members of a set, or 0 for no limit
SET_STEP = 16  # column of the leaf whose values must be neighbours in a set, or -1
SET_RUN = 17  # what is known of these values, a sum of ALONE, BEGINS, ENDS
SET_ENDS = 18  # of a node that makes sets: its columns for the values of the first and (next) the
# last event of a set, or -1
FIRST_CHECK = 19  # FIRST_CHECK … LAST_CHECK - 1 are the checks of a new row
LAST_CHECK = 20
IS_ROOT = 21  # 1 for a root: its rows are matches
BRANCH = 22  # of a root: the value of the first column of its matches, or -1 for none
NODE_COLUMNS = 23

# The events that fit a row have different values, in ascending order; the first one of a set has the
# lower bound of them; the last one has the last value below the upper bound.
ALONE, BEGINS, ENDS = 1, 2, 4

# Kinds of inner nodes.
JOINS = 0  # rows of both children, pair by pair
SETS = 1  # a row of the left child (or none, if that is -1) and a set of events of the right one

# When rows of the root may be emitted.
WAITS_NOT = 0
WAITS_EARLIEST = 1  # when the window of their earliest event has passed
WAITS_LATEST = 2  # when the window of their latest event has passed

# Rules of a node: RULES[SPANS[node, kind] : SPANS[node, kind + 1]], four numbers each.
COPY_INT = 0  # (side, column of the child, own column, -)
COPY_FLOAT = 1
BOUNDS_LEFT = 2  # (LOWER or UPPER, column of the inner row, column of the outer row, shift):
# inner >= outer + shift, or inner < outer + shift; the outer row is a left row, or with the next
# number a right one
TESTED_LEFT = 4  # (column of the inner row, -, -, -): bounded, not sorted; the next number as above
DISTINCT = 6  # (left, right, -, -): integer columns that must differ
COMPARE = 7  # (left, right, operator, -): float columns, left operator right
PROGRAM = 8  # (opcode, argument, -, -): see kernels.filters
STEP = 9  # clauses on neighbours in the set under construction: see kernels.sets
ROW = 10  # clauses on a new row: see kernels.sets
OUTPUT = 11  # (own column, column of the matches, -, -), of a root that is stored
POSITIONS = 12  # (column, 0) of positions, (start column, 1) of sets: what is consumed, at a root
# in the order in which matches compare; (column, 2) of the events of which sets are made
LOOKUP_LEFT = (
    13  # (column of the inner row, column of the outer row, shift, -), at most one: the only
)
# inner row that can join is that with inner == outer + shift; its column is ascending, without
# equal values; the next number as above
RANKS = 15  # (left, right, shift, -), at most one: integer columns with left + shift == right; or, as -1
# and -1, that the bounds leave so few rows that no index is worth making
RULE_KINDS = 16

LOWER = 0
UPPER = 1

# Location of rows: ROWS[node, ...] of a NodeState.
INT_OFFSET = 0
FLOAT_OFFSET = 1
CAPACITY = 2
START = 3  # rows START..END are stored
END = 4
FRESH = 5  # rows FRESH..END were created in this step
SHIFT = 6  # of a leaf: the ordinal of its row 0
DUE = 7  # of a root that is stored: the number of rows from START to be decided in this step,
GIVEN = 8  # and the number of these, the first ones, that are matches
STATE_COLUMNS = 9

# A rectangle of pairs to be joined, and its progress: RECTANGLE[...].
TURN = 0  # child whose fresh rows drive: 0 left, 1 right; -1 for none yet
FOUND = 1  # number of rows for which there was no room
SIDE = 2  # of the outer rows: 0 the left child, 1 the right one
OUTER = 3  # the next outer row
OUTER_LAST = 4
INNER_FIRST = 5
INNER_LAST = 6
INNER = 7  # the next inner row of that outer row, or -1 for the first in its range
RECTANGLE = 8

#: Length of PROGRESS.
PROGRESS = 6

# Outcome of a run.
OK = 0
TOO_MANY = 1
TOO_LARGE = 2  # more sets than can be counted
NO_ROOM = 3  # only within the kernels: more room is made, and the run resumes
NO_MEMBERS = 4  # the same for the pool of members
TOO_MANY_MEMBERS = 5  # of sets that are stored


@njit_in_place
def int_column(node, column, state):
    """The start of a column of a node in ``state.ints``."""
    return state.rows[node, INT_OFFSET] + column * state.rows[node, CAPACITY]


@njit_in_place
def float_column(node, column, state):
    """The start of a column of a node in ``state.floats``."""
    return state.rows[node, FLOAT_OFFSET] + column * state.rows[node, CAPACITY]


@njit_in_place
def rules_of(node, kind, plan):
    """The numbers of a node's rules of a kind."""
    return range(plan.spans[node, kind], plan.spans[node, kind + 1])
