"""Charts for print of two sweeps compared: matplotlib."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from cepbench.figures.rows import log_ticks
from cepbench.figures.static import _look, write_notes
from cepbench.figures.styles import style_of
from cepbench.figures.sweep_ratios import (
    LEGEND,
    sweep_ratio_ends,
    sweep_ratio_notes,
    sweep_ratio_rows,
    sweep_ratio_title,
)


def sweep_ratios(ratios: pd.DataFrame, metric: str) -> Figure:
    """A row a plan generator: the ratio of two sweeps with its interval, and a line at 1.

    Parameters
    ----------
    ratios : DataFrame
        As :class:`cepbench.analysis.sweep_comparison.SweepComparison` has it; a panel a
        pattern set and size, if it was compared by these.
    metric : str

    Raises
    ------
    ExperimentError
        If there are no such rows.
    """
    rows = sweep_ratio_rows(ratios, metric)
    labels = list(dict.fromkeys(rows["label"]))
    place = {label: -rank for rank, label in enumerate(labels)}
    panels = list(dict.fromkeys(rows["panel"]))
    low, high = sweep_ratio_ends(rows)
    with _look():
        figure = Figure(
            figsize=(2.6 * len(panels) + 3.0, 0.26 * len(labels) + 1.3), layout="constrained"
        )
        grid = figure.subplots(1, len(panels), sharey=True, sharex=True, squeeze=False)[0]
        for axes, panel in zip(grid, panels, strict=True):
            axes.axvline(1.0, color="#333333", linewidth=0.8)
            for row in rows[rows["panel"] == panel].to_dict("records"):
                style = style_of(row["generator"], row["kind"])
                y = place[row["label"]]
                axes.plot(
                    row["common"], y, "|", color="#777777", markersize=14, markeredgewidth=1.6
                )
                axes.plot([row["low"], row["high"]], [y, y], color=style.colour, linewidth=1.4)
                axes.plot(
                    row["value"], y, linestyle="none", marker=style.mark.matplotlib, markersize=7,
                    markeredgecolor=style.colour, markeredgewidth=1.2,
                    markerfacecolor=style.colour if row["real"] else "white",
                )  # fmt: skip
            axes.set_xscale("log")
            axes.set_xlim(low, high)
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_locator(FixedLocator(log_ticks(low, high)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.set_ylim(0.6 - len(labels), 0.6)
            axes.grid(True, axis="x")
            axes.set_title(panel)
        grid[0].set_yticks(list(place.values()), labels)
        figure.suptitle(sweep_ratio_title(metric), x=0.01, ha="left", fontsize=11)
        notes = sweep_ratio_notes(ratios, metric)
        write_notes(figure, notes, f"ratio, geometric mean ({LEGEND})")
        return figure
