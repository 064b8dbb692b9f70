"""Extension of matches by one more event each, and matches that are equal.

Matches are columns of positions, one row of a table for each variable. The candidates of the new
variable are sorted by time, and a match is followed by one near to it in time, so the range of a match
is found from that of the one before by galloping.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.kernels.clauses import operate
from cepbench.kernels.instructions import (
    KEEP_IF_TRUE,
    LOAD_LEFT,
    LOAD_RIGHT,
    STACK,
    compares,
)
from cepbench.kernels.jit import njit, njit_in_place


class Probe(NamedTuple):
    """What a new event has to satisfy, given the events of a match.

    Attributes
    ----------
    times : int64 array, shape (events,)
    candidates : int64 array, shape (candidates,)
        Ascending positions of the events that fit the new variable by themselves.
    candidate_times : int64 array, shape (candidates,)
    after, before : int64 arrays
        Rows of the variables that the new event follows, and precedes.
    first, last : int64 arrays
        Rows of the variables among which the earliest, and the latest, event of a match is.
    window : int
    gap : int64 array
        Ascending timestamps; empty for none.
    gap_end : int
        Row of a variable: the new event is not before the last timestamp of ``gap`` before its event.
    distinct : int64 array
        Rows of the variables with another event.
    compared : int64 array, shape (conditions, 4)
        Comparisons of two values: row of a variable, its value, operator, value of the new event.
    program : int64 array, shape (instructions, 4)
        All other conditions, each ended by ``KEEP_IF_TRUE``; ``LOAD_LEFT`` has the number of a value
        and the row of its variable.
    constants : float64 array
    values : float64 array, shape (values, events)
    """

    times: np.ndarray
    candidates: np.ndarray
    candidate_times: np.ndarray
    after: np.ndarray
    before: np.ndarray
    first: np.ndarray
    last: np.ndarray
    window: int
    gap: np.ndarray
    gap_end: int
    distinct: np.ndarray
    compared: np.ndarray
    program: np.ndarray
    constants: np.ndarray
    values: np.ndarray


@njit
def extended(matches, probe, limit):
    """Every match with each event that fits it.

    Parameters
    ----------
    matches : int64 array, shape (variables, matches)
        Positions.
    probe : Probe
    limit : int
        Stop when there are more.

    Returns
    -------
    parents : int64 array, shape (found,)
        The match that each extends, ascending.
    events : int64 array, shape (found,)
        Positions of the new events.
    """
    size = max(16, matches.shape[1])
    parents, events = np.empty(size, np.int64), np.empty(size, np.int64)
    stack = np.empty(STACK)
    found = begin = end = 0
    tested = len(probe.distinct) + len(probe.compared) + len(probe.program) > 0
    for match in range(matches.shape[1]):
        begin, end = _range(matches, match, probe, begin, end)
        if found + end - begin > size:
            size = max(2 * size, found + end - begin)
            parents, events = _larger(parents, size), _larger(events, size)
        for at in range(begin, end):
            event = probe.candidates[at]
            if not tested or _fits(matches, match, event, probe, stack):
                parents[found], events[found] = match, event
                found += 1
        if found > limit:
            break
    return parents[:found], events[:found]


@njit
def extensible(matches, probe):
    """Whether there is an event that fits, for every match.

    Parameters
    ----------
    matches : int64 array, shape (variables, matches)
        Positions.
    probe : Probe

    Returns
    -------
    bool array, shape (matches,)
    """
    found = np.zeros(matches.shape[1], np.bool_)
    stack = np.empty(STACK)
    begin = end = 0
    for match in range(matches.shape[1]):
        begin, end = _range(matches, match, probe, begin, end)
        for at in range(begin, end):
            if _fits(matches, match, probe.candidates[at], probe, stack):
                found[match] = True
                break
    return found


@njit
def distinct_columns(matches):
    """The first of all equal matches each.

    Parameters
    ----------
    matches : int64 array, shape (variables, matches)
        Positions.

    Returns
    -------
    int64 array, shape (distinct matches,)
        Ascending numbers of matches.
    """
    size = 16
    while size < 2 * matches.shape[1]:
        size *= 2
    heads = np.full(size, -1, np.int64)
    kept = np.empty(matches.shape[1], np.int64)
    found = 0
    for match in range(matches.shape[1]):
        code = 0
        for row in range(matches.shape[0]):
            # Of 40 bits, so that the product does not overflow.
            code = (code * 1_000_003 + matches[row, match]) & 0xFF_FFFF_FFFF
        slot = (code ^ (code >> 17)) & (size - 1)
        while heads[slot] >= 0 and not _equal(matches, heads[slot], match):
            slot = (slot + 1) & (size - 1)
        if heads[slot] < 0:
            heads[slot] = kept[found] = match
            found += 1
    return kept[:found]


@njit_in_place
def _equal(matches, one, other):
    same = True
    for row in range(matches.shape[0]):
        same &= matches[row, one] == matches[row, other]
    return same


@njit
def _larger(array, size):
    larger = np.empty(size, np.int64)
    larger[: len(array)] = array
    return larger


@njit_in_place
def _range(matches, match, probe, begin, end):
    """The candidates in order and within the window, from the range of the match before."""
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for row in probe.after:
        low = max(low, probe.times[matches[row, match]] + 1)
    for row in probe.before:
        high = min(high, probe.times[matches[row, match]])
    for row in probe.last:
        low = max(low, probe.times[matches[row, match]] - probe.window)
    for row in probe.first:
        high = min(high, probe.times[matches[row, match]] + probe.window + 1)
    if len(probe.gap) > 0:
        last = np.searchsorted(probe.gap, probe.times[matches[probe.gap_end, match]]) - 1
        if last >= 0:
            low = max(low, probe.gap[last])
    begin = _sought(probe.candidate_times, low, begin)
    return begin, max(begin, _sought(probe.candidate_times, high, max(begin, end)))


@njit_in_place
def _sought(times, time, guess):
    """The first candidate not before a time, by galloping from a guess."""
    step = 1
    if guess < len(times) and times[guess] < time:
        low = guess
        while low + step < len(times) and times[low + step] < time:
            low += step
            step *= 2
        high = min(low + step, len(times))
    else:
        high = guess
        while high - step >= 0 and times[high - step] >= time:
            high -= step
            step *= 2
        low = max(high - step, -1)
    while high - low > 1:
        middle = (low + high) // 2
        if times[middle] < time:
            low = middle
        else:
            high = middle
    return high


@njit_in_place
def _fits(matches, match, event, probe, stack):
    """Whether an event is another one than those of a match, and all conditions hold."""
    for row in probe.distinct:
        if matches[row, match] == event:
            return False
    compared, values = probe.compared, probe.values
    for rule in range(len(compared)):
        left = values[compared[rule, 1], matches[compared[rule, 0], match]]
        if not compares(compared[rule, 2], left, values[compared[rule, 3], event]):
            return False
    top = 0
    for rule in range(len(probe.program)):
        opcode, argument = probe.program[rule, 0], probe.program[rule, 1]
        if opcode == LOAD_LEFT:
            stack[top] = values[argument, matches[probe.program[rule, 2], match]]
            top += 1
        elif opcode == LOAD_RIGHT:
            stack[top] = values[argument, event]
            top += 1
        elif opcode == KEEP_IF_TRUE:
            top -= 1
            if stack[top] == 0.0:
                return False
        else:
            top = operate(opcode, argument, probe.constants, stack, top)
    return True
