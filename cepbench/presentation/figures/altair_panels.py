"""Panels, axes and legends of the interactive charts; series can be picked in a legend."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from cepbench.presentation.figures.offline import offline, prefixed
from cepbench.presentation.figures.rows import (
    Panel,
    ends_of,
    log_ticks,
    needs_log,
    series_of,
    unit_of,
)
from cepbench.presentation.figures.styles import Style, style_of
from cepbench.presentation.figures.vega import alt

#: How readers select series.
PICK = "pick series in the legend"

_PANEL_WIDTH, _HEIGHT = 370, 270  # pixels

_LETTERS = 110  # of a line above two panels


def kind_of_scale(log: bool) -> dict[str, Any]:
    """Arguments of a scale that need not begin at zero; Vega warns of ``zero`` on a logarithmic one."""
    return {"type": "log"} if log else {"type": "linear", "zero": False}


def value_axis(rows: pd.DataFrame, title: str) -> alt.Y:
    """The axis of values that all panels share: linear from 0, or logarithmic by the rows."""
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


def line_at_one(rows: pd.DataFrame, title: str) -> list[alt.Chart]:
    """Where ratios turn from worse to better; nothing for what is no ratio, or far from it."""
    low, high = ends_of(rows)
    if unit_of(rows) or not low <= 1 <= high:
        return []
    one = alt.Chart(pd.DataFrame({"value": [1.0]})).mark_rule(color="#333333")
    return [one.encode(y=value_axis(rows, title))]


def _legend() -> alt.Legend:
    return alt.Legend(title=None, orient="bottom", columns=3, symbolOpacity=1)


def _scale(part: pd.DataFrame, look: Callable[[Style], Any]) -> alt.Scale:
    series = series_of(part)
    looks = [look(style_of(generator, plan_kind)) for _, generator, plan_kind in series]
    return alt.Scale(domain=[label for label, _, _ in series], range=looks)


def colour_of(part: pd.DataFrame) -> alt.Color:
    """Colours of the series, with their legend."""
    scale = _scale(part, lambda style: style.colour)
    return alt.Color("series:N", legend=_legend(), scale=scale)


def shape_of(part: pd.DataFrame) -> alt.Shape:
    """Marks of the series, in the legend of :func:`colour_of`."""
    scale = _scale(part, lambda style: style.mark.vega)
    return alt.Shape("series:N", legend=_legend(), scale=scale)


def dash_of(part: pd.DataFrame) -> alt.StrokeDash:
    """Dashes of the series."""
    scale = _scale(part, lambda style: list(style.dash) or [1, 0])
    return alt.StrokeDash("series:N", legend=None, scale=scale)


def log_x(ends: tuple[float, float], ticks: Sequence[float]) -> Callable[[str], alt.X]:
    """Column → a horizontal logarithmic axis with these ends and ticks."""
    scale = alt.Scale(type="log", domain=list(ends), nice=False)
    axis = alt.Axis(values=list(ticks), format="~g")
    return lambda name: alt.X(f"{name}:Q", title=None, scale=scale, axis=axis)


def row_panels(
    parts: Mapping[str, pd.DataFrame],
    label: str,
    colours: Mapping[str, str],
    tooltip: Sequence[alt.Tooltip],
    layers: Callable[[alt.Chart], Sequence[alt.Chart]],
    **size: float,
) -> list[Any]:
    """Panels with a row for each label, which the first one names.

    Parts are the panels' rows by heading, ``colours`` those of labels in the order of the rows; ``layers``
    gets the chart of a panel's rows, and returns what is drawn. ``size`` is in pixels.
    """
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    colour = alt.Color(f"{label}:N", legend=None, scale=scale)
    panels: list[Any] = []
    for heading, part in parts.items():
        axis = alt.Axis(labels=not panels, ticks=False)
        y = alt.Y(f"{label}:N", sort=list(colours), title=None, axis=axis)
        base = alt.Chart(part).encode(y=y, color=colour, tooltip=list(tooltip))
        panels.append(alt.layer(*layers(base), title=heading, **size))
    return panels


def picker(kind: str) -> alt.Parameter:
    """The selection of series in the legend of one panel."""
    # Each panel has its legend, so each needs its selection.
    return alt.selection_point(name=f"pick_{kind}", fields=["series"], bind="legend")


def picked(pick: alt.Parameter) -> alt.OpacityValue:
    """Opacity by a selection: series that are not selected fade."""
    return alt.OpacityValue(0.12, condition=[{"param": pick.name, "value": 1.0}])


def layered_panel(
    title: str | list[str], pick: alt.Parameter, *layers: alt.Chart, data: Any = alt.Undefined
) -> Any:
    """Layers on top of each other, under a title and lines below it.

    ``data`` is that of layers without any; altair would write the data of each as a text to name it.
    """
    heading = title if isinstance(title, str) else alt.TitleParams(title[0], subtitle=title[1:])
    first, *others = layers
    # One call: each method of layered or joined charts copies all charts in them several times.
    return alt.layer(
        first.add_params(pick),
        *others,
        data=data,
        title=heading,
        width=_PANEL_WIDTH,
        height=_HEIGHT,
    )


def joined_panels(
    panels: list[Any], heading: str, subtitle: str = "", notes: Sequence[str] = ()
) -> alt.TopLevelMixin:
    """Panels side by side, or lists of them below each other, as one chart that needs no network.

    The subtitle, by default what whiskers are, and sentences are below the heading.
    """
    first = subtitle or f"whiskers: 95 % of bootstrap resamples of patterns; {PICK}"
    lines = [line for each in (first, *notes) for line in textwrap.wrap(each, _LETTERS)]
    title = alt.TitleParams(heading, subtitle=lines, anchor="start")
    apart: Any = dict.fromkeys(("color", "shape", "xOffset"), "independent")
    resolve = alt.Resolve(scale=alt.ScaleResolveMap(**apart))
    rows = panels if isinstance(panels[0], list) else [panels]
    if len(rows) == 1:
        return offline(alt.hconcat(*rows[0], resolve=resolve, title=title))
    joined = [alt.hconcat(*row, resolve=resolve) for row in rows]
    return offline(alt.vconcat(*joined, resolve=resolve, title=title))


def in_rows(panels: Sequence[Panel], drawn: Sequence[Any]) -> list[list[Any]]:
    """Charts of panels as rows, for :func:`joined_panels`."""
    rows: dict[int, list[Any]] = {}
    for panel, chart in zip(panels, drawn, strict=True):
        rows.setdefault(panel.row, []).append(chart)
    return [*rows.values()]
