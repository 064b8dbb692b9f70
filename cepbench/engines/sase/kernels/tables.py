"""Tables of the automaton engine: the compiled automaton, its runs, and the events of a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.runs.kernels.graph import UNION_NODES, MatchGraph

# Kinds of states: they wait for an item's first event, or are in the loop of a Kleene item.
SINGLE, LOOP = 0, 1

# Edges with conditions: edge ``kind`` of state ``q`` is ``EDGES * q + kind``. The forbid edges, by
# state, come after those of all states.
BEGIN, TAKE, PROCEED, EDGES = 0, 1, 2, 3

# Kinds of rules of an edge: (column of the event, column of V, operator, -), and programs of a stack
# machine, see cepbench.kernels.instructions, in which V is the left side and the event the right.
COMPARE, PROGRAM, RULE_KINDS = 0, 1, 2

# Updates of V by an event: (column of V, column of the event, operation).
SET, ADD, SET_ONE, ADD_ONE, LEAST, GREATEST = range(6)

# Columns of RUNS, by run.
STATE = 0  # -1: no run
PARTITION = 1
PREVIOUS, NEXT = 2, 3  # in the list of its table, of pending or of free runs
CHAIN, BUCKET = 4, 5  # the next run of its bucket, and the bucket; -1 for none
LATEST = 6  # timestamp of its youngest start
LAST = 7  # timestamp of its last event
LOW, HIGH = 8, 9  # ordinals of the oldest start, and behind the youngest one
BLOCK, SIZE = 10, 11  # its cells, a power of two of them; 0 for none
NODE = 12  # its histories in the match graph
WAITS = 13  # 1 if it is in the list of runs to be merged when time has passed
WAITS_BEFORE = 14  # the next run in that list
IS_LINKED = 15
DOOMED = 16  # timestamp of a forbidden event, later than which it does not go on; else NEVER
RUN_COLUMNS = 17

# COUNTERS[...].
FREE_RUN, FREE_RUNS, FREE_PARTITION, TOP_CELL, WAITING, WIDENS, ROOTS, COUNTERS = range(8)

#: Nodes of the match graph that a step may create: two events and two unions.
NODES_A_STEP = 2 + 2 * UNION_NODES

# TALLIES[...].
STARTED, SPLIT, MERGED, VISITED, PEAK_RUNS, REPROCESSED, FOUND = range(7)
EVALUATED, WRITTEN, TALLIES = range(7, 10)  # edges, and events selected into the graph

# The moves of a run that is apart: a loop's proceed and the next state's begin; a begin or take at
# the state itself; ignore.
LEAVES, OWN, STAYS = 1, 2, 4

# PROGRESS[...]: where a batch is interrupted for lack of room.
AT, PHASE, CURRENT, AT_STATE, AT_RUN, PENDING, PROGRESS = range(7)
# Values of PHASE.
ARRIVES, VISITS, STARTS = range(3)

# Columns of PARTITIONS.
OF_RUNS = 0  # number of its runs; -1: no partition
NEXT_START = 1  # ordinal
OLDEST = 2  # no run has an older start
NEXT_PARTITION = 3  # in its bucket, or in the list of free ones
PARTITION_COLUMNS = 4

# Columns of HEADS, by table: its first run; of an item that is no set, a timestamp and the first run behind
# those whose last events had it when they were entered.
FIRST, SINCE, EARLIER, HEADS = range(4)


class Plan(NamedTuple):
    """A compiled automaton; ``states`` is the number of the final state."""

    states: int
    kinds: np.ndarray  #: int64 (states,)
    targets: np.ndarray  #: int64 (states,): where begin leads, from a loop where take leads
    items: np.ndarray  #: int64 (states,): the item of the match that it binds
    accepts: np.ndarray  #: int64 (states + 1,): 1 for a loop behind which the pattern ends
    unites: np.ndarray  #: bool (states,): runs that leave it are equivalent, see advance.py
    bits: np.ndarray  #: int64 (edges,): the flag of events that pass by themselves
    relevant: np.ndarray  #: int64 (states,): flags of the events that concern runs of a state
    forbidden: np.ndarray  #: int64 (states,): flags of the events that pass its forbid edges
    forbid_spans: np.ndarray  #: int64 (states + 1,)
    spans: np.ndarray  #: int64 (edges, RULE_KINDS + 1)
    rules: np.ndarray  #: int64 (rules, RULE_COLUMNS)
    constants: np.ndarray  #: float64
    update_spans: np.ndarray  #: int64 (edges + 1,)
    updates: np.ndarray  #: int64 (updates, 3)
    masked_spans: np.ndarray  #: int64 (states + 1,): the columns of V that matter from a state on
    masked: np.ndarray  #: int64
    keys: np.ndarray  #: int64: columns of events by which runs are partitioned
    window: int
    ignores: bool  #: whether an event that a run takes may be ignored too: skip-till-any-match
    dies: bool  #: whether a run ends at an event that it does not take: contiguity
    counts: bool  #: whether matches have no graph, but are counted by start
    reports: bool  #: whether matches are more than counted: as roots of the graph, or as values
    returned: np.ndarray  #: int64: the columns of V that are the values of a match without a graph


class Events(NamedTuple):
    """A batch of events."""

    rows: np.ndarray  #: int64: those that concern the automaton
    times: np.ndarray  #: int64 (n,)
    flags: np.ndarray  #: int64 (n,)
    values: np.ndarray  #: float64 (columns, n)
    first: int  #: position of row 0


class State(NamedTuple):
    """Runs, and what they share."""

    runs: np.ndarray  #: int64 (capacity, RUN_COLUMNS)
    vectors: np.ndarray  #: float64 (capacity + 1, columns): V; the last row is working space
    heads: np.ndarray  #: int64 (partitions, states, HEADS): of each table
    buckets: np.ndarray  #: int64: the first run of each bucket of V, a power of two
    partitions: np.ndarray  #: int64 (partitions, PARTITION_COLUMNS)
    keys: np.ndarray  #: float64 (partitions, keys)
    partition_buckets: np.ndarray  #: int64: a power of two
    cells: np.ndarray  #: int64 (cells, digits): histories by start
    cell_times: np.ndarray  #: int64 (cells,): timestamps of starts
    totals: np.ndarray  #: int64 (capacity, digits): histories of a run
    free_cells: np.ndarray  #: int64 (classes,): first free block of each power of two
    found: np.ndarray  #: int64 (digits,): matches
    counters: np.ndarray  #: int64 (COUNTERS,)
    tallies: np.ndarray  #: int64 (TALLIES,)
    profile: np.ndarray  #: float64 (states or 0, PROFILE_COLUMNS)
    progress: np.ndarray  #: int64 (PROGRESS,)
    stack: np.ndarray  #: float64 (STACK,)
    graph: MatchGraph  #: histories, if matches are reported
    #: int64 (2, roots): nodes of matches, or numbers of equal ones; positions of last events
    roots: np.ndarray
    values: np.ndarray  #: float64 (returned columns, roots)
