"""The chart of a timeline of matches: altair, with tooltips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from cepbench.engines.runs.result import Result
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Kind, Pattern, Variable
from cepbench.presentation.exploration.timeline import Timeline, timeline
from cepbench.streams.event_stream import EventStream

if TYPE_CHECKING:
    import altair as alt

_MARKED, _PLAIN, _FORBIDDEN = "#D55E00", "#0072B2", "#CC79A7"


def match_timeline(
    stream: EventStream,
    matches: pd.DataFrame | Result,
    pattern: Pattern | str,
    highlight: int = 0,
    *,
    attribute: str | None = None,
    windows: float | None = None,
    units: Mapping[str, str] | None = None,
) -> alt.TopLevelMixin:
    """Draw an attribute over time, one panel per event type, and mark the events of matches.

    The altair chart has at most 4500 points of curves and 300 matches, and no long pauses of the whole
    stream; its subtitle lists what was left out. The curve of a type that occurs only under NOT is dashed.

    Parameters
    ----------
    matches : DataFrame or Result
        As ``cep.evaluate`` returns them.
    highlight : int
        Number of the match whose events are large and labelled, with its span shaded.
    attribute : str, optional
        The attribute that is drawn; by default ``price`` if there is one, else a numeric attribute
        of the conditions, else any numeric one, else the events without a curve.
    windows : float, optional
        Number of windows to show before and after the highlighted match; by default the whole
        stream.
    units : mapping of str to str, optional
        Attribute → unit, for the title; for a data set ``dataset.schema["unit"]``.

    Raises
    ------
    EvaluationError
        If the matches are not those of the pattern in the stream, or there is no match
        ``highlight``.
    StreamError
        If the stream lacks the attribute, or the attribute is not numeric.
    """
    pattern = pattern_from(pattern)
    found = timeline(
        stream, matches, pattern, highlight=highlight, attribute=attribute, windows=windows
    )
    unit = (units or {}).get(found.attribute) if found.attribute else None
    return _chart(found, pattern.variables, unit)


def _chart(found: Timeline, variables: Sequence[Variable], unit: str | None) -> alt.TopLevelMixin:
    from cepbench.presentation.exploration.time_axis import WIDTH, TimeAxis, nanoseconds
    from cepbench.presentation.figures.chart import INK
    from cepbench.presentation.figures.offline import offline
    from cepbench.presentation.figures.vega import alt  # takes seconds

    hours = found.hours
    axis = TimeAxis(hours, pd.api.types.is_datetime64_any_dtype(found.curves["time"]))
    curves, events, span = axis.placed(found.curves), axis.placed(_once(found.events)), found.span
    if hours.pauses and span:
        span = tuple(hours.places(nanoseconds(pd.Series(span))))
    times = pd.concat([curves["time"], events["time"]])
    titles = _panel_titles(variables, events["type"])
    panels = []
    for name, title in titles.items():
        last = name == list(titles)[-1]
        # One layer sets the domain for all: Vega warns when it merges several domains.
        whole, x = axis.x(times, labels=last), axis.x(labels=last, whole=False)
        forbidden = title != name
        scaled: dict[str, Any] = {"tickCount": 3, "format": ".6~g", "minExtent": 50}
        if found.attribute is None:
            scaled = dict.fromkeys(("labels", "ticks", "grid", "domain"), False)
        y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False, padding=14),
                  axis=alt.Axis(titleAngle=0, titleAlign="right", **scaled))  # fmt: skip
        value = alt.Tooltip("value:Q", title=found.attribute, format=",.6~g")
        tooltip = [
            alt.Tooltip("match:N", title="in match"), alt.Tooltip("variable:N"), axis.tooltip(),
            *([value] if found.attribute else []),
            alt.Tooltip("position:Q", format=","),
        ]  # fmt: skip
        layers: list[Any] = []
        if span is not None:
            name_of_x, _, kind = axis.column.partition(":")
            band = pd.DataFrame({name_of_x: [span[0]], "end": [span[1]]})
            shade = alt.Chart(band).mark_rect(color=_MARKED, opacity=0.15)
            layers.append(shade.encode(x=x, x2=f"end:{kind}"))
        layers += axis.pauses()
        base = alt.Chart(curves[curves["type"] == name])
        colour = _FORBIDDEN if forbidden else "#888888"
        if found.attribute is None:
            line = base.mark_tick(orient="vertical", color=colour, size=24)
        else:
            line = base.mark_line(
                color=colour, strokeWidth=1.0, interpolate="step-after",
                strokeDash=[4, 2] if forbidden else [1, 0],
            )  # fmt: skip
        layers.append(line.encode(x=whole, y=y))
        for highlighted, part in events[events["type"] == name].groupby("highlighted"):
            base = alt.Chart(part).encode(x=x, y=y, tooltip=tooltip)
            if highlighted:
                label = base.mark_text(dy=-13, fontWeight="bold", color=INK)
                layers += [
                    base.mark_point(filled=True, size=110, color=_MARKED, opacity=1),
                    label.encode(text="variable:N"),
                ]
            else:
                layers.append(
                    base.mark_tick(orient="vertical", color=_PLAIN, opacity=0.6, size=12, thickness=1.5)
                )  # fmt: skip
        panels.append(alt.layer(*layers, width=WIDTH, height=70))
    subtitle = ["the highlighted match is shaded, its events large; blue: events of other matches"]
    if any(title != name for name, title in titles.items()):
        subtitle.append("dashed: a type that the pattern forbids (NOT)")
    drawn = found.attribute or "events"
    heading = f"Matches over the {drawn} of each type{f', in {unit}' if unit else ''}"
    subtitle = ["; ".join(subtitle), *found.remarks]
    return offline(
        alt.vconcat(
            *panels, spacing=4, title=alt.TitleParams(heading, subtitle=subtitle, anchor="start")
        )
    )


def _panel_titles(variables: Sequence[Variable], matched: Iterable[str]) -> dict[str, str]:
    """Type → the title of its panel: ``NOT type`` for a type that occurs only under NOT."""
    explicit = [its.type for its in variables if its.type is not None]
    wanted = {its.type for its in variables if its.kind is not Kind.NEGATED} | {*matched}
    return {name: name if name in wanted else f"NOT {name}" for name in (*explicit, *matched)}


def _once(events: pd.DataFrame) -> pd.DataFrame:
    """One row per event instead of one per match and event; the highlighted match's separate."""
    return events.groupby(
        ["highlighted", "type", "position", "time", "value"], as_index=False, sort=False
    ).agg(match=("match", _listed), variable=("variable", _listed))


def _listed(values: pd.Series) -> str:
    names = list(dict.fromkeys(map(str, values)))
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
