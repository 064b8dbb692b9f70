"""Averages with their intervals: by pattern set, by pattern size, and by setting of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.common_patterns import left_out_notes
from cepbench.presentation.figures.chart import WHISKERS, Axis, Chart, Marks, Panel, Tip, around
from cepbench.presentation.figures.rows import (
    APART,
    COLUMNS,
    PANELS,
    axis_title,
    chart_title,
    looks_of,
    panels_of,
    quantity_of,
    value_axis,
    with_series,
)

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


def bars_by_group(
    summary: pd.DataFrame,
    metric: str,
    *,
    statistic: str = "median",
    group: str = "pattern_set",
    log: bool = False,
    apart: Sequence[str] = APART,
) -> Chart:
    """A group of bars for each pattern set, with a bar for each generator.

    Whiskers are the summary's intervals. On a logarithmic axis, which has no zero for bars to
    start from, values are marks: where they span more than a factor of
    :data:`cepbench.presentation.figures.rows.LOG_SPREAD`, and for ratios (``statistic`` ``ratio``), with a line
    at 1 between better and worse. An ExperimentError if the summary has no such rows.

    Source: [kolchinsky2018]_, Figures 3, 4 and 9. Differs from the paper: all panels have one
    scale.

    Parameters
    ----------
    summary
        As :func:`cepbench.experiments.analysis.summary.summarize` returns it.
    statistic
        ``median``, ``mean``, or ``ratio`` of rows that
        :func:`cepbench.experiments.analysis.gains.gains_over` made.
    group
        ``pattern_set`` or ``strategy``.
    log
        A logarithmic axis whatever the spread.
    apart
        Columns whose values are rows of panels, where they vary: ``regime``, ``evaluator``.
    """
    rows = rows_by_group(summary, metric, statistic, group, log, apart)
    y = value_axis(rows, axis_title(metric, statistic))
    form: Any = {"size": 7} if y.log else {"form": "bar"}

    def marks(part: pd.DataFrame) -> list[Marks]:
        return [_averages(part, "group", _tips(metric, statistic), beside=True, **form)]

    x = Axis(names=tuple(rows["group"].unique()))
    panels = panels_of(rows, PANELS, marks)
    return Chart(chart_title(rows), x, y, panels, notes=left_out_notes(rows))


def lines_by_size(
    summary: pd.DataFrame,
    metric: str,
    pattern_set: str = "",
    *,
    statistic: str = "median",
    panels: Mapping[str, str] = PANELS,
    apart: Sequence[str] = APART,
) -> Chart:
    """A line for each generator over the pattern size; see :func:`bars_by_group`.

    ``pattern_set`` is empty for a summary without any; ``panels`` has the heading of the panel of each
    kind of plan.

    Source: [kolchinsky2018]_, Figures 5 and 7. Differs from the paper: all panels have one scale.
    """
    rows = _chosen(summary, metric, statistic)
    rows = rows[rows["size"].notna() & (rows["pattern_set"] == pattern_set)]
    of_set = f"of pattern set {pattern_set!r} " if pattern_set else ""
    rows = _labelled(rows, f"{of_set}by size", apart).assign(log=metric in _TIMES_AS_MUCH)

    def marks(part: pd.DataFrame) -> list[Marks]:
        return [_averages(part, "size", _tips(metric, statistic), joined=True)]

    what = f"{pattern_set} patterns" if pattern_set else ""
    return Chart(
        chart_title(rows, what), _sizes(rows["size"]), value_axis(rows, axis_title(metric, statistic)),
        panels_of(rows, panels, marks), notes=left_out_notes(rows), legend="ends",
    )  # fmt: skip


def lines_by_setting(
    summary: pd.DataFrame,
    metric: str,
    setting: str,
    *,
    what: str = "",
    lines: bool = True,
    log: bool = False,
) -> Chart:
    """A line for each plan over the settings of a query, in a panel for each engine.

    An ExperimentError if the summary has no such rows.

    Source: [mei2009]_, Figures 8 to 17. Differs from the paper: all panels have one scale.

    Parameters
    ----------
    summary
        As :func:`cepbench.experiments.analysis.summary.summarize` returns it, of runs whose ``pattern_set`` is
        the setting; with ``engine`` where there are several. Medians are drawn, with their intervals.
    setting, what
        What the settings are, for the axis, and what was run, for the title.
    lines
        Whether the settings have an order: marks are on lines, or else side by side.
    log
        Whether the axis of values is logarithmic whatever their spread.
    """
    rows = rows_by_group(summary, metric, log=log, apart=("engine",))
    tips = _tips(metric, "median", setting=True)
    form: Any = {"joined": True} if lines else {"beside": True, "size": 7}
    panels = [
        Panel(*divmod(number, COLUMNS), [str(engine)], [_averages(part, "group", tips, **form)])
        for number, (engine, part) in enumerate(rows.groupby("panel", sort=False))
    ]
    return Chart(
        chart_title(rows, what), Axis(setting, names=tuple(rows["group"].unique())),
        value_axis(rows, axis_title(metric, "median")), panels,
        explained=WHISKERS.replace("patterns", "runs"), notes=left_out_notes(rows),
        legend="ends" if lines else "beside",
    )  # fmt: skip


def _averages(part: pd.DataFrame, column: str, tips: Sequence[Tip], **form: Any) -> Marks:
    data = part[[name for name in (*_COLUMNS, "group") if name in part]]
    return Marks(data, column, "value", looks_of(part), y_ends=("low", "high"), tips=tips, **form)


def _sizes(sizes: pd.Series) -> Axis:
    """The axis of pattern sizes: logarithmic where they are far apart."""
    names = tuple(int(size) for size in sorted(sizes.unique()))
    if max(names) / min(names) <= SIZE_SPREAD:
        return Axis(_SIZES, names=names)
    ends = around(names[0], names[-1], log=True)
    return Axis(_SIZES, names=names, log=True, ends=ends, ticks=size_ticks(names))


def rows_by_group(
    summary: pd.DataFrame,
    metric: str,
    statistic: str = "median",
    group: str = "pattern_set",
    log: bool = False,
    apart: Sequence[str] = APART,
) -> pd.DataFrame:
    """Rows over all sizes, in their order, with ``series``, ``panel``, ``group`` and ``log``.

    Parameters are those of :func:`bars_by_group`, and so are errors.
    """
    rows = _chosen(summary, metric, statistic)
    rows = _labelled(rows[rows["size"].isna()], "over all sizes", apart)
    return rows.assign(group=rows[group].str.replace("_", " "), log=log)


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
    return summary[chosen].assign(**missing_columns).astype({"size": "Int64"})


def _labelled(rows: pd.DataFrame, what: str, apart: Sequence[str]) -> pd.DataFrame:
    if rows.empty:
        raise ExperimentError(f"the summary has no rows {what}")
    return with_series(rows, apart)


def _tips(metric: str, statistic: str, *, setting: bool = False) -> list[Tip]:
    numbers = [
        Tip("value:Q", f"{quantity_of(metric).title.lower()}, {statistic}", ",.4~g"),
        Tip("low:Q", "95 % from", ",.4~g"),
        Tip("high:Q", "to", ",.4~g"),
    ]
    if setting:
        names = [Tip("series:N", "plan"), Tip("evaluator:N"), Tip("group:N", "setting")]
        return [*names, *numbers, Tip("patterns:Q", "runs")]
    return [
        Tip("series:N", "plan generator"),
        Tip("evaluator:N"),
        Tip("pattern_set:N", "pattern set"),
        Tip("strategy:N"),
        Tip("size:O"),
        *numbers,
        Tip("patterns:Q"),
        Tip("left_out:Q", "patterns left out"),
        Tip("missing:Q", "missing of its own"),
    ]
