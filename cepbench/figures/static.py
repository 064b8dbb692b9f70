"""Charts for print: matplotlib, saved as SVG and PNG."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter

from cepbench.figures.rows import (
    PANELS,
    axis_title,
    chart_title,
    needs_log,
    panels_of,
    rows_by_set,
    rows_by_size,
    series_of,
)
from cepbench.figures.styles import Style, style_of

_LOOK: Any = {
    "font.size": 9,
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


def bars_by_set(summary: pd.DataFrame, metric: str, *, statistic: str = "mean") -> Figure:
    """A group of bars a pattern set and a bar a generator, as Figures 3 and 4 of the paper.

    Whiskers are the summary's intervals. Where the spread asks for a logarithmic axis, marks
    stand for the bars, which would have no foot there.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.summary.summarize` returns it.
    metric : str
    statistic : str
        ``mean``, as in the paper, or ``median``.

    Raises
    ------
    ExperimentError
        If the summary has no such rows.

    Notes
    -----
    Source: [kolchinsky2018]_, Figures 3 and 4. Differs from the paper: both panels have one scale.
    """
    rows = rows_by_set(summary, metric, statistic)
    log = needs_log(rows)
    with _look():
        figure, panels = _panels(rows)
        for axes, _, part in panels:
            sets = list(part["pattern_set"].unique())
            series = series_of(part)
            width = 0.8 / len(series)
            for rank, (label, algorithm, plans) in enumerate(series):
                own = part[part["series"] == label].set_index("pattern_set").reindex(sets)
                at = np.arange(len(sets)) + (rank - (len(series) - 1) / 2) * width
                style = style_of(algorithm, plans)
                if log:
                    _marks(axes, at, own, style, label, line=False)
                else:
                    axes.bar(at, own["value"], width * 0.9, color=style.colour, label=label)
                    axes.errorbar(
                        at, own["value"], _whiskers(own), fmt="none", ecolor="#333333", **_INTERVAL
                    )
            axes.set_xticks(range(len(sets)), sets)
            axes.tick_params(axis="x", length=0)
            axes.set_xlim(-0.5, len(sets) - 0.5)
        return _finish(figure, panels, axis_title(metric, statistic), chart_title(metric), log)


def lines_by_size(
    summary: pd.DataFrame, metric: str, pattern_set: str, *, statistic: str = "mean"
) -> Figure:
    """A line a generator over the pattern size, as Figure 5 of the paper; see :func:`bars_by_set`.

    Notes
    -----
    Source: [kolchinsky2018]_, Figure 5. Differs from the paper: both panels have one scale.
    """
    rows = rows_by_size(summary, metric, pattern_set, statistic)
    with _look():
        figure, panels = _panels(rows)
        for axes, _, part in panels:
            series = series_of(part)
            for rank, (label, algorithm, plans) in enumerate(series):
                own = part[part["series"] == label].sort_values("size")
                # Side by side, or whiskers of one size would hide each other.
                shift = (rank - (len(series) - 1) / 2) * 0.06
                at = own["size"].to_numpy(float) + shift
                _marks(axes, at, own, style_of(algorithm, plans), label, line=True)
            axes.set_xticks(sorted(part["size"].unique()))
            axes.set_xlabel("pattern size (participating events)")
        title = chart_title(metric, pattern_set)
        return _finish(figure, panels, axis_title(metric, statistic), title, needs_log(rows))


def save_figure(figure: Figure, folder: str | Path, stem: str) -> list[Path]:
    """Write ``<stem>.svg`` and ``<stem>.png`` into ``folder``; their paths, in this order."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = [target / f"{stem}.svg", target / f"{stem}.png"]
    with _look():
        figure.savefig(paths[0], metadata={"Date": None}, bbox_inches="tight")
        figure.savefig(paths[1], dpi=160, bbox_inches="tight")
    return paths


def _look() -> AbstractContextManager[Any]:
    return matplotlib.rc_context(_LOOK)


def _panels(rows: pd.DataFrame) -> tuple[Figure, list[tuple[Axes, str, pd.DataFrame]]]:
    """An empty figure, and its panels with their kind of plan and their rows."""
    parts = panels_of(rows)
    figure = Figure(figsize=(_PANEL_WIDTH * len(parts), _HEIGHT), layout="constrained")
    grid = figure.subplots(1, len(parts), sharey=True, squeeze=False)[0]
    return figure, [(axes, kind, parts[kind]) for axes, kind in zip(grid, parts, strict=True)]


def _finish(
    figure: Figure, panels: list[tuple[Axes, str, pd.DataFrame]], axis: str, title: str, log: bool
) -> Figure:
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    for axes, kind, _ in panels:
        axes.set_title(PANELS[kind])
        _number_axis(axes, log)
        below = -0.19 if axes.get_xlabel() else -0.1
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, below), ncols=3, fontsize=8, handlelength=3
        )
    panels[0][0].set_ylabel(axis)
    return figure


def _number_axis(axes: Axes, log: bool) -> None:
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.grid(True, axis="y", which="minor", color="#EEEEEE", linewidth=0.4)
    else:
        axes.set_ylim(bottom=0)
        plain = EngFormatter(sep=" ")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


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
    """Distances down and up, shape (2, n); resampling may leave an end beyond the value by an ulp."""
    value = own["value"].to_numpy(float)
    low, high = own["low"].to_numpy(float), own["high"].to_numpy(float)
    return np.maximum(np.stack([value - low, high - value]), 0)
