"""The chart of a timeline of matches: altair, with tooltips."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from cepbench.exploration.open_time import OpenTime
from cepbench.exploration.time_axis import (
    WIDTH,
    nanoseconds,
    open_axis,
    pause_rules,
    time_axis,
    time_tooltip,
)
from cepbench.exploration.timeline import Timeline
from cepbench.figures.offline import offline
from cepbench.figures.vega import alt
from cepbench.patterns.model import Kind, Variable

_MARKED, _PLAIN, _FORBIDDEN = "#D55E00", "#0072B2", "#CC79A7"


def timeline_chart(found: Timeline, variables: Iterable[Variable]) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.exploration.timeline.match_timeline`."""
    datetimes = pd.api.types.is_datetime64_any_dtype(found.curves["time"])
    hours = found.hours if datetimes else OpenTime(0, 0, ())
    paused = bool(hours.pauses)
    curves, events, span = found.curves, _once(found.events), found.span
    if paused:
        curves, events = (
            its.assign(place=hours.places(nanoseconds(its["time"]))) for its in (curves, events)
        )
        span = span and tuple(hours.places(nanoseconds(pd.Series(span))))
    times = pd.concat([curves["time"], events["time"]])
    ends = [times.min(), times.max()]
    # As texts without a zone, which Vega reads and shows as they are.
    domain = [str(end.isoformat()) for end in ends] if datetimes else [int(end) for end in ends]
    column = "place:Q" if paused else "time:T" if datetimes else "time:Q"
    titles = _panel_titles(variables)
    panels = []
    for name, title in titles.items():
        last = name == list(titles)[-1]
        # One layer sets the domain for all: Vega merges several domains with a warning.
        whole, x = (
            (open_axis(hours, labels=last, whole=its) for its in (True, False))
            if paused
            else (time_axis(datetimes, its, labels=last) for its in (domain, None))
        )
        forbidden = title != name
        y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False, padding=14),
                  axis=alt.Axis(tickCount=3, format=".6~g", titleAngle=0, titleAlign="right", minExtent=50))  # fmt: skip
        tooltip = [
            alt.Tooltip("match:N", title="in match"), alt.Tooltip("variable:N"), time_tooltip(datetimes),
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
            layers.append(pause_rules(hours))
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
        panels.append(alt.layer(*layers, width=WIDTH, height=70))
    subtitle = ["the highlighted match is shaded, its events large; blue: events of other matches"]
    if any(title != name for name, title in titles.items()):
        subtitle.append("dashed: a type that the pattern forbids (NOT)")
    unit = f", in {found.unit}" if found.unit else ""
    heading = f"Matches over the {found.attribute} of each type{unit}"
    # All at once: each method of a chart copies all of it.
    subtitle = ["; ".join(subtitle), *found.remarks]
    return offline(
        alt.vconcat(
            *panels, spacing=4, title=alt.TitleParams(heading, subtitle=subtitle, anchor="start")
        )
    )


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
