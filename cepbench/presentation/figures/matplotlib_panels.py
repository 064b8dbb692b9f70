"""Panels, axes, legends and notes of the charts for print, which are saved as SVG and PNG."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
import pandas as pd
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, NullLocator

from cepbench.presentation.figures.recording import record
from cepbench.presentation.figures.rows import (
    PANELS,
    Panel,
    axis_title,
    ends_of,
    log_ticks,
    needs_log,
    panels_of,
    series_of,
    unit_of,
)
from cepbench.presentation.figures.styles import Style

#: Points, of which nine are twelve pixels on a page: no text of a chart is smaller.
TEXT = 9

_LOOK: Any = {
    "font.size": TEXT,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # where titles are anyway: finding that out takes a fifth of drawing
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

#: Inches of a panel.
PANEL_WIDTH, HEIGHT = 4.6, 3.4

#: How intervals are drawn, as arguments of ``errorbar``.
INTERVAL: Any = {"elinewidth": 1.0, "capsize": 2.0, "capthick": 1.0}


def print_look() -> AbstractContextManager[Any]:
    """Within it, matplotlib draws as all charts for print look."""
    return matplotlib.rc_context(_LOOK)


def panel_row(
    number: int, width: float, height: float, *, sharex: bool = False
) -> tuple[Figure, list[Axes]]:
    """An empty figure of so many inches, and its panels side by side, which share the vertical axis."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, number, sharex=sharex, sharey=True, squeeze=False)[0])


def write_title(figure: Figure, title: str) -> None:
    """The heading of a figure, above its panels."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)


def log_axis(axes: Axes, which: Literal["x", "y"], ticks: Sequence[float]) -> None:
    """Make the ``x`` or ``y`` axis logarithmic, with plain numbers at these ticks alone."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def empty_panels(
    rows: pd.DataFrame, *, sharex: bool = False
) -> tuple[Figure, list[tuple[Axes, Panel]]]:
    """An empty figure, and its panels on one axis of values, of rows of :func:`~.rows.with_series`."""
    panels = panels_of(rows)
    kinds = [kind for kind in PANELS if any(panel.kind == kind for panel in panels)]
    number = 1 + max(panel.row for panel in panels)
    figure = Figure(figsize=(PANEL_WIDTH * len(kinds), HEIGHT * number), layout="constrained")
    grid = figure.subplots(number, len(kinds), sharex=sharex, sharey=True, squeeze=False)
    drawn = [(grid[panel.row, kinds.index(panel.kind)], panel) for panel in panels]
    for axes in {*grid.flat} - {axes for axes, _ in drawn}:
        axes.remove()
    return figure, drawn


def finish_panels(
    figure: Figure,
    panels: list[tuple[Axes, Panel]],
    rows: pd.DataFrame,
    title: str,
    names: Mapping[str, str],
) -> Figure:
    """The figure with its title, and each panel with heading, axis of values and legend.

    Panels are those of :func:`empty_panels`, drawn into, and share the axis of values of ``rows``;
    ``names`` has the heading of each kind of plan.
    """
    write_title(figure, title)
    for axes, panel in panels:
        # Beside a note on the right, the lines end where it begins.
        beside = axes.get_title(loc="right").count("\n") if panel.apart else 0
        axes.set_title("\n".join(panel.heading(names[panel.kind])) + "\n" * beside)
        axes.tick_params(labelleft=True, labelbottom=True)
        _number_axis(axes, rows)
        below = [other for _, other in panels if other.kind == panel.kind and other.row > panel.row]
        if below and series_of(below[-1].rows) == series_of(panel.rows):
            continue
        # In heights of a letter: a share of the axes would be less below panels that are low.
        distance = 4.6 if axes.get_xlabel() else 2.4
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, 0.0), borderaxespad=distance, ncols=3,
            fontsize=TEXT, handlelength=3,
        )  # fmt: skip
    metric, statistic = rows.iloc[0][["metric", "statistic"]]
    label_values(panels, axis_title(metric, statistic))
    return figure


def label_values(panels: list[tuple[Axes, Panel]], title: str) -> None:
    """Title of the axis of values, at the first panel of each row."""
    for row in {panel.row: axes for axes, panel in reversed(panels)}.values():
        row.set_ylabel(title)


def _number_axis(axes: Axes, rows: pd.DataFrame) -> None:
    unit = unit_of(rows)
    prefixed = EngFormatter(unit="" if unit == "1" else unit, sep=" ")

    def written(value: float, _: int | None = None) -> str:
        plain = not unit or (unit == "1" and 0 < value < 1)  # no thousandths of a match
        return f"{value:g}" if plain else str(prefixed(value))

    if needs_log(rows):
        low, high = ends_of(rows)
        log_axis(axes, "y", log_ticks(low, high))
        axes.set_ylim(low, high)
        if unit == "":
            axes.axhline(1.0, color="#333333", linewidth=1.0)
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(written))


def draw_marks(
    axes: Axes, at: np.ndarray, own: pd.DataFrame, style: Style, label: str, *, line: bool
) -> None:
    """Draw ``value``, ``low`` and ``high`` of n rows as marks with whiskers, on a line or not.

    ``at``, of shape (n,), is where they are on the horizontal axis.
    """
    dashes = (0, style.dash) if style.dash else "solid"
    axes.errorbar(
        at, own["value"], whiskers(own), color=style.colour, marker=style.mark.matplotlib,
        markersize=5.5 if line else 7, linestyle=dashes if line else "none", linewidth=1.4,
        label=label, **INTERVAL,
    )  # fmt: skip


def whiskers(own: pd.DataFrame) -> np.ndarray:
    """Lengths of the whiskers down and up from ``value`` to ``low`` and ``high``, shape (2, n)."""
    return distances_to_ends(own, "value", "low", "high")


def distances_to_ends(own: pd.DataFrame, middle: str, lowest: str, highest: str) -> np.ndarray:
    """Distances down and up, shape (2, n); resampling may leave an end beyond the value by an ulp."""
    value = own[middle].to_numpy(float)
    low, high = own[lowest].to_numpy(float), own[highest].to_numpy(float)
    return np.maximum(np.stack([value - low, high - value]), 0)


def write_notes(figure: Figure, notes: Sequence[str], axis: str = "") -> None:
    """Sentences below a figure, as wide as it is, below the title of its only axis if it has one.

    They are a label of the whole figure, for which the layout keeps room below the legends.
    """
    letters = int(figure.get_size_inches()[0] * 72 / (TEXT * 0.55))
    lines = [line for text in (axis, *notes) for line in textwrap.wrap(text, letters)]
    if lines:
        place: Any = {"x": 0.01, "ha": "left"} if notes else {}
        figure.supxlabel("\n".join(lines), fontsize=TEXT, **place)


def save_figure(figure: Figure, folder: str | Path, stem: str) -> list[Path]:
    """Write ``<stem>.svg`` and ``<stem>.png`` into ``folder``; their paths, in this order.

    The figure keeps the layout that it is written with. In a notebook it is recorded, so that its
    page offers both files.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = [target / f"{stem}.svg", target / f"{stem}.png"]
    with print_look():
        # Layout and margins take longer than drawing: found once, not for each file anew.
        figure.draw_without_rendering()
        figure.set_layout_engine(None)
        margin = matplotlib.rcParams["savefig.pad_inches"]
        used = figure.get_tightbbox().padded(margin)
        figure.savefig(paths[0], metadata={"Date": None}, bbox_inches=used)
        figure.savefig(paths[1], dpi=160, bbox_inches=used)
    record(figure=stem)
    return paths


def show_figure(figure: Figure, folder: str | Path, stem: str) -> None:
    """Save a figure as :func:`save_figure` does, and show its SVG in the notebook.

    A figure that a cell returns is drawn once more, which takes as long as saving it.
    """
    svg, _ = save_figure(figure, folder, stem)
    shown = {"image/svg+xml": svg.read_text(encoding="utf-8"), "text/plain": stem}
    display(shown, raw=True)
