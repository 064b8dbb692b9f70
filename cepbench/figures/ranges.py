"""Distributions of plans made from wrong statistics: a panel a factor, a row a generator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from cepbench.analysis.common_patterns import left_out_notes
from cepbench.errors import ExperimentError
from cepbench.figures.altair_panels import joined_panels
from cepbench.figures.matplotlib_panels import print_look, write_notes
from cepbench.figures.rows import PANELS, log_ticks, quantity_of
from cepbench.figures.styles import style_of
from cepbench.figures.vega import alt

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
        As :func:`cepbench.studies.kolchinsky2018.regrets.regret_summary` returns it.
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
        figure = Figure(figsize=(2.4 * len(factors) + 1.2, 0.2 * len(place) + 1.2),
                        layout="constrained")  # fmt: skip
        grid = figure.subplots(1, len(factors), sharey=True, sharex=True, squeeze=False)[0]
        for axes, factor in zip(grid, factors, strict=True):
            for row in rows[rows["factor"] == factor].to_dict("records"):
                colour = style_of(row["generator"], row["plan_kind"]).colour
                y = place[row["generator"]]
                axes.plot([row["median"], row["worst case"]], [y, y], color=colour, linewidth=0.8)
                for statistic, shape in shapes.items():
                    axes.plot(row[statistic], y, shape, color=colour, markersize=5.5)
            axes.axhline(0.5 - orders, color="#999999", linewidth=0.6)
            axes.axvline(1.0, color="#333333", linewidth=0.8)
            axes.set_xscale("log")
            axes.set_xlim(*ends)
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_locator(FixedLocator(range_ticks(*ends)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.grid(True, axis="x")
            axes.set_title(f"wrong by up to {factor:g}")
        grid[0].set_yticks(list(place.values()), list(place))
        figure.suptitle(f"{range_title(metric)}; {LEGEND}", x=0.01, ha="left", fontsize=11)
        write_notes(figure, range_notes(summary, metric), quantity_of(metric).axis)
        return figure


def interactive_ranges_by_factor(summary: pd.DataFrame, metric: str) -> alt.TopLevelMixin:
    """The chart of :func:`static_ranges_by_factor`, with tooltips."""
    rows = range_rows(summary, metric)
    named = rows[["plan_kind", "generator"]].drop_duplicates()
    order = list(named["generator"])
    colours = [style_of(name, plans).colour for plans, name in named.itertuples(index=False)]
    ends = list(range_ends(rows))
    # Names that Vega reads as names.
    plain = rows.rename(columns={"90th percentile": "p90", "worst case": "worst"})
    colour = alt.Color("generator:N", legend=None, scale=alt.Scale(domain=order, range=colours))
    tooltip = [
        alt.Tooltip("generator:N", title="plan generator"),
        *(alt.Tooltip(f"{name}:Q", title=title, format=",.4~g")
          for name, title in zip(("median", "p90", "worst"), MARKS, strict=True)),
        alt.Tooltip("patterns:Q"),
    ]  # fmt: skip

    def x(name: str) -> alt.X:
        scale = alt.Scale(type="log", domain=ends, nice=False)
        axis = alt.Axis(values=range_ticks(*ends), format="~g")
        return alt.X(f"{name}:Q", title=None, scale=scale, axis=axis)

    panels: list[Any] = []
    for factor in rows["factor"].unique():
        y = alt.Y("generator:N", sort=order, title=None,
                  axis=alt.Axis(labels=not panels, ticks=False))  # fmt: skip
        base = alt.Chart(plain[plain["factor"] == factor]).encode(
            y=y, color=colour, tooltip=tooltip
        )
        layers = (
            base.mark_rule().encode(x=x("median"), x2="worst:Q"),
            base.mark_point(filled=True, size=50, opacity=1).encode(x=x("median")),
            base.mark_tick(thickness=2, size=12).encode(x=x("p90")),
            base.mark_point(shape=_CROSS, size=40, strokeWidth=1.5).encode(x=x("worst")),
        )
        panels.append(
            alt.layer(*layers).properties(
                title=f"wrong by up to {factor:g}", width=185, height=17 * len(order)
            )
        )
    subtitle = f"{quantity_of(metric).axis}; {LEGEND}"
    return joined_panels(panels, range_title(metric), subtitle, range_notes(summary, metric))


def range_rows(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Median, 90th percentile and worst case of each generator at each factor above 1.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.regrets.regret_summary` returns it.
    metric : str

    Returns
    -------
    DataFrame
        Columns ``plan_kind``, ``generator``, ``factor``, the statistics of :data:`MARKS` and
        ``patterns``; orders before trees, else in the order of the summary.

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
    key = ["plan_kind", "generator", "factor", "patterns"]
    wide = chosen.pivot(index=key, columns="statistic", values="value").reset_index()
    rank = {name: place for place, name in enumerate(chosen["generator"].drop_duplicates())}
    kinds = {kind: place for place, kind in enumerate(PANELS)}
    order = pd.DataFrame({"kind": wide["plan_kind"].map(kinds), "rank": wide["generator"].map(rank),
                          "factor": wide["factor"]})  # fmt: skip
    wide = wide.loc[order.sort_values(["factor", "kind", "rank"], kind="stable").index]
    return wide[[*key, *MARKS]].reset_index(drop=True)


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
