"""Charts for the screen: altair, with tooltips, and series that can be picked in the legend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from cepbench.figures.rows import (
    PANELS,
    axis_title,
    chart_title,
    needs_log,
    panels_of,
    quantity_of,
    rows_by_set,
    rows_by_size,
    series_of,
)
from cepbench.figures.styles import style_of

#: What JupyterLab and our reports draw; Vega-Lite 6 specifications are drawn by viewers of 5 too.
VEGALITE_MIME = "application/vnd.vegalite.v5+json"

_PANEL_WIDTH, _HEIGHT = 330, 260  # pixels
_COLUMNS = [
    "pattern_set", "size", "series", "algorithm", "plans", "evaluator", "value", "low", "high",
    "patterns", "left_out",
]  # fmt: skip


def bars_by_set(
    summary: pd.DataFrame, metric: str, *, statistic: str = "mean"
) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.figures.static.bars_by_set`, with tooltips.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.summary.summarize` returns it.
    metric, statistic : str

    Raises
    ------
    ExperimentError
        If the summary has no such rows.
    """
    rows = rows_by_set(summary, metric, statistic)
    log = needs_log(rows)
    sets = list(rows["pattern_set"].unique())
    title = axis_title(metric, statistic)
    panels = []
    for kind, part in panels_of(rows).items():
        pick = _pick(kind)
        order = [label for label, _, _ in series_of(part)]
        x = alt.X("pattern_set:N", sort=sets, title=None, axis=alt.Axis(labelAngle=0))
        # One scale for both panels: a reader compares them.
        y = _y(rows, title, log)
        offset = alt.XOffset("series:N", sort=order)
        base = alt.Chart(_data(part)).encode(x=x, xOffset=offset, opacity=_picked(pick))
        if log:
            body = base.mark_point(filled=True, size=80, opacity=1).encode(
                y=y, color=_colour(part), shape=_shape(part), tooltip=_tooltip(metric)
            )
        else:
            body = base.mark_bar().encode(y=y, color=_colour(part), tooltip=_tooltip(metric))
        panels.append(_panel(kind, pick, body, _interval(base, title, alt.value("#333333"))))
    return _joined(panels, chart_title(metric))


def lines_by_size(
    summary: pd.DataFrame, metric: str, pattern_set: str, *, statistic: str = "mean"
) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.figures.static.lines_by_size`, with tooltips."""
    rows = rows_by_size(summary, metric, pattern_set, statistic)
    log = needs_log(rows)
    sizes = [int(size) for size in sorted(rows["size"].unique())]
    title = axis_title(metric, statistic)
    panels = []
    for kind, part in panels_of(rows).items():
        pick = _pick(kind)
        x = alt.X("size:O", title="pattern size (participating events)", sort=sizes,
                  axis=alt.Axis(labelAngle=0))  # fmt: skip
        y = _y(rows, title, log)
        base = alt.Chart(_data(part)).encode(x=x, color=_colour(part), opacity=_picked(pick))
        dash = list(style_of(part["algorithm"].iloc[0], kind).dash) or [1, 0]
        line = base.mark_line(strokeWidth=2, strokeDash=dash).encode(y=y)
        points = base.mark_point(filled=True, size=70, opacity=1).encode(
            y=y, shape=_shape(part), tooltip=_tooltip(metric)
        )
        panels.append(_panel(kind, pick, line, _interval(base, title, _colour(part)), points))
    return _joined(panels, chart_title(metric, pattern_set))


def use_offline_charts() -> None:
    """Show altair charts without a request to the network, in JupyterLab and in our reports.

    By default altair loads Vega from a content delivery network. This makes it hand out the
    specification alone, which JupyterLab and :mod:`cepbench.reporting` draw by themselves.
    """
    alt.renderers.register("cepbench", _specification_only)
    alt.renderers.enable("cepbench")


def _specification_only(spec: Mapping[str, Any], **_: Any) -> dict[str, Any]:
    return {
        VEGALITE_MIME: dict(spec),
        "text/plain": "an altair chart; JupyterLab and the report draw it",
    }


def _data(part: pd.DataFrame) -> pd.DataFrame:
    plain = part[_COLUMNS].copy()
    plain["size"] = [None if pd.isna(size) else int(size) for size in plain["size"]]
    return plain


def _y(rows: pd.DataFrame, title: str, log: bool) -> alt.Y:
    scale: dict[str, Any] = {"type": "log" if log else "linear"}
    low, high = rows[["low", "value"]].min().min(), rows[["high", "value"]].max().max()
    if log:
        scale |= {"domain": [float(low) * 0.8, float(high) * 1.25], "nice": False}
    elif pd.notna(high):
        scale |= {"domain": [0, float(high)], "nice": True}
    axis: dict[str, Any] = {"format": "~s", "tickCount": 6}
    if log:
        axis["values"] = _log_ticks(*scale["domain"])
    return alt.Y("value:Q", title=title, scale=alt.Scale(**scale), axis=alt.Axis(**axis))


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, and 2 and 5 times them where there are few: Vega's own choice leaves gaps."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def _legend() -> alt.Legend:
    return alt.Legend(title=None, orient="bottom", columns=3, symbolOpacity=1)


def _colour(part: pd.DataFrame) -> alt.Color:
    series = series_of(part)
    colours = [style_of(algorithm, plans).colour for _, algorithm, plans in series]
    domain = [label for label, _, _ in series]
    return alt.Color("series:N", legend=_legend(), scale=alt.Scale(domain=domain, range=colours))


def _shape(part: pd.DataFrame) -> alt.Shape:
    series = series_of(part)
    shapes = [style_of(algorithm, plans).mark.vega for _, algorithm, plans in series]
    domain = [label for label, _, _ in series]
    return alt.Shape("series:N", legend=_legend(), scale=alt.Scale(domain=domain, range=shapes))


def _pick(kind: str) -> alt.Parameter:
    # Each panel has a legend of its own, so each needs a selection of its own.
    return alt.selection_point(name=f"pick_{kind}", fields=["series"], bind="legend")


def _picked(pick: alt.Parameter) -> Any:
    return alt.when(pick).then(alt.value(1.0)).otherwise(alt.value(0.12))


def _interval(base: alt.Chart, title: str, colour: Any) -> alt.Chart:
    # The same title in every layer: Vega-Lite would write different ones side by side.
    low = alt.Y("low:Q", title=title)
    return base.mark_rule(strokeWidth=1.2).encode(y=low, y2="high:Q", color=colour)


def _tooltip(metric: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("series:N", title="plan generator"),
        alt.Tooltip("evaluator:N"),
        alt.Tooltip("pattern_set:N", title="pattern set"),
        alt.Tooltip("size:O"),
        alt.Tooltip("value:Q", title=quantity_of(metric).title.lower(), format=",.4~g"),
        alt.Tooltip("low:Q", title="95 % from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
        alt.Tooltip("patterns:Q"),
        alt.Tooltip("left_out:Q", title="patterns left out"),
    ]


def _panel(kind: str, pick: alt.Parameter, *layers: alt.Chart) -> Any:
    return (
        alt.layer(*layers)
        .properties(title=PANELS[kind], width=_PANEL_WIDTH, height=_HEIGHT)
        .add_params(pick)
    )


def _joined(panels: list[Any], heading: str) -> alt.TopLevelMixin:
    title = alt.TitleParams(
        heading,
        subtitle="whiskers: 95 % of bootstrap resamples of patterns; pick series in the legend",
        anchor="start",
    )
    return (
        alt.hconcat(*panels)
        .resolve_scale(color="independent", shape="independent", xOffset="independent")
        .properties(title=title)
        .configure_view(stroke=None)
        .configure_axis(gridColor="#E4E4E4")
    )
