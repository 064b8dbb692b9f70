"""Tables of the graph of events: the pattern, and the events of the window with their counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.sase.kernels.tables import Plan

# BOUNDS[...]: of the starts, as in the spans of :mod:`cepbench.engines.sequence_counts.kernels.tables`;
# nodes without the last one; the maximum number of nodes, and of counters.
LOW, HIGH, MIDDLE, FIRST, LAST, PEAK_NODES, PEAK_COUNTERS, BOUNDS = range(8)

# PROGRESS[...].
AT, ITEM, IS_LARGE, UPDATES, PROGRESS = range(5)

#: Column of the matches by start, before those of the last event alone, and of the nodes.
MATCHES = 0


class Graph(NamedTuple):
    """A SEQ of plain and Kleene items, whose events are compared with those before them in a match."""

    begins: np.ndarray  #: int64 (items,): the flag of events that may begin an item
    takes: np.ndarray  #: int64 (items,): the flag of further elements; 0 for plain items
    prevents: np.ndarray  #: int64 (items,): flags of events that are forbidden before an item
    #: int64 (items, 3): edges of the automaton for the first event, for further elements, and for a
    #: finished set; -1 for none.
    edges: np.ndarray
    automaton: Plan  #: without the rules below
    spans: np.ndarray  #: int64 (2 * items + 1,): rules of an item's begin, and of its take
    rules: np.ndarray  #: int64 (rules, 3): column of the event, of the start, operator
    kept: np.ndarray  #: int64: the columns of an event whose values a start keeps
    window: int
    counts_window: bool  #: whether all matches in the window are wanted, not those of each event
    weighted: int  #: the item whose events have weights; -1 for none
    #: Columns of a node: 2 if the second one is that of the same histories, times the weight of one
    #: of their events; 1 if the weight of the one event of the item is a factor.
    parts: int
    zero: float  #: of the semiring, a number of the type of its tables
    one: float
    limit: int | None  #: of numbers that need more digits; None for floats
    is_maximum: bool


class State(NamedTuple):
    """The events in the window: nodes, each with the number of histories that end in it, by start."""

    bounds: np.ndarray  #: int64 (BOUNDS,)
    #: int64 (rows,): timestamps of the first events of matches; they share a row if these are equal,
    #: unless a condition reads their values.
    starts: np.ndarray
    marks: np.ndarray  #: int64 (rows,): timestamp of the latest forbidden event before each
    values: np.ndarray  #: float64 (kept, rows)
    times: np.ndarray  #: int64 (nodes,)
    previous: np.ndarray  #: int64 (nodes,): the node before of the same item; -1 for none
    ends: np.ndarray  #: int64 (nodes,): the row behind its last start
    leaves: np.ndarray  #: bool (nodes,): whether the item may end with it
    vectors: np.ndarray  #: float64 (nodes + 1, columns): V after it; the last row is working space
    heads: np.ndarray  #: int64 (items,): the latest node of each item; -1 for none
    #: int64 (items, 2): timestamps of the latest forbidden event before an item, and of the latest
    #: one at an earlier timestamp.
    barriers: np.ndarray
    #: array ((nodes + 1) * parts + 1, rows[, digits]): :data:`MATCHES`; then those of the present
    #: event, and of each node.
    cells: np.ndarray
    fits: np.ndarray  #: int64 (rows,): working space
    stack: np.ndarray  #: float64 (STACK,): working space
    found: np.ndarray  #: see :func:`~cepbench.engines.sequence_counts.kernels.numbers.add_total`
    out: np.ndarray  #: array (samples, digits): values after events
    progress: np.ndarray  #: int64 (PROGRESS,)
