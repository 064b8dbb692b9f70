"""Distributions of regrets of plans made from wrong statistics, by factor and generator."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.common_patterns import left_out_notes
from cepbench.presentation.figures.altair_panels import joined_panels, log_x, row_panels
from cepbench.presentation.figures.matplotlib_panels import (
    log_axis,
    panel_row,
    print_look,
    write_notes,
    write_title,
)
from cepbench.presentation.figures.rows import PANELS, log_ticks, quantity_of
from cepbench.presentation.figures.styles import style_of
from cepbench.presentation.figures.vega import alt

#: Statistic -> its mark, as the legend writes it.
MARKS = {"median": "●", "90th percentile": "|", "worst case": "×"}

#: More numbers than this meet below a panel.
MOST_TICKS = 7

#: What the marks are, below or above a chart of ranges.
LEGEND = ", ".join(f"{mark} {statistic}" for statistic, mark in MARKS.items())

_CROSS = "M-1,-1L1,1M-1,1L1,-1"


def static_ranges_by_factor(summary: pd.DataFrame, metric: str) -> Figure:
    """A panel a factor and a row a generator: median, 90th percentile and worst case.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.studies.kolchinsky2018.regrets.regret_summary` returns it.
    metric : str

    Raises
    ------
    ExperimentError
        If the summary has no such rows.
    """
    rows = range_rows(summary, metric)
    named = rows[["plan_kind", "generator"]].drop_duplicates()
    place = {name: -rank for rank, name in enumerate(named["generator"])}
    orders = len(named[named["plan_kind"] == "order"])
    factors = list(rows["factor"].unique())
    ends = range_ends(rows)
    shapes = dict(zip(MARKS, ("o", "|", "x"), strict=True))
    with print_look():
        figure, grid = panel_row(
            len(factors), 2.4 * len(factors) + 1.2, 0.2 * len(place) + 1.2, sharex=True
        )
        for axes, factor in zip(grid, factors, strict=True):
            for row in rows[rows["factor"] == factor].to_dict("records"):
                colour = style_of(row["generator"], row["plan_kind"]).colour
                y = place[row["generator"]]
                axes.plot([row["median"], row["worst case"]], [y, y], color=colour, linewidth=0.8)
                for statistic, shape in shapes.items():
                    axes.plot(row[statistic], y, shape, color=colour, markersize=5.5)
            axes.axhline(0.5 - orders, color="#999999", linewidth=0.6)
            axes.axvline(1.0, color="#333333", linewidth=0.8)
            log_axis(axes, "x", range_ticks(*ends))
            axes.set_xlim(*ends)
            axes.grid(True, axis="x")
            axes.set_title(f"wrong by up to {factor:g}")
        grid[0].set_yticks(list(place.values()), list(place))
        write_title(figure, f"{range_title(metric)}; {LEGEND}")
        write_notes(figure, range_notes(summary, metric), quantity_of(metric).axis)
        return figure


def interactive_ranges_by_factor(summary: pd.DataFrame, metric: str) -> alt.TopLevelMixin:
    """The chart of :func:`static_ranges_by_factor`, with tooltips."""
    rows = range_rows(summary, metric)
    named = rows[["plan_kind", "generator"]].drop_duplicates()
    colours = {name: style_of(name, kind).colour for kind, name in named.itertuples(index=False)}
    ends = range_ends(rows)
    x = log_x(ends, range_ticks(*ends))
    # Names that Vega reads as names.
    plain = rows.rename(columns={"90th percentile": "p90", "worst case": "worst"})
    tooltip = [
        alt.Tooltip("generator:N", title="plan generator"),
        *(alt.Tooltip(f"{name}:Q", title=title, format=",.4~g")
          for name, title in zip(("median", "p90", "worst"), MARKS, strict=True)),
        alt.Tooltip("patterns:Q"),
    ]  # fmt: skip

    def layers(base: alt.Chart) -> list[alt.Chart]:
        return [
            base.mark_rule().encode(x=x("median"), x2="worst:Q"),
            base.mark_point(filled=True, size=50, opacity=1).encode(x=x("median")),
            base.mark_tick(thickness=2, size=12).encode(x=x("p90")),
            base.mark_point(shape=_CROSS, size=40, strokeWidth=1.5).encode(x=x("worst")),
        ]

    factors = plain.groupby("factor", sort=False)
    parts = {f"wrong by up to {factor:g}": part for factor, part in factors}
    height = 17 * len(colours)
    panels = row_panels(parts, "generator", colours, tooltip, layers, width=185, height=height)
    subtitle = f"{quantity_of(metric).axis}; {LEGEND}"
    return joined_panels(panels, range_title(metric), subtitle, range_notes(summary, metric))


def range_rows(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Median, 90th percentile and worst case of each generator at each factor above 1.

    Columns are ``plan_kind``, ``generator``, ``factor``, ``patterns`` and the statistics of :data:`MARKS`;
    orders are before trees, else the order is that of the summary.

    Raises
    ------
    ExperimentError
        If the summary has no such rows.
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


def range_notes(summary: pd.DataFrame, metric: str) -> list[str]:
    """What a chart of :func:`range_rows` leaves out."""
    rows = summary[(summary["metric"] == metric) & (summary["factor"] > 1)]
    return left_out_notes(rows)


def range_title(metric: str) -> str:
    """Heading of a chart of ranges."""
    quantity = quantity_of(metric)
    return f"{quantity.title} of plans from wrong numbers ({quantity.better} is better)"


def range_ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of the logarithmic axis of these rows, 1 among what lies between them."""
    low = min(1.0, float(rows[list(MARKS)].min().min()))
    high = max(1.0, float(rows[list(MARKS)].max().max()))
    beyond = (high / low) ** 0.05 * 1.02
    return low / beyond, high * beyond


def range_ticks(low: float, high: float) -> list[float]:
    """Ticks for a panel as narrow as these: powers of ten where there would be many others."""
    ticks = log_ticks(low, high)
    tens = [tick for tick in ticks if round(math.log10(tick), 9) % 1 == 0]
    return tens if len(ticks) > MOST_TICKS and len(tens) > 1 else ticks
