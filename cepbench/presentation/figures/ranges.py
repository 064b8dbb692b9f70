"""Distributions of regrets of plans made from wrong statistics, by factor and generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.common_patterns import left_out_notes
from cepbench.presentation.figures.chart import Axis, Chart, Marks, Panel, Tip
from cepbench.presentation.figures.rows import PANELS, few_ticks, quantity_of
from cepbench.presentation.figures.styles import Mark, Style, style_of

#: Statistic -> its mark, as the legend writes it.
MARKS = {"median": "●", "90th percentile": "|", "worst case": "×"}

#: What the marks are, below or above a chart of ranges.
LEGEND = ", ".join(f"{mark} {statistic}" for statistic, mark in MARKS.items())


def ranges_by_factor(summary: pd.DataFrame, metric: str) -> Chart:
    """A panel a factor and a row a generator: median, 90th percentile and worst case.

    The summary is as :func:`cepbench.experiments.studies.kolchinsky2018.regrets.regret_summary` returns
    it; see :func:`range_rows` for errors.
    """
    rows, quantity = range_rows(summary, metric), quantity_of(metric)
    counted = summary[(summary["metric"] == metric) & (summary["factor"] > 1)]
    named = rows[["plan_kind", "generator"]].drop_duplicates()
    circle = Mark("o", "circle")
    looks = {
        name: Style(style_of(name, kind).colour, circle, ())
        for kind, name in named.itertuples(index=False)
    }
    ends = range_ends(rows)
    # Names that Vega reads as names.
    columns = ("median", "p90", "worst")
    plain = rows.rename(columns={"90th percentile": "p90", "worst case": "worst"})
    numbers = [Tip(f"{name}:Q", title, ",.4~g") for name, title in zip(columns, MARKS, strict=True)]
    tips = [Tip("generator:N", "plan generator"), *numbers, Tip("patterns:Q")]

    def marks(part: pd.DataFrame, column: str, **form: Any) -> Marks:
        return Marks(part, column, "generator", looks, "generator", tips=tips, **form)

    panels = [
        Panel(0, column, [f"wrong by up to {factor:g}"], [
            marks(part, "median", x_ends=("median", "worst")),
            marks(part, "p90", form="tick", size=12),
            marks(part, "worst", form="cross"),
        ])
        for column, (factor, part) in enumerate(plain.groupby("factor", sort=False))
    ]  # fmt: skip
    orders = len(named[named["plan_kind"] == "order"])
    return Chart(
        f"{quantity.title} of plans from wrong numbers ({quantity.better} is better)",
        Axis(log=True, ends=ends, ticks=few_ticks(*ends), one=True),
        Axis(names=tuple(looks), split=orders), panels,
        explained=f"{quantity.axis}; {LEGEND}", notes=left_out_notes(counted),
        legend="", size=(185, 17 * len(looks)),
    )  # fmt: skip


def range_rows(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Median, 90th percentile and worst case of each generator at each factor above 1.

    Columns are ``plan_kind``, ``generator``, ``factor``, ``patterns`` and the statistics of :data:`MARKS`;
    orders are before trees, else the order is that of the summary. An ExperimentError if the summary
    has no such rows.
    """
    chosen = summary[
        (summary["metric"] == metric)
        & (summary["factor"] > 1)
        & summary["statistic"].isin(list(MARKS))
        & np.isfinite(summary["value"])
    ]
    if chosen.empty:
        raise ExperimentError(f"the summary has no distribution of {metric!r} at a factor above 1")
    key = ["factor", "plan_kind", "generator", "patterns"]
    ordered = chosen.astype(
        {
            "plan_kind": pd.CategoricalDtype(list(PANELS)),
            "generator": pd.CategoricalDtype(chosen["generator"].unique()),
        }
    )
    wide = ordered.pivot(index=key, columns="statistic", values="value").reset_index()
    wide = wide.sort_values(key[:3]).astype({"plan_kind": str, "generator": str})
    return wide[["plan_kind", "generator", "factor", "patterns", *MARKS]].reset_index(drop=True)


def range_ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of the logarithmic axis of these rows, 1 among what lies between them."""
    low = min(1.0, float(rows[list(MARKS)].min().min()))
    high = max(1.0, float(rows[list(MARKS)].max().max()))
    beyond = (high / low) ** 0.05 * 1.02
    return low / beyond, high * beyond
