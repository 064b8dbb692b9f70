"""Counts of the matches of several sequences over a batch of events, with counters in common.

The events of a timestamp are taken together: what completes matches is counted at once, by what was
selected before; all other counters follow from behind, once the timestamp has ended.

Source: the PreTree and Chop-Connect of A-Seq [qi2014]_, sections 4.1 and 4.2.

Differs from the paper: a row on the right has the counts before it from each start on, so that a value
costs one product for each row on the right instead of one for each row and start (Equation 7), see
:mod:`cepbench.engines.aggregation.kernels.shared_counts.lanes`.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.aggregation.kernels.shared_counts import tables
from cepbench.engines.aggregation.kernels.shared_counts.lanes import (
    add_column,
    follow,
    has_log_room,
    log,
)
from cepbench.kernels.counts import LANES
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def count_shared(program, state, events):
    """Process a batch of events, from where ``state.progress`` says.

    The events at ``events.until`` have to be given again, as counted, before all later ones.

    Returns ENDED if all events have been processed; NEEDS_ROOM if a table is full, NEEDS_LOG if a log is;
    NEEDS_DIGITS if a number may become too large. Then nothing has been changed by what is still to be
    done.
    """
    progress, times = state.progress, events.times
    while progress[tables.ROW] < len(times):
        row = progress[tables.ROW]
        if progress[tables.STAGE] == tables.TAKING:
            if row == progress[tables.FIRST]:
                expire(program, state, times[row])
            status = _take(program, state, events, row) if row >= events.counted else tables.ENDED
            if status != tables.ENDED:
                return status
            progress[tables.STAGE] = tables.ASKING
        if progress[tables.STAGE] == tables.ASKING:
            if not _answer(program, state, events, row):
                return tables.NEEDS_DIGITS
            progress[tables.STAGE] = tables.ENDING
        is_last = row + 1 == len(times) or times[row + 1] != times[row]
        if is_last and times[row] < events.until:
            status = _end(program, state, events, progress[tables.FIRST], row + 1)
            if status != tables.ENDED:
                return status
        if is_last:
            progress[tables.FIRST] = row + 1
        progress[tables.ROW] = row + 1
        progress[tables.STAGE] = tables.TAKING
    return tables.ENDED


@njit_in_place
def expire(program, state, now):
    """Drop the rows whose windows have passed."""
    mask = state.room - 1
    for horizon in range(len(program.horizons)):
        table, earliest = program.horizons[horizon, 0], now - program.horizons[horizon, 1]
        low, high = state.lows[horizon], state.highs[table]
        while low < high and state.times[table, low & mask] < earliest:
            low += 1
        state.lows[horizon] = low


@njit_in_place
def value_of(program, state, demand, place):
    """Write a value to ``state.out[place]``; whether it has no more digits than there are."""
    table, column = program.demands[demand, tables.LAST], program.demands[demand, tables.COLUMN]
    link, horizon = program.demands[demand, tables.LINK], program.demands[demand, tables.HORIZON]
    first, high, lane = state.lows[horizon], state.highs[table], 0
    if link >= 0:
        left, low = program.links[link, tables.LEFT], first
        if low >= state.seen[program.horizons[horizon, 0]]:
            first = high
        elif not follow(program, state, left):
            return False
        elif state.firsts[link] < 0:
            first = high
        else:
            first = max(state.firsts[link], state.lows[table])
        lane = low - state.replays[left, tables.BASE]
    if not _fits(program, state, column, link, lane, first, high):
        return False
    state.progress[tables.READ] += high - first
    if link >= 0:
        state.progress[tables.PRODUCTS] += high - first
    state.out[place] = _sum(program, state, column, link, lane, first, high)
    return True


@njit_in_place
def values_at(program, state, now):
    """Write all values at a time, not before the last event; whether none has too many digits."""
    expire(program, state, now)
    fits = True
    for demand in range(len(program.demands)):
        fits = fits and value_of(program, state, demand, demand)
    return fits


# -- the events of a timestamp ------------------------------------------------------------------


@njit_in_place
def _take(program, state, events, row):
    """Begin the rows of an event, and count the matches that it completes."""
    symbols, entries = events.spans[row + 1] - events.spans[row], 0
    for k in range(events.spans[row], events.spans[row + 1]):
        symbol = events.symbols[k]
        for place in range(program.create_spans[symbol], program.create_spans[symbol + 1]):
            table = program.creates[place]
            if state.highs[table] - state.lows[table] + symbols > state.room:
                return tables.NEEDS_ROOM
            entries += program.link_spans[table + 1] - program.link_spans[table]
    if entries > 0 and not has_log_room(program, state, entries):
        return tables.NEEDS_LOG
    if not _stays_bounded(program, state, events, row, -1):
        return tables.NEEDS_DIGITS
    _apply_now(program, state, events, row, 0)
    for k in range(events.spans[row], events.spans[row + 1]):
        symbol = events.symbols[k]
        for place in range(program.create_spans[symbol], program.create_spans[symbol + 1]):
            _begin(program, state, events, program.creates[place], row)
    _apply_now(program, state, events, row, 1)
    return tables.ENDED


@njit_in_place
def _begin(program, state, events, table, row):
    for link in range(program.link_spans[table], program.link_spans[table + 1]):
        left = program.links[link, tables.LEFT]
        log(state, left, tables.CONNECTS - link, tables.CLEARS, state.highs[table], program.one)
    slot = state.highs[table] & (state.room - 1)
    state.times[table, slot] = events.times[row]
    for column in range(program.columns[table], program.columns[table + 1]):
        init = program.inits[column]
        if init >= 0:
            state.cells[column, slot] = events.weights[init, row]
        else:
            state.cells[column, slot] = program.one if init == tables.ONE else program.zero
    state.highs[table] += 1
    state.progress[tables.CREATED] += 1
    rows, counters = 0, state.lanes.size
    for other in range(len(state.highs)):
        active = state.highs[other] - state.lows[other]
        rows += active
        counters += active * (program.columns[other + 1] - program.columns[other])
        counters += active * LANES * (program.link_spans[other + 1] - program.link_spans[other])
    progress = state.progress
    progress[tables.PEAK_ROWS] = max(progress[tables.PEAK_ROWS], rows)
    progress[tables.PEAK_COUNTERS] = max(progress[tables.PEAK_COUNTERS], counters)


@njit_in_place
def _answer(program, state, events, row):
    """Write the values after an event; False if one has too many digits."""
    progress = state.progress
    while progress[tables.ASK] < events.ask_spans[row + 1]:
        if not value_of(program, state, events.asks[progress[tables.ASK]], progress[tables.ASK]):
            return False
        progress[tables.ASK] += 1
    if program.clears:
        for ask in range(events.ask_spans[row], events.ask_spans[row + 1]):
            table = program.demands[events.asks[ask], tables.LAST]
            column = program.demands[events.asks[ask], tables.COLUMN]
            _clear(program, state, column, state.lows[table], state.highs[table])
    return True


@njit_in_place
def _end(program, state, events, first, last):
    """Change the counters that the events of a timestamp change for later ones."""
    number = _enqueue(program, state, events, first, last)
    if len(program.lefts) > 0:
        most = number * (1 + len(program.left_inits))
        if not has_log_room(program, state, most):
            return tables.NEEDS_LOG
    if not _stays_bounded(program, state, events, 0, number):
        return tables.NEEDS_DIGITS
    _apply_later(program, state, events, number)
    return tables.ENDED


@njit_in_place
def _apply_now(program, state, events, row, order):
    for k in range(events.spans[row], events.spans[row + 1]):
        symbol = events.symbols[k]
        for place in range(program.now_spans[symbol], program.now_spans[symbol + 1]):
            if program.now[place, tables.ORDER] == order:
                # Further elements of a set may have the timestamp of the one before.
                table = program.now[place, tables.TABLE]
                high = state.highs[table] if order == 0 else state.seen[table]
                _apply(program, state, events, program.now, place, row, high)


@njit_in_place
def _enqueue(program, state, events, first, last):
    """Order what some events do later: from behind, and then by positions.

    New rows, in the queue by their bitwise negations, come with the events that begin sets. Returns
    the length of the queue.
    """
    later, queue, ends = program.later, state.queue, state.ends
    for order in range(len(ends)):
        ends[order] = 0
    for k in range(events.spans[first], events.spans[last]):
        symbol = events.symbols[k]
        for place in range(program.later_spans[symbol], program.later_spans[symbol + 1]):
            ends[later[place, tables.ORDER] // 2 + 1] += 1
        ends[-1] += program.create_spans[symbol + 1] - program.create_spans[symbol]
    for order in range(1, len(ends)):
        ends[order] += ends[order - 1]
    number = ends[-1]
    for row in range(first, last):
        begin, end = events.spans[row], events.spans[row + 1]
        # Operations of one symbol are in their order.
        halves = min(end - begin, 2)
        for half in range(halves):
            for k in range(begin, end):
                symbol = events.symbols[k]
                for place in range(program.later_spans[symbol], program.later_spans[symbol + 1]):
                    order = later[place, tables.ORDER]
                    if halves == 1 or order % 2 == half:
                        queue[ends[order // 2], 0], queue[ends[order // 2], 1] = place, row
                        ends[order // 2] += 1
        for k in range(begin, end):
            symbol = events.symbols[k]
            for place in range(program.create_spans[symbol], program.create_spans[symbol + 1]):
                queue[ends[-2], 0], queue[ends[-2], 1] = ~place, row
                ends[-2] += 1
    return number


@njit_in_place
def _apply_later(program, state, events, number):
    for k in range(number):
        place, row = state.queue[k, 0], state.queue[k, 1]
        if place < 0:
            _see(program, state, events, program.creates[~place], row)
            continue
        table, weight = program.later[place, tables.TABLE], program.later[place, tables.WEIGHT]
        if table >= 0:
            _apply(program, state, events, program.later, place, row, state.seen[table])
        else:
            factor = program.one if weight < 0 else events.weights[weight, row]
            target, source = (
                program.later[place, tables.TARGET],
                program.later[place, tables.SOURCE],
            )
            log(state, ~table, target, source, 0, factor)


@njit_in_place
def _see(program, state, events, table, row):
    """Let a row count for later events."""
    number = state.seen[table]
    for place in range(program.begun_spans[table], program.begun_spans[table + 1]):
        left = program.begun[place]
        state.marks[left, number & (state.room - 1)] = state.log_highs[left]
        for column in range(program.left_columns[left], program.left_columns[left + 1]):
            init = program.left_inits[column]
            if init >= tables.ONE:
                weight = program.one if init == tables.ONE else events.weights[init, row]
                log(state, left, column, tables.BEGINS, number, weight)
    state.seen[table] += 1


@njit_in_place
def _apply(program, state, events, operations, place, row, high):
    target, source = operations[place, tables.TARGET], operations[place, tables.SOURCE]
    weight = operations[place, tables.WEIGHT]
    low = state.lows[operations[place, tables.TABLE]]
    if source < 0:
        _clear(program, state, target, low, high)
        return
    state.progress[tables.UPDATES] += high - low
    factor = program.one if weight < 0 else events.weights[weight, row]
    start = low & (state.room - 1)
    number = min(high - low, state.room - start)
    first, last = start, start + number
    for _ in range(2):
        add_column(program, state.cells, target, source, first, last, factor)
        first, last = 0, high - low - number


# -- counters -----------------------------------------------------------------------------------


@njit_in_place
def _clear(program, state, column, low, high):
    mask = state.room - 1
    for row in range(low, high):
        state.cells[column, row & mask] = program.zero


@njit_in_place
def _sum(program, state, column, link, lane, first, high):
    """The sum of counters, times what came before each row."""
    cells, panels, start = state.cells, state.panels, first & (state.room - 1)
    total, tile, place = program.zero, lane // tables.TILE, lane % tables.TILE
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
                one, other = cells[column, row], panels[link, tile, row, place]
                if one != program.zero and other != program.zero:
                    total = max(total, one, other)
        elif program.limit < np.inf:
            for row in range(np.uint64(begin), np.uint64(end)):
                total += cells[column, row] * panels[link, tile, row, place]
        else:
            for row in range(np.uint64(begin), np.uint64(end)):
                one, other = cells[column, row], panels[link, tile, row, place]
                if one != 0 and other != 0:  # infinite numbers
                    total += one * other
        begin, end = 0, high - first - number
    return total


# -- bounds -------------------------------------------------------------------------------------


@njit_in_place
def _stays_bounded(program, state, events, row, number):
    """Whether no counter becomes too large by the queue, or by an event if ``number`` is negative."""
    if program.limit == np.inf:
        return True
    for attempt in range(2):
        if attempt == 1:
            _tighten(program, state)
        state.largest[0] = 0.0
        if number < 0:
            _bound_rows(program, state, events, row)
            for order in range(2):
                for k in range(events.spans[row], events.spans[row + 1]):
                    symbol = events.symbols[k]
                    for place in range(program.now_spans[symbol], program.now_spans[symbol + 1]):
                        if program.now[place, tables.ORDER] == order:
                            _bound(state, events, program.now, place, row)
        for k in range(number):
            place = state.queue[k, 0]
            if place >= 0 and program.later[place, tables.TABLE] >= 0:
                _bound(state, events, program.later, place, state.queue[k, 1])
        if state.largest[0] <= program.limit:
            return True
    return False


@njit_in_place
def _bound(state, events, operations, place, row):
    source, weight = operations[place, tables.SOURCE], operations[place, tables.WEIGHT]
    if source >= 0:
        size = 1.0 if weight < 0 else abs(np.float64(events.weights[weight, row]))
        bound = state.bounds[operations[place, tables.TARGET]] + state.bounds[source] * size
        state.bounds[operations[place, tables.TARGET]] = bound
        state.largest[0] = max(state.largest[0], bound)


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


@njit_in_place
def _fits(program, state, column, link, lane, first, high):
    """Whether a value has no more digits than there are."""
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
            number *= abs(
                np.float64(state.panels[link, lane // tables.TILE, row & mask, lane % tables.TILE])
            )
        size += number
    return size <= program.limit
