"""Averages with their intervals: by pattern set, by pattern size, and by setting of a query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.common_patterns import left_out_notes
from cepbench.presentation.figures.altair_panels import (
    PICK,
    colour_of,
    in_rows,
    joined_panels,
    layered_panel,
    line_at_one,
    picked,
    picker,
    shape_of,
    value_axis,
)
from cepbench.presentation.figures.matplotlib_panels import (
    HEIGHT,
    INTERVAL,
    PANEL_WIDTH,
    draw_marks,
    empty_panels,
    finish_panels,
    panel_row,
    print_look,
    whiskers,
    write_notes,
)
from cepbench.presentation.figures.rows import (
    APART,
    PANELS,
    Panel,
    axis_title,
    chart_title,
    ends_of,
    needs_log,
    panels_of,
    quantity_of,
    series_of,
    with_series,
)
from cepbench.presentation.figures.styles import style_of
from cepbench.presentation.figures.vega import alt

_COLUMNS = [
    "pattern_set", "strategy", "size", "series", "generator", "plan_kind", "evaluator", "value", "low", "high",
    "patterns", "left_out", "missing",
]  # fmt: skip

#: Always on a logarithmic axis: twice as much lies as far from 1 as half as much.
_TIMES_AS_MUCH = ("distance", "regret")

_NEEDED = (
    "generator", "plan_kind", "metric", "statistic", "value", "low", "high", "patterns",
)  # fmt: skip

#: Columns that some summaries have no use for, and what stands for them.
_DEFAULTS: dict[str, Any] = {
    "pattern_set": "", "size": pd.NA, "strategy": "any", "evaluator": "", "left_out": 0,
    "missing": 0,
}  # fmt: skip

_SIZES = "pattern size (participating events)"

#: Beyond this ratio of largest to smallest pattern size their axis is logarithmic.
SIZE_SPREAD = 12.0


def static_bars_by_group(
    summary: pd.DataFrame,
    metric: str,
    *,
    statistic: str = "median",
    group: str = "pattern_set",
    log: bool = False,
    apart: Sequence[str] = APART,
) -> Figure:
    """A group of bars for each pattern set, with a bar for each generator.

    Whiskers are the summary's intervals. On a logarithmic axis, which has no zero for bars to
    start from, values are marks: where they span more than a factor of
    :data:`cepbench.presentation.figures.rows.LOG_SPREAD`, and for ratios (``statistic`` ``ratio``), with a line
    at 1 between better and worse.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.analysis.summary.summarize` returns it.
    metric : str
    statistic : str
        ``median``, ``mean``, or ``ratio`` of rows that
        :func:`cepbench.experiments.analysis.gains.gains_over` made.
    group : str
        ``pattern_set`` or ``strategy``.
    log : bool
        A logarithmic axis whatever the spread.
    apart : sequence of str
        Columns whose values are rows of panels, where they vary: ``regime``, ``evaluator``.

    Raises
    ------
    ExperimentError
        If the summary has no such rows.

    Notes
    -----
    Source: [kolchinsky2018]_, Figures 3, 4 and 9. Differs from the paper: all panels have one
    scale.
    """
    rows = rows_by_group(summary, metric, statistic, group, log, apart)
    with print_look():
        figure, panels = empty_panels(rows)
        for axes, panel in panels:
            groups = list(panel.rows["group"].unique())
            width = 0.8 / len(series_of(panel.rows))
            places = dict(zip(groups, range(len(groups)), strict=True))
            _draw_series(axes, panel, "group", places, width, bars=not needs_log(rows))
            axes.set_xticks(range(len(groups)), groups)
            axes.tick_params(axis="x", length=0)
            axes.set_xlim(-0.5, len(groups) - 0.5)
            for between in range(len(groups) - 1):
                axes.axvline(between + 0.5, color="#DDDDDD", linewidth=0.6)
        write_notes(figure, left_out_notes(rows))
        return finish_panels(figure, panels, rows, chart_title(rows), PANELS)


def interactive_bars_by_group(
    summary: pd.DataFrame,
    metric: str,
    *,
    statistic: str = "median",
    group: str = "pattern_set",
    log: bool = False,
    apart: Sequence[str] = APART,
) -> alt.TopLevelMixin:
    """The chart of :func:`static_bars_by_group`, with tooltips."""
    rows = rows_by_group(summary, metric, statistic, group, log, apart)
    title, tooltip = axis_title(metric, statistic), _tooltip(metric, statistic)
    x = alt.X("group:N", sort=list(rows["group"].unique()), title=None, axis=alt.Axis(labelAngle=0))
    panels, drawn = panels_of(rows), []
    for panel in panels:
        part, pick = panel.rows, picker(panel.key)
        base = alt.Chart().encode(x=x, xOffset=_beside(part), opacity=picked(pick))
        body = base.mark_bar()
        if needs_log(rows):
            body = base.mark_point(filled=True, size=80, opacity=1).encode(shape=shape_of(part))
        # One scale for all panels: a reader compares them.
        body = body.encode(y=value_axis(rows, title), color=colour_of(part), tooltip=tooltip)
        interval = _interval(base, title).encode(color=alt.ColorValue("#333333"))
        heading = panel.heading(PANELS[panel.kind])
        layers = (*line_at_one(rows, title), body, interval)
        drawn.append(layered_panel(heading, pick, *layers, data=_data(part)))
    return joined_panels(in_rows(panels, drawn), chart_title(rows), notes=left_out_notes(rows))


def static_lines_by_size(
    summary: pd.DataFrame,
    metric: str,
    pattern_set: str = "",
    *,
    statistic: str = "median",
    panels: Mapping[str, str] = PANELS,
    apart: Sequence[str] = APART,
) -> Figure:
    """A line for each generator over the pattern size; see :func:`static_bars_by_group`.

    Parameters
    ----------
    summary, metric, statistic, apart
        As there.
    pattern_set : str
        Empty for a summary without any.
    panels : mapping of str to str
        Kind of plan -> heading of its panel.

    Notes
    -----
    Source: [kolchinsky2018]_, Figures 5 and 7. Differs from the paper: all panels have one scale.
    """
    rows = rows_by_size(summary, metric, pattern_set, statistic, apart)
    with print_look():
        figure, drawn = empty_panels(rows)
        for axes, panel in drawn:
            sizes = sorted(panel.rows["size"].unique())
            far = needs_log_sizes(sizes)
            # Side by side, or whiskers of one size would hide each other.
            apart_by = 0.003 if far else 0.06
            places = dict(zip(sizes, sizes, strict=True))
            _draw_series(axes, panel, "size", places, apart_by, line=True, log=far)
            if far:
                axes.set_xscale("log")
                axes.xaxis.set_minor_locator(NullLocator())
                sizes = size_ticks(sizes)
            axes.set_xticks(sizes, [str(size) for size in sizes])
            axes.set_xlabel(_SIZES)
        what = f"{pattern_set} patterns" if pattern_set else ""
        write_notes(figure, _notes(rows, "size"))
        return finish_panels(figure, drawn, rows, chart_title(rows, what), panels)


def interactive_lines_by_size(
    summary: pd.DataFrame,
    metric: str,
    pattern_set: str = "",
    *,
    statistic: str = "median",
    panels: Mapping[str, str] = PANELS,
    apart: Sequence[str] = APART,
) -> alt.TopLevelMixin:
    """The chart of :func:`static_lines_by_size`, with tooltips."""
    rows = rows_by_size(summary, metric, pattern_set, statistic, apart)
    sizes = [int(size) for size in sorted(rows["size"].unique())]
    title, tooltip = axis_title(metric, statistic), _tooltip(metric, statistic)
    if needs_log_sizes(sizes):
        scale = alt.Scale(type="log", nice=False, padding=10)
        axis = alt.Axis(values=size_ticks(sizes), format="d")
        x = alt.X("size:Q", title=_SIZES, scale=scale, axis=axis)
    else:
        x = alt.X("size:O", title=_SIZES, sort=sizes, axis=alt.Axis(labelAngle=0))
    places, drawn = panels_of(rows), []
    for panel in places:
        pick = picker(panel.key)
        layers = (*line_at_one(rows, title), *_lines(rows, panel, x, pick, title, tooltip))
        heading = panel.heading(panels[panel.kind])
        drawn.append(layered_panel(heading, pick, *layers, data=_data(panel.rows)))
    what = f"{pattern_set} patterns" if pattern_set else ""
    notes = _notes(rows, "size")
    return joined_panels(in_rows(places, drawn), chart_title(rows, what), notes=notes)


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
    rows, panels = _by_engine(summary, metric, log)
    groups = list(rows["group"].unique())
    places = dict(zip(groups, range(len(groups)), strict=True))
    with print_look():
        figure, grid = panel_row(len(panels), PANEL_WIDTH * len(panels), HEIGHT)
        for axes, panel in zip(grid, panels, strict=True):
            apart = 0.04 if lines else 0.8 / len(series_of(panel.rows))
            _draw_series(axes, panel, "group", places, apart, line=lines)
            axes.set_xticks(range(len(groups)), groups)
            axes.set_xlabel(setting)
        write_notes(figure, _notes(rows, "group"))
        drawn = list(zip(grid, panels, strict=True))
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
    """The chart of :func:`static_lines_by_setting`, with tooltips."""
    rows, panels = _by_engine(summary, metric, log)
    title = axis_title(metric, "median")
    tooltip = _tooltip(metric, "median", setting=True)
    groups = list(rows["group"].unique())
    x = alt.X("group:N", sort=groups, title=setting, axis=alt.Axis(labelAngle=0))
    drawn = []
    for panel in panels:
        pick = picker(panel.key)
        layers = _lines(rows, panel, x, pick, title, tooltip, joined=lines)
        drawn.append(layered_panel(panel.apart, pick, *layers, data=_data(panel.rows)))
    whiskers = f"whiskers: 95 % of bootstrap resamples of runs; {PICK}"
    return joined_panels(drawn, chart_title(rows, what), whiskers, _notes(rows, "group"))


def _draw_series(
    axes: Axes,
    panel: Panel,
    column: str,
    places: Mapping[Any, float],
    apart: float,
    *,
    bars: bool = False,
    line: bool = False,
    log: bool = False,
) -> None:
    """Draw the series of a panel side by side: bars, or marks on lines or not.

    ``places`` has the values of the column and where they are on the horizontal axis; ``apart`` is the
    distance from series to series, on a logarithmic axis as a share of the place.
    """
    series, at = series_of(panel.rows), np.array(list(places.values()), float)
    for rank, (label, generator, plans) in enumerate(series):
        own = panel.rows[panel.rows["series"] == label].set_index(column).reindex(list(places))
        shift = (rank - (len(series) - 1) / 2) * apart
        its_at = at * (1 + shift) if log else at + shift
        style = style_of(generator, plans)
        if bars:
            axes.bar(its_at, own["value"], apart * 0.9, color=style.colour, label=label)
            axes.errorbar(
                its_at, own["value"], whiskers(own), fmt="none", ecolor="#333333", **INTERVAL
            )
        else:
            draw_marks(axes, its_at, own, style, label, line=line)


def _lines(
    rows: pd.DataFrame,
    panel: Panel,
    x: alt.X,
    pick: alt.Parameter,
    title: str,
    tooltip: Sequence[alt.Tooltip],
    *,
    joined: bool = True,
) -> list[alt.Chart]:
    """Lines, intervals and points of the series of a panel; without lines they are side by side."""
    part = panel.rows
    base = alt.Chart().encode(x=x, color=colour_of(part), opacity=picked(pick))
    if not joined:
        base = base.encode(xOffset=_beside(part))
    y = value_axis(rows, title)
    dash = list(style_of(part["generator"].iloc[0], panel.kind).dash) or [1, 0]
    line = base.mark_line(strokeWidth=2, strokeDash=dash).encode(y=y)
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        y=y, shape=shape_of(part), tooltip=list(tooltip)
    )
    return [*[line] * joined, _interval(base, title), points]


def _beside(part: pd.DataFrame) -> alt.XOffset:
    return alt.XOffset("series:N", sort=[label for label, _, _ in series_of(part)])


def _by_engine(summary: pd.DataFrame, metric: str, log: bool) -> tuple[pd.DataFrame, list[Panel]]:
    """The rows of a chart by setting, and its panels from left to right."""
    rows = rows_by_group(summary, metric, log=log, apart=("engine",))
    engines = enumerate(rows.groupby("panel", sort=False))
    return rows, [Panel(number, "tree", str(name), part) for number, (name, part) in engines]


def rows_by_group(
    summary: pd.DataFrame,
    metric: str,
    statistic: str = "median",
    group: str = "pattern_set",
    log: bool = False,
    apart: Sequence[str] = APART,
) -> pd.DataFrame:
    """Rows over all sizes, in their order, with ``series``, ``panel``, ``group`` and ``log``.

    Parameters are those of :func:`static_bars_by_group`, and so are errors.
    """
    rows = _chosen(summary, metric, statistic)
    rows = _labelled(rows[rows["size"].isna()], "over all sizes", apart)
    return rows.assign(group=rows[group].str.replace("_", " "), log=log)


def rows_by_size(
    summary: pd.DataFrame,
    metric: str,
    pattern_set: str = "",
    statistic: str = "median",
    apart: Sequence[str] = APART,
) -> pd.DataFrame:
    """Rows of each size of one pattern set; see :func:`rows_by_group`."""
    rows = _chosen(summary, metric, statistic)
    rows = rows[rows["size"].notna() & (rows["pattern_set"] == pattern_set)]
    what = f"of pattern set {pattern_set!r} by size" if pattern_set else "by size"
    return _labelled(rows, what, apart).assign(log=metric in _TIMES_AS_MUCH)


def _notes(rows: pd.DataFrame, column: str) -> list[str]:
    """Sentences on lines over a column that hide each other, and on patterns left out.

    Two lines are one if their values differ by less than a hundredth of the axis everywhere.
    """
    log = needs_log(rows)
    low, high = ends_of(rows) if log else (0.0, float(rows[["value", "high"]].max().max()))
    length = math.log(high / low) if log else high
    found = []
    for panel in panels_of(rows):
        part = panel.rows
        groups: list[tuple[list[str], pd.Series]] = []
        for label, _, _ in series_of(part):
            own = part[part["series"] == label].set_index(column)["value"].dropna().astype(float)
            line = own.map(math.log) if log else own
            for names, other in groups:
                same = line.index.equals(other.index) and len(line) > 1
                if same and ((line - other).abs() < 0.01 * length).all():
                    names.append(label)
                    break
            else:
                groups.append(([label], line))
        where = f" ({panel.apart})" if panel.apart else ""
        found += [f"{', '.join(names)}{where}" for names, _ in groups if len(names) > 1]
    hidden = [f"On one line: {'; '.join(found)}."] * bool(found)
    return [*hidden, *left_out_notes(rows)]


def needs_log_sizes(sizes: Sequence[int]) -> bool:
    """Whether pattern sizes are so far apart that their axis is logarithmic."""
    return max(sizes) / min(sizes) > SIZE_SPREAD


def size_ticks(sizes: Sequence[int]) -> list[int]:
    """The sizes that a logarithmic axis names, so that their numbers do not meet."""
    chosen: list[int] = []
    for size in sorted(sizes):
        if not chosen or size / chosen[-1] > 1.3:
            chosen.append(int(size))
    return chosen


def _chosen(summary: pd.DataFrame, metric: str, statistic: str) -> pd.DataFrame:
    missing = [column for column in _NEEDED if column not in summary]
    if missing:
        raise ExperimentError(
            f"no column {missing[0]!r}: a chart is drawn from what "
            "cepbench.experiments.analysis.summary.summarize returns"
        )
    for column, wanted in (("metric", metric), ("statistic", statistic)):
        known = list(summary[column].unique())
        if wanted not in known:
            raise ExperimentError(
                f"the summary has no {column} {wanted!r}; it has {', '.join(map(str, known))}"
            )
    chosen = (summary["metric"] == metric) & (summary["statistic"] == statistic)
    missing_columns = {name: value for name, value in _DEFAULTS.items() if name not in summary}
    return summary[chosen].assign(**missing_columns)


def _labelled(rows: pd.DataFrame, what: str, apart: Sequence[str]) -> pd.DataFrame:
    if rows.empty:
        raise ExperimentError(f"the summary has no rows {what}")
    return with_series(rows, apart)


def _data(part: pd.DataFrame) -> pd.DataFrame:
    plain = part[[*_COLUMNS, *(["group"] if "group" in part else [])]].copy()
    plain["size"] = [None if pd.isna(size) else int(size) for size in plain["size"]]
    return plain


def _interval(base: alt.Chart, title: str) -> alt.Chart:
    # The same title in every layer: Vega-Lite would write different ones side by side.
    return base.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q", title=title), y2="high:Q")


def _tooltip(metric: str, statistic: str, *, setting: bool = False) -> list[alt.Tooltip]:
    what = f"{quantity_of(metric).title.lower()}, {statistic}"
    numbers = [
        alt.Tooltip("value:Q", title=what, format=",.4~g"),
        alt.Tooltip("low:Q", title="95 % from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
    ]
    if setting:
        names = [
            alt.Tooltip("series:N", title="plan"),
            alt.Tooltip("evaluator:N"),
            alt.Tooltip("group:N", title="setting"),
        ]
        return [*names, *numbers, alt.Tooltip("patterns:Q", title="runs")]
    return [
        alt.Tooltip("series:N", title="plan generator"),
        alt.Tooltip("evaluator:N"),
        alt.Tooltip("pattern_set:N", title="pattern set"),
        alt.Tooltip("strategy:N"),
        alt.Tooltip("size:O"),
        *numbers,
        alt.Tooltip("patterns:Q"),
        alt.Tooltip("left_out:Q", title="patterns left out"),
        alt.Tooltip("missing:Q", title="missing of its own"),
    ]
