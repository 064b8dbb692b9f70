"""Gains of plan generators against expected partial matches per event, in panels by comparison."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.presentation.figures.chart import PLAIN, Chart, Marks, Panel, Tip
from cepbench.presentation.figures.q_errors import looks_of_values
from cepbench.presentation.figures.rows import COLUMNS, axis_around, quantity_of

#: Fewer expected partial matches per event than this are drawn here.
LEAST = 1e-3

_X = "expected partial matches per event"
_Y = "times better"


def gain_map(rows: pd.DataFrame, by_class: pd.DataFrame, metric: str) -> Chart:
    """A point a pattern, in panels by comparison and engine; a line through the means of classes.

    Of tables that :func:`cepbench.experiments.studies.kolchinsky2018.gain_map.gain_rows` and
    :func:`~cepbench.experiments.studies.kolchinsky2018.gain_map.gains_by_class` return; see
    :func:`map_points` for errors.
    """
    points, means = map_points(rows, by_class, metric)
    points = points.assign(series=points["rates"] + " events per window")
    # The rarest first.
    rates = sorted(points["series"].unique(), key=lambda its: float(its.split("–")[0]))
    looks = {rate: looks_of_values(sorted(rates))[rate] for rate in rates}
    of_points = [
        Tip("pattern_id:N"), Tip("rates:N"), Tip("selectivity:N"), Tip("x:Q", _X, ",.3~g"),
        Tip("measured:Q", "measured", ",.3~g"), Tip("gain:Q", _Y, ",.3~g"), Tip("bound:N", "a bound"),
    ]  # fmt: skip
    of_means = [
        Tip("class:N"), Tip("value:Q", "geometric mean", ",.3~g"), Tip("patterns:Q"), Tip("bounds:Q"),
    ]  # fmt: skip
    places = [*product(points["comparison"].unique(), points["engine"].unique())]
    panels = []
    for number, (comparison, engine) in enumerate(places):
        own, line = (
            table[(table["engine"] == engine) & (table["comparison"] == comparison)]
            for table in (points.drop(columns="expected"), means)
        )
        marks = [
            Marks(own, "x", "gain", looks, size=4.5, opacity=0.8, tips=of_points),
            Marks(line, "x", "value", PLAIN, "", y_ends=("low", "high"), joined=True, size=4,
                  tips=of_means),
        ]  # fmt: skip
        bounds = own[own["bound"]]
        if not bounds.empty:
            circled = bounds[["x", "gain"]].assign(seen=False)
            marks.insert(0, Marks(circled, "x", "gain", PLAIN, "", size=9, filled="seen"))
        row, column = divmod(number, COLUMNS)
        panels.append(Panel(row, column, [f"{comparison} ({engine})"], marks))
    up = pd.concat([points[["gain"]], means[["low", "high"]]])
    return Chart(
        f"{quantity_of(metric).title}: gain by choosing the plan", axis_around(_X, points[["x"]]),
        replace(axis_around(_Y, up), one=True), panels,
        explained="", notes=map_notes(points), legend="inside", size=(340, 220),
    )  # fmt: skip


def map_points(
    rows: pd.DataFrame, by_class: pd.DataFrame, metric: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points and the means of classes that a map shows, with ``x``, the place on the axis.

    An ExperimentError if no pattern has a gain in this metric.
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
