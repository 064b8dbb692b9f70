"""Extension of matches by one more event each.

Matches are columns of positions, one row of a table for each variable. The candidates of the new
variable are sorted by time. Those that fit a match in time are found from those of the match before, which
is near to it in time, by galloping. Under an equality they may be sorted by its value first, and are looked up by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.kernels.clauses import operate
from cepbench.kernels.instructions import KEEP_IF_TRUE, LOAD_LEFT, LOAD_RIGHT, STACK, compares
from cepbench.kernels.jit import njit, njit_in_place


class Probe(NamedTuple):
    """What a new event has to satisfy, given the events of a match."""

    times: np.ndarray  #: int64 (events,)
    #: int64 (candidates,): ascending positions of the events that fit the new variable
    #: by themselves; with ``keys`` those of each key, one after the other.
    candidates: np.ndarray
    candidate_times: np.ndarray  #: int64 (candidates,)
    #: float64 (keys,): ascending values by which candidates are looked up; empty for
    #: none.
    keys: np.ndarray
    #: int64 (keys + 1,): the first candidate of each key, and the number of
    #: candidates.
    starts: np.ndarray
    key: tuple[int, int]  #: Row of the variable, and number of its value, that the key is equal to.
    #: ``after``, ``before``: int64 arrays: rows of the variables that the new event follows, and
    #: precedes.
    after: np.ndarray
    before: np.ndarray
    #: ``first``, ``last``: int64 arrays: rows of the variables among which the earliest, and the
    #: latest, event of a match is.
    first: np.ndarray
    last: np.ndarray
    window: int
    gap: np.ndarray  #: int64 array: ascending timestamps; empty for none
    #: Row of a variable: the new event is not before the last timestamp of ``gap`` before its
    #: event.
    gap_end: int
    distinct: np.ndarray  #: int64 array: rows of the variables with another event.
    #: ``earlier``, ``later``: int64 arrays: rows of the variables whose events are at earlier, and
    #: at later, positions.
    earlier: np.ndarray
    later: np.ndarray
    #: int64 (conditions, 4): comparisons of two values: row of a variable, its value,
    #: operator, value of the new event.
    compared: np.ndarray
    #: int64 (instructions, 4): all other conditions, each ended by ``KEEP_IF_TRUE``;
    #: ``LOAD_LEFT`` has the number of a value and the row of its variable.
    program: np.ndarray
    constants: np.ndarray  #: float64 array
    values: np.ndarray  #: float64 (values, events)


@njit
def extended(matches, probe, limit):
    """Every match with each event that fits it.

    ``matches``: int32 (variables, matches), positions.
    ``limit``: int, stop when there are more.

    Returns ``parents``: int32 (found,), the match that each extends, ascending. ``events``: int32
    (found,), positions of the new events.
    """
    size = matches.shape[1]
    begins, ends = np.empty(size, np.int32), np.empty(size, np.int32)
    pairs = _ranges(matches, probe, begins, ends)
    if not _is_tested(probe):
        if pairs > limit:
            pairs = limit + 1
        parents, events = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
        _listed(begins, ends, probe, parents, events)
        return parents, events
    room = min(pairs, max(16, size))
    parents, events = np.empty(room, np.int32), np.empty(room, np.int32)
    stack = np.empty(STACK)
    match = found = 0
    while True:
        match, found = _tested(matches, match, found, begins, ends, probe, stack, parents, events)
        if match == size or found > limit:
            return parents[:found], events[:found]
        room = max(2 * room, found + ends[match] - begins[match])
        parents, events = _larger(parents, room), _larger(events, room)


@njit_in_place
def _ranges(matches, probe, begins, ends):
    """The candidates of each match in order and within the window; returns their total number."""
    begin = end = total = 0
    for match in range(matches.shape[1]):
        begin, end = _range(matches, match, probe, begin, end)
        begins[match], ends[match] = begin, end
        total += end - begin
    return total


@njit_in_place
def _listed(begins, ends, probe, parents, events):
    """List the candidates of each match, as many as there is room for."""
    found = 0
    for match in range(len(begins)):
        for at in range(begins[match], min(ends[match], begins[match] + len(parents) - found)):
            parents[found], events[found] = match, probe.candidates[at]
            found += 1


@njit_in_place
def _tested(matches, match, found, begins, ends, probe, stack, parents, events):
    """List the candidates that fit, until there is no room for those of a match; returns this one."""
    while match < len(begins) and found + ends[match] - begins[match] <= len(parents):
        for at in range(begins[match], ends[match]):
            event = probe.candidates[at]
            if _fits(matches, match, event, probe, stack):
                parents[found], events[found] = match, event
                found += 1
        match += 1
    return match, found


@njit
def in_range(matches, probe):
    """The number of pairs of a match and a candidate in order and within the window."""
    size = matches.shape[1]
    return _ranges(matches, probe, np.empty(size, np.int32), np.empty(size, np.int32))


@njit
def extensions(matches, probe, most):
    """For each match the number of events that fit it, at most ``most``; int64 (matches,)."""
    found = np.zeros(matches.shape[1], np.int64)
    stack = np.empty(STACK)
    begin = end = 0
    tested = _is_tested(probe)
    for match in range(matches.shape[1]):
        begin, end = _range(matches, match, probe, begin, end)
        if not tested:
            found[match] = min(end - begin, most)
            continue
        for at in range(begin, end):
            found[match] += _fits(matches, match, probe.candidates[at], probe, stack)
            if found[match] == most:
                break
    return found


@njit
def _larger(array, size):
    larger = np.empty(size, np.int32)
    larger[: len(array)] = array
    return larger


@njit_in_place
def _is_tested(probe):
    """Whether anything is asked of a new event but its time."""
    return len(probe.distinct) + len(probe.compared) + len(probe.program) > 0


@njit_in_place
def _range(matches, match, probe, begin, end):
    """The candidates in order and within the window, from the range of the match before."""
    low, high = _times_between(matches, match, probe)
    times, first = probe.candidate_times, 0
    if len(probe.keys) > 0:
        value = probe.values[probe.key[1], matches[probe.key[0], match]]
        group = np.searchsorted(probe.keys, value)
        if group == len(probe.keys) or probe.keys[group] != value:
            return 0, 0
        first = probe.starts[group]
        times = times[first : probe.starts[group + 1]]
        begin, end = np.searchsorted(times, low), np.searchsorted(times, high)
    else:
        begin = _sought(times, low, begin)
        end = _sought(times, high, max(begin, end))
    return _among_siblings(matches, match, probe, first + begin, first + max(begin, end))


@njit_in_place
def _times_between(matches, match, probe):
    """The earliest time of an event that fits a match in order and window, and the first one behind."""
    times, low, high = probe.times, np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for row in probe.after:
        low = max(low, times[matches[row, match]] + 1)
    for row in probe.last:
        low = max(low, times[matches[row, match]] - probe.window)
    if len(probe.gap) > 0:
        last = np.searchsorted(probe.gap, times[matches[probe.gap_end, match]]) - 1
        if last >= 0:
            low = max(low, probe.gap[last])
    for row in probe.before:
        high = min(high, times[matches[row, match]])
    for row in probe.first:
        high = min(high, times[matches[row, match]] + probe.window + 1)
    return low, high


@njit_in_place
def _among_siblings(matches, match, probe, begin, end):
    """Those of a range of candidates whose positions are between those of the other elements of a set."""
    for row in probe.earlier:
        its = probe.candidates[begin:end]
        begin += np.searchsorted(its, matches[row, match], side="right")
    for row in probe.later:
        end = begin + np.searchsorted(probe.candidates[begin:end], matches[row, match])
    return begin, end


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
