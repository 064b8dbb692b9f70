"""Matches folded into the totals of their first events.

Matches come in *runs*: successive ones with the same last event and group, in ascending order of
the group, then of the last event: matches ``begins[run]`` to ``ends[run]``. A *slot* is what the
matches of a group with the same first event have in common; ``slots`` are those of the matches.
Positions are counted from ``lowest`` on.
"""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place


@njit_in_place
def number_slots(begins, ends, groups, firsts, lowest, slots_before, owners, places, slots, new):
    """Number the slots of matches; returns the number of new ones.

    ``groups``: int64 (runs,).
    ``firsts``: int64 (matches,), positions of first events.
    ``slots_before``: int64 (2, n), the groups, ascending, and first events of slots that have
    numbers already.
    ``owners``, ``places``: int64 (positions,), working space; ``owners`` is -1.
    ``slots``: int64 (matches,), written: the slot of each match.
    ``new``: int64 (2, matches), written: the run and the first match of each new slot.
    """
    before = slots_before.shape[1]
    known, number = 0, before
    for run in range(len(begins)):
        group = groups[run]
        while known < before and slots_before[0, known] <= group:
            place = slots_before[1, known] - lowest
            owners[place], places[place] = slots_before[0, known], known
            known += 1
        for match in range(begins[run], ends[run]):
            place = firsts[match] - lowest
            if owners[place] != group:
                owners[place], places[place] = group, number
                new[0, number - before], new[1, number - before] = run, match
                number += 1
            slots[match] = places[place]
    return number - before


@njit_in_place
def fold(
    cells, slots, weights, places, lowest, begins, ends, runs, expiring, expired, behind, out, zero,
    is_maximum,
):  # fmt: skip
    """Add matches to slots, and take the totals of groups after each change.

    Nothing is subtracted but integers, so that floats do not drift.

    ``cells``: (slots,), totals of slots, written in place.
    ``weights``: array, what matches add: match m ``weights[places[m] - lowest]``.
    ``places``: int64 (matches,).
    ``runs``: int64 (changes + 1,), where the runs of each change begin.
    ``expiring``: int64 (slots,), slots by group, and in the order in which they expire.
    ``expired``, ``behind``: int64 (changes,), by change, where in ``expiring`` the slots begin that
    are active, and where those of the group end.
    ``out``: (changes,), the totals: maxima (``is_maximum``) or sums.
    """
    total, low, high = zero, 0, -1
    for change in range(len(out)):
        is_stale = behind[change] != high
        if is_stale:
            low, high = expired[change], behind[change]
        while low < expired[change]:
            cell = cells[expiring[low]]
            if is_maximum:
                is_stale |= cell == total
            elif cells.dtype.type(0.5) != 0:
                is_stale |= cell != 0
            else:
                total -= cell
            low += 1
        if is_stale:
            total = zero
            for place in range(low, high):
                cell = cells[expiring[place]]
                total = max(total, cell) if is_maximum else total + cell
        for run in range(runs[change], runs[change + 1]):
            for match in range(begins[run], ends[run]):
                weight, slot = weights[places[match] - lowest], slots[match]
                if is_maximum:
                    cells[slot] = max(cells[slot], weight)
                    total = max(total, weight)
                else:
                    cells[slot] += weight
                    total += weight
        out[change] = total
