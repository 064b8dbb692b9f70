"""Counts of the matches of a sequence over a batch of events, without runs.

The events of a timestamp are taken together. What completes matches is counted first, in the order
of positions, by what was selected before; the items before the last one follow from behind, once the
timestamp has ended. So neighbouring items never share a timestamp, and one type may be that of
several items.

Source: A-Seq [qi2014]_, section 3, and the two ways to count of
:mod:`cepbench.engines.sequence_counts.kernels.starts` and
:mod:`cepbench.engines.sequence_counts.kernels.window_product`.
"""

from __future__ import annotations

from cepbench.engines.sequence_counts.kernels import starts, tables, window_product
from cepbench.engines.sequence_counts.kernels.numbers import assign, copy_total, is_too_large
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def count_matches(plan, state, events):
    """Process a batch of events, from where ``state.progress`` says.

    Of the events at ``events.until`` only the matches that they complete are counted. They have to be
    given again, flagged as counted, before all later ones. Returns whether all events have been
    processed; else numbers need more digits.
    """
    progress, spans, rows = state.progress, events.spans, events.rows
    times, flags, last_item = events.times, events.flags, len(plan.begins) - 1
    place, first = progress[tables.PLACE], progress[tables.FIRST]
    item, at = progress[tables.ITEM], progress[tables.AT]
    while place < len(events.parts):
        partition = events.parts[place]
        while first < spans[place + 1]:
            now, behind, present = times[rows[first]], first, 0
            while behind < spans[place + 1] and times[rows[behind]] == now:
                present |= flags[rows[behind]]
                behind += 1
            if item == last_item and at == first:
                progress[tables.IS_LARGE] |= _expire(plan, state, partition, now - plan.window)
                if progress[tables.IS_LARGE]:
                    return _interrupted(progress, place, first, item, at)
            lowest = 0 if now < events.until else last_item
            while item >= lowest:
                if at == first and item < last_item and present & plan.prevents[item + 1]:
                    _prevent(plan, state, partition, plan.sources[item + 1])
                is_sampled = item == last_item and len(events.samples) > 0
                if is_sampled or present & (plan.begins[item] | plan.takes[item]):
                    while at < behind:
                        row = rows[at]
                        weight = plan.one
                        if item == plan.weighted:
                            weight = events.weights[row]
                            progress[tables.IS_LARGE] |= _is_too_large(
                                plan, state, partition, item, weight
                            )
                        if progress[tables.IS_LARGE]:
                            return _interrupted(progress, place, first, item, at)
                        if item < last_item or flags[row] & tables.COUNTED == 0:
                            progress[tables.IS_LARGE] |= _select(
                                plan, state, events, partition, item, row, weight
                            )
                        if is_sampled:
                            _sample(plan, state, partition, events.samples[at])
                        at += 1
                at = first
                item -= 1
            if now < events.until:
                if not plan.by_start:
                    window_product.remember(plan, state, events, partition, first, behind)
                if present & plan.prevents[0]:
                    state.spans[partition, tables.PREVENTED] = now
                    _prevent(plan, state, partition, 0)
            first = at = behind
            item = last_item
        place += 1
    return True


@njit_in_place
def _interrupted(progress, place, first, item, at):
    progress[tables.PLACE], progress[tables.FIRST] = place, first
    progress[tables.ITEM], progress[tables.AT] = item, at
    return False


@njit_in_place
def _expire(plan, state, partition, earliest):
    if plan.by_start:
        starts.expire(state.spans[partition], state.times, state.marks, earliest)
        return False
    return window_product.expire(plan, state, partition, earliest)


@njit_in_place
def _select(plan, state, events, partition, item, row, weight):
    if plan.by_start:
        return starts.select(plan, state, events, partition, item, row, weight)
    return window_product.select(plan, state, events, partition, item, row, weight)


@njit_in_place
def _is_too_large(plan, state, partition, item, weight):
    """Whether what an item continues needs more digits before it is multiplied by a weight."""
    columns = state.cells.shape[0]
    for step in range(plan.step_spans[2 * item], plan.step_spans[2 * item + 2]):
        if plan.steps[step, tables.IS_WEIGHTED]:
            if plan.by_start:
                cells, first = state.cells, state.spans[partition, tables.LOW]
                last = state.spans[partition, tables.HIGH]
            else:
                cells, first = state.back, partition * columns
                last = first + columns
            if is_too_large(
                cells, plan.steps[step, tables.SOURCE], first, last, weight, plan.is_maximum
            ):
                return True
    return False


@njit_in_place
def _sample(plan, state, partition, sample):
    """Write the value after an event."""
    if sample >= 0:
        edge = len(plan.count_spans) - 2
        if plan.count_spans[edge] < plan.count_spans[edge + 1]:
            if plan.by_start:
                starts.count(plan, state, partition, edge, False, plan.one)
            else:
                window_product.count(plan, state, partition, edge, plan.one)
        copy_total(state.out, sample, state.found)
    assign(state.found, 0, 0, 1, plan.zero)


@njit_in_place
def _prevent(plan, state, partition, column):
    span, columns = state.spans[partition], state.cells.shape[0]
    if plan.by_start:
        window_product.clear(plan, state.cells, column, span[tables.LOW], span[tables.HIGH])
    else:
        first = partition * columns
        window_product.clear(plan, state.back, column, first, first + columns)
