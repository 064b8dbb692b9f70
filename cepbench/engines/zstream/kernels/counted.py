"""The last two joins of a plan, whose records are counted and not made.

The lower join pairs a record of the outer buffer with an event ``z`` of a leaf, the upper one these
with an event ``y`` of the last leaf. How many ``y`` fit is a *weight* of ``z`` that depends on the
outer record only by the rows of ``y`` which that allows. Weights mostly have a closed form, so that
all of a range of ``z`` are a difference of running sums; others are computed once for successive
records that allow the same rows. With a condition on ``z``, they are added up by its bits.
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
from cepbench.engines.zstream.kernels.join import find_limits, word_of
from cepbench.kernels.jit import njit_in_place

_NO_BITS, _ONE = np.uint64(0), np.uint64(1)
_ZERO, _ALL = np.int64(0), np.int64(-1)


class Last(NamedTuple):
    """The upper join; what is by ``z`` has an entry for each row of its leaf from ``base`` on."""

    lows: np.ndarray  #: int64 (k, 2): column of the outer record, offset in ``Ranges.bounds``
    highs: np.ndarray  #: int64 (k, 2)
    first: int  #: the first row of ``y``
    stop: int  #: the row behind the last one
    base: int  #: the row of ``z`` with number 0
    limits: np.ndarray  #: int64 (2, n): the first row that ``z`` allows, and behind the last one
    passing: np.ndarray  #: int64 (2, n): how many ``y`` fit before these limits, from any row on
    sums: np.ndarray  #: int64 (3, n + 1): running sums of ``passing`` and of times since the first
    times: np.ndarray  #: int64 (n,): timestamps of ``z``
    origins: np.ndarray  #: int64 (n,): the bit of row 0 of ``y``; empty without a condition
    words: np.ndarray  #: uint64
    ranks: np.ndarray  #: int32
    passed: np.ndarray  #: int32: running counts of bits, to which ``origins`` refer; may be empty
    ascending: bool  #: whether the limits are, and ``passing`` is known


@njit_in_place
def fill_last(last, bounds, lows, highs, tested):
    """Write what is by ``z``.

    ``bounds``: int32. ``lows``, ``highs``: int64, where in ``bounds`` those of the first ``z`` are.
    ``tested``: such a place: no earlier rows are tested by the condition; -1 without one.
    """
    last.sums[:, 0] = 0
    for z in range(last.limits.shape[1]):
        least = np.int64(last.first)
        if tested >= 0:
            least = max(least, bounds[tested + z])
        begin, end = least, np.int64(last.stop)
        for place in lows:
            begin = max(begin, bounds[place + z])
        for place in highs:
            end = min(end, bounds[place + z])
        end = max(end, least)
        begin = min(begin, end)
        last.limits[0, z], last.limits[1, z] = begin, end
        if len(last.passed) > 0:
            begin = np.int64(last.passed[last.origins[z] + begin])
            end = np.int64(last.passed[last.origins[z] + end])
        last.passing[0, z], last.passing[1, z] = begin, end
        last.sums[0, z + 1] = last.sums[0, z] + begin
        last.sums[1, z + 1] = last.sums[1, z] + end
        last.sums[2, z + 1] = last.sums[2, z] + last.times[z] - last.times[0]


@njit_in_place
def count_last(
    records, old, fresh, counts_old, ranges, last, within,
    start_times, start_rows, end_times, end_rows, weights, results,
):  # fmt: skip
    """Count outer records joined with the events of a leaf, and these joined with the last leaf's.

    Parameters
    ----------
    old : int
        How many of them have been there before; they come first.
    fresh : int
        The first row of ``z`` that has not been there before.
    counts_old : bool
        Whether old records with old ``z`` are joined with the last leaf.
    start_times, end_times : int64 arrays
        Timestamps of the leaves of the first and the last events of the outer records.
    start_rows, end_rows : int32 arrays, shape (n,)
        The rows of those events.
    weights : int64 array, shape (2, rows of z + 1)
        Working space.
    results : int64 array, shape (3,)
        Added to: the new records of the lower join, the sum of the times that they extend over, the
        records of the upper join.
    """
    made, span, total = np.int64(0), np.int64(0), np.int64(0)
    tables = len(ranges.tables) > 0
    # Weights begin … end - 1 are known, for these rows of y.
    known_first, known_stop, begin, end = -1, -1, -1, -1
    its, block = -1, 0
    for r in range(records.shape[1]):
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
        middle = min(max(low, fresh), high) if r < old else low
        if not counts_old:
            low = middle
        if low >= high:
            continue
        # Of most records nothing is left, if conditions are selective.
        if (
            tables
            and high - low <= WORD
            and word_of(records, r, ranges, low) & lowest(high - low) == _NO_BITS
        ):
            continue
        first, stop = np.int64(within[2, its]), np.int64(within[3, its])
        start, finish = start_times[start_rows[r]], end_times[end_rows[r]]
        is_known = first == known_first and stop == known_stop
        if not is_known:
            known_first, known_stop, begin, end = first, stop, -1, -1
        shift = last.base
        is_closed, of_first, of_stop, constant = _closed(
            last, low - shift, high - shift, first, stop
        )
        row = low
        while row < high:
            # Up to 64 rows, or all; none of them old, or all.
            behind = middle if row < middle else high
            word = lowest(WORD)
            if tables:
                behind = min(behind, row + WORD)
                word = word_of(records, r, ranges, row) & lowest(behind - row)
            at, count = row - shift, behind - row
            bits = bits_in(word) if tables else count
            is_new = np.int64(row >= middle)
            row = behind
            if bits == 0:
                continue
            made += is_new * bits
            is_sparse = 4 * bits < count
            if not is_closed and (is_known or not is_sparse):
                begin, end = _weigh(last, first, stop, at, at + count, begin, end, weights)
            if bits == count:
                span += is_new * _total_span(last, at, at + count, start, finish)
                if is_closed:
                    total += (of_stop & (last.sums[1, at + count] - last.sums[1, at])) + (
                        constant * count
                    )
                    total -= of_first & (last.sums[0, at + count] - last.sums[0, at])
                else:
                    total += weights[1, at + count] - weights[1, at]
                continue
            its_span = np.int64(0)
            if is_sparse:
                while word != _NO_BITS:
                    z = at + lowest_bit(word)
                    word &= word - _ONE
                    its_span += max(finish, last.times[z]) - min(start, last.times[z])
                    if is_closed:
                        total += (of_stop & last.passing[1, z]) - (of_first & last.passing[0, z])
                        total += constant
                    else:
                        total += weights[0, z] if is_known else _weight(last, z, first, stop)
                span += is_new * its_span
                continue
            # Indices from 0 on, so that loops vectorize.
            its_times = last.times[at : at + count]
            before, behind_all = last.passing[0, at : at + count], last.passing[1, at : at + count]
            if is_closed:
                for bit in range(count):
                    mask = _ZERO - np.int64((word >> np.uint64(bit)) & _ONE)
                    total += mask & (
                        (of_stop & behind_all[bit]) - (of_first & before[bit]) + constant
                    )
                    its_span += mask & (max(finish, its_times[bit]) - min(start, its_times[bit]))
            else:
                its_weights = weights[0, at : at + count]
                for bit in range(count):
                    mask = _ZERO - np.int64((word >> np.uint64(bit)) & _ONE)
                    total += mask & its_weights[bit]
                    its_span += mask & (max(finish, its_times[bit]) - min(start, its_times[bit]))
            span += is_new * its_span
    results[0] += made
    results[1] += span
    results[2] += total


@njit_in_place
def _total_span(last, low, high, start, finish):
    """The sum of the times that a record with each of some ``z`` extends over."""
    total, zero = last.sums[2, high] - last.sums[2, low], last.times[0]
    if last.times[low] >= finish:
        return total - (high - low) * (start - zero)
    if last.times[high - 1] <= start:
        return (high - low) * (finish - zero) - total
    total = np.int64(0)
    for time in last.times[low:high]:
        total += max(finish, time) - min(start, time)
    return total


@njit_in_place
def _closed(last, low, high, first, stop):
    """Whether the weights low … high - 1 have one closed form, and this.

    A weight is ``(of_stop & passing[1, z]) - (of_first & passing[0, z]) + constant`` if either the
    outer record or ``z``, always the same, restricts the rows of ``y`` on each side.
    """
    of_first, of_stop, constant = _ZERO, _ZERO, _ZERO
    least, most = last.limits[0, low], last.limits[0, high - 1]
    is_closed = last.ascending and first <= min(stop, last.limits[1, low]) and most <= stop
    tested = len(last.origins) > 0
    if first <= least:
        of_first = _ALL
    else:
        constant -= first
        is_closed &= first >= most and not tested
    if stop >= last.limits[1, high - 1]:
        of_stop = _ALL
    else:
        constant += stop
        is_closed &= stop <= last.limits[1, low] and not tested
    return is_closed, of_first, of_stop, constant


@njit_in_place
def _weigh(last, first, stop, low, high, begin, end, weights):
    """Have weights low … high - 1, and before them their running sums; gives what is known then."""
    if low < begin or low > end:
        begin = end = low
        weights[1, low] = 0
    if high <= end:
        return begin, end
    count = high - end
    found, begins, ends = weights[0, end:high], last.limits[0, end:high], last.limits[1, end:high]
    if len(last.origins) == 0:
        for z in range(count):
            found[z] = max(min(stop, ends[z]) - max(first, begins[z]), 0)
    elif len(last.passed) == 0:
        for z in range(count):
            found[z] = _weight(last, end + z, first, stop)
    else:
        origins, at_end = last.origins[end:high], last.passing[1, end:high]
        if last.ascending and stop >= ends[count - 1]:
            for z in range(count):
                least = min(max(first, begins[z]), ends[z])
                found[z] = at_end[z] - last.passed[np.uint64(origins[z] + least)]
        else:
            for z in range(count):
                behind = max(min(stop, ends[z]), begins[z])
                least = min(max(first, begins[z]), behind)
                found[z] = (
                    last.passed[np.uint64(origins[z] + behind)]
                    - last.passed[np.uint64(origins[z] + least)]
                )
    for z in range(end, high):
        weights[1, z + 1] = weights[1, z] + weights[0, z]
    return begin, high


@njit_in_place
def _weight(last, z, first, stop):
    """How many events of the last leaf fit, of those that an outer record allows."""
    first, stop = max(first, last.limits[0, z]), min(stop, last.limits[1, z])
    if first >= stop:
        return np.int64(0)
    if len(last.origins) == 0:
        return np.int64(stop - first)
    bit = last.origins[z] + first
    count = stop - first
    if len(last.passed) > 0:
        return np.int64(last.passed[bit + count] - last.passed[bit])
    if (bit & 63) + count <= WORD:
        return bits_in((last.words[bit >> 6] >> np.uint64(bit & 63)) & lowest(count))
    return np.int64(bits_between(last.words, last.ranks, bit, bit + count))


@njit_in_place
def total_weights(last, first_z, times):
    """The number of pairs of ``z`` and ``y``, and the sum of the times between them.

    ``first_z``: the number of the first ``z``. ``times``: int64, timestamps of the last leaf, by
    row.
    """
    pairs, span = np.int64(0), np.int64(0)
    for z in range(first_z, last.limits.shape[1]):
        pairs += _weight(last, z, last.first, last.stop)
        its_times = times[last.limits[0, z] : last.limits[1, z]]
        if len(last.origins) == 0:
            for at in range(len(its_times)):
                span += abs(its_times[at] - last.times[z])
            continue
        bit = last.origins[z] + last.limits[0, z]
        if len(last.passed) > 0:
            passed = last.passed[bit : bit + len(its_times) + 1]
            for at in range(len(its_times)):
                mask = _ZERO - np.int64(passed[at + 1] - passed[at])
                span += mask & abs(its_times[at] - last.times[z])
            continue
        for row in range(0, len(its_times), WORD):
            word = word_at(last.words, bit + row)
            for at in range(row, min(row + WORD, len(its_times))):
                mask = _ZERO - np.int64((word >> np.uint64(at - row)) & _ONE)
                span += mask & abs(its_times[at] - last.times[z])
    return pairs, span
