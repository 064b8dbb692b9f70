"""Histories of a run, counted by their start, exactly at any size.

A run that stands for several ones [agrawal2008]_, section 5.2.2, has a cell for each event of its
partition that may have started one, in a ring of cells indexed by the ordinal of the start. Cells of
expired starts are subtracted when the run is used next. See :mod:`cepbench.kernels.exact` for counts.
"""

from __future__ import annotations

from cepbench.engines.sase.kernels import tables
from cepbench.kernels import exact
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def add(state, totals, place, others, other):
    """``totals[place] += others[other]``; asks for more digits before they are needed."""
    exact.add(totals, place, others, other)
    if totals[place, totals.shape[1] - 1] >= exact.LARGE:
        state.counters[tables.WIDENS] = 1


@njit_in_place
def add_found(state, run):
    """Count the unexpired histories of a run as matches."""
    add(state, state.found.reshape((1, len(state.found))), 0, state.totals, run)


@njit_in_place
def expire(state, run, earliest):
    """Subtract the histories that started before ``earliest``."""
    runs, cells, totals = state.runs, state.cells, state.totals
    low, high = runs[run, tables.LOW], runs[run, tables.HIGH]
    ring = runs[run, tables.SIZE] - 1
    while low < high:
        cell = runs[run, tables.BLOCK] + (low & ring)
        if not _is_zero(cells, cell):
            if state.cell_times[cell] >= earliest:
                break
            exact.subtract(totals, run, cells, cell)
        low += 1
    runs[run, tables.LOW] = low


@njit_in_place
def block(state, size):
    """The first of ``size`` free cells, a power of two; the caller has seen to room."""
    power = 0
    while (1 << power) < size:
        power += 1
    first = state.free_cells[power]
    if first >= 0:
        state.free_cells[power] = state.cell_times[first]
        return first
    first = state.counters[tables.TOP_CELL]
    state.counters[tables.TOP_CELL] = first + size
    return first


@njit_in_place
def release(state, run):
    """Free a run's cells."""
    size = state.runs[run, tables.SIZE]
    if size > 0:
        power = 0
        while (1 << power) < size:
            power += 1
        first = state.runs[run, tables.BLOCK]
        state.cell_times[first] = state.free_cells[power]
        state.free_cells[power] = first
        state.runs[run, tables.SIZE] = 0


@njit_in_place
def begin(state, run, ordinal, time):
    """Give a run without cells one history, which starts now."""
    runs, cells = state.runs, state.cells
    cell = block(state, 1)
    runs[run, tables.BLOCK], runs[run, tables.SIZE] = cell, 1
    runs[run, tables.LOW], runs[run, tables.HIGH] = ordinal, ordinal + 1
    state.cell_times[cell] = time
    for digit in range(cells.shape[1]):
        cells[cell, digit] = 0
        state.totals[run, digit] = 0
    cells[cell, 0] = 1
    state.totals[run, 0] = 1


@njit_in_place
def clear(state, run):
    """Give a run no cells."""
    runs = state.runs
    runs[run, tables.SIZE], runs[run, tables.LOW], runs[run, tables.HIGH] = 0, 0, 0
    for digit in range(state.totals.shape[1]):
        state.totals[run, digit] = 0


@njit_in_place
def merge(state, target, source, earliest):
    """Add the unexpired histories of one run to another one."""
    runs, cells, times = state.runs, state.cells, state.cell_times
    expire(state, source, earliest)
    expire(state, target, earliest)
    low, high = runs[source, tables.LOW], runs[source, tables.HIGH]
    if low == high:
        return
    old_low, old_high = runs[target, tables.LOW], runs[target, tables.HIGH]
    if old_low == old_high:
        old_low, old_high = low, low
    new_low, new_high = min(low, old_low), max(high, old_high)
    _widen(state, target, old_low, old_high, new_high - new_low)
    first, ring = runs[target, tables.BLOCK], runs[target, tables.SIZE] - 1
    for ordinal in range(new_low, old_low):
        cells[first + (ordinal & ring)] = 0
    for ordinal in range(old_high, new_high):
        cells[first + (ordinal & ring)] = 0
    origin, other_ring = runs[source, tables.BLOCK], runs[source, tables.SIZE] - 1
    for ordinal in range(low, high):
        cell, other = first + (ordinal & ring), origin + (ordinal & other_ring)
        times[cell] = times[other] if not _is_zero(cells, other) else times[cell]
        add(state, cells, cell, cells, other)
    runs[target, tables.LOW], runs[target, tables.HIGH] = new_low, new_high
    add(state, state.totals, target, state.totals, source)


@njit_in_place
def _is_zero(cells, cell):
    bits = 0
    for digit in range(cells.shape[1]):
        bits |= cells[cell, digit]
    return bits == 0


@njit_in_place
def _widen(state, run, low, high, span):
    """See to it that a run has cells for ``span`` ordinals; those of ``low..high`` are kept."""
    runs, cells, times = state.runs, state.cells, state.cell_times
    size = runs[run, tables.SIZE]
    if span <= size:
        return
    larger = max(size, 1)
    while larger < span:
        larger *= 2
    first = block(state, larger)
    for ordinal in range(low, high):
        cell = first + (ordinal & (larger - 1))
        old = runs[run, tables.BLOCK] + (ordinal & (size - 1))
        times[cell] = times[old]
        for digit in range(cells.shape[1]):
            cells[cell, digit] = cells[old, digit]
    release(state, run)
    runs[run, tables.BLOCK], runs[run, tables.SIZE] = first, larger
