"""Names of the columns in the integer tables that the join kernels share.

A plan is a binary tree of nodes. Leaves come first, one a variable; then the inner nodes, children
before parents, the root last. Every node holds rows: events at a leaf, partial matches above. Rows
are stored by column in two arenas, one of int64 (timestamps, positions) and one of float64 (what
later conditions compare); column ``c`` of a node starts at ``offset + c * capacity``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Plan(NamedTuple):
    """What a kernel knows of the plan; never written by one."""

    nodes: np.ndarray  #: int64 (nodes, NODE_COLUMNS)
    spans: np.ndarray  #: int64 (nodes, RULE_KINDS + 1)
    rules: np.ndarray  #: int64 (rules, 3)
    constants: np.ndarray  #: float64, read by programs
    window: int  #: in the unit of the timestamps


class Scratch(NamedTuple):
    """Working space, of no meaning between two calls."""

    mask: np.ndarray  #: uint8 (BLOCK,)
    chosen: np.ndarray  #: int64 (BLOCK,)
    stack: np.ndarray  #: float64 (STACK, BLOCK)
    low: np.ndarray  #: int64 (integer columns of any node, OUTER_BLOCK)
    high: np.ndarray  #: the same
    starts: np.ndarray  #: int64 (OUTER_BLOCK,)
    stops: np.ndarray  #: the same
    rectangle: np.ndarray  #: int64 (RECTANGLE,); see :mod:`cepbench.kernels.join`
    progress: np.ndarray  #: int64 (PROGRESS,); see :mod:`cepbench.kernels.advance`


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
KEPT = 9  # 1 if rows wait here for rows of the sibling that are still to come
NODE_COLUMNS = 10

# Rules of a node: RULES[SPANS[node, kind] : SPANS[node, kind + 1]], three numbers each.
COPY_INT = 0  # (side, column of the child, own column)
COPY_FLOAT = 1
BOUNDS_LEFT = 2  # (kind, column of the inner row, column of the outer row); outer is a left row
BOUNDS_RIGHT = 3  # the same where the outer row is a right row
TESTED_LEFT = 4  # (column of the inner row, -, -): bounded but not sorted; outer is a left row
TESTED_RIGHT = 5
DISTINCT = 6  # (left, right, -): integer columns that must differ
COMPARE = 7  # (left, right, operator): float columns, left operator right
PROGRAM = 8  # (opcode, argument, -): see kernels.filters
RULE_KINDS = 9

# Kinds of bounds on a column of the inner row.
AFTER = 0  # greater than the outer row's column
BEFORE = 1  # smaller than the outer row's column
SINCE = 2  # not before the outer row's column minus the window
UNTIL = 3  # not after the outer row's column plus the window

# What changes: STATE[node, ...].
INT_OFFSET = 0
FLOAT_OFFSET = 1
CAPACITY = 2
START = 3  # rows START..END are stored
END = 4
FRESH = 5  # rows FRESH..END came into being in this step
STATE_COLUMNS = 6

# What is counted: COUNTS[node, ...].
CREATED = 0  # rows that came into being
COMPARED = 1  # pairs of rows whose conditions were tested one by one
PEAK = 2  # most rows that could still be extended, at the end of a step
LIFETIME = 3  # sum over rows of the time for which they could be extended
COUNT_COLUMNS = 4

# The largest of what was stored at the end of a step: PEAKS[...].
PEAK_PARTIAL_MATCHES = 0
PEAK_EVENTS = 1
PEAK_BYTES = 2
PEAKS = 3

#: Numbers that say what is to be joined next.
RECTANGLE = 8

#: Numbers that say how far a step has come.
PROGRESS = 3

# Outcome of a run.
OK = 0
TOO_MANY = 1
NO_ROOM = 2  # only within the kernels: more room is made, and the run goes on
