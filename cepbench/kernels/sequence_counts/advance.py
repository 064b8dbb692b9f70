"""Counts of the matches of a sequence over a batch of events, without runs.

The events of a timestamp are taken together. What completes matches is counted first, in the order
of positions, by what was selected before; the items before the last one follow from behind, once the
timestamp has ended. So neighbouring items never share a timestamp, and one type may be that of
several items.

Source: A-Seq [qi2014]_, section 3, and the two ways to count of
:mod:`cepbench.kernels.sequence_counts.starts` and
:mod:`cepbench.kernels.sequence_counts.window_product`.
"""

from __future__ import annotations

from cepbench.kernels.jit import njit, njit_in_place
from cepbench.kernels.sequence_counts import starts, window_product
from cepbench.kernels.sequence_counts.tables import (
    AT,
    COUNTED,
    FIRST,
    IS_LARGE,
    ITEM,
    PARTITION,
    PREVENTED,
)


@njit
def count_matches(plan, state, events):
    """Process a batch of events, from where ``state.progress`` says.

    Of the events at ``events.until`` only the matches that they complete are counted. They have to be
    given again, flagged as counted, before all later ones.

    Parameters
    ----------
    plan, state, events : Sequence, State, Events

    Returns
    -------
    bool
        Whether all events have been processed; else numbers need more digits.
    """
    progress, spans = state.progress, events.spans
    times, flags, last_item = events.times, events.flags, len(plan.begins) - 1
    partition, item, row = progress[PARTITION], progress[ITEM], progress[AT]
    first = progress[FIRST]
    while partition < len(spans) - 1:
        while first < spans[partition + 1]:
            now, behind, present = times[first], first, 0
            while behind < spans[partition + 1] and times[behind] == now:
                present |= flags[behind]
                behind += 1
            if item == last_item and row == first:
                progress[IS_LARGE] |= _expire(plan, state, partition, now - plan.window)
                if progress[IS_LARGE]:
                    return _interrupted(progress, partition, first, item, row)
            lowest = 0 if now < events.until else last_item
            while item >= lowest:
                if row == first and item < last_item and present & plan.prevents[item + 1]:
                    _prevent(plan, state, partition, plan.columns[item])
                if present & (plan.begins[item] | plan.takes[item]):
                    while row < behind:
                        if progress[IS_LARGE]:
                            return _interrupted(progress, partition, first, item, row)
                        if item < last_item or flags[row] & COUNTED == 0:
                            progress[IS_LARGE] |= _select(plan, state, events, partition, item, row)
                        row += 1
                row = first
                item -= 1
            if now < events.until:
                if not plan.by_start:
                    window_product.remember(plan, state, events, partition, first, behind)
                if present & plan.prevents[0]:
                    state.spans[partition, PREVENTED] = now
                    _prevent(plan, state, partition, 0)
            first = row = behind
            item = last_item
        partition += 1
    return True


@njit_in_place
def _interrupted(progress, partition, first, item, row):
    progress[PARTITION], progress[FIRST] = partition, first
    progress[ITEM], progress[AT] = item, row
    return False


@njit_in_place
def _expire(plan, state, partition, earliest):
    if plan.by_start:
        starts.expire(state, partition, earliest)
        return False
    return window_product.expire(plan, state, partition, earliest)


@njit_in_place
def _select(plan, state, events, partition, item, row):
    if plan.by_start:
        return starts.select(plan, state, events, partition, item, row)
    return window_product.select(plan, state, events, partition, item, row)


@njit_in_place
def _prevent(plan, state, partition, column):
    if plan.by_start:
        starts.prevent(plan, state, partition, column)
    else:
        window_product.prevent(plan, state, partition, column)
