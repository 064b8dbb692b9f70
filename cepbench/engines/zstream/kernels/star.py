"""Counting records whose conditions all mention one variable, without making any part of them.

One variable of a record is its *centre*, another one its *spoke*; the others are *satellites*. The
events of a satellite that fit are rows between one that the centre's event sets and one that the
spoke's event sets; of these rows, those that pass the conditions with the centre's event. Given both
events, satellites are independent of each other, so that their numbers multiply, and records are
counted by pairs of a centre and a spoke. Without conditions, all spokes of a centre are one difference
of running sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepbench.engines.zstream.kernels.bits import (
    WORD,
    bits_between,
    bits_in,
    lowest,
    lowest_bit,
    word_at,
)
from cepbench.kernels.jit import njit_in_place

_EARLIEST = np.iinfo(np.int64).min
_NO_BITS, _ONE = np.uint64(0), np.uint64(1)


class Leg(NamedTuple):
    """A spoke or a satellite."""

    lows: np.ndarray  #: int32 (centres,): the first row that each centre allows
    highs: np.ndarray  #: int32 (centres,): the row behind the last one
    first: int  #: no earlier row
    moving: np.ndarray  #: int32 (spokes,): of a satellite, the row that each spoke sets:
    from_low: bool  #: the first one, or else the row behind the last one
    origins: np.ndarray  #: int64 (centres,): the bit of row 0; empty without conditions
    words: np.ndarray  #: uint64
    ranks: np.ndarray  #: int32


class Star(NamedTuple):
    """The variables of some records."""

    begin: int  #: the first row of the centre
    stop: int  #: the row behind the last one
    base: int  #: the row of the centre that comes first in the arrays of legs
    spoke_base: int  #: the same of the spoke
    times: np.ndarray  #: int64, by row of the centre
    spoke_times: np.ndarray  #: int64, by row of the spoke
    spoke: Leg
    first_satellite: Leg  #: what it is does not matter if there is none
    second_satellite: Leg
    satellites: int
    timed: bool  #: whether times are wanted


@njit_in_place
def _range(leg, at):
    """The rows of a leg that a centre allows."""
    low = max(np.int64(leg.lows[at]), leg.first)
    return low, max(np.int64(leg.highs[at]), low)


@njit_in_place
def _passing(leg, at, low, high):
    """How many of the rows low … high - 1 pass the conditions with a centre."""
    if len(leg.origins) == 0 or low == high:
        return high - low
    bit = leg.origins[at] + low
    if high - low <= WORD:
        return bits_in(word_at(leg.words, bit) & lowest(high - low))
    return np.int64(bits_between(leg.words, leg.ranks, bit, bit + high - low))


@njit_in_place
def _fitting(leg, at, low, high, spoke):
    """How many events of a satellite fit a centre, which allows low … high - 1, and a spoke."""
    row = min(max(np.int64(leg.moving[spoke]), low), high)
    return _passing(leg, at, row, high) if leg.from_low else _passing(leg, at, low, row)


@njit_in_place
def _sum_of(word, numbers, least):
    """The sum of those of up to 64 numbers whose bits are set, each taken as at least ``least``."""
    total = np.int64(0)
    if 4 * bits_in(word) < len(numbers):
        while word != _NO_BITS:
            total += max(np.int64(numbers[lowest_bit(word)]), least)
            word &= word - _ONE
        return total
    for at in range(len(numbers)):
        mask = -np.int64((word >> np.uint64(at)) & _ONE)
        total += mask & max(np.int64(numbers[at]), least)
    return total


@njit_in_place
def count_star(star, results):
    """Count records, and add up the times from their centres to their spokes.

    ``results``: int64 (2,), added to: records, the sum of those times.
    """
    spoke, first, second = star.spoke, star.first_satellite, star.second_satellite
    records, span = np.int64(0), np.int64(0)
    is_row = star.satellites == 1 and not star.timed and len(first.origins) == 0
    for centre in range(star.begin, star.stop):
        at = centre - star.base
        low, high = _range(spoke, at)
        if low == high:
            continue
        # Often nothing is left if conditions are selective.
        first_low = first_high = second_low = second_high = np.int64(0)
        if star.satellites > 0:
            first_low, first_high = _range(first, at)
            if _passing(first, at, first_low, first_high) == 0:
                continue
        if star.satellites > 1:
            second_low, second_high = _range(second, at)
            if _passing(second, at, second_low, second_high) == 0:
                continue
        time = star.times[centre]
        for block in range(low, high, WORD):
            behind = min(block + WORD, high)
            word = lowest(behind - block)
            if len(spoke.origins) > 0:
                word &= word_at(spoke.words, spoke.origins[at] + block)
            if star.satellites == 0:
                bits = bits_in(word)
                records += bits
                span += _sum_of(word, star.spoke_times[block:behind], _EARLIEST) - bits * time
                continue
            its = block - star.spoke_base
            if is_row:
                # Where a row is set by the spoke, it is one that the centre allows, or an early one.
                total = _sum_of(word, first.moving[its : behind - star.spoke_base], first_low)
                bits = bits_in(word)
                records += bits * first_high - total if first.from_low else total - bits * first_low
                continue
            while word != _NO_BITS:
                spoke_at = its + lowest_bit(word)
                word &= word - _ONE
                count = _fitting(first, at, first_low, first_high, spoke_at)
                if star.satellites > 1:
                    count *= _fitting(second, at, second_low, second_high, spoke_at)
                records += count
                if star.timed:
                    span += count * (star.spoke_times[star.spoke_base + spoke_at] - time)
    results[0] += records
    results[1] += span


@njit_in_place
def count_ranges(star, running, results):
    """As :func:`count_star`, without conditions and with one satellite at most.

    Times are added up without satellites only.

    ``running``: int64 (spokes + 1,), working space. ``results``: int64 (2,).
    """
    spoke, leg = star.spoke, star.first_satellite
    # Slices from 0 on, so that loops vectorize.
    times = star.spoke_times[star.spoke_base :]
    running[0] = 0
    for at in range(len(running) - 1):
        its = times[at] - times[0]
        if star.satellites > 0:
            its = max(np.int64(leg.moving[at]), leg.first)
        running[at + 1] = running[at] + its
    for centre in range(star.begin, star.stop):
        low, high = _range(spoke, centre - star.base)
        count = high - low
        total = running[high - star.spoke_base] - running[low - star.spoke_base]
        if star.satellites == 0:
            results[0] += count
            if count > 0:
                results[1] += total - count * (star.times[centre] - times[0])
        else:
            its_low, its_high = _range(leg, centre - star.base)
            results[0] += count * its_high - total if leg.from_low else total - count * its_low
