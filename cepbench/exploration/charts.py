"""Charts of an exploration: altair, with tooltips, drawn by JupyterLab and by reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt
import pandas as pd

from cepbench.experiments.cells import OK
from cepbench.exploration.timeline import Timeline
from cepbench.figures.offline import offline, prefixed
from cepbench.figures.styles import series_labels, style_of

#: Colours of Okabe and Ito, which colour-blind readers can tell apart, for event types.
TYPE_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#999999", "#F0E442",
)  # fmt: skip

_WIDTH = 640  # pixels
_MOST_ROWS = 4500  # altair refuses more than 5000
_MARKED, _PLAIN = "#D55E00", "#0072B2"


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
    told = "a gap: no events of any type; pick types in the legend"
    if every > 1:
        data = data[data["time"].isin(sorted(set(data["time"]))[::every])]
        told = f"one interval in {every} drawn; {told}"
    pick = alt.selection_point(name="pick_type", fields=["type"], bind="legend")
    # Types beyond the colours share them, and differ in their dashes.
    colours = [TYPE_COLOURS[number % len(TYPE_COLOURS)] for number in range(len(types))]
    dashes = [[1, 0] if number < len(TYPE_COLOURS) else [4, 2] for number in range(len(types))]
    return (
        offline(alt.Chart(data))
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=_time(datetimes, None),
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
        .properties(width=_WIDTH, height=220, title=_title("Arrivals over time", told))
    )  # fmt: skip


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
        for name, plans in rows[["algorithm", "plans"]].itertuples(index=False)
    ]
    columns = ["series", "plan", "events_per_second", "events_per_second_min",
               "events_per_second_max", "peak_bytes", "matches"]  # fmt: skip
    base = alt.Chart(rows[columns]).encode(
        color=alt.Color("series:N", legend=None, scale=alt.Scale(domain=order, range=colours)),
        tooltip=[
            alt.Tooltip("series:N", title="plan generator"),
            alt.Tooltip("plan:N"),
            alt.Tooltip("events_per_second:Q", title="events per second", format=",.4~g"),
            alt.Tooltip("events_per_second_min:Q", title="least", format=",.4~g"),
            alt.Tooltip("events_per_second_max:Q", title="most", format=",.4~g"),
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
        x=alt.X("events_per_second_min:Q", title="events per second, median"),
        x2="events_per_second_max:Q",
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
    failed = [f"{row.algorithm}: {row.status}" for row in plain.itertuples() if row.status != OK]
    subtitle = "; ".join(["lines: from the slowest to the fastest run", *failed])
    return (
        offline(alt.hconcat(*panels))
        .properties(title=_title("Every plan on the stream", subtitle))
    )  # fmt: skip


def timeline_chart(found: Timeline, types: Iterable[str]) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.exploration.timeline.match_timeline`."""
    datetimes = pd.api.types.is_datetime64_any_dtype(found.curves["time"])
    times = pd.concat([found.curves["time"], found.events["time"]])
    ends = [times.min(), times.max()]
    # As texts without a zone, which Vega reads and shows as they are.
    domain = [str(end.isoformat()) for end in ends] if datetimes else [int(end) for end in ends]
    names = list(dict.fromkeys(types))
    panels = []
    for name in names:
        last = name == names[-1]
        # In one layer, where it holds for all: in several, Vega joins them with a warning.
        whole, x = _time(datetimes, domain, labels=last), _time(datetimes, None, labels=last)
        y = alt.Y("value:Q", title=name, scale=alt.Scale(zero=False, padding=14),
                  axis=alt.Axis(tickCount=3, format=".6~g", titleAngle=0, titleAlign="right", minExtent=50))  # fmt: skip
        curve = found.curves[found.curves["type"] == name]
        events = found.events[found.events["type"] == name]
        tooltip = [
            alt.Tooltip("match:Q"), alt.Tooltip("variable:N"), _when(datetimes),
            alt.Tooltip("value:Q", title=found.attribute, format=",.6~g"),
            alt.Tooltip("position:Q", format=","),
        ]  # fmt: skip
        layers: list[Any] = []
        if found.span is not None:
            band = pd.DataFrame({"time": [found.span[0]], "end": [found.span[1]]})
            layers.append(
                alt.Chart(band).mark_rect(color=_MARKED, opacity=0.15).encode(
                    x=x, x2="end:T" if datetimes else "end:Q")
            )  # fmt: skip
        line = alt.Chart(curve).mark_line(color="#888888", strokeWidth=1.0,
                                          interpolate="step-after")  # fmt: skip
        layers.append(line.encode(x=whole, y=y))
        for highlighted, part in events.groupby("highlighted"):
            base = alt.Chart(part).encode(x=x, y=y, tooltip=tooltip)
            if highlighted:
                layers.append(base.mark_point(filled=True, size=110, color=_MARKED, opacity=1))
                layers.append(
                    base.mark_text(dy=-13, fontWeight="bold", color=_MARKED).encode(
                        text="variable:N"
                    )
                )
            else:
                layers.append(base.mark_point(size=22, color=_PLAIN, opacity=0.7))
        panels.append(alt.layer(*layers, width=_WIDTH, height=70))
    subtitle = "; ".join(["the highlighted match is shaded, its events large", *found.remarks])
    title = _title(f"Matches over the curves of {found.attribute}", subtitle)
    # All at once: each method of a chart copies all of it.
    return offline(alt.vconcat(*panels, spacing=4, title=title))


def _time(datetimes: bool, domain: list[Any] | None, *, labels: bool = True) -> alt.X:
    axis = alt.Axis(labels=labels, ticks=labels, labelOverlap=True)
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


def _title(text: str, subtitle: str) -> alt.TitleParams:
    return alt.TitleParams(text, subtitle=subtitle, anchor="start")
