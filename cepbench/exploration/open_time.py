"""A time axis without the hours in which nothing arrives, such as those of a closed market."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

#: A pause is left out if it is longer than this share of the whole.
_SHARE = 0.02

#: Labels that are aimed at, and their distances in seconds: from a second up to a week.
_LABELS = 8
_ROUND = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800,
)  # fmt: skip

#: On a 24-hour clock; Vega's own has 12 hours.
CLOCK = {
    "milliseconds": ".%L", "seconds": ":%S", "minutes": "%H:%M", "hours": "%H:%M",
    "day": "%a %d", "date": "%b %d", "week": "%b %d", "month": "%b", "quarter": "%b", "year": "%Y",
}  # fmt: skip


@dataclass(frozen=True)
class OpenTime:
    """Times without some pauses; all in nanoseconds.

    Attributes
    ----------
    first, last : int
        The part of time that is drawn.
    pauses : sequence of (int, int)
        Beginning and end of each pause that is left out, in order and apart.
    """

    first: int
    last: int
    pauses: Sequence[tuple[int, int]]

    def places(self, times: np.ndarray) -> np.ndarray:
        """Seconds since ``first`` without the pauses; a time inside of one is where it begins.

        Parameters
        ----------
        times : ndarray of int64
        """
        left_out = np.zeros(len(times), np.int64)
        for begin, end in self.pauses:
            left_out += np.clip(times, begin, end) - begin
        return np.asarray((times - self.first - left_out) / 1e9)

    def labels(self) -> dict[float, list[str]]:
        """Place → the lines of its label: the time, and the date where another day begins."""
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

    def axis(self, *, labels: bool = True, whole: bool = True) -> alt.X:
        """An axis for a column ``place``.

        Parameters
        ----------
        labels : bool
        whole : bool
            Whether to say where it begins and ends; of several layers only one should.
        """
        lines = {f"{place:.6g}": texts for place, texts in self.labels().items()}
        end = float(self.places(np.array([self.last]))[0])
        axis = alt.Axis(
            values=[float(place) for place in lines], labels=labels, ticks=labels, grid=False,
            labelExpr=f"{json.dumps(lines)}[format(datum.value, '.6~g')]", labelOverlap=True,
        )  # fmt: skip
        scale = alt.Scale(domain=[0.0, end], nice=False) if whole else alt.Undefined
        return alt.X("place:Q", title=None, axis=axis, scale=scale)

    def rules(self) -> alt.Chart:
        """A dashed line where each pause was."""
        begins = np.array([begin for begin, _ in self.pauses], dtype=np.int64)
        told = [f"{pd.Timestamp(a):%b %d %H:%M} – {pd.Timestamp(b):%b %d %H:%M}"
                for a, b in self.pauses]  # fmt: skip
        rows = pd.DataFrame({"place": self.places(begins), "left out": told})
        return (
            alt.Chart(rows)
            .mark_rule(color="#666666", strokeDash=[3, 3])
            .encode(x=alt.X("place:Q"), tooltip=["left out:N"])
        )


def without_pauses(times: np.ndarray, least: int) -> OpenTime:
    """The time from the first to the last of some times, without long pauses between two of them.

    Parameters
    ----------
    times : ndarray of int64
        In order, at least one.
    least : int
        Pauses up to this length stay.
    """
    first, last = int(times[0]), int(times[-1])
    longest = max(_SHARE * (last - first), least)
    before = np.flatnonzero(np.diff(times) > longest)
    pauses = [(int(times[k]), int(times[k + 1])) for k in before]
    return OpenTime(first, last, pauses)
