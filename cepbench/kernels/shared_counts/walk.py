"""Counts of the matches of several sequences over a batch of events, with counters in common.

The events of a timestamp are taken together: what completes matches is counted at once, by what was
selected before; all other counters follow from behind, once the timestamp has ended.

Source: the PreTree and Chop-Connect of A-Seq [qi2014]_, sections 4.1 and 4.2.

Differs from the paper: a snapshot has the sum over each start and all later ones, so that a value
costs one product for each row on the right instead of one for each row and start (Equation 7).
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.shared_counts.tables import (
    ASK,
    ASKING,
    BLOCK,
    COLUMN,
    ENDED,
    ENDING,
    FIRST,
    HORIZON,
    LAST,
    LEFT,
    LEFT_COLUMN,
    LEFT_LINK,
    LINK,
    NEEDS_DIGITS,
    NEEDS_ROOM,
    ONE,
    ORDER,
    PEAK_COUNTERS,
    PEAK_ROWS,
    ROW,
    SOURCE,
    STAGE,
    START,
    TABLE,
    TAKING,
    TARGET,
    UPDATES,
    WEIGHT,
)


@njit_in_place
def count_shared(program, state, events):
    """Process a batch of events, from where ``state.progress`` says.

    The events at ``events.until`` have to be given again, as counted, before all later ones.

    Parameters
    ----------
    program, state, events : Program, State, Events

    Returns
    -------
    int
        ENDED if all events have been processed; NEEDS_ROOM if a table is full; NEEDS_DIGITS if a
        number may become too large. Then nothing has been changed by what is still to be done.
    """
    progress, times = state.progress, events.times
    while progress[ROW] < len(times):
        row = progress[ROW]
        if progress[STAGE] == TAKING:
            if row == progress[FIRST]:
                expire(program, state, times[row])
            status = _take(program, state, events, row) if row >= events.counted else ENDED
            if status != ENDED:
                return status
            progress[STAGE] = ASKING
        if progress[STAGE] == ASKING:
            if not _answer(program, state, events, row):
                return NEEDS_DIGITS
            progress[STAGE] = ENDING
        is_last = row + 1 == len(times) or times[row + 1] != times[row]
        has_ended = is_last and times[row] < events.until
        if has_ended and not _end(program, state, events, progress[FIRST], row + 1):
            return NEEDS_DIGITS
        if is_last:
            progress[FIRST] = row + 1
        progress[ROW] = row + 1
        progress[STAGE] = TAKING
    return ENDED


@njit_in_place
def expire(program, state, now):
    """Drop the rows whose windows have passed.

    Parameters
    ----------
    program, state : Program, State
    now : int
    """
    mask = state.room - 1
    for horizon in range(len(program.horizons)):
        table, earliest = program.horizons[horizon, 0], now - program.horizons[horizon, 1]
        low, high = state.lows[horizon], state.highs[table]
        while low < high and state.times[table, low & mask] < earliest:
            low += 1
        state.lows[horizon] = low


@njit_in_place
def value_of(program, state, demand, place):
    """Write a value to ``state.out[place]``; whether it has no more digits than there are.

    Parameters
    ----------
    program, state : Program, State
    demand, place : int
    """
    table, column = program.demands[demand, LAST], program.demands[demand, COLUMN]
    link, horizon = program.demands[demand, LINK], program.demands[demand, HORIZON]
    low, first, high = state.lows[horizon], state.lows[horizon], state.highs[table]
    if link >= 0:
        first, mask = max(state.firsts[demand], state.lows[table]), state.room - 1
        while first < high and state.ends[link, first & mask] <= low:
            first += 1
        state.firsts[demand] = first
        if low == state.highs[program.horizons[horizon, 0]]:
            first = high
        state.progress[UPDATES] += high - first
        _fill(state, demand, link, low // BLOCK, first, high)
    if not _fits(program, state, demand, low, first, high):
        return False
    state.out[place] = _sum(program, state, column, link, demand, low, first, high)
    return True


@njit_in_place
def values_at(program, state, now):
    """Write all values at a time, which must not be before the last event.

    Parameters
    ----------
    program, state : Program, State
    now : int

    Returns
    -------
    bool
        Whether none has more digits than there are.
    """
    expire(program, state, now)
    fits = True
    for demand in range(len(program.demands)):
        fits = fits and value_of(program, state, demand, demand)
    return fits


# -- the events of a timestamp ------------------------------------------------------------------


@njit_in_place
def _take(program, state, events, row):
    """Begin the rows of an event, and count the matches that it completes."""
    for k in range(events.spans[row], events.spans[row + 1]):
        symbol = events.symbols[k]
        for place in range(program.create_spans[symbol], program.create_spans[symbol + 1]):
            table = program.creates[place]
            if state.highs[table] - state.lows[table] == state.room:
                return NEEDS_ROOM
            for link in range(program.link_spans[table], program.link_spans[table + 1]):
                if not _connect(program, state, table, link):
                    return NEEDS_DIGITS
    if not _stays_bounded(program, state, events, row, row + 1, True):
        return NEEDS_DIGITS
    _apply_now(program, state, events, row, 0, False)
    for k in range(events.spans[row], events.spans[row + 1]):
        symbol = events.symbols[k]
        for place in range(program.create_spans[symbol], program.create_spans[symbol + 1]):
            _begin(program, state, events, program.creates[place], row)
    _apply_now(program, state, events, row, 1, False)
    return ENDED


@njit_in_place
def _begin(program, state, events, table, row):
    slot = state.highs[table] & (state.room - 1)
    state.times[table, slot] = events.times[row]
    for column in range(program.columns[table], program.columns[table + 1]):
        init = program.inits[column]
        if init >= 0:
            state.cells[column, slot] = events.weights[init, row]
        else:
            state.cells[column, slot] = program.one if init == ONE else program.zero
    state.highs[table] += 1
    rows = counters = 0
    for other in range(len(state.highs)):
        active = state.highs[other] - state.lows[other]
        rows += active
        counters += active * (program.columns[other + 1] - program.columns[other])
        for link in range(program.link_spans[other], program.link_spans[other + 1]):
            start = program.links[link, START]
            counters += active * (state.highs[start] - state.lows[start])
    progress = state.progress
    progress[PEAK_ROWS] = max(progress[PEAK_ROWS], rows)
    progress[PEAK_COUNTERS] = max(progress[PEAK_COUNTERS], counters)


@njit_in_place
def _answer(program, state, events, row):
    """Write the values after an event; False if one has too many digits."""
    progress = state.progress
    while progress[ASK] < events.ask_spans[row + 1]:
        if not value_of(program, state, events.asks[progress[ASK]], progress[ASK]):
            return False
        progress[ASK] += 1
    if program.clears:
        for ask in range(events.ask_spans[row], events.ask_spans[row + 1]):
            table = program.demands[events.asks[ask], LAST]
            column = program.demands[events.asks[ask], COLUMN]
            _clear(program, state, column, state.lows[table], state.highs[table])
    return True


@njit_in_place
def _end(program, state, events, first, last):
    """Change the counters that the events of a timestamp change for later ones."""
    if not _stays_bounded(program, state, events, first, last, False):
        return False
    _apply_later(program, state, events, first, last, False)
    return True


@njit_in_place
def _apply_now(program, state, events, row, order, only_bounds):
    for k in range(events.spans[row], events.spans[row + 1]):
        symbol = events.symbols[k]
        for place in range(program.now_spans[symbol], program.now_spans[symbol + 1]):
            if program.now[place, ORDER] == order:
                # Further elements of a set may have the timestamp of the one before.
                table = program.now[place, TABLE]
                high = state.highs[table] if order == 0 else state.seen[table]
                _apply(program, state, events, program.now, place, row, high, only_bounds)


@njit_in_place
def _apply_later(program, state, events, first, last, only_bounds):
    """From behind, and then in the order of positions."""
    later = program.later
    if last - first == 1 and events.spans[last] - events.spans[first] == 1:
        symbol = events.symbols[events.spans[first]]
        for place in range(program.later_spans[symbol], program.later_spans[symbol + 1]):
            high = state.seen[later[place, TABLE]]
            _apply(program, state, events, later, place, first, high, only_bounds)
        for place in range(program.create_spans[symbol], program.create_spans[symbol + 1]):
            if not only_bounds:
                state.seen[program.creates[place]] += 1
        return
    for order in range(0, program.orders, 2):
        for row in range(first, last):
            for half in range(2):
                for k in range(events.spans[row], events.spans[row + 1]):
                    symbol = events.symbols[k]
                    for place in range(
                        program.later_spans[symbol], program.later_spans[symbol + 1]
                    ):
                        if later[place, ORDER] == order + half:
                            high = state.seen[later[place, TABLE]]
                            _apply(program, state, events, later, place, row, high, only_bounds)
            if order == program.orders - 2 and not only_bounds:
                # Further elements of a set at the beginning.
                for k in range(events.spans[row], events.spans[row + 1]):
                    symbol = events.symbols[k]
                    for place in range(
                        program.create_spans[symbol], program.create_spans[symbol + 1]
                    ):
                        state.seen[program.creates[place]] += 1


@njit_in_place
def _apply(program, state, events, operations, place, row, high, only_bounds):
    target, source = operations[place, TARGET], operations[place, SOURCE]
    weight = operations[place, WEIGHT]
    if only_bounds:
        if source >= 0:
            size = 1.0 if weight < 0 else abs(np.float64(events.weights[weight, row]))
            bound = state.bounds[target] + state.bounds[source] * size
            state.bounds[target], state.largest[0] = bound, max(state.largest[0], bound)
        return
    low = state.lows[operations[place, TABLE]]
    if source < 0:
        _clear(program, state, target, low, high)
        return
    state.progress[UPDATES] += high - low
    factor = program.one if weight < 0 else events.weights[weight, row]
    _add(program, state, target, source, low, high, weight >= 0, factor)


# -- counters -----------------------------------------------------------------------------------


@njit_in_place
def _add(program, state, target, source, low, high, has_weight, weight):
    """Add a column, times a weight, to a column."""
    cells, start = state.cells, low & (state.room - 1)
    number = min(high - low, state.room - start)
    first, last = start, start + number
    for _ in range(2):
        if program.is_maximum:
            for row in range(first, last):
                if cells[source, row] != program.zero:
                    cells[target, row] = max(cells[target, row], cells[source, row], weight)
        elif has_weight:
            for row in range(np.uint64(first), np.uint64(last)):
                if cells[source, row] != 0:  # infinite weights
                    cells[target, row] += cells[source, row] * weight
        else:
            for row in range(np.uint64(first), np.uint64(last)):
                cells[target, row] += cells[source, row]
        first, last = 0, high - low - number


@njit_in_place
def _clear(program, state, column, low, high):
    mask = state.room - 1
    for row in range(low, high):
        state.cells[column, row & mask] = program.zero


@njit_in_place
def _connect(program, state, table, link):
    """Keep for the next row of a table what came before; False if it has too many digits."""
    start, left = program.links[link, START], program.links[link, LEFT]
    column, before = program.links[link, LEFT_COLUMN], program.links[link, LEFT_LINK]
    slot, limited = state.highs[table] & (state.room - 1), program.limit < np.inf
    low, high = state.lows[start], state.seen[start]
    size = state.bounds[column] * (state.seen[left] - state.lows[left])
    if before >= 0:
        size *= state.tops[before]
    if limited and size > program.limit:
        _tighten(program, state)
        size = state.bounds[column] * (state.seen[left] - state.lows[left])
        if before >= 0:
            size *= state.tops[before]
        if size > program.limit:
            return False
    if before < 0:
        size = _suffixes(program, state, column, link, slot, low, high, size)
    else:
        _multiply(program, state, left, column, before, link, slot, low, high)
    state.ends[link, slot] = high
    if limited:
        state.sizes[link, slot] = size
        state.tops[link] = max(state.tops[link], size)
    return True


@njit_in_place
def _suffixes(program, state, column, link, slot, low, high, bound):
    """Sums over each start and all later ones; returns the sum of absolute values."""
    snapshots, cells = state.snapshots, state.cells
    total, size = program.zero, program.zero
    state.progress[UPDATES] += high - low
    begin = low & (state.room - 1)
    number = min(high - low, state.room - begin)
    first, last = 0, high - low - number
    for _ in range(2):
        if program.is_maximum:
            for start in range(last - 1, first - 1, -1):
                total = max(total, cells[column, start])
                snapshots[link, slot, start] = total
        else:
            for start in range(last - 1, first - 1, -1):
                total += cells[column, start]
                size += abs(cells[column, start])
                snapshots[link, slot, start] = total
        first, last = begin, begin + number
    return bound if program.limit == np.inf else np.float64(size)


@njit_in_place
def _multiply(program, state, left, column, before, link, slot, low, high):
    """Sums of products over the rows of the segment before, which has snapshots itself."""
    snapshots, mask = state.snapshots, state.room - 1
    for start in range(low, high):
        snapshots[link, slot, start & mask] = program.zero
    for row in range(state.lows[left], state.seen[left]):
        number, end = state.cells[column, row & mask], state.ends[before, row & mask]
        if number == program.zero:
            continue
        for start in range(low, end):
            other = snapshots[before, row & mask, start & mask]
            if other == program.zero:
                continue
            if program.is_maximum:
                its = snapshots[link, slot, start & mask]
                snapshots[link, slot, start & mask] = max(its, number, other)
            else:
                snapshots[link, slot, start & mask] += number * other
        state.progress[UPDATES] += max(0, end - low)


@njit_in_place
def _fill(state, demand, link, block, first, high):
    """Transpose the snapshots of a block of starts, so that those of one start are neighbours."""
    filled, mask = state.filled, state.room - 1
    if filled[demand, 0] != block:
        filled[demand, 0], filled[demand, 1] = block, first
    begin = (block * BLOCK) & mask
    for row in range(max(first, filled[demand, 1]), high):
        for place in range(BLOCK):
            state.panels[demand, place, row & mask] = state.snapshots[
                link, row & mask, begin + place
            ]
    filled[demand, 1] = high


@njit_in_place
def _sum(program, state, column, link, demand, low, first, high):
    """The sum of counters, times what came before each row."""
    cells, panels, start = state.cells, state.panels, first & (state.room - 1)
    place, total = low % BLOCK, program.zero
    number = min(high - first, state.room - start)
    begin, end = start, start + number
    for _ in range(2):
        if link < 0:
            if program.is_maximum:
                for row in range(begin, end):
                    total = max(total, cells[column, row])
            else:
                for row in range(np.uint64(begin), np.uint64(end)):
                    total += cells[column, row]
        elif program.is_maximum:
            for row in range(begin, end):
                one, other = cells[column, row], panels[demand, place, row]
                if one != program.zero and other != program.zero:
                    total = max(total, one, other)
        elif program.limit < np.inf:
            for row in range(np.uint64(begin), np.uint64(end)):
                total += cells[column, row] * panels[demand, place, row]
        else:
            for row in range(np.uint64(begin), np.uint64(end)):
                one, other = cells[column, row], panels[demand, place, row]
                if one != 0 and other != 0:  # infinite numbers
                    total += one * other
        begin, end = 0, high - first - number
    return total


# -- bounds -------------------------------------------------------------------------------------


@njit_in_place
def _stays_bounded(program, state, events, first, last, is_now):
    """Whether no counter becomes too large by some events."""
    if program.limit == np.inf:
        return True
    for attempt in range(2):
        if attempt == 1:
            _tighten(program, state)
        state.largest[0] = 0.0
        if is_now:
            _bound_rows(program, state, events, first)
            _apply_now(program, state, events, first, 0, True)
            _apply_now(program, state, events, first, 1, True)
        else:
            _apply_later(program, state, events, first, last, True)
        if state.largest[0] <= program.limit:
            return True
    return False


@njit_in_place
def _bound_rows(program, state, events, row):
    for k in range(events.spans[row], events.spans[row + 1]):
        symbol = events.symbols[k]
        for place in range(program.create_spans[symbol], program.create_spans[symbol + 1]):
            table = program.creates[place]
            for column in range(program.columns[table], program.columns[table + 1]):
                init, size = program.inits[column], 1.0
                if init >= 0:
                    size = abs(np.float64(events.weights[init, row]))
                state.bounds[column] = max(state.bounds[column], size)
                state.largest[0] = max(state.largest[0], size)


@njit_in_place
def _tighten(program, state):
    """Compute the bounds of all counters anew."""
    mask = state.room - 1
    for table in range(len(state.highs)):
        low, high = state.lows[table], state.highs[table]
        for column in range(program.columns[table], program.columns[table + 1]):
            bound = 0.0
            for row in range(low, high):
                bound = max(bound, abs(np.float64(state.cells[column, row & mask])))
            state.bounds[column] = bound
        for link in range(program.link_spans[table], program.link_spans[table + 1]):
            bound = 0.0
            for row in range(low, high):
                bound = max(bound, state.sizes[link, row & mask])
            state.tops[link] = bound


@njit_in_place
def _fits(program, state, demand, low, first, high):
    """Whether a value has no more digits than there are."""
    column, link = program.demands[demand, COLUMN], program.demands[demand, LINK]
    for attempt in range(2):
        if attempt == 1:
            _tighten(program, state)
        size = state.bounds[column] * (high - first)
        if link >= 0:
            size *= state.tops[link]
        if program.limit == np.inf or size <= program.limit:
            return True
    mask, size = state.room - 1, 0.0
    for row in range(first, high):
        number = abs(np.float64(state.cells[column, row & mask]))
        if link >= 0:
            number *= abs(np.float64(state.panels[demand, low % BLOCK, row & mask]))
        size += number
    return size <= program.limit
