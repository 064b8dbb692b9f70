"""The last two joins of a plan, listed as matches without making the records between them.

As in :mod:`cepbench.engines.zstream.kernels.counted`, a record of the outer buffer is paired with events
``z`` of a leaf and these with events ``y`` of the last leaf. Positions are written where they stay,
in chunks of matches that were counted before.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.zstream.kernels.bits import WORD, lowest, lowest_bit, word_at
from cepbench.engines.zstream.kernels.join import find_limits, word_of
from cepbench.kernels.jit import njit_in_place

_NO_BITS, _ONE = np.uint64(0), np.uint64(1)

# So many matches of a pair and more are written column by column.
_SHORT = 16


@njit_in_place
def list_last(
    records, old, fresh, joins_old, ranges, last, bits, within, positions, offsets, targets, resume,
    found,
):  # fmt: skip
    """Write matches that :func:`cepbench.engines.zstream.kernels.counted.count_last` counts.

    Returns the number of matches written.

    Parameters
    ----------
    old : int
        How many of them have been there before; they come first.
    fresh : int
        The first row of ``z`` that has not been there before.
    joins_old : bool
        Whether old records with old ``z`` are joined with the last leaf.
    bits : int64 array, shape (rows of z,) or (0,)
        The bit of row 0 of ``y`` in ``last.words``; empty without a condition.
    resume : int64 array, shape (2,)
        The record and the row of ``z`` to begin with; written in place when there is no room for
        the matches of the next ``z``.
    found : int64 array, shape (columns + 2, room)
        Written in place.
    """
    columns, tested = len(records), len(ranges.tables) > 0
    shift = last.base
    of_z, of_y = found[targets[columns]], found[targets[columns + 1]]
    its_z, its_y = offsets[columns], offsets[columns + 1]
    at, its, block, is_full = 0, -1, 0, False
    for r in range(resume[0], records.shape[1]):
        its += 1
        if its == block:
            its, block = 0, min(within.shape[1], records.shape[1] - r)
            find_limits(
                records, r, ranges.lows, ranges.highs, ranges.bounds, ranges.first, ranges.stop,
                within[0, :block], within[1, :block],
            )  # fmt: skip
            find_limits(
                records, r, last.lows, last.highs, ranges.bounds, last.first, last.stop,
                within[2, :block], within[3, :block],
            )  # fmt: skip
        low, high = np.int64(within[0, its]), np.int64(within[1, its])
        first, stop = np.int64(within[2, its]), np.int64(within[3, its])
        if r < old and not joins_old:
            low = max(low, fresh)
        if r == resume[0]:
            low = max(low, resume[1])
        # Most records have no partner at all.
        if low >= high or (
            tested
            and high - low <= WORD
            and word_of(records, r, ranges, low) & lowest(high - low) == _NO_BITS
        ):
            continue
        if last.ascending:
            while low < high and last.limits[1, low - shift] <= first:
                low += 1
            while low < high and last.limits[0, high - 1 - shift] >= stop:
                high -= 1
        begin = at
        for row in range(low, high, WORD):
            count = min(high - row, WORD)
            word = lowest(count)
            if tested:
                word &= word_of(records, r, ranges, row)
            z = row
            while word != _NO_BITS:
                if tested:
                    z = row + lowest_bit(word)
                    word &= word - _ONE
                elif z == row + count:
                    break
                least = max(first, last.limits[0, np.uint64(z - shift)])
                behind = min(stop, last.limits[1, np.uint64(z - shift)])
                size = behind - least
                if at + size > len(of_y):
                    resume[0], resume[1], is_full = r, z, True
                    break
                value = positions[np.uint64(its_z + z)]
                if len(bits) > 0:
                    for y in range(least, behind, WORD):
                        passing = word_at(last.words, bits[z - shift] + y) & lowest(behind - y)
                        while passing != _NO_BITS:
                            event = np.uint64(its_y + y + lowest_bit(passing))
                            of_y[np.uint64(at)], of_z[np.uint64(at)] = positions[event], value
                            passing &= passing - _ONE
                            at += 1
                elif size < _SHORT:
                    for event in range(its_y + least, its_y + behind):
                        of_y[np.uint64(at)], of_z[np.uint64(at)] = (
                            positions[np.uint64(event)],
                            value,
                        )
                        at += 1
                else:
                    _copy(positions[its_y + least : its_y + behind], of_y[at : at + size])
                    _fill(value, of_z[at : at + size])
                    at += size
                z += 1
            if is_full:
                break
        if begin < at:
            for column in range(columns):
                value = positions[offsets[column] + records[column, r]]
                _fill(value, found[targets[column], begin:at])
        if is_full:
            break
    return at


@njit_in_place
def _copy(values, found):
    """Copy an array to another one; indices from 0 on vectorize."""
    for at in range(len(found)):
        found[at] = values[at]


@njit_in_place
def _fill(value, found):
    """Set all entries of an array."""
    for at in range(len(found)):
        found[at] = value
