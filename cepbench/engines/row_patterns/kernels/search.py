"""The preferred match from each row on, by depth-first search over the edges of an automaton.

Source: ISO/IEC 9075-2, row pattern recognition. Where conditions read only the row itself and its
neighbours, a state that failed at a row fails there for every later start, and is entered once: the
search takes time in the product of rows and edges, while conditions on the rows of the match may
make it exponential, which ``limit`` bounds. A window ends the memory of a start that reached its end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.kernels.clauses import aggregated, operate
from cepbench.kernels.instructions import AVERAGE, GREATEST, LEAST, LOAD_CONSTANT, SUM
from cepbench.kernels.jit import njit_in_place

# Instructions besides those of cepbench.kernels.instructions: (column, reference) pushes a value of a
# row, (length, later, earlier) the difference of two times less a length, (aggregate) its value.
LOAD_ROW, LOAD_TIMES, LOAD_AGGREGATE = 40, 41, 42

# Columns of REFERENCES: the track, -1 for the current row; whether from the first row of the track;
# rows of the track from there, rows of the partition from there.
TRACK, FROM_FIRST, OFFSET, SHIFT, REFERENCE_COLUMNS = range(5)

# Columns of AGGREGATES: the variables as bits; the function; the column, -1 for the rows themselves.
BITS, FUNCTION, COLUMN, AGGREGATE_COLUMNS = range(4)

# Where the next match may begin: behind the last row, behind the first one, at a row of SKIP_BITS.
PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = range(4)

# PROGRESS[...]: the partition, and the row to start from next; matches and mapped rows written; how
# the search ended; rows mapped in all, and by the longest search of a start.
PARTITION, START, MATCHES, MAPPED, ENDED, STEPS, LONGEST, PROGRESS = range(8)
DONE, FULL, TOO_LONG, TOO_MANY, SKIPS_NOWHERE, SKIPS_BACK = range(6)

#: Lists of failed states hold so many in a word.
WORD = 62


class Programs(NamedTuple):
    """Conditions. ``spans``: int64 (variables + 1,), of each variable's in ``rules``, which ends each by
    a rule -1. ``tracks``: int64 (tracks,), the variables of each as bits.
    """

    spans: np.ndarray
    rules: np.ndarray
    constants: np.ndarray
    lengths: np.ndarray
    references: np.ndarray
    aggregates: np.ndarray
    tracks: np.ndarray


class Rows(NamedTuple):
    """The rows by partition. ``values``: float64 (columns, rows). ``times``: int64 (rows,). ``allowed``:
    int64 (rows,), the variables that a row may be by its own values, as bits. ``bounds``: int64
    (partitions + 1,).
    """

    values: np.ndarray
    times: np.ndarray
    allowed: np.ndarray
    bounds: np.ndarray


class Path(NamedTuple):
    """The rows mapped so far, by their number from the start of the match on: places, states, next edges;
    by track the last and the first row until then; by aggregate the number and the total of values.
    ``failed``: int64 (rows + partitions, words), without rows if failures are not kept.
    """

    places: np.ndarray
    states: np.ndarray
    edges: np.ndarray
    lasts: np.ndarray
    firsts: np.ndarray
    numbers: np.ndarray
    totals: np.ndarray
    failed: np.ndarray
    stack: np.ndarray


class Found(NamedTuple):
    """Matches. ``starts``, ``ends``: int64, the first row of each, and the end of its ``places``."""

    starts: np.ndarray
    ends: np.ndarray
    places: np.ndarray


@njit_in_place
def admit(programs, automaton, rows, path):
    """Note for each row which variables it may be by conditions on itself and its neighbours."""
    for partition in range(len(rows.bounds) - 1):
        low, high = rows.bounds[partition], rows.bounds[partition + 1]
        for at in range(low, high):
            for variable in range(len(programs.spans) - 1):
                if _holds(variable, programs, automaton, rows, path, low, high, at, at):
                    rows.allowed[at] |= 1 << variable


@njit_in_place
def find(automaton, programs, rows, path, found, window, skip, skip_bits, limit, progress):
    """Write the matches from where ``progress`` says.

    ``window``: int, largest difference of time from the first row; -1 without one.
    ``limit``: maximum number of rows that are mapped in the search from one start, and in all matches.
    """
    while progress[PARTITION] < len(rows.bounds) - 1:
        partition = progress[PARTITION]
        low, high = rows.bounds[partition], rows.bounds[partition + 1]
        start = max(low, progress[START])
        while start < high:
            progress[START] = start
            match, mapped = progress[MATCHES], progress[MAPPED]
            if match == len(found.starts) or mapped + high - start > len(found.places):
                progress[ENDED] = FULL
                return
            length = _preferred(
                automaton,
                programs,
                rows,
                path,
                partition,
                low,
                high,
                start,
                window,
                limit,
                progress,
            )
            following = start + 1
            if length == -2:
                progress[ENDED] = TOO_LONG
                return
            if length >= 0:
                if mapped + length > limit:
                    progress[ENDED] = TOO_MANY
                    return
                if length > 0 and skip == PAST_LAST:
                    following = start + length
                elif length > 0 and skip != TO_NEXT:
                    following = _row_to(skip, skip_bits, automaton, path, start, length)
                    if following <= start:
                        progress[ENDED] = SKIPS_BACK if following == start else SKIPS_NOWHERE
                        return
                for number in range(length):
                    found.places[mapped + number] = path.places[number]
                found.starts[match], found.ends[match] = start, mapped + length
                progress[MATCHES], progress[MAPPED] = match + 1, mapped + length
            start = following
        progress[PARTITION] = partition + 1
        progress[START] = high
    progress[ENDED] = DONE


@njit_in_place
def _row_to(skip, bits, automaton, path, start, length):
    """The first or the last row of some variables; -1 if there is none."""
    row = -1
    for number in range(length):
        if bits >> automaton.variables[path.places[number]] & 1:
            row = start + number
            if skip == TO_FIRST:
                return row
    return row


@njit_in_place
def _preferred(
    automaton, programs, rows, path, partition, low, high, start, window, limit, progress
):
    """The number of rows of the preferred match; -1 if there is none, -2 beyond the limit."""
    remembers = len(path.failed) > 0
    is_contextual = len(programs.rules) > 0
    depth, deepest, length, steps = 0, 0, -1, 0
    is_cut = False
    path.states[0], path.edges[0] = 0, automaton.begins[0]
    while depth >= 0:
        at, state, edge = start + depth, path.states[depth], path.edges[depth]
        if edge == automaton.begins[state + 1]:
            if remembers:
                path.failed[at + partition, state // WORD] |= 1 << (state % WORD)
            depth -= 1
            continue
        path.edges[depth] = edge + 1
        guard, place = automaton.guards[edge], automaton.places[edge]
        if (guard & 1 and at != low) or (guard & 2 and at != high):
            continue
        if place < 0:
            length = depth
            break
        if at == high:
            continue
        if window >= 0 and rows.times[at] - rows.times[start] > window:
            is_cut = True
            continue
        variable, state = automaton.variables[place], place + 1
        if not rows.allowed[at] >> variable & 1:
            continue
        if remembers and path.failed[at + 1 + partition, state // WORD] >> (state % WORD) & 1:
            continue
        steps += 1
        if steps > limit:
            length = -2
            break
        path.places[depth] = place
        if is_contextual:
            _note(variable, programs, rows, path, at, depth)
            if not _holds(variable, programs, automaton, rows, path, low, high, start, at):
                continue
        depth += 1
        deepest = max(deepest, depth)
        path.states[depth], path.edges[depth] = state, automaton.begins[state]
    progress[STEPS] += steps
    progress[LONGEST] = max(progress[LONGEST], steps)
    if is_cut and remembers:
        for at in range(start, start + deepest + 1):
            for word in range(path.failed.shape[1]):
                path.failed[at + partition, word] = 0
    return length


@njit_in_place
def _note(variable, programs, rows, path, at, depth):
    """Extend tracks and aggregates by a row that is mapped to a variable."""
    for track in range(len(programs.tracks)):
        last = first = -1
        if depth > 0:
            last, first = path.lasts[track, depth - 1], path.firsts[track, depth - 1]
        if programs.tracks[track] >> variable & 1:
            last = at
            first = at if first < 0 else first
        path.lasts[track, depth], path.firsts[track, depth] = last, first
    for number in range(len(programs.aggregates)):
        count, total = 0, 0.0
        if depth > 0:
            count, total = path.numbers[number, depth - 1], path.totals[number, depth - 1]
        column = programs.aggregates[number, COLUMN]
        if programs.aggregates[number, BITS] >> variable & 1:
            value = 0.0 if column < 0 else rows.values[column, at]
            if value == value:
                total = extended(programs.aggregates[number, FUNCTION], count, total, value)
                count += 1
        path.numbers[number, depth], path.totals[number, depth] = count, total


@njit_in_place
def extended(function, count, total, value):
    """The total of a function over one more value."""
    if count > 0 and function == LEAST:
        return min(total, value)
    if count > 0 and function == GREATEST:
        return max(total, value)
    if function in (SUM, AVERAGE):
        return total + value
    return value


@njit_in_place
def _row(reference, programs, automaton, path, low, high, start, at):
    """The row that a reference names while ``at`` is the current one; -1 if there is none."""
    track, references = programs.references[reference, TRACK], programs.references
    row, left = at, references[reference, OFFSET]
    if track >= 0 and references[reference, FROM_FIRST]:
        row = path.firsts[track, at - start]
        while row >= 0 and left > 0:
            row = row + 1 if row < at else -1
            if (
                row >= 0
                and programs.tracks[track] >> automaton.variables[path.places[row - start]] & 1
            ):
                left -= 1
    elif track >= 0:
        row = path.lasts[track, at - start]
        while row >= 0 and left > 0:
            row = path.lasts[track, row - 1 - start] if row > start else -1
            left -= 1
    if row < 0:
        return -1
    row += references[reference, SHIFT]
    return row if low <= row < high else -1


@njit_in_place
def _holds(variable, programs, automaton, rows, path, low, high, start, at):
    """Whether all conditions of a variable hold for the current row."""
    top, stack = 0, path.stack
    for number in range(programs.spans[variable], programs.spans[variable + 1]):
        opcode, argument = programs.rules[number, 0], programs.rules[number, 1]
        if opcode < 0:
            if stack[0] != 1.0:
                return False
            top = 0
        elif opcode == LOAD_ROW:
            row = _row(programs.rules[number, 2], programs, automaton, path, low, high, start, at)
            stack[top] = np.nan if row < 0 else rows.values[argument, row]
            top += 1
        elif opcode == LOAD_TIMES:
            later = _row(programs.rules[number, 2], programs, automaton, path, low, high, start, at)
            other = _row(programs.rules[number, 3], programs, automaton, path, low, high, start, at)
            stack[top] = np.nan
            if later >= 0 and other >= 0:
                # Exact, and a float of the same sign.
                apart = rows.times[later] - rows.times[other] - programs.lengths[argument]
                stack[top] = float(apart)
            top += 1
        elif opcode == LOAD_AGGREGATE:
            total = path.totals[argument, at - start]
            stack[top] = aggregated(
                programs.aggregates[argument, FUNCTION],
                path.numbers[argument, at - start],
                total,
                total,
                total,
            )
            top += 1
        elif opcode == LOAD_CONSTANT:
            stack[top] = programs.constants[argument]
            top += 1
        else:
            top = operate(opcode, argument, programs.constants, stack, top)
    return True
