"""Interactive chart of arrival rates over time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cepbench.presentation.exploration.open_time import OpenTime, without_pauses
from cepbench.presentation.exploration.time_axis import WIDTH, TimeAxis, nanoseconds
from cepbench.presentation.figures.offline import offline
from cepbench.presentation.figures.vega import alt

#: Colours of event types: the scheme of Okabe and Ito, distinguishable for colour-blind readers.
TYPE_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#999999", "#F0E442",
)  # fmt: skip


_MOST_ROWS = 4500  # altair refuses more than 5000


def rates_chart(rates: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the table of :func:`~cepbench.presentation.exploration.rates.rates_over_time`, one line per type."""
    datetimes = pd.api.types.is_datetime64_any_dtype(rates["time"])
    unit, factor = ("minute", 60.0) if datetimes else ("tick", 1.0)
    types = list(dict.fromkeys(rates["type"]))
    data = rates.assign(rate=rates["rate"] * factor)
    every = -(-len(data) // _MOST_ROWS)
    subtitle = "pick types in the legend"
    hours = _open_hours(data, datetimes)
    axis = TimeAxis(hours, datetimes)
    if hours.pauses:
        data = _without_pauses(data, hours)
        subtitle = f"dashed: time without any event left out; {subtitle}"
    if every > 1:
        data = data[data["time"].isin(sorted(set(data["time"]))[::every])]
        subtitle = f"one interval in {every} drawn; {subtitle}"
    pick = alt.selection_point(name="pick_type", fields=["type"], bind="legend")
    # Beyond the number of colours, types share them and differ in their dashes.
    colours = [TYPE_COLOURS[number % len(TYPE_COLOURS)] for number in range(len(types))]
    dashes = [[1, 0] if number < len(TYPE_COLOURS) else [4, 2] for number in range(len(types))]
    lines = (
        alt.Chart(data)
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=axis.x(),
            detail="session:N" if hours.pauses else alt.Undefined,
            y=alt.Y("rate:Q", title=f"events per {unit}"),
            color=alt.Color("type:N", sort=types, title=None,
                            scale=alt.Scale(domain=types, range=colours)),
            # In the legend of the colours: legend=None here would remove theirs, too.
            strokeDash=alt.StrokeDash("type:N", sort=types, title=None,
                                      scale=alt.Scale(domain=types, range=dashes)),
            opacity=alt.when(pick).then(alt.value(1.0)).otherwise(alt.value(0.12)),
            tooltip=[
                alt.Tooltip("type:N"), axis.tooltip(), alt.Tooltip("events:Q", format=","),
                alt.Tooltip("rate:Q", title=f"per {unit}", format=",.3~g"),
            ],
        )
        .add_params(pick)
    )  # fmt: skip
    title = alt.TitleParams("Arrivals over time", subtitle=subtitle, anchor="start")
    return offline(alt.layer(lines, *axis.pauses(), title=title, width=WIDTH, height=220))


def _open_hours(rates: pd.DataFrame, datetimes: bool) -> OpenTime:
    """The span of a table of rates; intervals without any event have the rate NaN."""
    if not datetimes:
        return OpenTime(0, 0, ())
    begins = nanoseconds(rates["time"].drop_duplicates())
    step = int(begins[1] - begins[0]) if len(begins) > 1 else 0
    busy = np.unique(nanoseconds(rates.loc[rates["rate"].notna(), "time"]))
    return without_pauses(np.sort(np.concatenate([busy, busy + step])), step)


def _without_pauses(data: pd.DataFrame, hours: OpenTime) -> pd.DataFrame:
    """The rows outside the pauses, with the columns ``place`` and ``session`` (a number).

    A step line ends at the start of its last interval. The first row of each pause, where that
    interval ends, is therefore retained with the preceding rate, and one such row is appended.
    """
    end = data[data["time"] == data["time"].max()].assign(time=pd.Timestamp(hours.last), events=0)
    data = pd.concat([data, end]).sort_values(["type", "time"], kind="stable", ignore_index=True)
    begins, ends = (np.array([pause[end] for pause in hours.pauses]) for end in (0, 1))
    times = nanoseconds(data["time"])
    session = np.searchsorted(begins, times, "left")
    inside = (session > 0) & (times < ends[session - 1])
    closing = np.isin(times, begins)
    rate = data["rate"].where(~closing, data["rate"].shift())
    data = data.assign(rate=rate, session=session, place=hours.places(times))
    return data[~inside]
