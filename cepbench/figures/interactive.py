"""Charts for the screen: altair, with tooltips, and series that can be picked in the legend."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from cepbench.analysis.common_patterns import left_out_notes
from cepbench.figures.offline import offline, prefixed
from cepbench.figures.offline import use_offline_charts as use_offline_charts
from cepbench.figures.points import (
    KINDS,
    TRADE_OFF,
    line_of_fit,
    needs_log_latency,
    plans_by_cost,
    plans_left_out,
    trade_off,
)
from cepbench.figures.rows import (
    PANELS,
    axis_title,
    chart_title,
    ends_of,
    log_ticks,
    needs_log,
    needs_log_sizes,
    on_one_line,
    panels_of,
    quantity_of,
    rows_by_group,
    rows_by_size,
    series_of,
    size_ticks,
    unit_of,
)
from cepbench.figures.styles import style_of

_PICK = "pick series in the legend"
_PANEL_WIDTH, _HEIGHT = 370, 270  # pixels
_LETTERS = 110  # of a line above two panels
_COLUMNS = [
    "pattern_set", "strategy", "size", "series", "generator", "plan_kind", "evaluator", "value", "low", "high",
    "patterns", "left_out", "missing",
]  # fmt: skip


def bars_by_group(
    summary: pd.DataFrame,
    metric: str,
    *,
    statistic: str = "median",
    group: str = "pattern_set",
    log: bool = False,
) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.figures.static.bars_by_group`, with tooltips.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.analysis.summary.summarize` returns it.
    metric, statistic, group : str
    log : bool

    Raises
    ------
    ExperimentError
        If the summary has no such rows.
    """
    rows = rows_by_group(summary, metric, statistic, group, log)
    log = needs_log(rows)
    groups = list(rows["group"].unique())
    title = axis_title(metric, statistic)
    panels = []
    for kind, part in panels_of(rows).items():
        pick = _pick(kind)
        order = [label for label, _, _ in series_of(part)]
        x = alt.X("group:N", sort=groups, title=None, axis=alt.Axis(labelAngle=0))
        # One scale for both panels: a reader compares them.
        y = _y(rows, title)
        offset = alt.XOffset("series:N", sort=order)
        base = alt.Chart(_data(part)).encode(x=x, xOffset=offset, opacity=_picked(pick))
        if log:
            body = base.mark_point(filled=True, size=80, opacity=1).encode(
                y=y, color=_colour(part), shape=_shape(part), tooltip=_tooltip(metric, statistic)
            )
        else:
            body = base.mark_bar().encode(
                y=y, color=_colour(part), tooltip=_tooltip(metric, statistic)
            )
        interval = _interval(base, title, alt.value("#333333"))
        panels.append(_panel(PANELS[kind], pick, *_line_at_one(rows, title), body, interval))
    return _joined(panels, chart_title(metric, "", statistic), notes=left_out_notes(rows))


def lines_by_size(
    summary: pd.DataFrame,
    metric: str,
    pattern_set: str = "",
    *,
    statistic: str = "median",
    panels: Mapping[str, str] = PANELS,
) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.figures.static.lines_by_size`, with tooltips."""
    rows = rows_by_size(summary, metric, pattern_set, statistic)
    sizes = [int(size) for size in sorted(rows["size"].unique())]
    title = axis_title(metric, statistic)
    drawn = []
    for kind, part in panels_of(rows).items():
        pick = _pick(kind)
        heading = "pattern size (participating events)"
        if needs_log_sizes(sizes):
            scale = alt.Scale(type="log", nice=False, padding=10)
            axis = alt.Axis(values=size_ticks(sizes), format="d")
            x = alt.X("size:Q", title=heading, scale=scale, axis=axis)
        else:
            x = alt.X("size:O", title=heading, sort=sizes, axis=alt.Axis(labelAngle=0))
        base = alt.Chart(_data(part)).encode(x=x, color=_colour(part), opacity=_picked(pick))
        dash = list(style_of(part["generator"].iloc[0], kind).dash) or [1, 0]
        line = base.mark_line(strokeWidth=2, strokeDash=dash).encode(y=_y(rows, title))
        points = base.mark_point(filled=True, size=70, opacity=1).encode(
            y=_y(rows, title), shape=_shape(part), tooltip=_tooltip(metric, statistic)
        )
        interval = _interval(base, title, _colour(part))
        drawn.append(_panel(panels[kind], pick, *_line_at_one(rows, title), line, interval, points))
    what = f"{pattern_set} patterns" if pattern_set else ""
    notes = [*on_one_line(rows), *left_out_notes(rows)]
    return _joined(drawn, chart_title(metric, what, statistic), notes=notes)


def points_by_cost(points: pd.DataFrame, fit: pd.DataFrame, metric: str) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.figures.static.points_by_cost`, with the plans as tooltips."""
    rows = plans_by_cost(points, metric)
    quantity = quantity_of(metric)
    columns = ["series", "pattern_set", "size", "pattern_id", "plan", "cost", "value"]
    panels = []
    for kind, part in panels_of(rows).items():
        pick = _pick(kind)
        x = alt.X("cost:Q", title="cost of the plan", axis=alt.Axis(labelExpr=prefixed("1"), tickCount=6),
                  scale=alt.Scale(type="log", nice=False, padding=10))  # fmt: skip
        marks = (
            alt.Chart(part[columns])
            .mark_point(filled=True, size=60, opacity=0.9)
            .encode(
                x=x, y=_y(rows, quantity.axis), color=_colour(part), shape=_shape(part),
                opacity=_picked(pick),
                tooltip=[
                    alt.Tooltip("series:N", title="plan generator"),
                    alt.Tooltip("pattern_set:N", title="pattern set"),
                    alt.Tooltip("size:O"),
                    alt.Tooltip("plan:N"),
                    alt.Tooltip("cost:Q", format=",.4~g"),
                    alt.Tooltip("value:Q", title=quantity.axis, format=",.4~g"),
                ],
            )
        )  # fmt: skip
        line, note = line_of_fit(fit, kind, part)
        fitted = (
            alt.Chart(line)
            .mark_line(color="#333333", strokeWidth=1.5)
            .encode(x=x, y=_y(rows, quantity.axis))
        )
        panels.append(_panel([KINDS[kind], *note.split("\n")], pick, fitted, marks))
    heading = f"{quantity.title} against plan cost"
    return _joined(panels, heading, _PICK, plans_left_out(points))


def throughput_against_latency(
    points: pd.DataFrame, *, statistic: str = "geometric mean"
) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.figures.static.throughput_against_latency`, with tooltips."""
    rows = trade_off(points, statistic)
    pick = _pick("all")
    columns = ["series", "alpha", "label", "throughput", "throughput_low", "throughput_high",
               "latency_ms", "low_ms", "high_ms"]  # fmt: skip
    far = needs_log_latency(rows)
    scale = alt.Scale(**kind_of_scale(far), padding=25)
    horizontal = f"{statistic} of latency, milliseconds"
    vertical = f"{statistic} of throughput, events per second"
    y = alt.Y("throughput:Q", title=vertical, scale=alt.Scale(zero=False, padding=20),
              axis=alt.Axis(labelExpr=prefixed("1")))  # fmt: skip
    base = alt.Chart(rows[columns]).encode(
        x=alt.X("latency_ms:Q", title=horizontal, scale=scale),
        color=_colour(rows), opacity=_picked(pick),
    )  # fmt: skip
    line = base.mark_line(strokeWidth=2).encode(y=y, order="alpha:Q", strokeDash=_dash(rows))
    up = base.mark_rule(strokeWidth=0.8).encode(
        y=alt.Y("throughput_low:Q", title=vertical), y2="throughput_high:Q"
    )
    across = base.mark_rule(strokeWidth=0.8).encode(
        x=alt.X("low_ms:Q", title=horizontal), x2="high_ms:Q", y=y
    )
    marks = base.mark_point(filled=True, size=80, opacity=1).encode(
        y=y, shape=_shape(rows),
        tooltip=[
            alt.Tooltip("series:N", title="plan generator"),
            alt.Tooltip("alpha:Q", title="α"),
            alt.Tooltip("throughput:Q", title="events per second", format=",.4~g"),
            alt.Tooltip("throughput_low:Q", title="95 % from", format=",.4~g"),
            alt.Tooltip("throughput_high:Q", title="to", format=",.4~g"),
            alt.Tooltip("latency_ms:Q", title="latency, ms", format=",.4~g"),
            alt.Tooltip("low_ms:Q", title="95 % from", format=",.4~g"),
            alt.Tooltip("high_ms:Q", title="to", format=",.4~g"),
        ],
    )  # fmt: skip
    text = base.mark_text(dx=8, dy=-8, align="left").encode(y=y, text="label:N")
    panel = _panel("", pick, line, up, across, marks, text).properties(width=560, height=340)
    return _joined([panel], TRADE_OFF, notes=left_out_notes(rows))


def kind_of_scale(log: bool) -> dict[str, Any]:
    """Arguments of a scale that need not begin at zero; a logarithmic one warns when told so."""
    return {"type": "log"} if log else {"type": "linear", "zero": False}


def _data(part: pd.DataFrame) -> pd.DataFrame:
    plain = part[[*_COLUMNS, *(["group"] if "group" in part else [])]].copy()
    plain["size"] = [None if pd.isna(size) else int(size) for size in plain["size"]]
    return plain


def _y(rows: pd.DataFrame, title: str) -> alt.Y:
    unit = unit_of(rows)
    axis: dict[str, Any] = {"labelExpr": prefixed(unit), "tickCount": 6}
    if needs_log(rows):
        low, high = ends_of(rows)
        scale: dict[str, Any] = {"type": "log", "domain": [low, high], "nice": False}
        axis["values"] = log_ticks(low, high)
    else:
        scale = {"type": "linear"}
        high = rows[["high", "value"]].max().max()
        if pd.notna(high):
            scale |= {"domain": [0, float(high)], "nice": True}
    return alt.Y("value:Q", title=title, scale=alt.Scale(**scale), axis=alt.Axis(**axis))


def _line_at_one(rows: pd.DataFrame, title: str) -> list[alt.Chart]:
    """Where ratios turn from worse to better; nothing for what is no ratio, or far from it."""
    low, high = ends_of(rows)
    if unit_of(rows) or not low <= 1 <= high:
        return []
    one = alt.Chart(pd.DataFrame({"value": [1.0]})).mark_rule(color="#333333")
    return [one.encode(y=_y(rows, title))]


def _legend() -> alt.Legend:
    return alt.Legend(title=None, orient="bottom", columns=3, symbolOpacity=1)


def _colour(part: pd.DataFrame) -> alt.Color:
    series = series_of(part)
    colours = [style_of(generator, plans).colour for _, generator, plans in series]
    domain = [label for label, _, _ in series]
    return alt.Color("series:N", legend=_legend(), scale=alt.Scale(domain=domain, range=colours))


def _shape(part: pd.DataFrame) -> alt.Shape:
    series = series_of(part)
    shapes = [style_of(generator, plans).mark.vega for _, generator, plans in series]
    domain = [label for label, _, _ in series]
    return alt.Shape("series:N", legend=_legend(), scale=alt.Scale(domain=domain, range=shapes))


def _dash(part: pd.DataFrame) -> alt.StrokeDash:
    series = series_of(part)
    dashes = [list(style_of(generator, plans).dash) or [1, 0] for _, generator, plans in series]
    domain = [label for label, _, _ in series]
    return alt.StrokeDash("series:N", legend=None, scale=alt.Scale(domain=domain, range=dashes))


def _pick(kind: str) -> alt.Parameter:
    # Each panel has a legend of its own, so each needs a selection of its own.
    return alt.selection_point(name=f"pick_{kind}", fields=["series"], bind="legend")


def _picked(pick: alt.Parameter) -> Any:
    return alt.when(pick).then(alt.value(1.0)).otherwise(alt.value(0.12))


def _interval(base: alt.Chart, title: str, colour: Any) -> alt.Chart:
    # The same title in every layer: Vega-Lite would write different ones side by side.
    low = alt.Y("low:Q", title=title)
    return base.mark_rule(strokeWidth=1.2).encode(y=low, y2="high:Q", color=colour)


def _tooltip(metric: str, statistic: str) -> list[alt.Tooltip]:
    value = quantity_of(metric).title.lower()
    return [
        alt.Tooltip("series:N", title="plan generator"),
        alt.Tooltip("evaluator:N"),
        alt.Tooltip("pattern_set:N", title="pattern set"),
        alt.Tooltip("strategy:N"),
        alt.Tooltip("size:O"),
        alt.Tooltip("value:Q", title=f"{value}, {statistic}", format=",.4~g"),
        alt.Tooltip("low:Q", title="95 % from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
        alt.Tooltip("patterns:Q"),
        alt.Tooltip("left_out:Q", title="patterns left out"),
        alt.Tooltip("missing:Q", title="missing of its own"),
    ]


def _panel(title: str | list[str], pick: alt.Parameter, *layers: alt.Chart) -> Any:
    heading = title if isinstance(title, str) else alt.TitleParams(title[0], subtitle=title[1:])
    return (
        alt.layer(*layers)
        .properties(title=heading, width=_PANEL_WIDTH, height=_HEIGHT)
        .add_params(pick)
    )


def _joined(
    panels: list[Any], heading: str, subtitle: str = "", notes: Sequence[str] = ()
) -> alt.TopLevelMixin:
    told = subtitle or f"whiskers: 95 % of bootstrap resamples of patterns; {_PICK}"
    lines = [line for each in (told, *notes) for line in textwrap.wrap(each, _LETTERS)]
    title = alt.TitleParams(heading, subtitle=lines, anchor="start")
    return offline(
        alt.hconcat(*panels)
        .resolve_scale(color="independent", shape="independent", xOffset="independent")
        .properties(title=title)
    )
