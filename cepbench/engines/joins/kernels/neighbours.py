"""Joins of events that are neighbours: the only events that fit one are known by their places."""

from __future__ import annotations

from cepbench.kernels import counts
from cepbench.kernels.jit import njit_in_place


@njit_in_place
def next_to(chosen, places, shift, other, first, order, times, held, window, found):
    """The events next to which a node has a row, in order and within the window. Returns their number.

    ``chosen``: int64 (some,), the events that are looked at.
    ``places``: int64 (items, events), for each event its own row, that of the event before it, of the one
    before that, and so on, all less ``shift``; those of events that are not stored are negative.
    ``other``, ``first``: how many events before are the last one of the node's row, and the first of all.
    ``order``: int64 (pairs, 2), how many events before are two of which the first has to be earlier.
    ``times``, ``held``: int64 and bool (rows,), timestamps, and the events of which the node has a row.
    ``window``: int. ``found``: int64 (at least some,), written in place.
    """
    own, ends, begins = places[0], places[other], places[first]
    number = 0
    for place in range(len(chosen)):
        event = chosen[place]
        its, begin = ends[event] + shift, begins[event] + shift
        # No branch to mispredict. What ends at an event that is stored may begin with one that no longer is.
        fits = (begin >= 0) & held[max(its, 0)]
        fits &= times[own[event] + shift] - times[max(begin, 0)] <= window
        found[number] = event
        number += int(fits)
    for pair in range(len(order)):
        earlier, later = places[order[pair, 0]], places[order[pair, 1]]
        size, number = number, 0
        for place in range(size):
            event = found[place]
            found[number] = event
            number += int(times[earlier[event] + shift] < times[later[event] + shift])
    return number


@njit_in_place
def gathered(column, places, shift, chosen, found):
    """Write ``column[places[chosen] + shift]``: float64 (rows,), int64 (events,), int, int64 (some,), float64 (some,)."""
    for place in range(len(chosen)):
        found[place] = column[places[chosen[place]] + shift]


@njit_in_place
def keep(chosen, holds):
    """Move the events for which something holds to the front. Returns their number.

    ``chosen``: int64 (some,), written in place. ``holds``: bool (some,).
    """
    number = 0
    for place in range(len(chosen)):
        chosen[number] = chosen[place]
        number += int(holds[place])
    return number


@njit_in_place
def lifetimes(chosen, places, shift, first, times, window, unit):
    """For how long the rows that end at some events are stored, in all; see :mod:`cepbench.kernels.counts`.

    Arguments as for :func:`next_to`. ``unit``: int, the binary logarithm of the unit.
    """
    total = 0
    for place in range(len(chosen)):
        event = chosen[place]
        begin, end = places[first, event] + shift, places[0, event] + shift
        total += (window - times[end] + times[begin]) >> unit
    return total


@njit_in_place
def expire(times, flags, begin, new, end, step, window, leaves, stored, table, peaks):
    """Count what is stored after every ``step`` of the events from row ``new`` on. Returns the first row of the window.

    ``times``, ``flags``: int64 (rows,) and bool (joins, rows), of which ``begin`` to before ``end`` are stored.
    ``leaves``: int64 (joins,), the children that have the flags, negative of partial matches; then the node is ``~leaf``.
    ``stored``: int64 (joins,), how many flags are set from ``begin`` to before ``new``; written in place.
    ``table``, ``peaks``: see :mod:`cepbench.kernels.counts`; written in place.
    """
    for first in range(new, end, step):
        last = min(first + step, end)
        kept, later = begin, last - 1
        while kept < later:
            middle = (kept + later) // 2
            if times[middle] < times[last - 1] - window:
                kept = middle + 1
            else:
                later = middle
        events = rows = 0
        for join in range(len(flags)):
            fresh, old = flags[join, first:last], flags[join, begin:kept]
            for place in range(len(fresh)):
                stored[join] += fresh[place]
            for place in range(len(old)):
                stored[join] -= old[place]
            leaf = leaves[join]
            node = max(leaf, ~leaf)
            table[node, counts.PEAK] = max(table[node, counts.PEAK], stored[join])
            events += stored[join] * (leaf >= 0)
            rows += stored[join] * (leaf < 0)
        begin = kept
        peaks[counts.PEAK_PARTIAL_MATCHES] = max(peaks[counts.PEAK_PARTIAL_MATCHES], rows)
        peaks[counts.PEAK_EVENTS] = max(peaks[counts.PEAK_EVENTS], events)
    return begin
