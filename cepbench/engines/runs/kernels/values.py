"""Values of the matches of a graph: ends and sizes of sets, and aggregates, without the sets.

An aggregate is carried along the search, from the last event on, so that matches share the work for
the events that they end with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.runs.kernels.enumeration import (
    CRAMPED,
    ENDED,
    FULL,
    PENDING,
    WRITTEN,
    begin,
    to_event,
    wait,
)
from cepbench.engines.runs.kernels.graph import ITEM, NONE, POSITION, PREDECESSOR
from cepbench.kernels.jit import njit_in_place

# Functions of aggregates.
SUM, MIN, MAX = 0, 1, 2


class Aggregates(NamedTuple):
    """What is aggregated."""

    columns: np.ndarray  #: int64 (aggregates, 2): item and function
    values: np.ndarray  #: float64 (aggregates, events): of all events, by position


class Rows(NamedTuple):
    """Matches written."""

    firsts: np.ndarray  #: int64 (items, rows): the first position of each item
    lasts: np.ndarray  #: int64 (items, rows)
    sizes: np.ndarray  #: int64 (items, rows)
    aggregates: np.ndarray  #: float64 (aggregates, rows): NaN if a value is


@njit_in_place
def enumerate_values(graph, roots, earliest, aggregates, search, running, rows):
    """Write the values of matches until all are written or the rows are full.

    ``running``: float64 (room of the search, aggregates), scratch, which the search takes up again.

    Returns ``ENDED``, ``FULL`` or ``CRAMPED``.
    """
    nodes, mask = graph.nodes, len(graph.nodes) - 1
    while begin(graph, roots, earliest, search):
        node, depth, chosen = search.pending[search.progress[PENDING]]
        while node != NONE:
            node = to_event(graph, earliest, node, depth, chosen, search)
            if node == NONE:
                return CRAMPED
            item, position = nodes[node & mask, ITEM], nodes[node & mask, POSITION]
            if item != chosen:
                search.begins[item + 1] = depth
            search.path[depth] = position
            _carry(item, position, depth, item != chosen, aggregates, running)
            before, node = node, nodes[node & mask, PREDECESSOR]
            depth, chosen = depth + 1, item
            if node == NONE:
                search.begins[0] = depth
                if search.progress[WRITTEN] == rows.firsts.shape[1]:
                    # The first event is chosen again, its item maybe, too.
                    previous = NONE if search.begins[item + 1] == depth - 1 else item
                    wait(before, depth - 1, previous, search)
                    return FULL
                _write(depth, search, running, rows)
    return ENDED


@njit_in_place
def _carry(item, position, depth, begins, aggregates, running):
    """Add an event to the aggregates of its item."""
    for column in range(len(aggregates.columns)):
        value = aggregates.values[column, position]
        if aggregates.columns[column, 0] != item:
            if depth > 0:
                running[depth, column] = running[depth - 1, column]
            continue
        if not begins:
            before = running[depth - 1, column]
            function = aggregates.columns[column, 1]
            if function == SUM:
                value += before
            # A missing value stays, whichever comes first.
            elif value == value and (before != before or (before < value) == (function == MIN)):
                value = before
        running[depth, column] = value


@njit_in_place
def _write(depth, search, running, rows):
    """Write the match whose events have been chosen."""
    row, begins = search.progress[WRITTEN], search.begins
    for item in range(len(rows.firsts)):
        rows.firsts[item, row] = search.path[begins[item] - 1]
        rows.lasts[item, row] = search.path[begins[item + 1]]
        rows.sizes[item, row] = begins[item] - begins[item + 1]
    for column in range(len(rows.aggregates)):
        rows.aggregates[column, row] = running[depth - 1, column]
    search.progress[WRITTEN] += 1
