"""Counts of what comes before the last segments of sequences, from each of several starts on.

What the events of these items do is kept in logs. When the value after an event is asked for, the lanes
follow the log, and each new row on the right keeps their counts; when the first active start is behind
all lanes, they follow the log anew from this start on. So each entry of the log changes LANES counters
at once, instead of one for each active start; nothing is subtracted; and a value is a product of
two columns.

Source: the snapshots of Chop-Connect [qi2014]_, section 4.2.

Differs from the paper: it keeps counters by start, of which each row on the right has a copy.
Segments that come before the last one are counted as one (Figure 11 connects them).
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.aggregation.kernels.shared_counts import tables
from cepbench.kernels.counts import LANES
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def has_log_room(program, state, number):
    """Whether each log has room for so many entries."""
    for left in range(len(program.lefts)):
        horizon = program.lefts[left]
        low, seen = state.lows[horizon], state.seen[program.horizons[horizon, 0]]
        if low < seen:
            first = state.marks[left, low & (state.room - 1)]
            if state.log_highs[left] - first + number > state.log_room:
                return False
    return True


@njit_in_place
def log(state, left, target, source, row, weight):
    """Add an entry to a log; see TO and FROM. ``row`` is one that begins."""
    at = state.log_highs[left] & (state.log_room - 1)
    state.logs[left, at, tables.TO], state.logs[left, at, tables.FROM] = target, source
    state.logs[left, at, tables.ENTRY_ROW] = row
    state.log_weights[left, at] = weight
    state.log_highs[left] += 1


@njit_in_place
def follow(program, state, left):
    """Let lanes, whose starts include the first active one, follow the log.

    There is an active start before the current timestamp. Returns False if a number may become too
    large; then the lanes have to begin again.
    """
    _begin_again_if_due(program, state, left)
    replay, logs, mask = state.replays[left], state.logs[left], state.log_room - 1
    base = replay[tables.BASE]
    for entry in range(replay[tables.FOLLOWED], state.log_highs[left]):
        at = entry & mask
        target, source, row = logs[at, tables.TO], logs[at, tables.FROM], logs[at, tables.ENTRY_ROW]
        if target <= tables.CONNECTS:
            _connect(program, state, tables.CONNECTS - target, row)
        elif source == tables.CLEARS:
            _clear(program, state, target)
        else:
            weight = state.log_weights[left, at]
            if not _stays_bounded(program, state, left, target, source, weight):
                replay[tables.BASE] = -LANES
                return False
            state.progress[tables.UPDATES] += LANES
            if source == tables.BEGINS:
                _begin(program, state, target, min(row - base + 1, LANES), weight)
            else:
                add_column(program, state.lanes, target, source, 0, LANES, weight)
    replay[tables.FOLLOWED] = state.log_highs[left]
    return True


@njit_in_place
def _begin_again_if_due(program, state, left):
    replay, low = state.replays[left], state.lows[program.lefts[left]]
    mark = state.marks[left, low & (state.room - 1)]
    if low < replay[tables.BASE] + LANES and replay[tables.FOLLOWED] >= mark:
        return
    replay[tables.BASE], replay[tables.FOLLOWED] = low, mark
    for column in range(program.left_columns[left], program.left_columns[left + 1]):
        _clear(program, state, column)
    for link in range(len(program.links)):
        if program.links[link, tables.LEFT] == left:
            state.firsts[link], state.tops[link] = -1, 0.0


@njit_in_place
def _connect(program, state, link, row):
    """Keep for a row on the right what came before."""
    column, slot = program.links[link, tables.LEFT_COLUMN], row & (state.room - 1)
    for tile in range(LANES // tables.TILE):
        for lane in range(tables.TILE):
            state.panels[link, tile, slot, lane] = state.lanes[column, tile * tables.TILE + lane]
    state.tops[link] = max(state.tops[link], state.lane_bounds[column])
    if state.firsts[link] < 0:
        state.firsts[link] = row
    state.progress[tables.UPDATES] += LANES


@njit_in_place
def _clear(program, state, column):
    state.lane_bounds[column] = 0.0
    for lane in range(LANES):
        state.lanes[column, lane] = program.zero


@njit_in_place
def _begin(program, state, column, number, weight):
    """Add a start to its lane and all before."""
    lanes = state.lanes
    if number == LANES and not program.is_maximum:
        for lane in range(LANES):
            lanes[column, lane] += weight
        return
    for lane in range(number):
        if program.is_maximum:
            lanes[column, lane] = max(lanes[column, lane], weight)
        else:
            lanes[column, lane] += weight


@njit_in_place
def add_column(program, cells, target, source, first, last, weight):
    """Add some rows of a column, times a weight, to a column."""
    if program.is_maximum:
        for row in range(first, last):
            if cells[source, row] != program.zero:
                cells[target, row] = max(cells[target, row], cells[source, row], weight)
    elif weight == 1:
        for row in range(np.uint64(first), np.uint64(last)):
            cells[target, row] += cells[source, row]
    else:
        for row in range(np.uint64(first), np.uint64(last)):
            if cells[source, row] != 0:  # infinite weights
                cells[target, row] += cells[source, row] * weight


@njit_in_place
def _stays_bounded(program, state, left, target, source, weight):
    """Whether a column stays small if a start or another column, times a weight, is added to it."""
    if program.limit == np.inf:
        return True
    bounds, size = state.lane_bounds, abs(np.float64(weight))
    for _ in range(2):
        bound = bounds[target] + (size if source == tables.BEGINS else bounds[source] * size)
        if bound <= program.limit:
            bounds[target] = bound
            return True
        for column in range(program.left_columns[left], program.left_columns[left + 1]):
            bounds[column] = 0.0
            for lane in range(LANES):
                bounds[column] = max(bounds[column], abs(np.float64(state.lanes[column, lane])))
    return False
