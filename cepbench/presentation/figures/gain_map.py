"""Gains of plan generators against expected partial matches per event, in panels by comparison."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from cepbench.errors import ExperimentError
from cepbench.presentation.figures.matplotlib_panels import (
    TEXT,
    print_look,
    write_notes,
    write_title,
)
from cepbench.presentation.figures.offline import offline
from cepbench.presentation.figures.q_errors import MARKS, palette_of
from cepbench.presentation.figures.rows import quantity_of
from cepbench.presentation.figures.vega import alt

#: Fewer expected partial matches per event than this are drawn here.
LEAST = 1e-3

#: Panels side by side: as many fit on a page.
_COLUMNS = 2

_X = "expected partial matches per event"
_Y = "times better"


def static_gain_map(rows: pd.DataFrame, by_class: pd.DataFrame, metric: str) -> Figure:
    """A point a pattern, in panels by comparison and engine; a line through the means of classes.

    Parameters
    ----------
    rows : DataFrame
        As :func:`cepbench.experiments.studies.kolchinsky2018.gain_map.gain_rows` returns it.
    by_class : DataFrame
        As :func:`cepbench.experiments.studies.kolchinsky2018.gain_map.gains_by_class` returns it.
    metric : str

    Raises
    ------
    ExperimentError
        If no pattern has a gain in this metric.
    """
    points, means = map_points(rows, by_class, metric)
    places = _places(points)
    rows_of_panels = -(-len(places) // _COLUMNS)
    palette = _palette(points)
    with print_look():
        figure = Figure(figsize=(4.3 * _COLUMNS, 2.6 * rows_of_panels + 0.9), layout="constrained")
        grid = figure.subplots(rows_of_panels, _COLUMNS, sharex=True, sharey=True, squeeze=False)
        for axes in grid.flat[len(places) :]:
            axes.remove()
        for axes, (comparison, engine) in zip(grid.flat, places, strict=False):
            own = _of_panel(points, engine, comparison)
            for rank, (rates, colour) in enumerate(palette.items()):
                part = own[own["rates"] == rates]
                axes.plot(
                    part["x"], part["gain"], linestyle="none", color=colour, alpha=0.7,
                    marker=MARKS[rank % len(MARKS)].matplotlib, markersize=4,
                    markeredgewidth=0, label=f"{rates} events per window",
                )  # fmt: skip
            bounds = own[own["bound"]]
            axes.plot(
                bounds["x"], bounds["gain"], linestyle="none", marker="o", markersize=8,
                markerfacecolor="none", color="#333333",
            )  # fmt: skip
            line = _of_panel(means, engine, comparison)
            axes.errorbar(
                line["x"], line["value"],
                [line["value"] - line["low"], line["high"] - line["value"]],
                color="#333333", linewidth=1.4, elinewidth=1.0, capsize=2.0,
            )  # fmt: skip
            axes.axhline(1.0, color="#999999", linewidth=0.8)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_minor_locator(NullLocator())
            axes.set_title(f"{comparison} ({engine})")
        for axes in grid[-1]:
            axes.set_xlabel(_X)
        for axes in grid[:, 0]:
            axes.set_ylabel(_Y)
        write_title(figure, map_title(metric))
        grid[0][0].legend(loc="upper left", fontsize=TEXT, handletextpad=0.2)
        write_notes(figure, map_notes(points))
        return figure


def interactive_gain_map(
    rows: pd.DataFrame, by_class: pd.DataFrame, metric: str
) -> alt.TopLevelMixin:
    """The chart of :func:`static_gain_map`, with the patterns as tooltips."""
    points, means = map_points(rows, by_class, metric)
    palette = _palette(points)
    shapes = [MARKS[rank % len(MARKS)].vega for rank in range(len(palette))]
    title = "events per window"
    pick = alt.selection_point(name="pick_rates", fields=["rates"], bind="legend")
    colour = alt.Color(
        "rates:N", title=title, legend=alt.Legend(orient="bottom"),
        scale=alt.Scale(domain=list(palette), range=list(palette.values())),
    )  # fmt: skip
    shape = alt.Shape("rates:N", title=title, scale=alt.Scale(domain=list(palette), range=shapes))
    # One scale for all panels: a reader compares them.
    x = _axis("x", _X, points["x"])
    y = _axis("gain", _Y, points["gain"])
    panels: list[Any] = []
    for comparison, engine in _places(points):
        marks = (
            alt.Chart(_of_panel(points, engine, comparison).drop(columns="expected"))
            .mark_point(filled=True, size=40)
            .encode(
                x=x, y=y, color=colour, shape=shape,
                opacity=alt.when(pick).then(alt.value(0.8)).otherwise(alt.value(0.08)),
                tooltip=["pattern_id:N", "rates:N", "selectivity:N",
                         alt.Tooltip("x:Q", title=_X, format=",.3~g"),
                         alt.Tooltip("measured:Q", title="measured", format=",.3~g"),
                         alt.Tooltip("gain:Q", title=_Y, format=",.3~g"),
                         alt.Tooltip("bound:N", title="a bound")],
            )
        )  # fmt: skip
        line = alt.Chart(
            _of_panel(means, engine, comparison).rename(columns={"value": "gain"})
        ).encode(x=x, y=y)
        interval = line.mark_rule().encode(y=alt.Y("low:Q", title=_Y), y2="high:Q")
        one = alt.Chart(pd.DataFrame({"gain": [1.0]})).mark_rule(color="#999999").encode(y=y)
        tooltip = ["class:N", alt.Tooltip("gain:Q", title="geometric mean", format=",.3~g"),
                   "patterns:Q", "bounds:Q"]  # fmt: skip
        means_line = line.mark_line(color="#333333", point={"color": "#333333"}).encode(
            tooltip=tooltip
        )
        if not panels:
            one = one.add_params(pick)
        layers = (one, marks, interval, means_line)
        panels.append(alt.layer(*layers, title=f"{comparison} ({engine})", width=340, height=220))
    heading = alt.TitleParams(map_title(metric), subtitle=map_notes(points), anchor="start")
    rows_of_panels = [
        alt.hconcat(*panels[first : first + _COLUMNS]) for first in range(0, len(panels), _COLUMNS)
    ]
    return offline(alt.vconcat(*rows_of_panels, title=heading))


def map_points(
    rows: pd.DataFrame, by_class: pd.DataFrame, metric: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points and the means of classes that a map shows, with ``x``, the place on the axis.

    Raises
    ------
    ExperimentError
        If no pattern has a gain in this metric.
    """
    points = rows[(rows["metric"] == metric) & rows["gain"].notna() & rows["expected"].notna()]
    if points.empty:
        known = ", ".join(rows["metric"].unique())
        raise ExperimentError(f"the map has no gain in {metric!r}; it has {known}")
    means = by_class[by_class["metric"] == metric]
    return (
        points.assign(x=points["expected"].clip(lower=LEAST)),
        means.assign(x=means["expected"].clip(lower=LEAST)),
    )


def map_title(metric: str) -> str:
    """Heading of the map of a metric."""
    return f"{quantity_of(metric).title}: gain by choosing the plan"


def map_notes(points: pd.DataFrame) -> list[str]:
    """What lines are, and how many points are bounds or lie beyond the axis."""
    notes = ["Lines: geometric means of classes, with 95 % bootstrap intervals over patterns."]
    if points["bound"].any():
        notes.append(
            f"{np.count_nonzero(points['bound'])} gains are lower bounds (circled): the worse plan ended "
            "at the limit of partial matches."
        )
    below = np.count_nonzero(points["expected"] < LEAST)
    if below:
        notes.append(f"{below} points with fewer than {LEAST:g} expected are drawn there.")
    return notes


def _places(points: pd.DataFrame) -> list[tuple[str, str]]:
    """Comparison and engine of each panel, so that two engines are side by side."""
    return [*product(points["comparison"].unique(), points["engine"].unique())]


def _palette(points: pd.DataFrame) -> dict[str, str]:
    """Class of rates → colour, the rarest first."""
    found = palette_of(points["rates"])
    return {each: found[each] for each in sorted(found, key=lambda its: float(its.split("–")[0]))}


def _of_panel(table: pd.DataFrame, engine: str, comparison: str) -> pd.DataFrame:
    return table[(table["engine"] == engine) & (table["comparison"] == comparison)]


def _axis(column: str, title: str, values: pd.Series) -> Any:
    low, high = float(np.min(values)), float(np.max(values))
    scale = alt.Scale(type="log", domain=[low / 1.3, high * 1.3], nice=False)
    axis = alt.Axis(format="~g", tickCount=5)
    kind = alt.X if column == "x" else alt.Y
    return kind(f"{column}:Q", title=title, scale=scale, axis=axis)
