"""Counts of what comes before the last segments of sequences, from each of several starts on.

The events of these items are kept in logs. When the value after an event is asked for, the lanes
follow the log up to this event, and each new row on the right keeps their counts; when the first
active start is behind all lanes, they follow the log anew from this start on. So an event of the log
changes LANES counters, all at once, each time, instead of one for each active start; nothing is
subtracted; and a value is a product of two columns.

Source: the snapshots of Chop-Connect [qi2014]_, section 4.2.

Differs from the paper: it keeps counters by start, of which each row on the right has a copy.
Segments that come before the last one are counted as one (Figure 11 connects them).
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.shared_counts.tables import (
    APPLIED,
    BASE,
    BEGUN,
    CONNECTED,
    CONNECTS,
    ENTRY,
    ENTRY_ROW,
    EVENT,
    EVENTS,
    LANES,
    LEFT,
    LEFT_COLUMN,
    ONE,
    ORDER,
    SOURCE,
    STARTS,
    TARGET,
    TIME,
    UPDATES,
    WEIGHT,
)


@njit_in_place
def has_log_room(program, state, number):
    """Whether each log has room for so many entries."""
    for left in range(len(program.lefts)):
        horizon = program.lefts[left]
        low, high = state.lows[horizon], state.highs[program.horizons[horizon, 0]]
        if low < high:
            first = state.marks[left, low & (state.room - 1)]
            if state.log_highs[left] - first + number > state.log_room:
                return False
    return True


@njit_in_place
def log(program, state, events, left, entry, number, row):
    """Add an entry for an event to a log.

    Parameters
    ----------
    program, state, events : Program, State, Events
    left : int
    entry : int
        A symbol, STARTS, or CONNECTS minus a link.
    number : int
        The new row on the right.
    row : int
        Of the event.
    """
    at = state.log_highs[left] & (state.log_room - 1)
    state.logs[left, TIME, at] = events.times[row]
    state.logs[left, EVENT, at] = state.progress[EVENTS]
    state.logs[left, ENTRY, at] = entry
    state.logs[left, ENTRY_ROW, at] = number
    for weight in range(state.log_weights.shape[1]):
        state.log_weights[left, weight, at] = events.weights[weight, row]
    state.log_highs[left] += 1


@njit_in_place
def follow(program, state, left, now):
    """Let lanes, whose starts include the first active one, follow the log up to a time.

    Parameters
    ----------
    program, state : Program, State
    left : int
        There is an active start.
    now : int

    Returns
    -------
    bool
        False if a number may become too large; then the lanes have to begin again.
    """
    replay, logs, mask = state.replays[left], state.logs[left], state.log_room - 1
    _begin_again_if_due(program, state, left)
    high, first = state.log_highs[left], replay[APPLIED]
    while first < high:
        time, last = logs[TIME, first & mask], first + 1
        while last < high and logs[TIME, last & mask] == time:
            last += 1
        for at in range(max(first, replay[CONNECTED]), last):
            if logs[ENTRY, at & mask] <= CONNECTS:
                _connect(
                    program, state, CONNECTS - logs[ENTRY, at & mask], logs[ENTRY_ROW, at & mask]
                )
        replay[CONNECTED] = last
        if time >= now:
            break
        if not _apply(program, state, left, first, last):
            replay[BASE] = replay[BEGUN] = -LANES
            return False
        replay[APPLIED] = first = last
    return True


@njit_in_place
def _begin_again_if_due(program, state, left):
    replay, low = state.replays[left], state.lows[program.lefts[left]]
    mark = state.marks[left, low & (state.room - 1)]
    if low < replay[BASE] + LANES and replay[APPLIED] >= mark:
        return
    replay[BASE] = replay[BEGUN] = low
    replay[APPLIED] = replay[CONNECTED] = mark
    for column in range(program.left_columns[left], program.left_columns[left + 1]):
        state.lane_bounds[column] = 0.0
        for lane in range(LANES):
            state.lanes[column, lane] = program.zero
    for link in range(len(program.links)):
        if program.links[link, LEFT] == left:
            state.firsts[link], state.tops[link] = -1, 0.0


@njit_in_place
def _connect(program, state, link, row):
    """Keep for a row on the right what came before."""
    column, slot = program.links[link, LEFT_COLUMN], row & (state.room - 1)
    for lane in range(LANES):
        state.panels[link, lane, slot] = state.lanes[column, lane]
    state.tops[link] = max(state.tops[link], state.lane_bounds[column])
    if state.firsts[link] < 0:
        state.firsts[link] = row
    state.progress[UPDATES] += LANES


@njit_in_place
def _apply(program, state, left, first, last):
    """Change the lanes by the entries of a timestamp; False if a number may become too large."""
    logs, mask = state.logs[left], state.log_room - 1
    spans, later = program.left_spans, program.left_later
    offset = left * (len(program.heard_spans) - 1)
    if last - first == 1:
        entry = logs[ENTRY, first & mask]
        if entry >= 0:
            for place in range(spans[offset + entry], spans[offset + entry + 1]):
                if not _add(program, state, left, place, first):
                    return False
        elif entry == STARTS:
            _start(program, state, left, first)
        return True
    # From behind, and then in the order of positions.
    order = -2
    while order < program.orders:
        following, begin = program.orders, first
        while begin < last:
            end = begin + 1
            while end < last and logs[EVENT, end & mask] == logs[EVENT, begin & mask]:
                end += 1
            halves = min(end - begin, 2)
            for half in range(halves):
                for at in range(begin, end):
                    entry = logs[ENTRY, at & mask]
                    if entry < 0:
                        continue
                    for place in range(spans[offset + entry], spans[offset + entry + 1]):
                        behind = later[place, ORDER] - order
                        if behind > 1:
                            following = min(following, order + behind - behind % 2)
                            break
                        if (behind == half or (behind == 1 and halves == 1)) and not _add(
                            program, state, left, place, at
                        ):
                            return False
            for at in range(begin, end):
                if logs[ENTRY, at & mask] == STARTS:
                    if order == program.orders - 2:
                        # Further elements of a set at the beginning.
                        _start(program, state, left, at)
                    else:
                        following = min(following, program.orders - 2)
            begin = end
        order = following
    return True


@njit_in_place
def _start(program, state, left, at):
    """Add a start to its lane and all before."""
    replay, lanes = state.replays[left], state.lanes
    number = min(replay[BEGUN] - replay[BASE] + 1, LANES)
    replay[BEGUN] += 1
    for column in range(program.left_columns[left], program.left_columns[left + 1]):
        init = program.left_inits[column]
        if init < ONE:
            continue
        value = program.one
        if init >= 0:
            value = state.log_weights[left, init, at & (state.log_room - 1)]
        state.lane_bounds[column] += abs(np.float64(value))
        for lane in range(number):
            if program.is_maximum:
                lanes[column, lane] = max(lanes[column, lane], value)
            else:
                lanes[column, lane] += value


@njit_in_place
def _add(program, state, left, place, at):
    """Add a column, times a weight, to a column; False if a number may become too large."""
    lanes, later = state.lanes, program.left_later
    target, source = later[place, TARGET], later[place, SOURCE]
    if source < 0:
        state.lane_bounds[target] = 0.0
        for lane in range(LANES):
            lanes[target, lane] = program.zero
        return True
    weight = program.one
    if later[place, WEIGHT] >= 0:
        weight = state.log_weights[left, later[place, WEIGHT], at & (state.log_room - 1)]
    if program.limit < np.inf and not _stays_bounded(program, state, left, target, source, weight):
        return False
    state.progress[UPDATES] += LANES
    if program.is_maximum:
        for lane in range(LANES):
            if lanes[source, lane] != program.zero:
                lanes[target, lane] = max(lanes[target, lane], lanes[source, lane], weight)
    elif later[place, WEIGHT] >= 0:
        for lane in range(LANES):
            if lanes[source, lane] != 0:  # infinite weights
                lanes[target, lane] += lanes[source, lane] * weight
    else:
        for lane in range(LANES):
            lanes[target, lane] += lanes[source, lane]
    return True


@njit_in_place
def _stays_bounded(program, state, left, target, source, weight):
    """Whether a column stays small if another one, times a weight, is added to it."""
    bounds, size = state.lane_bounds, abs(np.float64(weight))
    for _ in range(2):
        bound = bounds[target] + bounds[source] * size
        if bound <= program.limit:
            bounds[target] = bound
            return True
        for column in range(program.left_columns[left], program.left_columns[left + 1]):
            bounds[column] = 0.0
            for lane in range(LANES):
                bounds[column] = max(bounds[column], abs(np.float64(state.lanes[column, lane])))
    return False
