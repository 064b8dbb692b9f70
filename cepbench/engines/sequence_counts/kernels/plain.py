"""Counts over a window as in :mod:`cepbench.engines.sequence_counts.kernels.window_product`, of the simplest SEQ.

In a sequence of plain items an event of item k adds column k to column k + 1 of an upper triangular
matrix, and nothing else. So there are no steps to look up, and no entries below the diagonal to add.
"""

from __future__ import annotations

from cepbench.engines.sequence_counts.kernels import tables
from cepbench.engines.sequence_counts.kernels.numbers import DIGIT_BITS, LARGE, assign, copy_total
from cepbench.engines.sequence_counts.kernels.starts import behind_expired
from cepbench.engines.sequence_counts.kernels.window_product import count, set_to_one
from cepbench.kernels.jit import njit_in_place

_LOWEST = (1 << DIGIT_BITS) - 1


@njit_in_place
def count_plain(plan, state, events):
    """Process a batch of events of one partition, as far as integers of 64 bits go.

    :func:`~cepbench.engines.sequence_counts.kernels.advance.count_matches` goes on from where
    ``state.progress`` says: at the latest at ``events.until``. ``CountingWindow`` finds that the items
    of a plan are plain; numbers are of one digit. Returns whether all events have been processed.
    """
    progress, span, rows, samples = state.progress, state.spans[0], events.rows, events.samples
    times, flags, begins, back = events.times, events.flags, plan.begins, state.back
    last, columns, end = len(begins) - 1, state.cells.shape[0], len(rows)
    low, middle, high = span[tables.LOW], span[tables.MIDDLE], span[tables.HIGH]
    first = started = selected = bits = 0
    item, at = last, 0
    while first < end and times[rows[first]] < events.until:
        now, behind = times[rows[first]], first + 1
        if middle < high and state.times[middle] < now - plan.window:
            low = behind_expired(state.times, middle, high, now - plan.window)
            _all_to_the_front(plan, state, low, high)
            middle = high
            span[tables.PEAK] = max(span[tables.PEAK], high - low)
        item = _only_item(begins, flags[rows[first]])
        if item >= 0 and (behind == end or times[rows[behind]] > now):
            bits = _select(back, item, columns)
            selected += 1
            started += item == 0
            if samples[first] >= 0:
                low = behind_expired(state.times, low, middle, now - plan.window)
                _sample(plan, state, low, middle, samples[first])
            at = behind
        else:
            while behind < end and times[rows[behind]] == now:
                behind += 1
            item = last
            while item >= 0 and bits < LARGE:
                at = first
                while at < behind and bits < LARGE:
                    flag = flags[rows[at]]
                    if flag & begins[item] != 0 and (item < last or flag & tables.COUNTED == 0):
                        bits = _select(back, item, columns)
                        selected += 1
                        started += item == 0
                    if item == last and samples[at] >= 0:
                        low = behind_expired(state.times, low, middle, now - plan.window)
                        _sample(plan, state, low, middle, samples[at])
                    at += 1
                item -= bits < LARGE
        if bits >= LARGE:
            break
        for at in range(first, behind):
            changes = flags[rows[at]] & plan.changes
            state.times[high], state.marks[high] = now, changes
            high += changes != 0
        first = at = behind
        item = last
    if first:
        low = behind_expired(state.times, low, high, times[rows[first - 1]] - plan.window)
    span[tables.LOW], span[tables.MIDDLE], span[tables.HIGH] = low, middle, high
    progress[tables.FIRST], progress[tables.ITEM], progress[tables.AT] = first, item, at
    progress[tables.IS_LARGE] = bits >= LARGE
    progress[tables.UPDATES] += columns * selected
    progress[tables.STARTED] += started
    return first == end


@njit_in_place
def _only_item(begins, flags):
    """The item of an event, -1 if it has none, several, or has been counted."""
    # A branch would be mispredicted, since events of the items take turns at random.
    found = -1
    for item in range(len(begins)):
        found = item if flags == begins[item] else found
    return found


@njit_in_place
def _select(back, item, columns):
    """Multiply the product by the matrix of an event of an item; all bits of the changed numbers."""
    bits = 0
    for row in range(columns):
        back[item + 1, row] += back[item, row]
        bits |= back[item + 1, row]
    return bits


@njit_in_place
def _all_to_the_front(plan, state, low, high):
    """Multiply the matrices of these events from the last one on.

    No number is large, since the product since the middle has the same factors, and others before.
    """
    times, marks, suffix, cells = state.times, state.marks, state.suffix, state.cells
    columns, behind = suffix.shape[0], high
    set_to_one(plan, suffix, 0)
    while behind > low:
        first = behind - 1
        item = _only_item(plan.begins, marks[first])
        if item >= 0 and (first == low or times[first - 1] < times[first]):
            _multiply(suffix, item, columns)
        else:
            while first > low and times[first - 1] == times[behind - 1]:
                first -= 1
            for item in range(columns - 1):
                for at in range(first, behind):
                    if marks[at] & plan.begins[item]:
                        _multiply(suffix, item, columns)
        for column in range(columns):
            cells[column, first] = suffix[0, column]
        behind = first
    set_to_one(plan, state.back, 0)


@njit_in_place
def _multiply(suffix, item, columns):
    """Multiply the matrix of an event of an item by the product behind it."""
    for column in range(columns):
        suffix[item, column] += suffix[item + 1, column]


@njit_in_place
def _sample(plan, state, low, middle, sample):
    """Write the number of matches in the window."""
    cells, back, out, columns = state.cells, state.back, state.out, state.cells.shape[0]
    if low >= middle:
        number = back[columns - 1, 0]
        out[sample, 0], out[sample, 1] = number & _LOWEST, number >> DIGIT_BITS
        return
    bits = lower = higher = 0
    for column in range(columns):
        one, two = cells[column, low], back[columns - 1, column]
        bits |= one | two
        product = one * two
        lower += product & _LOWEST
        higher += product >> DIGIT_BITS
    if bits <= _LOWEST:
        higher += lower >> DIGIT_BITS
        out[sample, 0], out[sample, 1] = lower & _LOWEST, higher & _LOWEST
        out[sample, 2] = higher >> DIGIT_BITS
        return
    state.spans[0, tables.LOW], state.spans[0, tables.MIDDLE] = low, middle
    count(plan, state, 0, 2 * len(plan.begins), plan.one)
    copy_total(out, sample, state.found)
    assign(state.found, 0, 0, 1, plan.zero)
