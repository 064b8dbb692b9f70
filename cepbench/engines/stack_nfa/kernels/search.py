"""Backward search from accepting events [wu2006]_: sequences are enumerated depth first.

An instance is a row; the rows of all stacks are numbered through, one stack after the other. The
search goes from the last item to the first. At each item the candidates are one range of rows: from
the first one in the window of the accepting event to the most recent instance in the stack (RIP)
before the instance chosen last. Only the rows of the sequence under construction are stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.plan_runs.kernels.sequences import (
    COMPARE,
    COMPARED,
    EXTENDED,
    FOUND,
    ITEM,
    PROGRAM,
    RULE_KINDS,
    WRITTEN,
    programs_hold,
)
from cepbench.kernels.instructions import compares, passing
from cepbench.kernels.jit import njit_in_place


class Plan(NamedTuple):
    """A compiled pattern."""

    items: int  #: positive items, numbered as written
    spans: np.ndarray  #: int64 (items + negations, RULE_KINDS + 1): conditions tested at each
    rules: np.ndarray  #: int64 (rules, RULE_COLUMNS)
    constants: np.ndarray  #: float64
    negations: np.ndarray  #: int64 (negations, 3): stack, items that bound it from below and above


class Rows(NamedTuple):
    """The instances of all stacks in a round."""

    tops: np.ndarray  #: int64, by row: the row behind its RIP
    lows: np.ndarray  #: int64 (items - 1, finals): first rows in the window of each accepting event
    finals: int  #: the row of the first accepting event
    bounds: np.ndarray  #: int64: limits of rows of negated stacks
    offsets: np.ndarray  #: int64 (negations, 2): where row 0 of the bounding items would be
    labels: np.ndarray  #: int64, by row: the position of its event


@njit_in_place
def search(reports, plan, rows, scratch, matches):
    """Find the sequences of all accepting events.

    ``matches``: int64 (items, capacity), positions of the events; at least as many as a stack has
    rows.

    Returns whether the search has ended; else ``matches`` is full and it is to be called again.
    """
    progress, bound, at, sizes = scratch.progress, scratch.bound, scratch.at, scratch.sizes
    last = plan.items - 1
    item = progress[ITEM]
    progress[WRITTEN] = 0
    finals = rows.finals, rows.finals + rows.lows.shape[1]
    if last == 0:
        _complete(reports, finals[0], finals[1], plan, rows, scratch, matches)
        return True
    while True:
        if item == 1:
            if not _complete_all(reports, plan, rows, scratch, matches):
                progress[ITEM] = item
                return False
            item = 2
        if at[item] == sizes[item]:
            if item == plan.items:
                return True
            item += 1
            continue
        low, high = finals
        if item < plan.items:
            row = scratch.candidates[item, at[item]]
            bound[item] = row
            low, high = rows.lows[item - 1, bound[last] - finals[0]], rows.tops[row]
        at[item] += 1
        if low < high:
            item -= 1
            sizes[item] = _chosen(item, low, high, plan, rows, scratch)
            at[item] = 0
            if item < last:
                scratch.tallies[item, EXTENDED] += sizes[item]


@njit_in_place
def _complete_all(reports, plan, rows, scratch, matches):
    """Complete the sequences of the second item's candidates; false if there is no room."""
    bound, candidates, last = scratch.bound, scratch.candidates[1], plan.items - 1
    first, at, size = plan.spans[0, COMPARE], scratch.at[1], scratch.sizes[1]
    tested = plan.spans[0, RULE_KINDS] - first
    counts = not reports and len(plan.negations) == 0
    total = 0
    if counts and tested == 0 and last > 1:
        low = rows.lows[0, bound[last] - rows.finals]
        for k in range(at, size):
            total += max(rows.tops[candidates[k]] - low, 0)
    elif counts and tested == 1 and plan.spans[0, PROGRAM] > first:
        operator, other = plan.rules[first, 2], plan.rules[first, 1]
        origin, other_origin = scratch.origins[plan.rules[first, 0]], scratch.origins[other]
        compared = 0
        for k in range(at, size):
            bound[1] = candidates[k]
            low, high = rows.lows[0, bound[last] - rows.finals], rows.tops[bound[1]]
            if low < high:
                value = scratch.values[other_origin + bound[plan.rules[first, 3]]]
                total += passing(operator, scratch.values[origin + low : origin + high], value)
                compared += high - low
        scratch.tallies[0, COMPARED] += compared
    else:
        for k in range(at, size):
            bound[1] = candidates[k]
            low, high = rows.lows[0, bound[last] - rows.finals], rows.tops[bound[1]]
            if reports and scratch.progress[WRITTEN] + high - low > matches.shape[1]:
                scratch.at[1] = k
                return False
            if low < high:
                _complete(reports, low, high, plan, rows, scratch, matches)
    scratch.progress[FOUND] += total
    return True


@njit_in_place
def _complete(reports, low, high, plan, rows, scratch, matches):
    """Add the first item's rows ``low..high`` that complete the sequence."""
    progress, bound = scratch.progress, scratch.bound
    count = high - low
    is_tested = plan.spans[0, 0] < plan.spans[0, RULE_KINDS] or len(plan.negations) > 0
    if is_tested:
        count = _chosen(0, low, high, plan, rows, scratch)
        kept = 0
        for k in range(count if len(plan.negations) > 0 else 0):
            bound[0] = scratch.candidates[0, k]
            scratch.candidates[0, kept] = bound[0]
            kept += not _is_negated(plan, rows, scratch)
        count = kept if len(plan.negations) > 0 else count
    progress[FOUND] += count
    if not reports:
        return
    place = progress[WRITTEN]
    for k in range(count):
        row = scratch.candidates[0, k] if is_tested else low + k
        matches[0, place + k] = rows.labels[row]
    for item in range(1, plan.items):
        label = rows.labels[bound[item]]
        target = matches[item]
        for k in range(place, place + count):
            target[k] = label
    progress[WRITTEN] += count


@njit_in_place
def _chosen(item, low, high, plan, rows, scratch):
    """Write the rows ``low..high`` that fit the items chosen, and return how many there are."""
    candidates = scratch.candidates[item]
    first, stop = plan.spans[item, COMPARE], plan.spans[item, COMPARE + 1]
    count = high - low
    if first < plan.spans[item, RULE_KINDS]:
        scratch.tallies[item, COMPARED] += count
    if first == stop:
        for k in range(count):
            candidates[k] = low + k
    for rule in range(first, stop):
        other = plan.rules[rule, 1]
        value = scratch.values[scratch.origins[other] + scratch.bound[plan.rules[rule, 3]]]
        operator, origin = plan.rules[rule, 2], scratch.origins[plan.rules[rule, 0]]
        kept = 0
        if rule == first:
            for row in range(low, high):
                candidates[kept] = row
                kept += compares(operator, scratch.values[origin + row], value)
        else:
            for k in range(count):
                row = candidates[k]
                candidates[kept] = row
                kept += compares(operator, scratch.values[origin + row], value)
        count = kept
    program, end = plan.spans[item, PROGRAM], plan.spans[item, PROGRAM + 1]
    if program < end:
        kept = 0
        for k in range(count):
            row = candidates[k]
            scratch.bound[item] = row
            candidates[kept] = row
            kept += programs_hold(program, end, plan, scratch)
        count = kept
    return count


@njit_in_place
def _is_negated(plan, rows, scratch):
    """Whether an event of a negated item forbids the sequence."""
    bound = scratch.bound
    for negation in range(len(plan.negations)):
        stack, after, before = plan.negations[negation]
        low = rows.bounds[rows.offsets[negation, 0] + bound[after]]
        high = rows.bounds[rows.offsets[negation, 1] + bound[before]]
        owner = plan.items + negation
        first, stop = plan.spans[owner, COMPARE], plan.spans[owner, COMPARE + 1]
        program, end = plan.spans[owner, PROGRAM], plan.spans[owner, PROGRAM + 1]
        for row in range(low, high):
            forbids = True
            for rule in range(first, stop):
                other = plan.rules[rule, 1]
                forbids = forbids and compares(
                    plan.rules[rule, 2],
                    scratch.values[scratch.origins[plan.rules[rule, 0]] + row],
                    scratch.values[scratch.origins[other] + bound[plan.rules[rule, 3]]],
                )
            if forbids and program < end:
                bound[stack] = row
                forbids = programs_hold(program, end, plan, scratch)
            if forbids:
                return True
    return False
