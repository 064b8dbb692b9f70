"""The patterns of ``bench_detection.py`` counted with NumPy, by the ranges of ``polars_frames.py``.

A symbol's table is two arrays, the times in order and what predicates compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

#: Symbol -> times and differences.
Arrays = Mapping[str, tuple[NDArray[np.int64], NDArray[np.float64]]]


def _pairs(
    begin: NDArray[np.int64], end: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows and their partners from ``begin`` up to ``end``: all first ones, all second ones, …

    Nothing as long as all pairs together is written, and every step is over whole arrays.
    """
    for number in range(int((end - begin).max(initial=0))):
        rows = np.flatnonzero(begin + number < end)
        yield rows, begin[rows] + number


def _p3(arrays: Arrays) -> int:
    (ta, da), (tb, db), (tc, _) = (arrays[symbol] for symbol in ("s3", "s6", "s9"))
    begin, end = np.searchsorted(tb, ta, "right"), np.searchsorted(tb, ta + 300_000, "right")
    after, before = np.searchsorted(tc, ta + 300_000, "right"), np.searchsorted(tc, tb, "right")
    return sum(int((after[a] - before[b]) @ (da[a] < db[b])) for a, b in _pairs(begin, end))


def _p4(arrays: Arrays) -> int:
    window = 120_000

    def spans(first: str, second: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last times of pairs, in order each."""
        (tx, dx), (ty, dy) = arrays[first], arrays[second]
        begin = np.searchsorted(ty, tx - window, "left")
        end = np.searchsorted(ty, tx + window, "right")
        low, high = [], []
        for x, y in _pairs(begin, end):
            fits = dx[x] < dy[y]
            one, other = tx[x[fits]], ty[y[fits]]
            low.append(np.minimum(one, other))
            high.append(np.maximum(one, other))
        return np.sort(np.concatenate(low)), np.sort(np.concatenate(high))

    low_ac, high_ac = spans("s1", "s5")
    low_bd, high_bd = spans("s3", "s7")
    in_time = np.searchsorted(high_bd, low_ac + window, "right").sum()
    return int(in_time - np.searchsorted(low_bd, high_ac - window, "left").sum())


def _p5(arrays: Arrays) -> int:
    (ta, da), (tb, db), (tc, dc), (td, _), (te, de) = (
        arrays[symbol] for symbol in ("s0", "s2", "s4", "s6", "s8")
    )

    def later(
        time: NDArray[np.int64], until: NDArray[np.int64], times: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        begin, end = np.searchsorted(times, time, "right"), np.searchsorted(times, until, "right")
        size = end - begin
        rows = np.repeat(np.arange(len(size)), size)
        return rows, np.arange(len(rows)) + np.repeat(begin - np.cumsum(size) + size, size)

    a, b = later(ta, ta + 60_000, tb)
    fits = da[a] < db[b]
    a, b = a[fits], b[fits]
    until = ta[a] + 60_000
    ab, c = later(tb[b], until, tc)
    before = np.searchsorted(td, tc, "right")[c]
    abc, e = later(tc[c], until[ab], te)
    return int((np.searchsorted(td, te, "left")[e] - before[abc]) @ (dc[c][abc] < de[e]))


#: Task -> what counts its matches.
COUNTS: Mapping[str, Callable[[Arrays], int]] = {"P3": _p3, "P4": _p4, "P5": _p5}
