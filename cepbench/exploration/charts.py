"""Charts of an exploration: altair, with tooltips, drawn by JupyterLab and by reports."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from cepbench.exploration.open_time import OpenTime, without_pauses
from cepbench.exploration.timeline import Timeline
from cepbench.figures.offline import offline, prefixed
from cepbench.figures.styles import series_labels, style_of
from cepbench.patterns.model import Kind, Variable
from cepbench.sweeps.cells import OK

#: Colours of Okabe and Ito, which colour-blind readers can tell apart, for event types.
TYPE_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#999999", "#F0E442",
)  # fmt: skip

#: On a 24-hour clock; Vega's own has 12 hours.
_CLOCK = {
    "milliseconds": ".%L", "seconds": ":%S", "minutes": "%H:%M", "hours": "%H:%M",
    "day": "%a %d", "date": "%b %d", "week": "%b %d", "month": "%b", "quarter": "%b", "year": "%Y",
}  # fmt: skip

_WIDTH = 640  # pixels
_MOST_ROWS = 4500  # altair refuses more than 5000
_MARKED, _PLAIN, _FORBIDDEN = "#D55E00", "#0072B2", "#CC79A7"


def rates_chart(rates: pd.DataFrame) -> alt.TopLevelMixin:
    """Arrival rates over time, a line a type.

    Parameters
    ----------
    rates : DataFrame
        As :func:`cepbench.exploration.rates.rates_over_time` returns it.
    """
    datetimes = pd.api.types.is_datetime64_any_dtype(rates["time"])
    unit, factor = ("minute", 60.0) if datetimes else ("tick", 1.0)
    types = list(dict.fromkeys(rates["type"]))
    data = rates.assign(rate=rates["rate"] * factor)
    every = -(-len(data) // _MOST_ROWS)
    told = "pick types in the legend"
    hours = _open_hours(data, datetimes)
    if hours.pauses:
        data = _without_pauses(data, hours)
        told = f"dashed: time without any event left out; {told}"
    if every > 1:
        data = data[data["time"].isin(sorted(set(data["time"]))[::every])]
        told = f"one interval in {every} drawn; {told}"
    pick = alt.selection_point(name="pick_type", fields=["type"], bind="legend")
    # Types beyond the colours share them, and differ in their dashes.
    colours = [TYPE_COLOURS[number % len(TYPE_COLOURS)] for number in range(len(types))]
    dashes = [[1, 0] if number < len(TYPE_COLOURS) else [4, 2] for number in range(len(types))]
    lines = (
        alt.Chart(data)
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=_open_axis(hours) if hours.pauses else _time(datetimes, None),
            detail="session:N" if hours.pauses else alt.Undefined,
            y=alt.Y("rate:Q", title=f"events per {unit}"),
            color=alt.Color("type:N", sort=types, title=None,
                            scale=alt.Scale(domain=types, range=colours)),
            # Of one legend with the colours: one of none would take theirs away as well.
            strokeDash=alt.StrokeDash("type:N", sort=types, title=None,
                                      scale=alt.Scale(domain=types, range=dashes)),
            opacity=alt.when(pick).then(alt.value(1.0)).otherwise(alt.value(0.12)),
            tooltip=[
                alt.Tooltip("type:N"), _when(datetimes), alt.Tooltip("events:Q", format=","),
                alt.Tooltip("rate:Q", title=f"per {unit}", format=",.3~g"),
            ],
        )
        .add_params(pick)
    )  # fmt: skip
    return (
        offline(alt.layer(lines, *([_rules(hours)] if hours.pauses else [])))
        .properties(width=_WIDTH, height=220, title=_title("Arrivals over time", told))
    )  # fmt: skip


def _open_hours(rates: pd.DataFrame, datetimes: bool) -> OpenTime:
    """Of a table of rates, whose intervals without any event have the rate NaN."""
    begins = _nanoseconds(rates["time"].drop_duplicates())
    if not datetimes or len(begins) < 2:
        return OpenTime(0, 0, ())
    step = int(begins[1] - begins[0])
    busy = np.unique(_nanoseconds(rates.loc[rates["rate"].notna(), "time"]))
    return without_pauses(np.sort(np.concatenate([busy, busy + step])), step)


def _without_pauses(data: pd.DataFrame, hours: OpenTime) -> pd.DataFrame:
    """The rows outside of the pauses, with ``place`` and the number of their ``session``.

    A line of steps ends where its last interval begins: the first row of a pause, at which that
    interval ends, stays and repeats its rate; so does one that is added at the end of all.
    """
    end = data[data["time"] == data["time"].max()].assign(time=pd.Timestamp(hours.last), events=0)
    data = pd.concat([data, end]).sort_values(["type", "time"], kind="stable", ignore_index=True)
    begins, ends = (np.array([pause[end] for pause in hours.pauses]) for end in (0, 1))
    times = _nanoseconds(data["time"])
    session = np.searchsorted(begins, times, "left")
    inside = (session > 0) & (times < ends[session - 1])
    closing = np.isin(times, begins)
    rate = data["rate"].where(~closing, data["rate"].shift())
    data = data.assign(rate=rate, session=session, place=hours.places(times))
    return data[~inside]


def _nanoseconds(times: pd.Series) -> np.ndarray:
    return times.to_numpy().astype("int64")


def comparison_bars(comparison: pd.DataFrame) -> alt.TopLevelMixin:
    """Throughput and peak memory of each plan generator, side by side.

    Parameters
    ----------
    comparison : DataFrame
        As ``cep.compare`` returns it. Runs that did not end well are named in the subtitle.
    """
    plain = pd.DataFrame(comparison)
    rows = plain[plain["status"] == OK]
    rows = rows.assign(series=series_labels(rows))
    order = list(rows["series"])
    colours = [
        style_of(name, plans).colour
        for name, plans in rows[["generator", "plan_kind"]].itertuples(index=False)
    ]
    columns = ["series", "plan", "events_per_second", "events_per_second_q1",
               "events_per_second_q3", "peak_bytes", "matches"]  # fmt: skip
    base = alt.Chart(rows[columns]).encode(
        color=alt.Color("series:N", legend=None, scale=alt.Scale(domain=order, range=colours)),
        tooltip=[
            alt.Tooltip("series:N", title="plan generator"),
            alt.Tooltip("plan:N"),
            alt.Tooltip("events_per_second:Q", title="events per second", format=",.4~g"),
            alt.Tooltip("events_per_second_q1:Q", title="lower quartile", format=",.4~g"),
            alt.Tooltip("events_per_second_q3:Q", title="upper quartile", format=",.4~g"),
            alt.Tooltip("peak_bytes:Q", title="peak bytes", format=",.4~s"),
            alt.Tooltip("matches:Q", format=","),
        ],
    )

    def bars(column: str, title: str, unit: str, *, labels: bool) -> Any:
        y = alt.Y("series:N", sort=order, title=None, axis=alt.Axis(labels=labels, ticks=False))
        return base.mark_bar().encode(
            x=alt.X(
                f"{column}:Q", title=title, axis=alt.Axis(labelExpr=prefixed(unit), tickCount=5)
            ),
            y=y,
        )

    speed = bars("events_per_second", "events per second, median", "1", labels=True)
    reach = base.mark_rule(color="#333333", strokeWidth=1.2).encode(
        x=alt.X("events_per_second_q1:Q", title="events per second, median"),
        x2="events_per_second_q3:Q",
        y=alt.Y("series:N", sort=order),
        color=alt.value("#333333"),
    )
    size = {"width": 300, "height": 20 * max(len(order), 1)}
    panels = [
        alt.layer(speed, reach).properties(title="Throughput (higher is better)", **size),
        bars("peak_bytes", "bytes", "B", labels=False).properties(
            title="Peak memory (lower is better)", **size
        ),
    ]
    failed = [f"{row.generator}: {row.status}" for row in plain.itertuples() if row.status != OK]
    subtitle = "; ".join(["lines: the middle half of the runs", *failed])
    return (
        offline(alt.hconcat(*panels))
        .properties(title=_title("Every plan on the stream", subtitle))
    )  # fmt: skip


def timeline_chart(found: Timeline, variables: Iterable[Variable]) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.exploration.timeline.match_timeline`."""
    datetimes = pd.api.types.is_datetime64_any_dtype(found.curves["time"])
    hours = found.hours if datetimes else OpenTime(0, 0, ())
    paused = bool(hours.pauses)
    curves, events, span = found.curves, _once(found.events), found.span
    if paused:
        curves, events = (
            its.assign(place=hours.places(_nanoseconds(its["time"]))) for its in (curves, events)
        )
        span = span and tuple(hours.places(_nanoseconds(pd.Series(span))))
    times = pd.concat([curves["time"], events["time"]])
    ends = [times.min(), times.max()]
    # As texts without a zone, which Vega reads and shows as they are.
    domain = [str(end.isoformat()) for end in ends] if datetimes else [int(end) for end in ends]
    column = "place:Q" if paused else "time:T" if datetimes else "time:Q"
    titles = _panel_titles(variables)
    panels = []
    for name, title in titles.items():
        last = name == list(titles)[-1]
        # Where it ends is said in one layer for all: in several, Vega joins them with a warning.
        whole, x = (
            (_open_axis(hours, labels=last, whole=its) for its in (True, False))
            if paused
            else (_time(datetimes, its, labels=last) for its in (domain, None))
        )
        forbidden = title != name
        y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False, padding=14),
                  axis=alt.Axis(tickCount=3, format=".6~g", titleAngle=0, titleAlign="right", minExtent=50))  # fmt: skip
        tooltip = [
            alt.Tooltip("match:N", title="in match"), alt.Tooltip("variable:N"), _when(datetimes),
            alt.Tooltip("value:Q", title=found.attribute, format=",.6~g"),
            alt.Tooltip("position:Q", format=","),
        ]  # fmt: skip
        layers: list[Any] = []
        if span is not None:
            band = pd.DataFrame({column.partition(":")[0]: [span[0]], "end": [span[1]]})
            layers.append(
                alt.Chart(band).mark_rect(color=_MARKED, opacity=0.15).encode(
                    x=x, x2="end:T" if column == "time:T" else "end:Q")
            )  # fmt: skip
        if paused:
            layers.append(_rules(hours))
        line = alt.Chart(curves[curves["type"] == name]).mark_line(
            color=_FORBIDDEN if forbidden else "#888888", strokeWidth=1.0, interpolate="step-after",
            strokeDash=[4, 2] if forbidden else [1, 0],
        )  # fmt: skip
        layers.append(line.encode(x=whole, y=y))
        for highlighted, part in events[events["type"] == name].groupby("highlighted"):
            base = alt.Chart(part).encode(x=x, y=y, tooltip=tooltip)
            if highlighted:
                layers.append(base.mark_point(filled=True, size=110, color=_MARKED, opacity=1))
                layers.append(
                    base.mark_text(dy=-13, fontWeight="bold", color=_MARKED).encode(
                        text="variable:N"
                    )
                )
            else:
                layers.append(
                    base.mark_tick(
                        orient="vertical", color=_PLAIN, opacity=0.6, size=12, thickness=1.5
                    )
                )
        panels.append(alt.layer(*layers, width=_WIDTH, height=70))
    told = ["the highlighted match is shaded, its events large; blue: events of other matches"]
    if any(title != name for name, title in titles.items()):
        told.append("dashed: a type that the pattern forbids (NOT)")
    unit = f", in {found.unit}" if found.unit else ""
    heading = f"Matches over the {found.attribute} of each type{unit}"
    # All at once: each method of a chart copies all of it.
    told = ["; ".join(told), *found.remarks]
    return offline(alt.vconcat(*panels, spacing=4, title=_title(heading, told)))


def _panel_titles(variables: Iterable[Variable]) -> dict[str, str]:
    """Type → what is written beside its curve: that it is forbidden, if nothing else is asked."""
    variables = list(variables)
    wanted = {variable.type for variable in variables if variable.kind is not Kind.NEGATED}
    return {its.type: its.type if its.type in wanted else f"NOT {its.type}" for its in variables}


def _once(events: pd.DataFrame) -> pd.DataFrame:
    """A row an event and not one for each match that it is in; those of the highlighted apart."""
    return events.groupby(
        ["highlighted", "type", "position", "time", "value"], as_index=False, sort=False
    ).agg(match=("match", _listed), variable=("variable", _listed))


def _listed(values: pd.Series) -> str:
    names = list(dict.fromkeys(map(str, values)))
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _open_axis(hours: OpenTime, *, labels: bool = True, whole: bool = True) -> alt.X:
    """An axis for a column ``place``; of several layers only one says where the ``whole`` ends."""
    lines = {f"{place:.6g}": texts for place, texts in hours.labels().items()}
    axis = alt.Axis(
        values=[float(place) for place in lines], labels=labels, ticks=labels, grid=False,
        labelExpr=f"{json.dumps(lines)}[format(datum.value, '.6~g')]", labelOverlap=True,
    )  # fmt: skip
    end = float(hours.places(np.array([hours.last]))[0])
    scale = alt.Scale(domain=[0.0, end], nice=False) if whole else alt.Undefined
    return alt.X("place:Q", title=None, axis=axis, scale=scale)


def _rules(hours: OpenTime) -> alt.Chart:
    """A dashed line where each pause was."""
    begins = np.array([begin for begin, _ in hours.pauses], dtype=np.int64)
    told = [
        " – ".join(f"{pd.Timestamp(end):%b %d %H:%M}" for end in pause) for pause in hours.pauses
    ]
    rows = pd.DataFrame({"place": hours.places(begins), "left out": told})
    chart = alt.Chart(rows).mark_rule(color="#666666", strokeDash=[3, 3])
    return chart.encode(x=alt.X("place:Q"), tooltip=["left out:N"])


def _time(datetimes: bool, domain: list[Any] | None, *, labels: bool = True) -> alt.X:
    clock = _CLOCK if datetimes else alt.Undefined
    axis = alt.Axis(labels=labels, ticks=labels, labelOverlap=True, format=clock)
    title = None if datetimes or not labels else "ticks"
    if domain:
        scale = alt.Scale(domain=domain, nice=False)
    else:
        scale = alt.Scale() if datetimes else alt.Scale(zero=False)  # time never begins at zero
    return alt.X("time:T" if datetimes else "time:Q", title=title, axis=axis, scale=scale)


def _when(datetimes: bool) -> alt.Tooltip:
    if datetimes:
        return alt.Tooltip("time:T", title="time", format="%Y-%m-%d %H:%M:%S.%L")
    return alt.Tooltip("time:Q", title="tick", format=",")


def _title(text: str, subtitle: str | list[str]) -> alt.TitleParams:
    return alt.TitleParams(text, subtitle=subtitle, anchor="start")
