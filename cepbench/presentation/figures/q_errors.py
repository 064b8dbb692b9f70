"""Estimated against measured numbers: q-errors by node size, and scatter plots in panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from cepbench.errors import ExperimentError
from cepbench.presentation.figures.altair_panels import kind_of_scale
from cepbench.presentation.figures.matplotlib_panels import (
    HEIGHT,
    PANEL_WIDTH,
    TEXT,
    log_axis,
    panel_row,
    print_look,
    write_title,
)
from cepbench.presentation.figures.offline import offline, prefixed
from cepbench.presentation.figures.rows import log_ticks
from cepbench.presentation.figures.styles import Mark, Style
from cepbench.presentation.figures.vega import alt

MARKS = (Mark("o", "circle"), Mark("s", "square"), Mark("^", "triangle-up"), Mark("D", "diamond"))

#: Colours that are distinct without red or green, dark to light.
_PALETTE = ("#332288", "#CC6677", "#117733", "#DDAA33")

#: Heading and axis of the chart of q-errors.
_Q_ERRORS = "How far estimated partial matches are off (lower is better)"
_Q_ERROR = "q-error: median, up to the 95th percentile"

_MODELS = {
    "adjacent": Style("#CC6677", MARKS[0], ()),
    "exact": Style("#332288", MARKS[1], ()),
    "joint": Style("#117733", MARKS[2], ()),
}


@dataclass(frozen=True, slots=True)
class Axis:
    """Which column an axis shows, under which title, and whether it is logarithmic."""

    column: str
    title: str
    log: bool = True


def static_q_errors_by_events(summary: pd.DataFrame) -> Figure:
    """Medians of q-errors by the number of variables in a node, whiskers up to the 95th percentile.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.studies.kolchinsky2018.q_error_tables.q_error_summary` returns it by
        ``pattern_set``, ``model`` and ``events``.
    """
    panels = panels_by(summary, "pattern_set")
    models = models_of(summary)
    with print_look():
        figure, grid = panel_row(len(panels), PANEL_WIDTH * len(panels), HEIGHT)
        for axes, (name, part) in zip(grid, panels.items(), strict=True):
            for rank, model in enumerate(models):
                own = part[part["model"] == model].sort_values("events")
                look = _MODELS[model]
                at = own["events"].to_numpy(float) + (rank - (len(models) - 1) / 2) * 0.16
                axes.errorbar(
                    at, own["median"], [0 * own["p95"], own["p95"] - own["median"]],
                    color=look.colour, marker=look.mark.matplotlib, markersize=5.5, linewidth=1.4,
                    elinewidth=1.0, capsize=2.0, label=model,
                )  # fmt: skip
            axes.set_title(name)
            axes.set_xlabel("variables in the node")
            axes.set_xticks(sorted(part["events"].unique()))
            log_axis(axes, "y", ticks_of_factors(summary["p95"].max()))
            axes.legend(loc="upper left", fontsize=TEXT)
        grid[0].set_ylabel(_Q_ERROR)
        write_title(figure, _Q_ERRORS)
        return figure


def interactive_q_errors_by_events(summary: pd.DataFrame) -> alt.TopLevelMixin:
    """The chart of :func:`static_q_errors_by_events`, with tooltips."""
    models = models_of(summary)
    colours = [_MODELS[model].colour for model in models]
    shapes = [_MODELS[model].mark.vega for model in models]
    colour = alt.Color("model:N", title=None, scale=alt.Scale(domain=models, range=colours))
    shape = alt.Shape("model:N", title=None, scale=alt.Scale(domain=models, range=shapes))
    largest = float(summary["p95"].max())
    scale = alt.Scale(type="log", domain=[0.95, max(2.0, largest * 1.05)], nice=False)
    y_axis = alt.Axis(values=ticks_of_factors(largest), format="~g")
    panels: list[Any] = []
    for name, part in panels_by(summary, "pattern_set").items():
        base = alt.Chart(part).encode(
            x=alt.X("events:O", title="variables in the node", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("model:N", sort=models),
            color=colour,
        )
        y = alt.Y("median:Q", title=_Q_ERROR, scale=scale, axis=y_axis)
        whisker = base.mark_rule().encode(y=y, y2="p95:Q")
        marks = base.mark_point(filled=True, size=70, opacity=1).encode(
            y=y, shape=shape,
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("events:O", title="variables"),
                alt.Tooltip("nodes:Q"),
                alt.Tooltip("median:Q", format=",.3~g"),
                alt.Tooltip("p95:Q", title="95th percentile", format=",.3~g"),
                alt.Tooltip("largest:Q", format=",.3~g"),
                alt.Tooltip("median_ratio:Q", title="median estimated / measured", format=",.3~g"),
            ],
        )  # fmt: skip
        panels.append(alt.layer(whisker, marks, title=name, width=340, height=260))
    return _finished(panels, _Q_ERRORS)


def static_scatter_in_panels(
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
        Columns that choose the panel and the colour of a point.
    title : str
    headings : mapping of str to str, optional
        Value of ``panel`` → heading.
    diagonal : bool
        Whether both axes have one scale and a line where they are equal.
    label : str
        Column of a text beside each point; none if empty.
    """
    panels = panels_by(rows, panel)
    with print_look():
        figure, grid = panel_row(len(panels), 3.6 * len(panels), 3.7, sharex=diagonal)
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
        write_title(figure, title)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=TEXT)
        return figure


def interactive_scatter_in_panels(
    rows: pd.DataFrame, x: Axis, y: Axis, *, panel: str, colour: str, title: str,
    headings: Mapping[str, str] | None = None, diagonal: bool = False, label: str = "",
    tooltip: Sequence[str] = (),
) -> alt.TopLevelMixin:  # fmt: skip
    """The chart of :func:`static_scatter_in_panels`, with tooltips that also have the columns ``tooltip``."""
    palette = palette_of(rows[colour])
    labels = [label] if label else []
    kept = list(dict.fromkeys([x.column, y.column, panel, colour, *labels, *tooltip]))
    extra: dict[str, Any] = (
        {"domain": list(ends_of_scatter(rows, x, y)), "nice": False} if diagonal else {}
    )
    pick = alt.selection_point(name="pick_colour", fields=[colour], bind="legend")
    panels: list[Any] = []
    for name, part in panels_by(rows, panel).items():
        horizontal = alt.X(
            f"{x.column}:Q", title=x.title, axis=alt.Axis(labelExpr=prefixed("1"), tickCount=5),
            scale=alt.Scale(type="log", padding=20, **extra),
        )  # fmt: skip
        vertical = alt.Y(
            f"{y.column}:Q", title=y.title, axis=alt.Axis(labelExpr=prefixed("1"), tickCount=5),
            scale=alt.Scale(**kind_of_scale(y.log), padding=20, **extra),
        )  # fmt: skip
        base = alt.Chart(part[kept]).encode(x=horizontal, y=vertical)
        marks = base.mark_point(filled=True, size=40, opacity=0.75).encode(
            color=alt.Color(
                f"{colour}:N", title=None, legend=alt.Legend(orient="bottom", columns=4),
                scale=alt.Scale(domain=list(palette), range=list(palette.values())),
            ),
            shape=alt.Shape(
                f"{colour}:N", title=None,
                scale=alt.Scale(
                    domain=list(palette),
                    range=[MARKS[rank % len(MARKS)].vega for rank in range(len(palette))],
                ),
            ),
            opacity=alt.when(pick).then(alt.value(0.75)).otherwise(alt.value(0.05)),
            tooltip=[*(alt.Tooltip(f"{x.column}:Q", format=",.4~g"),
                       alt.Tooltip(f"{y.column}:Q", format=",.4~g")),
                     *(column for column in kept if column not in (x.column, y.column))],
        )  # fmt: skip
        layers = [marks]
        if diagonal:
            ends = pd.DataFrame({x.column: extra["domain"], y.column: extra["domain"]})
            line = alt.Chart(ends).mark_line(color="#333333", strokeWidth=1)
            layers.insert(0, line.encode(x=horizontal, y=vertical))
        if label:
            layers.append(base.mark_text(dx=7, dy=-6, align="left").encode(text=label))
        if not panels:
            layers[0] = layers[0].add_params(pick)
        heading = (headings or {}).get(name, name)
        panels.append(alt.layer(*layers, title=heading, width=250, height=260))
    return _finished(panels, title)


def models_of(rows: pd.DataFrame) -> list[str]:
    """The models in the rows, in the order of their looks."""
    return [name for name in _MODELS if (rows["model"] == name).any()]


def panels_by(rows: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Value of a column → its rows, in the order of the rows.

    Raises
    ------
    ExperimentError
        If there are none.
    """
    if rows.empty:
        raise ExperimentError("there are no rows to draw; measure more patterns or a longer stream")
    return {str(value): part for value, part in rows.groupby(column, sort=False)}


def palette_of(values: pd.Series) -> dict[str, str]:
    """Each value's colour, in the order of appearance in a sorted list."""
    return {
        value: _PALETTE[rank % len(_PALETTE)] for rank, value in enumerate(sorted(values.unique()))
    }


def ends_of_scatter(rows: pd.DataFrame, x: Axis, y: Axis) -> tuple[float, float]:
    """Smallest and largest number on either axis."""
    both = rows[[x.column, y.column]]
    return float(both.min().min()), float(both.max().max())


def ticks_of_factors(largest: float) -> list[float]:
    """Ticks from a factor of 1 to the largest."""
    return log_ticks(1.0, max(2.0, largest))


def _finished(panels: list[Any], heading: str) -> alt.TopLevelMixin:
    return offline(alt.hconcat(*panels, title=alt.TitleParams(heading, anchor="start")))
