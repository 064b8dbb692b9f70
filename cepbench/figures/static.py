"""Charts for print: matplotlib, saved as SVG and PNG."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    FuncFormatter,
    NullFormatter,
    NullLocator,
)

from cepbench.analysis.common_patterns import left_out_notes
from cepbench.figures.points import (
    KINDS,
    TRADE_OFF,
    line_of_fit,
    needs_log_latency,
    plans_by_cost,
    plans_left_out,
    trade_off,
)
from cepbench.figures.recording import record
from cepbench.figures.rows import (
    PANELS,
    axis_title,
    chart_title,
    ends_of,
    log_ticks,
    needs_log,
    needs_log_sizes,
    on_one_line,
    panels_of,
    quantity_of,
    rows_by_group,
    rows_by_size,
    series_of,
    size_ticks,
    unit_of,
)
from cepbench.figures.styles import Style, style_of

#: Points, of which nine are twelve pixels on a page: no text of a chart is smaller.
TEXT = 9

_LOOK: Any = {
    "font.size": TEXT,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # Without these two, the same figure would give another file each time.
    "svg.hashsalt": "cepbench",
    "svg.fonttype": "path",
}
_PANEL_WIDTH, _HEIGHT = 4.6, 3.4  # inches
_INTERVAL: Any = {"elinewidth": 1.0, "capsize": 2.0, "capthick": 1.0}


def bars_by_group(
    summary: pd.DataFrame,
    metric: str,
    *,
    statistic: str = "median",
    group: str = "pattern_set",
    log: bool = False,
) -> Figure:
    """A group of bars a pattern set and a bar a generator, as Figures 3 and 4 of the paper.

    Whiskers are the summary's intervals. Where the spread asks for a logarithmic axis, marks
    stand for the bars, which would have no foot there. So it is with ratios (``statistic``
    ``ratio``), which a line at 1 divides into better and worse.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.analysis.summary.summarize` returns it.
    metric : str
    statistic : str
        ``median``; ``mean``, as in the paper; or ``ratio``, of rows that
        :func:`cepbench.analysis.gains.gains_over_native` made.
    group : str
        ``pattern_set``, or ``strategy`` as in Figure 9.
    log : bool
        A logarithmic axis whatever the spread, as in Figure 9.

    Raises
    ------
    ExperimentError
        If the summary has no such rows.

    Notes
    -----
    Source: [kolchinsky2018]_, Figures 3, 4 and 9. Differs from the paper: both panels have one
    scale.
    """
    rows = rows_by_group(summary, metric, statistic, group, log)
    log = needs_log(rows)
    with _look():
        figure, panels = _panels(rows)
        for axes, _, part in panels:
            groups = list(part["group"].unique())
            series = series_of(part)
            width = 0.8 / len(series)
            for rank, (label, generator, plans) in enumerate(series):
                own = part[part["series"] == label].set_index("group").reindex(groups)
                at = np.arange(len(groups)) + (rank - (len(series) - 1) / 2) * width
                style = style_of(generator, plans)
                if log:
                    _marks(axes, at, own, style, label, line=False)
                else:
                    axes.bar(at, own["value"], width * 0.9, color=style.colour, label=label)
                    axes.errorbar(
                        at, own["value"], _whiskers(own), fmt="none", ecolor="#333333", **_INTERVAL
                    )
            axes.set_xticks(range(len(groups)), groups)
            axes.tick_params(axis="x", length=0)
            axes.set_xlim(-0.5, len(groups) - 0.5)
            for between in range(len(groups) - 1):
                axes.axvline(between + 0.5, color="#DDDDDD", linewidth=0.6)
        write_notes(figure, left_out_notes(rows))
        return _finish(figure, panels, rows, chart_title(metric, "", statistic), PANELS)


def lines_by_size(
    summary: pd.DataFrame,
    metric: str,
    pattern_set: str = "",
    *,
    statistic: str = "median",
    panels: Mapping[str, str] = PANELS,
) -> Figure:
    """A line a generator over the pattern size, as Figures 5 and 7; see :func:`bars_by_group`.

    Parameters
    ----------
    summary : DataFrame
    metric : str
    pattern_set : str
        Empty for a summary without any.
    statistic : str
    panels : mapping of str to str
        Kind of plan -> heading of its panel.

    Notes
    -----
    Source: [kolchinsky2018]_, Figures 5 and 7. Differs from the paper: both panels have one scale.
    """
    rows = rows_by_size(summary, metric, pattern_set, statistic)
    with _look():
        figure, drawn = _panels(rows)
        for axes, _, part in drawn:
            series, sizes = series_of(part), sorted(part["size"].unique())
            far = needs_log_sizes(sizes)
            for rank, (label, generator, plans) in enumerate(series):
                own = part[part["series"] == label].sort_values("size")
                # Side by side, or whiskers of one size would hide each other.
                shift = (rank - (len(series) - 1) / 2) * 0.06
                at = own["size"].to_numpy(float)
                at = at * (1 + shift / 20) if far else at + shift
                _marks(axes, at, own, style_of(generator, plans), label, line=True)
            if far:
                axes.set_xscale("log")
                axes.xaxis.set_minor_locator(NullLocator())
                sizes = size_ticks(sizes)
            axes.set_xticks(sizes, [str(size) for size in sizes])
            axes.set_xlabel("pattern size (participating events)")
        what = f"{pattern_set} patterns" if pattern_set else ""
        write_notes(figure, [*on_one_line(rows), *left_out_notes(rows)])
        return _finish(figure, drawn, rows, chart_title(metric, what, statistic), panels)


def points_by_cost(points: pd.DataFrame, fit: pd.DataFrame, metric: str) -> Figure:
    """A point a plan, its cost against what it does, and the fitted line, as Figure 6.

    Parameters
    ----------
    points : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.figure_data.cost_points` returns it.
    fit : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.figure_data.cost_fit` returns it for the same metric.
    metric : str

    Notes
    -----
    Source: [kolchinsky2018]_, Figure 6. Differs from the paper: both axes are logarithmic, so that
    a power of the cost is a straight line.
    """
    rows = plans_by_cost(points, metric)
    quantity = quantity_of(metric)
    with _look():
        figure, panels = _panels(rows)
        for axes, kind, part in panels:
            for label, generator, plans in series_of(part):
                own, style = part[part["series"] == label], style_of(generator, plans)
                axes.plot(
                    own["cost"], own["value"], linestyle="none", marker=style.mark.matplotlib,
                    markersize=5.5, color=style.colour, markeredgecolor="white",
                    markeredgewidth=0.4, label=label,
                )  # fmt: skip
            line, note = line_of_fit(fit, kind, part)
            axes.plot(line["cost"], line["value"], color="#333333", linewidth=1.2)
            axes.set_title(note, loc="right", fontsize=TEXT, color="#333333", linespacing=1.3)
            axes.set_xscale("log")
            axes.set_xlabel("cost of the plan")
            axes.grid(True, axis="x")
            # Powers of ten would be in letters too small to read.
            axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
            axes.xaxis.set_minor_formatter(NullFormatter())
        _finish(figure, panels, rows, f"{quantity.title} against plan cost", KINDS)
        write_notes(figure, plans_left_out(points))
        panels[0][0].set_ylabel(quantity.axis)
        return figure


def throughput_against_latency(
    points: pd.DataFrame, *, statistic: str = "geometric mean"
) -> Figure:
    """A line a generator through its points for every α, as Figure 8.

    Parameters
    ----------
    points : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.figure_data.latency_points` returns it.
    statistic : str
        ``geometric mean``, ``median``, or ``mean`` as in the paper.

    Notes
    -----
    Source: [kolchinsky2018]_, Figure 8.
    """
    rows = trade_off(points, statistic)
    with _look():
        figure = Figure(figsize=(7.4, 4.8), layout="constrained")
        axes = figure.subplots()
        for label, generator, plans in series_of(rows):
            own, style = (
                rows[rows["series"] == label].sort_values("alpha"),
                style_of(generator, plans),
            )
            axes.errorbar(
                own["latency_ms"], own["throughput"],
                _distances(own, "throughput", "throughput_low", "throughput_high"),
                _distances(own, "latency_ms", "low_ms", "high_ms"),
                color=style.colour, marker=style.mark.matplotlib, markersize=6, linewidth=1.4,
                linestyle=(0, style.dash) if style.dash else "solid", elinewidth=0.5, label=label,
            )  # fmt: skip
            for _, row in own.iterrows():
                axes.annotate(
                    row["label"], (row["latency_ms"], row["throughput"]), (5, 5), fontsize=TEXT,
                    textcoords="offset points", color=style.colour,
                )  # fmt: skip
        figure.suptitle(TRADE_OFF, x=0.01, ha="left", fontsize=11)
        write_notes(figure, left_out_notes(rows))
        axes.set_xlabel(f"{statistic} of latency, milliseconds")
        axes.set_ylabel(f"{statistic} of throughput, events per second")
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        if needs_log_latency(rows):
            axes.set_xscale("log")
        axes.grid(True)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=5, fontsize=TEXT)
        return figure


def save_figure(figure: Figure, folder: str | Path, stem: str) -> list[Path]:
    """Write ``<stem>.svg`` and ``<stem>.png`` into ``folder``; their paths, in this order.

    The figure keeps the layout that it is written with. In a notebook it is recorded, so that its
    page offers both files.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = [target / f"{stem}.svg", target / f"{stem}.png"]
    with _look():
        # Layout and margins take longer than drawing: found once, not for each file anew.
        figure.draw_without_rendering()
        figure.set_layout_engine(None)
        margin = matplotlib.rcParams["savefig.pad_inches"]
        used = figure.get_tightbbox().padded(margin)
        figure.savefig(paths[0], metadata={"Date": None}, bbox_inches=used)
        figure.savefig(paths[1], dpi=160, bbox_inches=used)
    record(figure=stem)
    return paths


def write_notes(figure: Figure, notes: Sequence[str], axis: str = "") -> None:
    """Sentences below a figure, as wide as it is, below the title of its only axis if it has one.

    They are a label of the whole figure, for which the layout keeps room below the legends.
    """
    letters = int(figure.get_size_inches()[0] * 72 / (TEXT * 0.55))
    lines = [line for text in (axis, *notes) for line in textwrap.wrap(text, letters)]
    if notes:
        figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=TEXT)
    elif lines:
        figure.supxlabel("\n".join(lines), fontsize=TEXT)


def _look() -> AbstractContextManager[Any]:
    return matplotlib.rc_context(_LOOK)


def _panels(rows: pd.DataFrame) -> tuple[Figure, list[tuple[Axes, str, pd.DataFrame]]]:
    """An empty figure, and its panels with their kind of plan and their rows."""
    parts = panels_of(rows)
    figure = Figure(figsize=(_PANEL_WIDTH * len(parts), _HEIGHT), layout="constrained")
    grid = figure.subplots(1, len(parts), sharey=True, squeeze=False)[0]
    return figure, [(axes, kind, parts[kind]) for axes, kind in zip(grid, parts, strict=True)]


def _finish(
    figure: Figure,
    panels: list[tuple[Axes, str, pd.DataFrame]],
    rows: pd.DataFrame,
    title: str,
    names: Mapping[str, str],
) -> Figure:
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    for axes, kind, _ in panels:
        axes.set_title(names[kind])
        _number_axis(axes, rows)
        # In heights of a letter: a share of the axes would be less below panels that are low.
        below = 4.6 if axes.get_xlabel() else 2.4
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, 0.0), borderaxespad=below, ncols=3,
            fontsize=TEXT, handlelength=3,
        )  # fmt: skip
    metric, statistic = rows.iloc[0][["metric", "statistic"]]
    panels[0][0].set_ylabel(axis_title(metric, statistic))
    return figure


def _number_axis(axes: Axes, rows: pd.DataFrame) -> None:
    unit = unit_of(rows)
    prefixed = EngFormatter(unit="" if unit == "1" else unit, sep=" ")

    def written(value: float, _: int | None = None) -> str:
        plain = not unit or (unit == "1" and 0 < value < 1)  # no thousandths of a match
        return f"{value:g}" if plain else str(prefixed(value))

    formatter = FuncFormatter(written)
    axes.yaxis.set_major_formatter(formatter)
    if not needs_log(rows):
        axes.set_ylim(bottom=0)
        return
    low, high = ends_of(rows)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(FixedLocator(log_ticks(low, high)))
    axes.yaxis.set_major_formatter(formatter)
    if unit == "":
        axes.axhline(1.0, color="#333333", linewidth=1.0)


def _marks(
    axes: Axes, at: np.ndarray, own: pd.DataFrame, style: Style, label: str, *, line: bool
) -> None:
    dashes = (0, style.dash) if style.dash else "solid"
    axes.errorbar(
        at,
        own["value"],
        _whiskers(own),
        color=style.colour,
        marker=style.mark.matplotlib,
        markersize=5.5 if line else 7,
        linestyle=dashes if line else "none",
        linewidth=1.4,
        label=label,
        **_INTERVAL,
    )


def _whiskers(own: pd.DataFrame) -> np.ndarray:
    return _distances(own, "value", "low", "high")


def _distances(own: pd.DataFrame, middle: str, lowest: str, highest: str) -> np.ndarray:
    """Distances down and up, shape (2, n); resampling may leave an end beyond the value by an ulp."""
    value = own[middle].to_numpy(float)
    low, high = own[lowest].to_numpy(float), own[highest].to_numpy(float)
    return np.maximum(np.stack([value - low, high - value]), 0)
