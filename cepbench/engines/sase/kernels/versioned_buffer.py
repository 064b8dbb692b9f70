"""The shared versioned buffer: a stack of events for each state, with pointers labelled by versions.

A version is a Dewey number, stored as the number of its prefix and its last digit. Prefixes are
numbered in the order of creation, so that a longer one has a greater number than those it begins
with. An event is in a stack once; each run that selected it there has a pointer to the event that it
selected before, labelled by the run's version. A match is found by following the pointers that are
compatible with the version of the run.

Source: [agrawal2008]_, sections 5.1 and 5.3.

Differs from the paper: selections are logged, and entered in the stacks many events at a time.
Stacks are rings, which are pruned by binary search when a log has been entered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.runs.kernels.enumeration import (
    CRAMPED,
    ENDED,
    FULL,
    LENGTH,
    ROOTS,
    write_match,
)
from cepbench.kernels.jit import njit_in_place

#: The prefix of versions of one digit, and the stack before the first event.
NONE = -1

# Columns of VERSIONS, by prefix: the prefix without its last digit, that digit, and when it was
# created. A prefix is needed as long as runs that have it, which are in a window.
PREFIX, DIGIT, CREATED, VERSION_COLUMNS = range(4)

# Columns of LOG, by selection: stack and number of the event there; position and timestamp; prefix
# and digit of the version; stack and number of the event selected before.
(
    STACK, ENTRY, POSITION, TIME, OF_PREFIX, OF_DIGIT, PREVIOUS_STACK, PREVIOUS, LOG_COLUMNS,
) = range(9)  # fmt: skip

# Columns of ENDS, by accepting run: prefix and digit of its version, stack and number of its last
# event, position of its first event.
END_PREFIX, END_DIGIT, END_STACK, END_ENTRY, END_FIRST, END_COLUMNS = range(6)

# Columns of ENTRIES, by stack and number, and of POINTERS, by stack and number.
AT_POSITION, AT_TIME, FIRST_POINTER, ENTRY_COLUMNS = range(4)
TO_STACK, TO_ENTRY, LABEL_PREFIX, LABEL_DIGIT, POINTER_COLUMNS = range(5)

# Columns of BOUNDS, by stack: the first entry that is kept, the next one, and the next pointer.
FIRST, NEXT, NEXT_POINTER, BOUNDS = range(4)


class Buffer(NamedTuple):
    """Rings of powers of two: what has number n is in row n modulo the capacity."""

    entries: np.ndarray  #: int64 (states, capacity, ENTRY_COLUMNS)
    pointers: np.ndarray  #: int64 (states, capacity, POINTER_COLUMNS)
    bounds: np.ndarray  #: int64 (states, BOUNDS)


def empty_buffer(states: int) -> Buffer:
    """A buffer without events."""
    return Buffer(
        np.zeros((states, 64, ENTRY_COLUMNS), np.int64),
        np.zeros((states, 64, POINTER_COLUMNS), np.int64),
        np.zeros((states, BOUNDS), np.int64),
    )


def with_room(buffer: Buffer, log: np.ndarray) -> Buffer:
    """The buffer with room for what a log holds."""
    bounds = buffer.bounds
    states = np.arange(len(bounds))
    more = np.bincount(log[:, STACK], minlength=len(bounds))
    oldest = buffer.entries[states, bounds[:, FIRST] % buffer.entries.shape[1], FIRST_POINTER]
    stored = bounds[:, NEXT] - bounds[:, FIRST]
    oldest = np.where(stored > 0, oldest, bounds[:, NEXT_POINTER])
    return buffer._replace(
        entries=_wider(buffer.entries, bounds[:, FIRST], bounds[:, NEXT], more),
        pointers=_wider(buffer.pointers, oldest, bounds[:, NEXT_POINTER], more),
    )


def _wider(rings: np.ndarray, first: np.ndarray, end: np.ndarray, more: np.ndarray) -> np.ndarray:
    """The rings with room for ``more`` behind ``end``."""
    old = rings.shape[1]
    needed = int((end - first + more).max())
    if needed <= old:
        return rings
    size = 1 << (needed - 1).bit_length()
    found = np.zeros((len(rings), size, rings.shape[2]), np.int64)
    for ring, begin, behind, its in zip(found, first, end, rings, strict=True):
        numbers = np.arange(begin, behind)
        ring[numbers % size] = its[numbers % old]
    return found


@njit_in_place
def store(log, logged, buffer):
    """Enter the first ``logged`` selections, in the order in which they were made, in the stacks.

    The buffer has room for them.
    """
    entries, pointers, bounds = buffer
    ring, pointer_ring = entries.shape[1] - 1, pointers.shape[1] - 1
    for k in range(logged):
        stack, number = log[k, STACK], log[k, ENTRY]
        pointer = bounds[stack, NEXT_POINTER]
        bounds[stack, NEXT_POINTER] = pointer + 1
        if number == bounds[stack, NEXT]:
            place = number & ring
            entries[stack, place, AT_POSITION] = log[k, POSITION]
            entries[stack, place, AT_TIME] = log[k, TIME]
            entries[stack, place, FIRST_POINTER] = pointer
            bounds[stack, NEXT] = number + 1
        place = pointer & pointer_ring
        pointers[stack, place, TO_STACK] = log[k, PREVIOUS_STACK]
        pointers[stack, place, TO_ENTRY] = log[k, PREVIOUS]
        pointers[stack, place, LABEL_PREFIX] = log[k, OF_PREFIX]
        pointers[stack, place, LABEL_DIGIT] = log[k, OF_DIGIT]


@njit_in_place
def prune(buffer, earliest):
    """Remove the events before ``earliest``, found by binary search [agrawal2008]_, section 5.3."""
    entries, bounds = buffer.entries, buffer.bounds
    for stack in range(len(bounds)):
        bounds[stack, FIRST] = first_since(
            entries[stack, :, AT_TIME], bounds[stack, FIRST], bounds[stack, NEXT], earliest
        )


@njit_in_place
def first_since(times, low, high, earliest):
    """The first number from ``low`` to ``high`` in a ring that is not before ``earliest``."""
    while low < high:
        middle = (low + high) // 2
        if times[middle & (len(times) - 1)] < earliest:
            low = middle + 1
        else:
            high = middle
    return low


@njit_in_place
def first_pointer_behind(buffer, stack, entry):
    """The number of the first pointer that is of a later event than an entry."""
    if entry + 1 == buffer.bounds[stack, NEXT]:
        return buffer.bounds[stack, NEXT_POINTER]
    ring = buffer.entries.shape[1] - 1
    return buffer.entries[stack, (entry + 1) & ring, FIRST_POINTER]


@njit_in_place
def compatible(buffer, versions, stack, entry, prefix, digit):
    """The number of the pointer of an event that a run with a version may follow; it has one.

    A pointer is compatible if its version is a prefix of the run's one, or differs from such a
    prefix in the last digit only, which is less.
    """
    pointers, ring = buffer.pointers, len(versions) - 1
    pointer_ring = pointers.shape[1] - 1
    pointer = buffer.entries[stack, entry & (buffer.entries.shape[1] - 1), FIRST_POINTER]
    end = first_pointer_behind(buffer, stack, entry)
    while pointer < end - 1:
        label = pointers[stack, pointer & pointer_ring, LABEL_PREFIX]
        its_prefix, its_digit = prefix, digit
        while its_prefix > label:
            its_digit = versions[its_prefix & ring, DIGIT]
            its_prefix = versions[its_prefix & ring, PREFIX]
        if (
            its_prefix == label
            and its_digit >= pointers[stack, pointer & pointer_ring, LABEL_DIGIT]
        ):
            break
        pointer += 1
    return pointer


@njit_in_place
def construct(buffer, versions, ends, items, sets, search, chunk):
    """Write the matches of accepting runs until all are written or the chunk is full.

    ``items``: int64 (states,), the item of each stack. ``sets``: int64 (items,), for each item the
    row of ``chunk.members`` that it is written to; -1 if it has one event.

    Returns ``ENDED``, ``FULL`` or ``CRAMPED``.
    """
    path, progress = search.path, search.progress
    entry_ring, pointer_ring = buffer.entries.shape[1] - 1, buffer.pointers.shape[1] - 1
    while progress[ROOTS] < len(ends):
        end = progress[ROOTS]
        prefix, digit = ends[end, END_PREFIX], ends[end, END_DIGIT]
        stack, entry = ends[end, END_STACK], ends[end, END_ENTRY]
        depth = 0
        item = len(sets)
        while stack != NONE:
            if depth == len(path):
                return CRAMPED
            if items[stack] != item:
                item = items[stack]
                search.begins[item + 1] = depth
            path[depth] = buffer.entries[stack, entry & entry_ring, AT_POSITION]
            depth += 1
            place = compatible(buffer, versions, stack, entry, prefix, digit) & pointer_ring
            # Versions along the path are those of ancestors: what precedes is compatible with them.
            prefix = buffer.pointers[stack, place, LABEL_PREFIX]
            digit = buffer.pointers[stack, place, LABEL_DIGIT]
            entry = buffer.pointers[stack, place, TO_ENTRY]
            stack = buffer.pointers[stack, place, TO_STACK]
        search.begins[0] = progress[LENGTH] = depth
        if not write_match(len(sets) - 1, sets, search, chunk):
            return FULL
        progress[ROOTS] = end + 1
    return ENDED
