"""Matches that are copied, and those that are equal."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit, njit_in_place


@njit
def gathered(matches, places, rows, found):
    """Copy columns of matches.

    ``matches``: int32 (variables, matches), positions.
    ``places``: int64 (columns,), a row of ``matches`` for each column; negative ones are left out.
    ``rows``: int32 (copied,), numbers of matches.
    ``found``: integer (columns, copied), written in place.
    """
    for column in range(len(places)):
        place = places[column]
        if place >= 0:
            for row in range(len(rows)):
                found[column, row] = matches[place, rows[row]]


@njit
def distinct_columns(matches):
    """The first of all equal matches each.

    ``matches``: int32 (variables, matches), positions.

    Returns int32 (distinct matches,), ascending numbers of matches.
    """
    size = 16
    while size < 2 * matches.shape[1]:
        size *= 2
    heads = np.full(size, -1, np.int32)
    kept = np.empty(matches.shape[1], np.int32)
    found = 0
    for match in range(matches.shape[1]):
        code = 0
        for row in range(matches.shape[0]):
            # Of 40 bits, so that the product does not overflow.
            code = (code * 1_000_003 + np.int64(matches[row, match])) & 0xFF_FFFF_FFFF
        slot = (code ^ (code >> 17)) & (size - 1)
        while heads[slot] >= 0 and not _equal(matches, heads[slot], match):
            slot = (slot + 1) & (size - 1)
        if heads[slot] < 0:
            heads[slot] = kept[found] = match
            found += 1
    return kept[:found]


@njit_in_place
def _equal(matches, one, other):
    same = True
    for row in range(matches.shape[0]):
        same &= matches[row, one] == matches[row, other]
    return same
