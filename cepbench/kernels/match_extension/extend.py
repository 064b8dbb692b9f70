"""Extension of matches by one more event each.

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
    matches : int32 array, shape (variables, matches)
        Positions.
    probe : Probe
    limit : int
        Stop when there are more.

    Returns
    -------
    parents : int32 array, shape (found,)
        The match that each extends, ascending.
    events : int32 array, shape (found,)
        Positions of the new events.
    """
    size = max(16, matches.shape[1])
    parents, events = np.empty(size, np.int32), np.empty(size, np.int32)
    stack = np.empty(STACK)
    found = begin = end = 0
    tested = is_tested(probe)
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
def extensions(matches, probe):
    """The number of matches that :func:`extended` would find."""
    stack = np.empty(STACK)
    found = begin = end = 0
    tested = is_tested(probe)
    for match in range(matches.shape[1]):
        begin, end = _range(matches, match, probe, begin, end)
        if tested:
            for at in range(begin, end):
                found += _fits(matches, match, probe.candidates[at], probe, stack)
        else:
            found += end - begin
    return found


@njit
def extensible(matches, probe):
    """Whether there is an event that fits, for every match.

    Parameters
    ----------
    matches : int32 array, shape (variables, matches)
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
def _larger(array, size):
    larger = np.empty(size, np.int32)
    larger[: len(array)] = array
    return larger


@njit_in_place
def is_tested(probe):
    """Whether anything is asked of a new event but its time."""
    return len(probe.distinct) + len(probe.compared) + len(probe.program) > 0


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
