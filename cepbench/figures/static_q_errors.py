"""Charts for print of estimated against measured numbers: matplotlib."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from cepbench.figures.q_error_rows import (
    MARKS,
    Axis,
    ends_of_scatter,
    model_style,
    models_of,
    palette_of,
    panels_by,
    ticks_of_factors,
)
from cepbench.figures.static import _HEIGHT, _PANEL_WIDTH, TEXT, _look


def q_errors_by_events(summary: pd.DataFrame) -> Figure:
    """Medians of q-errors by the number of variables in a node, whiskers up to the 95th percentile.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.q_error_tables.q_error_summary` returns it by
        ``pattern_set``, ``model`` and ``events``.
    """
    panels = panels_by(summary, "pattern_set")
    models = models_of(summary)
    with _look():
        figure = Figure(figsize=(_PANEL_WIDTH * len(panels), _HEIGHT), layout="constrained")
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (name, part) in zip(grid, panels.items(), strict=True):
            for rank, model in enumerate(models):
                own = part[part["model"] == model].sort_values("events")
                look = model_style(model)
                at = own["events"].to_numpy(float) + (rank - (len(models) - 1) / 2) * 0.16
                axes.errorbar(
                    at, own["median"], [0 * own["p95"], own["p95"] - own["median"]],
                    color=look.colour, marker=look.mark.matplotlib, markersize=5.5, linewidth=1.4,
                    elinewidth=1.0, capsize=2.0, label=model,
                )  # fmt: skip
            axes.set_title(name)
            axes.set_xlabel("variables in the node")
            axes.set_xticks(sorted(part["events"].unique()))
            axes.set_yscale("log")
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_locator(FixedLocator(ticks_of_factors(summary["p95"].max())))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.legend(loc="upper left", fontsize=TEXT)
        grid[0].set_ylabel("q-error: median, up to the 95th percentile")
        figure.suptitle(
            "How far estimated partial matches are off (lower is better)", x=0.01, ha="left", fontsize=11
        )  # fmt: skip
        return figure


def scatter_in_panels(
    rows: pd.DataFrame, x: Axis, y: Axis, *, panel: str, colour: str, title: str,
    headings: Mapping[str, str] | None = None, diagonal: bool = False, label: str = "",
) -> Figure:  # fmt: skip
    """A point a row, both axes logarithmic, in a panel for each value of a column.

    Parameters
    ----------
    rows : DataFrame
    x, y : Axis
        Column and title of each axis.
    panel, colour : str
        Columns that say in which panel a point is, and of which colour.
    title : str
    headings : mapping of str to str, optional
        Value of ``panel`` → heading.
    diagonal : bool
        Whether both axes have one scale and a line where they are equal.
    label : str
        Column of a text beside each point; none if empty.
    """
    panels = panels_by(rows, panel)
    with _look():
        figure = Figure(figsize=(3.6 * len(panels), 3.7), layout="constrained")
        grid = figure.subplots(1, len(panels), sharey=True, sharex=diagonal, squeeze=False)[0]
        for axes, (name, part) in zip(grid, panels.items(), strict=True):
            for rank, (value, its_colour) in enumerate(palette_of(rows[colour]).items()):
                own = part[part[colour] == value]
                axes.plot(
                    own[x.column], own[y.column], linestyle="none",
                    marker=MARKS[rank % len(MARKS)].matplotlib, markersize=6 if label else 4,
                    color=its_colour, alpha=0.75, markeredgewidth=0, label=value,
                )  # fmt: skip
            if label:
                for _, row in part.iterrows():
                    axes.annotate(
                        row[label], (row[x.column], row[y.column]), (5, 3), fontsize=TEXT,
                        textcoords="offset points",
                    )  # fmt: skip
                axes.margins(x=0.25)
            axes.set_xscale("log")
            axes.set_yscale("log" if y.log else "linear")
            axes.xaxis.set_minor_locator(NullLocator())
            if y.log:
                axes.yaxis.set_minor_locator(NullLocator())
            if diagonal:
                ends = ends_of_scatter(rows, x, y)
                axes.plot(ends, ends, color="#333333", linewidth=1.0)
            axes.set_title((headings or {}).get(name, name))
            axes.set_xlabel(x.title)
            if label:
                low, high = part[x.column].min(), part[x.column].max()
                axes.xaxis.set_major_locator(FixedLocator([low, high]))
                axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axes.grid(True)
        grid[0].set_ylabel(y.title)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=TEXT)
        return figure
