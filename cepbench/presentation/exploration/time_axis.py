"""The time axis of charts: on a 24-hour clock, and without pauses."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cepbench.presentation.exploration.open_time import OpenTime
from cepbench.presentation.figures.vega import alt

#: Formats of a 24-hour clock; Vega's default has 12 hours.
_CLOCK = {
    "milliseconds": ".%L", "seconds": ":%S", "minutes": "%H:%M", "hours": "%H:%M",
    "day": "%a %d", "date": "%b %d", "week": "%b %d", "month": "%b", "quarter": "%b", "year": "%Y",
}  # fmt: skip


WIDTH = 640  # pixels


@dataclass(frozen=True)
class TimeAxis:
    """The horizontal axis of rows with a column ``time``; with pauses their column ``place`` is drawn.

    ``hours`` is the time shown, without pauses if time is in ticks; ``datetimes`` whether it is not.
    """

    hours: OpenTime
    datetimes: bool

    @property
    def column(self) -> str:
        """The column that is drawn, with Vega's letter for its kind."""
        return "place:Q" if self.hours.pauses else "time:T" if self.datetimes else "time:Q"

    def placed(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows, with pauses also with their places."""
        if not self.hours.pauses:
            return rows
        return rows.assign(place=self.hours.places(nanoseconds(rows["time"])))

    def x(
        self, times: pd.Series | None = None, *, labels: bool = True, whole: bool = True
    ) -> alt.X:
        """The encoding; its domain is that of ``times``, with pauses the ``whole`` time.

        Only one layer of a chart may set the domain.
        """
        if self.hours.pauses:
            lines = {f"{place:.6g}": texts for place, texts in self.hours.labels().items()}
            axis = alt.Axis(
                values=[float(place) for place in lines], labels=labels, ticks=labels, grid=False,
                labelExpr=f"{json.dumps(lines)}[format(datum.value, '.6~g')]", labelOverlap=True,
            )  # fmt: skip
            end = float(self.hours.places(np.array([self.hours.last]))[0])
            scale = alt.Scale(domain=[0.0, end], nice=False) if whole else alt.Undefined
            return alt.X(self.column, title=None, axis=axis, scale=scale)
        clock = _CLOCK if self.datetimes else alt.Undefined
        axis = alt.Axis(labels=labels, ticks=labels, labelOverlap=True, format=clock)
        title = None if self.datetimes or not labels else "ticks"
        # Ticks rarely begin at zero.
        scale = alt.Scale() if self.datetimes else alt.Scale(zero=False)
        if times is not None and len(times):
            ends = (times.min(), times.max())
            # Vega reads and shows texts without a time zone unchanged.
            domain = [end.isoformat() if self.datetimes else int(end) for end in ends]
            scale = alt.Scale(domain=domain, nice=False)
        return alt.X(self.column, title=title, axis=axis, scale=scale)

    def pauses(self) -> list[alt.Chart]:
        """A layer with a dashed line at each pause that was cut out, if there is one."""
        if not self.hours.pauses:
            return []
        begins = np.array([begin for begin, _ in self.hours.pauses], dtype=np.int64)
        spans = [
            " – ".join(f"{pd.Timestamp(end):%b %d %H:%M}" for end in pause)
            for pause in self.hours.pauses
        ]
        rows = pd.DataFrame({"place": self.hours.places(begins), "left out": spans})
        chart = alt.Chart(rows).mark_rule(color="#666666", strokeDash=[3, 3])
        return [chart.encode(x=alt.X("place:Q"), tooltip=["left out:N"])]

    def tooltip(self) -> alt.Tooltip:
        """The time of a row."""
        if self.datetimes:
            return alt.Tooltip("time:T", title="time", format="%Y-%m-%d %H:%M:%S.%L")
        return alt.Tooltip("time:Q", title="tick", format=",")


def nanoseconds(times: pd.Series) -> np.ndarray:
    return times.to_numpy().astype("int64")
