"""A time axis without pauses in which no event arrives, such as a closed market."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

#: A pause is cut out if it is longer than this share of the whole time.
_SHARE = 0.02

#: Target number of labels, and their possible distances in seconds.
_LABELS = 8
_ROUND = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800,
)  # fmt: skip


@dataclass(frozen=True)
class OpenTime:
    """A span of time from ``first`` to ``last`` without its pauses, in ns; they are sorted and disjoint."""

    first: int
    last: int
    pauses: Sequence[tuple[int, int]]

    def places(self, times: np.ndarray) -> np.ndarray:
        """Seconds since ``first`` without the pauses; a time within a pause maps to its start."""
        left_out = np.zeros(len(times), np.int64)
        for begin, end in self.pauses:
            left_out += np.clip(times, begin, end) - begin
        return np.asarray((times - self.first - left_out) / 1e9)

    def labels(self) -> dict[float, list[str]]:
        """Place → the lines of its label: the time, and the date at the first label of a day."""
        whole = float(self.places(np.array([self.last]))[0])
        step = next((one for one in _ROUND if whole <= _LABELS * one), _ROUND[-1]) * 10**9
        times = np.arange(-(-self.first // step) * step, self.last + 1, step, dtype=np.int64)
        inside = [not any(begin <= time < end for begin, end in self.pauses) for time in times]
        found: dict[float, list[str]] = {}
        day = ""
        for time, place in zip(times[inside], self.places(times)[inside], strict=True):
            stamp = pd.Timestamp(time)
            date = f"{stamp:%b} {stamp.day}"
            clock = f"{stamp:%H:%M}" if step % (60 * 10**9) == 0 else f"{stamp:%H:%M:%S}"
            lines = [date] if step >= 86_400 * 10**9 else [clock]
            if date not in (day, *lines):
                lines.append(date)
            day = date
            found[float(place)] = lines
        return found


def without_pauses(times: np.ndarray, least: int) -> OpenTime:
    """The span from the first to the last of sorted times, in ns, without long pauses between consecutive ones.

    Fewer than two have no pauses; those shorter than ``least`` are never cut out.
    """
    if len(times) < 2:
        return OpenTime(0, 0, ())
    first, last = int(times[0]), int(times[-1])
    longest = max(_SHARE * (last - first), least)
    before = np.flatnonzero(np.diff(times) > longest)
    pauses = [(int(times[k]), int(times[k + 1])) for k in before]
    return OpenTime(first, last, pauses)
