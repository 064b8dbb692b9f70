"""Time axes of charts: on a 24-hour clock, and without pauses."""

from __future__ import annotations

import json
from typing import Any

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


def open_axis(hours: OpenTime, *, labels: bool = True, whole: bool = True) -> alt.X:
    """Axis of a column ``place``; only one layer of a chart may set the domain (``whole``)."""
    lines = {f"{place:.6g}": texts for place, texts in hours.labels().items()}
    axis = alt.Axis(
        values=[float(place) for place in lines], labels=labels, ticks=labels, grid=False,
        labelExpr=f"{json.dumps(lines)}[format(datum.value, '.6~g')]", labelOverlap=True,
    )  # fmt: skip
    end = float(hours.places(np.array([hours.last]))[0])
    scale = alt.Scale(domain=[0.0, end], nice=False) if whole else alt.Undefined
    return alt.X("place:Q", title=None, axis=axis, scale=scale)


def pause_rules(hours: OpenTime) -> alt.Chart:
    """A dashed line at each pause that was cut out."""
    begins = np.array([begin for begin, _ in hours.pauses], dtype=np.int64)
    spans = [
        " – ".join(f"{pd.Timestamp(end):%b %d %H:%M}" for end in pause) for pause in hours.pauses
    ]
    rows = pd.DataFrame({"place": hours.places(begins), "left out": spans})
    chart = alt.Chart(rows).mark_rule(color="#666666", strokeDash=[3, 3])
    return chart.encode(x=alt.X("place:Q"), tooltip=["left out:N"])


def time_axis(datetimes: bool, domain: list[Any] | None, *, labels: bool = True) -> alt.X:
    clock = _CLOCK if datetimes else alt.Undefined
    axis = alt.Axis(labels=labels, ticks=labels, labelOverlap=True, format=clock)
    title = None if datetimes or not labels else "ticks"
    if domain:
        scale = alt.Scale(domain=domain, nice=False)
    else:
        scale = alt.Scale() if datetimes else alt.Scale(zero=False)  # time rarely starts at zero
    return alt.X("time:T" if datetimes else "time:Q", title=title, axis=axis, scale=scale)


def time_tooltip(datetimes: bool) -> alt.Tooltip:
    if datetimes:
        return alt.Tooltip("time:T", title="time", format="%Y-%m-%d %H:%M:%S.%L")
    return alt.Tooltip("time:Q", title="tick", format=",")


def nanoseconds(times: pd.Series) -> np.ndarray:
    return times.to_numpy().astype("int64")
