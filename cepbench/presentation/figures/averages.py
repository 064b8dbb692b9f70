"""Averages with their intervals: bars by pattern set, lines by pattern size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.common_patterns import left_out_notes
from cepbench.presentation.figures.altair_panels import (
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
    INTERVAL,
    draw_marks,
    empty_panels,
    finish_panels,
    print_look,
    whiskers,
    write_notes,
)
from cepbench.presentation.figures.rows import (
    APART,
    PANELS,
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
    log = needs_log(rows)
    with print_look():
        figure, panels = empty_panels(rows)
        for axes, panel in panels:
            part = panel.rows
            groups = list(part["group"].unique())
            series = series_of(part)
            width = 0.8 / len(series)
            for rank, (label, generator, plans) in enumerate(series):
                own = part[part["series"] == label].set_index("group").reindex(groups)
                at = np.arange(len(groups)) + (rank - (len(series) - 1) / 2) * width
                style = style_of(generator, plans)
                if log:
                    draw_marks(axes, at, own, style, label, line=False)
                else:
                    axes.bar(at, own["value"], width * 0.9, color=style.colour, label=label)
                    axes.errorbar(
                        at, own["value"], whiskers(own), fmt="none", ecolor="#333333", **INTERVAL
                    )
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
    """The chart of :func:`static_bars_by_group`, with tooltips.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.analysis.summary.summarize` returns it.
    metric, statistic, group : str
    log : bool
    apart : sequence of str

    Raises
    ------
    ExperimentError
        If the summary has no such rows.
    """
    rows = rows_by_group(summary, metric, statistic, group, log, apart)
    log = needs_log(rows)
    groups = list(rows["group"].unique())
    title = axis_title(metric, statistic)
    panels, drawn = panels_of(rows), []
    for panel in panels:
        part, pick = panel.rows, picker(panel.key)
        order = [label for label, _, _ in series_of(part)]
        x = alt.X("group:N", sort=groups, title=None, axis=alt.Axis(labelAngle=0))
        # One scale for all panels: a reader compares them.
        y = value_axis(rows, title)
        offset = alt.XOffset("series:N", sort=order)
        base = alt.Chart().encode(x=x, xOffset=offset, opacity=picked(pick))
        body = base.mark_bar()
        if log:
            body = base.mark_point(filled=True, size=80, opacity=1).encode(shape=shape_of(part))
        body = body.encode(y=y, color=colour_of(part), tooltip=_tooltip(metric, statistic))
        interval = _interval(base, title, alt.ColorValue("#333333"))
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
    summary : DataFrame
    metric : str
    pattern_set : str
        Empty for a summary without any.
    statistic : str
    panels : mapping of str to str
        Kind of plan -> heading of its panel.
    apart : sequence of str

    Notes
    -----
    Source: [kolchinsky2018]_, Figures 5 and 7. Differs from the paper: all panels have one scale.
    """
    rows = rows_by_size(summary, metric, pattern_set, statistic, apart)
    with print_look():
        figure, drawn = empty_panels(rows)
        for axes, panel in drawn:
            part = panel.rows
            series, sizes = series_of(part), sorted(part["size"].unique())
            far = needs_log_sizes(sizes)
            for rank, (label, generator, plans) in enumerate(series):
                own = part[part["series"] == label].sort_values("size")
                # Side by side, or whiskers of one size would hide each other.
                shift = (rank - (len(series) - 1) / 2) * 0.06
                at = own["size"].to_numpy(float)
                at = at * (1 + shift / 20) if far else at + shift
                draw_marks(axes, at, own, style_of(generator, plans), label, line=True)
            if far:
                axes.set_xscale("log")
                axes.xaxis.set_minor_locator(NullLocator())
                sizes = size_ticks(sizes)
            axes.set_xticks(sizes, [str(size) for size in sizes])
            axes.set_xlabel("pattern size (participating events)")
        what = f"{pattern_set} patterns" if pattern_set else ""
        write_notes(figure, [*on_one_line(rows), *left_out_notes(rows)])
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
    title = axis_title(metric, statistic)
    places, drawn = panels_of(rows), []
    for panel in places:
        part, pick = panel.rows, picker(panel.key)
        axis_of_sizes = "pattern size (participating events)"
        if needs_log_sizes(sizes):
            scale = alt.Scale(type="log", nice=False, padding=10)
            axis = alt.Axis(values=size_ticks(sizes), format="d")
            x = alt.X("size:Q", title=axis_of_sizes, scale=scale, axis=axis)
        else:
            x = alt.X("size:O", title=axis_of_sizes, sort=sizes, axis=alt.Axis(labelAngle=0))
        base = alt.Chart().encode(x=x, color=colour_of(part), opacity=picked(pick))
        dash = list(style_of(part["generator"].iloc[0], panel.kind).dash) or [1, 0]
        line = base.mark_line(strokeWidth=2, strokeDash=dash).encode(y=value_axis(rows, title))
        points = base.mark_point(filled=True, size=70, opacity=1).encode(
            y=value_axis(rows, title), shape=shape_of(part), tooltip=_tooltip(metric, statistic)
        )
        interval = _interval(base, title, colour_of(part))
        layers = (*line_at_one(rows, title), line, interval, points)
        heading = panel.heading(panels[panel.kind])
        drawn.append(layered_panel(heading, pick, *layers, data=_data(part)))
    what = f"{pattern_set} patterns" if pattern_set else ""
    notes = [*on_one_line(rows), *left_out_notes(rows)]
    return joined_panels(in_rows(places, drawn), chart_title(rows, what), notes=notes)


def rows_by_group(
    summary: pd.DataFrame,
    metric: str,
    statistic: str = "median",
    group: str = "pattern_set",
    log: bool = False,
    apart: Sequence[str] = APART,
) -> pd.DataFrame:
    """Rows over all sizes of each group.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.analysis.summary.summarize` returns it.
    metric, statistic : str
    group : str
        ``pattern_set`` or ``strategy``.
    log : bool
        Whether the axis is logarithmic whatever the values.
    apart : sequence of str
        Columns whose values are rows of panels, where they vary.

    Returns
    -------
    DataFrame
        The chosen rows with columns ``series``, ``panel`` and ``group``, in the order of
        ``summary``.

    Raises
    ------
    ExperimentError
        If ``summary`` lacks columns or has no such rows.
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


def on_one_line(rows: pd.DataFrame) -> list[str]:
    """A sentence on the series of a panel whose lines hide each other; none where none do.

    Two lines are one if their values differ by less than a hundredth of the axis everywhere.

    Parameters
    ----------
    rows : DataFrame
        As :func:`rows_by_size` returns it.
    """
    log = needs_log(rows)
    low, high = ends_of(rows) if log else (0.0, float(rows[["value", "high"]].max().max()))
    length = math.log(high / low) if log else high
    found = []
    for panel in panels_of(rows):
        part = panel.rows
        groups: list[tuple[list[str], pd.Series]] = []
        for label, _, _ in series_of(part):
            own = part[part["series"] == label].set_index("size")["value"].dropna().astype(float)
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
    return [f"On one line: {'; '.join(found)}."] * bool(found)


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


def _interval(base: alt.Chart, title: str, colour: Any) -> alt.Chart:
    # The same title in every layer: Vega-Lite would write different ones side by side.
    low = alt.Y("low:Q", title=title)
    return base.mark_rule(strokeWidth=1.2).encode(y=low, y2=alt.Y2("high:Q"), color=colour)


def _tooltip(metric: str, statistic: str) -> list[alt.Tooltip]:
    value = quantity_of(metric).title.lower()
    return [
        alt.Tooltip("series:N", title="plan generator"),
        alt.Tooltip("evaluator:N"),
        alt.Tooltip("pattern_set:N", title="pattern set"),
        alt.Tooltip("strategy:N"),
        alt.Tooltip("size:O"),
        alt.Tooltip("value:Q", title=f"{value}, {statistic}", format=",.4~g"),
        alt.Tooltip("low:Q", title="95 % from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
        alt.Tooltip("patterns:Q"),
        alt.Tooltip("left_out:Q", title="patterns left out"),
        alt.Tooltip("missing:Q", title="missing of its own"),
    ]
