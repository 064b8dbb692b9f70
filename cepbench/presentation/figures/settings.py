"""Averages over runs of one query: a panel for each engine, a line for each plan over the settings."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cepbench.experiments.analysis.common_patterns import left_out_notes
from cepbench.presentation.figures.altair_panels import (
    PICK,
    colour_of,
    joined_panels,
    layered_panel,
    picked,
    picker,
    shape_of,
    value_axis,
)
from cepbench.presentation.figures.averages import on_one_line, rows_by_group
from cepbench.presentation.figures.matplotlib_panels import (
    HEIGHT,
    PANEL_WIDTH,
    draw_marks,
    finish_panels,
    panel_row,
    print_look,
    write_notes,
)
from cepbench.presentation.figures.rows import (
    Panel,
    axis_title,
    chart_title,
    quantity_of,
    series_of,
)
from cepbench.presentation.figures.styles import style_of
from cepbench.presentation.figures.vega import alt


def static_lines_by_setting(
    summary: pd.DataFrame,
    metric: str,
    setting: str,
    *,
    what: str = "",
    lines: bool = True,
    log: bool = False,
) -> Figure:
    """A line for each plan over the settings of a query, in a panel for each engine.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.analysis.summary.summarize` returns it, of runs whose ``pattern_set`` is
        the setting; with ``engine`` where there are several. Medians are drawn, with their intervals.
    metric : str
    setting : str
        What the settings are, for the axis.
    what : str
        For the title: what was run.
    lines : bool
        Whether the settings have an order: marks are on lines, or else side by side.
    log : bool
        Whether the axis of values is logarithmic whatever their spread.

    Raises
    ------
    ExperimentError
        If the summary has no such rows.

    Notes
    -----
    Source: [mei2009]_, Figures 8 to 17. Differs from the paper: all panels have one scale.
    """
    rows, panels = _drawn(summary, metric, log)
    groups = list(rows["group"].unique())
    with print_look():
        figure, places = panel_row(len(panels), PANEL_WIDTH * len(panels), HEIGHT)
        for axes, panel in zip(places, panels, strict=True):
            series = series_of(panel.rows)
            apart = 0.04 if lines else 0.8 / len(series)
            for rank, (label, plan, kind) in enumerate(series):
                own = panel.rows[panel.rows["series"] == label].set_index("group").reindex(groups)
                at = np.arange(len(groups)) + (rank - (len(series) - 1) / 2) * apart
                draw_marks(axes, at, own, style_of(plan, kind), label, line=lines)
            axes.set_xticks(range(len(groups)), groups)
            axes.set_xlabel(setting)
        write_notes(figure, _notes(rows))
        drawn = list(zip(places, panels, strict=True))
        return finish_panels(figure, drawn, rows, chart_title(rows, what), {"tree": ""})


def interactive_lines_by_setting(
    summary: pd.DataFrame,
    metric: str,
    setting: str,
    *,
    what: str = "",
    lines: bool = True,
    log: bool = False,
) -> alt.TopLevelMixin:
    """The chart of :func:`static_lines_by_setting`, with tooltips.

    Parameters
    ----------
    summary : DataFrame
    metric, setting, what : str
    lines, log : bool

    Raises
    ------
    ExperimentError
        If the summary has no such rows.
    """
    rows, panels = _drawn(summary, metric, log)
    title = axis_title(metric, "median")
    x = alt.X(
        "group:N", sort=list(rows["group"].unique()), title=setting, axis=alt.Axis(labelAngle=0)
    )
    drawn = []
    for panel in panels:
        part, pick = panel.rows, picker(panel.key)
        base = alt.Chart(part[_COLUMNS]).encode(x=x, color=colour_of(part), opacity=picked(pick))
        if not lines:
            order = [label for label, _, _ in series_of(part)]
            base = base.encode(xOffset=alt.XOffset("series:N", sort=order))
        y = value_axis(rows, title)
        dash = list(style_of(part["generator"].iloc[0], panel.kind).dash) or [1, 0]
        line = base.mark_line(strokeWidth=2, strokeDash=dash).encode(y=y)
        points = base.mark_point(filled=True, size=70, opacity=1).encode(
            y=y, shape=shape_of(part), tooltip=_tooltip(metric)
        )
        interval = base.mark_rule(strokeWidth=1.2).encode(
            y=alt.Y("low:Q", title=title), y2="high:Q"
        )
        layers = (line, interval, points) if lines else (interval, points)
        drawn.append(layered_panel(panel.apart, pick, *layers))
    whiskers = f"whiskers: 95 % of bootstrap resamples of runs; {PICK}"
    return joined_panels(drawn, chart_title(rows, what), whiskers, _notes(rows))


_COLUMNS = ["group", "series", "evaluator", "value", "low", "high", "patterns"]


def _drawn(summary: pd.DataFrame, metric: str, log: bool) -> tuple[pd.DataFrame, list[Panel]]:
    """The rows of a chart, and its panels from left to right."""
    rows = rows_by_group(summary, metric, log=log, apart=("engine",))
    engines = enumerate(rows.groupby("panel", sort=False))
    return rows, [Panel(number, "tree", str(name), part) for number, (name, part) in engines]


def _notes(rows: pd.DataFrame) -> list[str]:
    return [*on_one_line(rows.assign(size=rows["group"])), *left_out_notes(rows)]


def _tooltip(metric: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("series:N", title="plan"),
        alt.Tooltip("evaluator:N"),
        alt.Tooltip("group:N", title="setting"),
        alt.Tooltip(
            "value:Q", title=f"{quantity_of(metric).title.lower()}, median", format=",.4~g"
        ),
        alt.Tooltip("low:Q", title="95 % from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
        alt.Tooltip("patterns:Q", title="runs"),
    ]
