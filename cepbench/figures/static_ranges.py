"""Charts for print of plans from wrong numbers: matplotlib."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from cepbench.figures.ranges import (
    LEGEND,
    MARKS,
    range_ends,
    range_notes,
    range_rows,
    range_ticks,
    range_title,
)
from cepbench.figures.rows import quantity_of
from cepbench.figures.static import _look, write_notes
from cepbench.figures.styles import style_of


def ranges_by_factor(summary: pd.DataFrame, metric: str) -> Figure:
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
    with _look():
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
