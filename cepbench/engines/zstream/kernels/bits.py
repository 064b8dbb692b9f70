"""Bitmaps of conditions: each pair of events is tested once, however many composites share it.

The bits of an event ``x`` say which events of another leaf, by row number, satisfy all comparisons
with it. They begin at bit ``origin[x]`` for row 0 of the other leaf, wherever that would be; only
those within the time range of ``x`` are stored. ``ranks`` counts the bits of ``x`` before each word,
so that any range is counted by two reads.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.instructions import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL
from cepbench.kernels.jit import njit_in_place

#: Bits in a word; value columns are padded by as many entries, so that whole words are tested.
WORD = 64

_ZERO, _ONE, _TWO, _FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
_TOP, _LAST = np.uint64(56), np.uint64(63)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_PAIRS = np.uint64(0x5555555555555555)
_QUADS = np.uint64(0x3333333333333333)
_OCTETS = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM = np.uint64(0x0101010101010101)


@njit_in_place
def place_bits(marks, lows, highs, first, stop, place, origins):
    """Find where the words of events begin.

    ``marks``: int8 (n,), which events have words. ``lows``, ``highs``: int32 (n,), the rows of the
    other leaf that each event is tested against, ``first``, ``stop``: as far as they are between
    these. ``place``: the first word. ``origins``: int64 (n,), written in place.

    Returns the place behind the last word, and the number of pairs of events.
    """
    pairs = 0
    for i in range(len(marks)):
        if marks[i] == 0:
            continue
        low = max(lows[i], first)
        size = max(min(highs[i], stop) - low, 0)
        origins[i] = place * WORD - low
        place += (size + WORD - 1) >> 6
        pairs += size
    return place, pairs


@njit_in_place
def fill_bits(
    marks, lows, highs, first, stop, base, left, right, comparisons, origins, words, ranks
):
    """Test events of one leaf against those of another within their time ranges.

    ``base``: the row of the first event. ``left``, ``right``: float64 (columns, events + WORD), the
    values of both leaves. ``comparisons``: int64 (k, 3), column of the first leaf, column of the
    second, operator. ``words``, ``ranks``: uint64 and int32, written in place.

    Returns the number of set bits.
    """
    total = 0
    for i in range(len(marks)):
        if marks[i] == 0:
            continue
        low, high = max(lows[i], first), min(highs[i], stop)
        place = (origins[i] + low) >> 6
        count = np.int32(0)
        for row in range(low, high, WORD):
            word = lowest(high - row)
            for k in range(len(comparisons)):
                word &= _compared(
                    comparisons[k, 2],
                    left[comparisons[k, 0], base + i],
                    right,
                    comparisons[k, 1],
                    row,
                )
            words[place] = word
            ranks[place] = count
            count += np.int32(bits_in(word))
            place += 1
        total += count
    return total


@njit_in_place
def count_passed(words, lows, highs, first, stop, origins, passed):
    """Running counts of set bits, for where most ranges of rows are counted.

    ``words``: uint64. ``origins``: int64 (n,), the bit of row 0 of each event; overwritten by the
    count of row 0. ``passed``: int32 (pairs + n,), written in place: of each event, how many of its
    first 0, 1, … bits are set.
    """
    place = 0
    for i in range(len(origins)):
        low = max(lows[i], first)
        size = max(min(highs[i], stop) - low, 0)
        word_place = (origins[i] + low) >> 6
        origins[i] = place - low
        count = np.int32(0)
        for at in range(0, size, WORD):
            word = words[word_place]
            word_place += 1
            block = passed[place + at : place + min(at + WORD, size)]
            for bit in range(len(block)):
                block[bit] = count
                count += np.int32((word >> np.uint64(bit)) & _ONE)
        passed[place + size] = count
        place += size + 1


@njit_in_place
def _compared(operator, value, values, column, first):
    """The bits of 64 comparisons with one value."""
    word = _ZERO
    # Indices from 0 on, so that loops vectorize.
    others = values[column, first : first + WORD]
    if operator == LESS:
        for bit in range(WORD):
            word |= np.uint64(value < others[bit]) << np.uint64(bit)
    elif operator == LESS_EQUAL:
        for bit in range(WORD):
            word |= np.uint64(value <= others[bit]) << np.uint64(bit)
    elif operator == GREATER:
        for bit in range(WORD):
            word |= np.uint64(value > others[bit]) << np.uint64(bit)
    elif operator == GREATER_EQUAL:
        for bit in range(WORD):
            word |= np.uint64(value >= others[bit]) << np.uint64(bit)
    elif operator == EQUAL:
        for bit in range(WORD):
            word |= np.uint64(value == others[bit]) << np.uint64(bit)
    else:
        for bit in range(WORD):
            other = others[bit]
            word |= np.uint64((value < other) | (value > other)) << np.uint64(bit)
    return word


@njit_in_place
def lowest(count):
    """A word of which the lowest ``count`` bits are set, all of them from 64 on."""
    return _ALL if count >= WORD else (_ONE << np.uint64(count)) - _ONE


@njit_in_place
def bits_in(word):
    """The number of set bits, by additions that LLVM recognises and replaces by an instruction."""
    word -= (word >> _ONE) & _PAIRS
    word = (word & _QUADS) + ((word >> _TWO) & _QUADS)
    word = (word + (word >> _FOUR)) & _OCTETS
    return np.int64((word * _SUM) >> _TOP)


@njit_in_place
def lowest_bit(word):
    """The number of the lowest set bit of a word that has one."""
    return bits_in((word - _ONE) & ~word)


@njit_in_place
def word_at(words, bit):
    """The 64 bits from ``bit`` on."""
    place, shift = bit >> 6, np.uint64(bit & 63)
    return (words[place] >> shift) | ((words[place + 1] << _ONE) << (_LAST - shift))


@njit_in_place
def bits_between(words, ranks, first, stop):
    """The number of set bits of one event from ``first`` to ``stop - 1``, at least one bit."""
    # The word of ``stop`` may be another event's.
    place, last = first >> 6, (stop - 1) >> 6
    before = ranks[place] + bits_in(words[place] & lowest(first & 63))
    return ranks[last] + bits_in(words[last] & lowest(((stop - 1) & 63) + 1)) - before
