"""Cost of plans against a metric of their runs, with a fitted power law."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.presentation.figures.chart import PLAIN, Chart, Marks, Tip
from cepbench.presentation.figures.rows import (
    APART,
    KINDS,
    axis_around,
    looks_of,
    panels_of,
    quantity_of,
    value_axis,
    with_series,
)


def points_by_cost(points: pd.DataFrame, fit: pd.DataFrame, metric: str) -> Chart:
    """A point for each plan, its cost against a metric of its run, and the fitted line.

    Regimes are rows of panels, where they vary. ``points`` is as
    :func:`cepbench.experiments.studies.kolchinsky2018.figure_data.cost_points` returns it, ``fit`` as
    :func:`cepbench.experiments.analysis.cost_fit.cost_fit` does for the same metric, by regime where
    it varies.

    Source: [kolchinsky2018]_, Figure 6. Differs from the paper: both axes are logarithmic, so that
    a power law is a straight line.
    """
    rows = plans_by_cost(points, metric)
    quantity = quantity_of(metric)
    columns = ["series", "pattern_set", "size", "pattern_id", "plan", "cost", "value"]
    tips = [
        Tip("series:N", "plan generator"),
        Tip("pattern_set:N", "pattern set"),
        Tip("size:O"),
        Tip("plan:N"),
        Tip("cost:Q", format=",.4~g"),
        Tip("value:Q", quantity.axis, ",.4~g"),
    ]
    notes: list[str] = []

    def marks(part: pd.DataFrame) -> list[Marks]:
        line, note = line_of_fit(fit, part)
        notes.append(note)
        return [
            Marks(part[columns], "cost", "value", looks_of(part), opacity=0.9, tips=tips),
            Marks(line, "cost", "value", PLAIN, "", size=0, joined=True),
        ]

    panels = panels_of(rows, KINDS, marks)
    return Chart(
        f"{quantity.title} against plan cost",
        axis_around("cost of the plan", rows[["cost"]], "1"),
        value_axis(rows, quantity.axis),
        [replace(panel, note=note) for panel, note in zip(panels, notes, strict=True)],
        explained="", notes=plans_left_out(points),
    )  # fmt: skip


def plans_by_cost(points: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The plans that a logarithmic chart can show, with ``series``, ``panel`` and ``value``.

    An ExperimentError if there are none.
    """
    rows = points.assign(
        value=pd.to_numeric(points[metric]).astype(float), metric=metric, statistic="plan"
    )
    rows = rows[(rows["value"] > 0) & (rows["cost"] > 0)]
    if rows.empty:
        raise ExperimentError(f"no plan has both a cost and a {metric} above zero")
    return with_series(rows.assign(low=rows["value"], high=rows["value"]), APART)


def plans_left_out(points: pd.DataFrame) -> list[str]:
    """A sentence that counts plans without a point, since a run failed; none if all have one."""
    own = with_series(points, APART).drop_duplicates(["panel", "series"])
    texts = []
    for panel, its in own[own["missing"] > 0].groupby("panel", sort=False):
        named = zip(its["series"], its["missing"], strict=True)
        counts = ", ".join(f"{series} {count:,}" for series, count in named)
        texts.append(f"{counts} ({panel!s})" if panel else counts)
    return [f"Patterns without a point, as a run did not end well: {'; '.join(texts)}."] * bool(
        texts
    )


def line_of_fit(fit: pd.DataFrame, rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Ends of the fitted line over the points of a panel, and its label."""
    keys = ["plan_kind", *(name for name in ("regime", "evaluator") if name in fit)]
    found = fit.merge(rows[keys].drop_duplicates(), on=keys).iloc[0]
    ends = [float(rows["cost"].min()), float(rows["cost"].max())]
    values = [math.exp(found["intercept"] + found["exponent"] * math.log(cost)) for cost in ends]
    note = (
        f"exponent {found['exponent']:.2f} "
        f"({found['exponent_low']:.2f} to {found['exponent_high']:.2f})\n"
        f"rank correlation {found['spearman']:.2f} "
        f"({found['spearman_low']:.2f} to {found['spearman_high']:.2f})"
    )
    return pd.DataFrame({"cost": ends, "value": values}), note
