"""Counts over a window as in :mod:`cepbench.kernels.sequence_counts.window_product`, of the simplest SEQ.

In a sequence of plain items an event of item k adds column k to column k + 1 of an upper triangular
matrix, and nothing else. So there are no steps to look up, and no entries below the diagonal to add.
"""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.sequence_counts.numbers import DIGIT_BITS, LARGE, assign, copy_total
from cepbench.kernels.sequence_counts.tables import (
    AT,
    COUNTED,
    FIRST,
    HIGH,
    IS_LARGE,
    ITEM,
    LOW,
    MIDDLE,
    PEAK,
    STARTED,
    UPDATES,
)
from cepbench.kernels.sequence_counts.window_product import count

_LOWEST = (1 << DIGIT_BITS) - 1


@njit_in_place
def count_plain(plan, state, events):
    """Process a batch of events of one partition, as far as integers of 64 bits go.

    :func:`~cepbench.kernels.sequence_counts.advance.count_matches` goes on from where
    ``state.progress`` says: at the latest at ``events.until``.

    Parameters
    ----------
    plan, state, events : Sequence, State, Events
        A plan for which ``CountingWindow`` finds that its items are plain, and numbers of one digit.

    Returns
    -------
    bool
        Whether all events have been processed.
    """
    progress, span, rows, samples = state.progress, state.spans[0], events.rows, events.samples
    times, flags, begins, back = events.times, events.flags, plan.begins, state.back
    last, columns, end = len(begins) - 1, state.cells.shape[0], len(rows)
    first = 0
    while first < end and times[rows[first]] < events.until:
        now, behind = times[rows[first]], first + 1
        while behind < end and times[rows[behind]] == now:
            behind += 1
        progress[FIRST], progress[ITEM], progress[AT] = first, last, first
        if _expire(plan, state, span, now - plan.window):
            progress[IS_LARGE] = 1
            return False
        for item in range(last, -1, -1):
            for at in range(first, behind):
                flag, bits = flags[rows[at]], 0
                if flag & begins[item] != 0 and (item < last or flag & COUNTED == 0):
                    for row in range(item + 1):
                        back[item + 1, row] += back[item, row]
                        bits |= back[item + 1, row]
                    progress[UPDATES] += columns
                    progress[STARTED] += item == 0
                if item == last and len(samples) and samples[at] >= 0:
                    _sample(plan, state, span, samples[at])
                if bits >= LARGE:
                    progress[IS_LARGE], progress[ITEM], progress[AT] = 1, item, at + 1
                    return False
        for at in range(first, behind):
            changes = flags[rows[at]] & plan.changes
            if changes:
                state.times[span[HIGH]], state.marks[span[HIGH]] = now, changes
                span[HIGH] += 1
        first = behind
    progress[FIRST], progress[ITEM], progress[AT] = first, last, first
    return first == end


@njit_in_place
def _expire(plan, state, span, earliest):
    """As :func:`cepbench.kernels.sequence_counts.window_product.expire`."""
    back, columns = state.back, state.cells.shape[0]
    while span[LOW] < span[HIGH] and state.times[span[LOW]] < earliest:
        span[LOW] += 1
    if span[LOW] <= span[MIDDLE]:
        return False
    if _all_to_the_front(plan, state, span[LOW], span[HIGH]):
        return True
    span[MIDDLE] = span[HIGH]
    span[PEAK] = max(span[PEAK], span[HIGH] - span[LOW])
    for column in range(columns):
        for row in range(columns):
            back[column, row] = int(column == row)
    return False


@njit_in_place
def _all_to_the_front(plan, state, low, high):
    """Multiply the matrices of these events from the last one on; whether a number is large."""
    times, marks, suffix, cells = state.times, state.marks, state.suffix, state.cells
    columns = suffix.shape[0]
    for row in range(columns):
        for column in range(columns):
            suffix[row, column] = int(column == row)
    behind = high
    while behind > low:
        first = behind - 1
        while first > low and times[first - 1] == times[behind - 1]:
            first -= 1
        for item in range(columns - 1):
            for at in range(first, behind):
                if marks[at] & plan.begins[item]:
                    bits = 0
                    for column in range(item + 1, columns):
                        suffix[item, column] += suffix[item + 1, column]
                        bits |= suffix[item, column]
                    if bits >= LARGE:
                        return True
        for column in range(columns):
            cells[column, first] = suffix[0, column]
        behind = first
    return False


@njit_in_place
def _sample(plan, state, span, sample):
    """Write the number of matches in the window."""
    cells, back, out, columns = state.cells, state.back, state.out, state.cells.shape[0]
    bits = low = high = 0
    if span[LOW] < span[MIDDLE]:
        for column in range(columns):
            one, two = cells[column, span[LOW]], back[columns - 1, column]
            bits |= one | two
            if bits > _LOWEST:
                break
            product = one * two
            low += product & _LOWEST
            high += product >> DIGIT_BITS
    else:
        low, high = back[columns - 1, 0] & _LOWEST, back[columns - 1, 0] >> DIGIT_BITS
    if bits <= _LOWEST:
        high += low >> DIGIT_BITS
        out[sample, 0], out[sample, 1] = low & _LOWEST, high & _LOWEST
        out[sample, 2] = high >> DIGIT_BITS
        return
    count(plan, state, 0, 2 * len(plan.begins), plan.one)
    copy_total(out, sample, state.found)
    assign(state.found, 0, 0, 1, plan.zero)
