"""WinSeq [liu2011]_, section III-C: sequences are constructed depth first along pointers."""

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

# Columns of VIAS: the owner whose pointers lead there, their label, and the item that it precedes.
VIA, LABEL, BEFORE = 0, 1, 2

_BEFORE_ALL = np.iinfo(np.int64).min


class Query(NamedTuple):
    """A compiled query. Its items are numbered as written, then its negated items: the owners."""

    items: int
    window: int
    spans: np.ndarray  #: int64 (owners + 1,): the stacks that each owner reads
    stacks: np.ndarray  #: int64
    vias: np.ndarray  #: int64 (owners, 3): how each is reached; not read for the last item
    filters: np.ndarray  #: int64 (owners,): the filter that its events pass; -1 if all do
    rule_spans: np.ndarray  #: int64 (owners, RULE_KINDS + 1): conditions tested at each
    rules: np.ndarray  #: int64 (rules, RULE_COLUMNS)
    constants: np.ndarray  #: float64
    afters: np.ndarray  #: int64 (negations,): the item that each follows, -1 for none
    tested: np.ndarray  #: int64 (items + 1,): the negations tested at each item
    used: np.ndarray  #: int64: all stacks that are read

    def read_by(self, owner: int) -> np.ndarray:
        """The stacks that an owner reads."""
        return self.stacks[self.spans[owner] : self.spans[owner + 1]]


@njit_in_place
def construct(reports, query, stacks, graph, lows, scratch, matches):
    """Find the sequences that some events complete.

    ``lows``: int64 (stacks,), the first event of each stack that may be in the window; updated in
    place. ``matches``: int64 (items, capacity), positions of the events.

    Returns whether the construction has ended; else ``matches`` is full and it is to be called
    again.
    """
    progress, bound, at, sizes = scratch.progress, scratch.bound, scratch.at, scratch.sizes
    last = query.items - 1
    item = progress[ITEM]
    progress[WRITTEN] = 0
    counts_ranges = _counts_ranges(reports, query)
    if item > last:
        item = last
        at[last] = 0
        if last == 0:
            sizes[0] = _completing(query, stacks, graph, lows, scratch)
    while True:
        if at[item] == sizes[item]:
            item += 1
            if item > last:
                return True
            continue
        if item == 0:
            count = sizes[0] - at[0]
            if reports:
                count = min(count, matches.shape[1] - progress[WRITTEN])
                if count == 0:
                    progress[ITEM] = 0
                    return False
                _write(at[0], count, query, stacks, scratch, matches)
            at[0] += count
            progress[FOUND] += count
            continue
        bound[item] = scratch.candidates[item, at[item]]
        at[item] += 1
        if item == last:
            _move_window(query, stacks, lows, bound[last])
        if item == 1 and counts_ranges:
            progress[FOUND] += _in_ranges(query, stacks, graph, lows, scratch)
            continue
        item -= 1
        sizes[item] = _chosen(item, query, stacks, graph, lows, scratch)
        at[item] = 0
        scratch.tallies[item, EXTENDED] += sizes[item]


@njit_in_place
def _counts_ranges(reports, query):
    """Whether the first item's events are only counted, and restricted by one comparison at most."""
    compared = query.rule_spans[0, COMPARE + 1] - query.rule_spans[0, COMPARE]
    return (
        not reports
        and query.vias[0, LABEL] == 0
        and query.filters[0] < 0
        and query.rule_spans[0, RULE_KINDS] - query.rule_spans[0, COMPARE] == compared
        and compared <= 1
        and query.tested[1] == 0
    )


@njit_in_place
def _in_ranges(query, stacks, graph, lows, scratch):
    """The number of the first item's events that the second item's points to, and that fit."""
    events, bound = stacks.events, scratch.bound
    rule = query.rule_spans[0, COMPARE]
    is_compared = rule < query.rule_spans[0, COMPARE + 1]
    count, visited = 0, 0
    for s in range(query.spans[0], query.spans[1]):
        target = query.stacks[s]
        place = graph.places[0, events.stacks[bound[1]], target]
        low, high = lows[target], stacks.pointers[place, bound[1]] + 1
        if low >= high:
            continue
        if is_compared:
            value = events.values[query.rules[rule, 1], bound[query.rules[rule, 3]]]
            origin = stacks.origins[target]
            values = events.values[query.rules[rule, 0], origin + low : origin + high]
            count += passing(query.rules[rule, 2], values, value)
            visited += high - low
        else:
            count += high - low
    scratch.tallies[0, COMPARED] += visited
    return count


@njit_in_place
def _move_window(query, stacks, lows, row):
    """Skip the events that are too early for a last one."""
    earliest = stacks.events.times[row] - query.window
    for s in range(len(query.used)):
        stack = query.used[s]
        origin, low = stacks.origins[stack], lows[stack]
        while low < stacks.sizes[stack] and stacks.events.times[origin + low] < earliest:
            low += 1
        lows[stack] = low


@njit_in_place
def _completing(query, stacks, graph, lows, scratch):
    """Keep the events that are matches of a query of one item."""
    candidates = scratch.candidates[0]
    kept = 0
    for k in range(scratch.sizes[0]):
        scratch.bound[0] = candidates[k]
        _move_window(query, stacks, lows, candidates[k])
        candidates[kept] = candidates[k]
        kept += _is_allowed(0, query, stacks, graph, lows, scratch)
    return kept


@njit_in_place
def _write(begin, count, query, stacks, scratch, matches):
    """Write the matches with some of the first item's candidates."""
    positions, place = stacks.events.positions, scratch.progress[WRITTEN]
    for k in range(count):
        matches[0, place + k] = positions[scratch.candidates[0, begin + k]]
    for item in range(1, query.items):
        position = positions[scratch.bound[item]]
        target = matches[item]
        for k in range(place, place + count):
            target[k] = position
    scratch.progress[WRITTEN] += count


@njit_in_place
def _chosen(item, query, stacks, graph, lows, scratch):
    """Write the candidates of an item that fit the items chosen, and return their number."""
    candidates, bound, events = scratch.candidates[item], scratch.bound, stacks.events
    times = events.times
    source, label = bound[query.vias[item, VIA]], query.vias[item, LABEL]
    limit, key = times[bound[query.vias[item, BEFORE]]], graph.key_of[label]
    rule, stop = query.rule_spans[item, COMPARE], query.rule_spans[item, COMPARE + 1]
    compares_ranges = label == 0 and rule < stop
    if compares_ranges:
        column, operator = query.rules[rule, 0], query.rules[rule, 2]
        value = events.values[query.rules[rule, 1], bound[query.rules[rule, 3]]]
        rule += 1
    count, compared = 0, 0
    for s in range(query.spans[item], query.spans[item + 1]):
        target = query.stacks[s]
        origin, low = stacks.origins[target], lows[target]
        number = stacks.pointers[graph.places[label, events.stacks[source], target], source]
        if label > 0:
            while number >= low and times[origin + number] >= limit:
                number = stacks.previous[key, origin + number]
            while number >= low:
                candidates[count] = origin + number
                count += 1
                number = stacks.previous[key, origin + number]
        elif compares_ranges:
            compared += max(number + 1 - low, 0)
            for row in range(origin + low, origin + number + 1):
                candidates[count] = row
                count += compares(operator, events.values[column, row], value)
        else:
            for row in range(origin + low, origin + number + 1):
                candidates[count] = row
                count += 1
    if not compares_ranges and query.rule_spans[item, 0] < query.rule_spans[item, RULE_KINDS]:
        compared += count
    scratch.tallies[item, COMPARED] += compared
    if query.filters[item] >= 0:
        passed = events.passed[query.filters[item]]
        kept = 0
        for k in range(count):
            candidates[kept] = candidates[k]
            kept += passed[candidates[k]]
        count = kept
    while rule < stop:
        values, operator = events.values[query.rules[rule, 0]], query.rules[rule, 2]
        value = events.values[query.rules[rule, 1], bound[query.rules[rule, 3]]]
        kept = 0
        for k in range(count):
            row = candidates[k]
            candidates[kept] = row
            kept += compares(operator, values[row], value)
        count = kept
        rule += 1
    program, end = query.rule_spans[item, PROGRAM], query.rule_spans[item, PROGRAM + 1]
    is_programmed = program < end
    if is_programmed or query.tested[item] < query.tested[item + 1]:
        kept = 0
        for k in range(count):
            bound[item] = candidates[k]
            candidates[kept] = candidates[k]
            kept += (not is_programmed or programs_hold(program, end, query, scratch)) and (
                _is_allowed(item, query, stacks, graph, lows, scratch)
            )
        count = kept
    return count


@njit_in_place
def _is_allowed(item, query, stacks, graph, lows, scratch):
    """Whether no event of a negated item that is tested at an item forbids the sequence."""
    bound, times = scratch.bound, stacks.events.times
    for negation in range(query.tested[item], query.tested[item + 1]):
        owner = query.items + negation
        source, label = bound[query.vias[owner, VIA]], query.vias[owner, LABEL]
        limit, key = times[bound[query.vias[owner, BEFORE]]], graph.key_of[label]
        after = query.afters[negation]
        earliest = times[bound[after]] if after >= 0 else _BEFORE_ALL
        for s in range(query.spans[owner], query.spans[owner + 1]):
            target = query.stacks[s]
            origin, low = stacks.origins[target], lows[target]
            kind = stacks.events.stacks[source]
            number = stacks.pointers[graph.places[label, kind, target], source]
            while number >= low and times[origin + number] > earliest:
                row = origin + number
                if times[row] < limit and _forbids(owner, row, query, stacks, scratch):
                    return False
                number = stacks.previous[key, row] if label > 0 else number - 1
    return True


@njit_in_place
def _forbids(owner, row, query, stacks, scratch):
    """Whether an event of a negated item satisfies its conditions."""
    events, bound = stacks.events, scratch.bound
    if query.filters[owner] >= 0 and not events.passed[query.filters[owner], row]:
        return False
    for rule in range(query.rule_spans[owner, COMPARE], query.rule_spans[owner, COMPARE + 1]):
        if not compares(
            query.rules[rule, 2],
            events.values[query.rules[rule, 0], row],
            events.values[query.rules[rule, 1], bound[query.rules[rule, 3]]],
        ):
            return False
    program, end = query.rule_spans[owner, PROGRAM], query.rule_spans[owner, PROGRAM + 1]
    if program < end:
        bound[owner] = row
        return programs_hold(program, end, query, scratch)
    return True
