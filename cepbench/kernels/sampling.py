"""Candidates of the conditions of a pattern, sampled from a few events by one kernel call."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit

#: Relation of two variables: one and the same, in any order in time, the first one before the second.
SAME, UNORDERED, ORDERED = 0, 1, 2


@njit
def draw_candidates(
    type_codes, times, is_of, pairs, window, longest, fractions, counts, totals, drawn
):
    """Count the events of each variable, and draw candidates of each pair of variables.

    ``type_codes``: int (n,).
    ``times``: int64 (n,), non-decreasing.
    ``is_of``: bool (v, types), whether events with a type's code are of the type of each variable.
    ``pairs``: int64 (p, 3), two variables and their relation.
    ``longest``: int, a longer pause counts as one window.
    ``fractions``: float64 (most,), ascending, from 0 to below 1: where among the candidates one is
    drawn. If there are at most so many, all are.
    ``counts``: int64 (v,), out: events of each variable.
    ``totals``: int64 (p,), out: candidates of each pair; those are within the window, in order and
    different events.
    ``drawn``: int64 (p, 2, most), out: the rows of the two events of each drawn candidate.

    Returns int, the active time.
    """
    n, most = len(times), len(fractions)
    rows = np.empty((len(is_of), n), np.int32)
    counts[:] = 0
    for row in range(n):
        for variable in range(len(is_of)):
            if is_of[variable, type_codes[row]]:
                rows[variable, counts[variable]] = row
                counts[variable] += 1
    lows = np.empty(n, np.int32)
    ends = np.empty(n, np.int64)
    shared = np.empty(n, np.int32)
    for pair in range(len(pairs)):
        x, y, relation = pairs[pair, 0], pairs[pair, 1], pairs[pair, 2]
        size = counts[x]
        if relation == SAME:
            totals[pair] = size
            for number in range(min(size, most)):
                at = number if size <= most else int(fractions[number] * size)
                drawn[pair, :, number] = rows[x, at]
            continue
        total = low = high = same = 0
        for i in range(size):
            row = rows[x, i]
            time = times[row]
            while low < counts[y] and (
                times[rows[y, low]] <= time
                if relation == ORDERED
                else times[rows[y, low]] < time - window
            ):
                low += 1
            while high < counts[y] and times[rows[y, high]] <= time + window:
                high += 1
            total += high - low
            shared[i] = n
            if relation == UNORDERED:
                while same < counts[y] and rows[y, same] < row:
                    same += 1
                if same < counts[y] and rows[y, same] == row:
                    shared[i] = same
                    total -= 1
            lows[i], ends[i] = low, total
        totals[pair] = total
        i = before = 0
        for number in range(min(total, most)):
            target = number if total <= most else int(fractions[number] * total)
            while ends[i] <= target:
                before = ends[i]
                i += 1
            partner = lows[i] + target - before
            partner += partner >= shared[i]
            drawn[pair, 0, number] = rows[x, i]
            drawn[pair, 1, number] = rows[y, partner]
    active = 0
    for row in range(1, n):
        gap = times[row] - times[row - 1]
        active += gap if gap <= longest else window
    return active
