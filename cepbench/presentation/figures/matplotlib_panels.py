"""Charts for print, by matplotlib, which are saved as SVG and PNG."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
import pandas as pd
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import offset_copy

from cepbench.diagram import text_width
from cepbench.presentation.figures.chart import INK, Axis, Chart, Marks, Panel, plain
from cepbench.presentation.figures.recording import record

#: Points that are 14 pixels on a page: no text of a chart is smaller.
TEXT = 10.5

#: The font of figures, which matplotlib brings with it.
FONT = "DejaVu Sans"

_LOOK: Any = {
    "font.size": TEXT,
    "font.family": FONT,
    "axes.titlesize": 11,
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

#: Pixels of a panel on screen for an inch of print.
_PIXELS = 80

#: Points that a legend's mark takes beside its label, with the distance to the next one.
_HANDLE = 52

#: Points from a panel's last mark to the names of lines.
_BESIDE = 8

#: Inches from a line of text to the next one.
_LINE = 0.18

#: How whiskers are drawn, as arguments of ``errorbar``.
_WHISKERS: Any = {"elinewidth": 1.0, "capthick": 1.0}


def static_chart(chart: Chart) -> Figure:
    """Draw a chart for print."""
    rows, columns = (1 + max(getattr(panel, which) for panel in chart.panels)
                     for which in ("row", "column"))  # fmt: skip
    width, height = (size / _PIXELS for size in chart.size)
    shape = [width * columns, height * rows]
    if chart.y.names:
        # Rows are as high as their names, which stand left of the panels.
        shape = [shape[0] + 0.6 + 0.08 * max(map(len, chart.y.names)), shape[1] + 1.3]
    shape[0] = max(shape[0], 0.09 * len(chart.title))
    letters = int(shape[0] * 72 / (TEXT * 0.55))
    texts = [text for text in (chart.explained, *chart.notes) if text]
    lines = [line for text in texts for line in textwrap.wrap(text, letters)]
    labels = {*chart.looks("series")} | {
        label for marks in chart.panels[0].marks for label in marks.looks
    }
    fitting = max(
        1, int(shape[0] * 72 / (_HANDLE + max(text_width(each, TEXT) for each in labels)))
    )
    room = 1 + math.ceil(1.3 * math.ceil(len(labels) / fitting)) if chart.legend == "beside" else 0
    with matplotlib.rc_context(_LOOK):
        figure = Figure(
            figsize=(shape[0], shape[1] + _LINE * (len(lines) + room)), layout="constrained"
        )
        shared = all(panel.x is None for panel in chart.panels)
        grid = figure.subplots(rows, columns, sharex=shared, sharey=True, squeeze=False)
        drawn = [(grid[panel.row, panel.column], panel) for panel in chart.panels]
        for axes in {*grid.flat} - {axes for axes, _ in drawn}:
            axes.remove()
        for axes, panel in drawn:
            for which, axis in (("x", panel.x or chart.x), ("y", chart.y)):
                axes.set(**{f"{which}scale": "log" if axis.log else "linear"})
            for marks in panel.marks:
                _draw_marks(axes, marks, panel.x or chart.x, chart.y)
        # Panels share axes, which hold what all of them have.
        for axes, panel in drawn:
            _finish_panel(axes, panel, chart)
        for axes in {panel.row: axes for axes, panel in reversed(drawn)}.values():
            axes.set_ylabel(chart.y.title)
        figure.suptitle(chart.title, x=0.01, ha="left", fontsize=12)
        _draw_legends(figure, drawn, chart, fitting, len(lines))
        # A label of the whole figure, for which the layout keeps room, and for the legend above it.
        figure.supxlabel("\n" * room + "\n".join(lines), fontsize=TEXT, x=0.01, ha="left")
    return figure


def _finish_panel(axes: Axes, panel: Panel, chart: Chart) -> None:
    x, y = panel.x or chart.x, chart.y
    which: Literal["x", "y"]
    for which, axis, line in (("x", x, axes.axvline), ("y", y, axes.axhline)):
        _set_axis(axes, which, axis)
        if axis.one:
            line(1.0, color=INK, linewidth=1.0)
        if not axis.names:
            axes.grid(True, axis=which)
    if any(marks.beside for marks in panel.marks) and isinstance(x.names[0], str):
        between = np.arange(len(x.names) - 1) + 0.5
        axes.vlines(between, 0, 1, "#DDDDDD", linewidth=0.6, transform=axes.get_xaxis_transform())
    if y.split:
        axes.axhline(0.5 - y.split, color="#999999", linewidth=0.6)
    axes.tick_params(labelleft=not y.names or panel.column == 0, labelbottom=True)
    axes.set_xlabel(x.title)
    # Beside a note on the right, the lines end where it begins.
    beside = panel.note.count("\n") if len(panel.heading) > 1 else 0
    axes.set_title("\n".join(panel.heading) + "\n" * beside)
    axes.set_title(panel.note, loc="right", fontsize=TEXT, color=INK, linespacing=1.3)


def _set_axis(axes: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    own = axes.xaxis if which == "x" else axes.yaxis
    if axis.names and not axis.log:
        places = list(_places(axis, down=which == "y").values())
        own.set_ticks(places, [str(name) for name in axis.names])
        if isinstance(axis.names[0], str):
            axes.tick_params(axis=which, length=0)
            room = 0.5 if which == "x" else 0.6
            axes.set(**{f"{which}lim": (min(places) - room, max(places) + room)})
        return
    if axis.log:
        own.set_minor_locator(NullLocator())
    if len(axis.ticks):
        own.set_major_locator(FixedLocator(axis.ticks))
    prefixed = EngFormatter(unit="" if axis.unit == "1" else axis.unit, sep=" ")

    def written(value: float, _: int | None = None) -> str:
        bare = not axis.unit or (axis.unit == "1" and 0 < value < 1)  # no thousandths of a match
        return plain(value) if bare else str(prefixed(value))

    own.set_major_formatter(FuncFormatter(written))
    if axis.zero:
        axes.set(**{f"{which}lim": (0, None)})
    elif axis.ends:
        axes.set(**{f"{which}lim": axis.ends})


def _places(axis: Axis, *, down: bool = False) -> dict[Any, float]:
    """Name → its place; numbers are at their own, other names one after the other."""
    ranks = {name: -rank if down else rank for rank, name in enumerate(axis.names)}
    return {name: rank if isinstance(name, str) else name for name, rank in ranks.items()}


def _draw_marks(axes: Axes, marks: Marks, x: Axis, y: Axis) -> None:
    """Marks of each series with whiskers, lines and texts; where names have no row there is a gap."""
    distance = 0.8 / len(marks.looks) if marks.beside else 0.05
    for rank, (label, look, own) in enumerate(marks.by_series()):
        shift = (rank - (len(marks.looks) - 1) / 2) * distance
        if x.names:
            own = own.set_index(marks.x).reindex(list(x.names))
            at = np.array(list(_places(x).values()), float)
            # Whiskers of one name would hide each other.
            at = at * (1 + shift / 20) if x.log else at + shift
        else:
            at = own[marks.x].to_numpy(float)
        ranks = own[marks.y].map(_places(y, down=True)) if y.names else own[marks.y]
        up = ranks.to_numpy(float)
        ends: dict[str, Any] = {
            "xerr": _distances(at, own, marks.x_ends) if marks.x_ends else None,
            "yerr": _distances(up, own, marks.y_ends) if marks.y_ends else None,
        }
        if marks.form == "bar":
            axes.bar(at, up, distance * 0.9, color=look.colour, label=label)
            axes.errorbar(at, up, **ends, fmt="none", ecolor=INK, capsize=2.0, **_WHISKERS)
            continue
        dashes = (0, look.dash) if look.dash else "solid"
        how: dict[str, Any] = {
            "color": look.colour, "linewidth": 1.4, "label": label,
            "linestyle": dashes if marks.joined else "none", "markersize": marks.size,
            "marker": {"tick": "|", "cross": "x"}.get(marks.form, look.mark.matplotlib),
            "markeredgewidth": 1.6 if marks.form == "tick" else 1.2, "alpha": marks.opacity,
            "capsize": 0.0 if marks.x_ends else 2.0, **_WHISKERS,
        }  # fmt: skip
        if not marks.size:
            how["marker"] = None
        filled = own[marks.filled].to_numpy(bool) if marks.filled else np.ones(len(own), bool)
        for chosen, fill in ((filled, look.colour), (~filled, "white")):
            if chosen.any():
                its: dict[str, Any] = {
                    key: None if end is None else end[:, chosen] for key, end in ends.items()
                }
                if label in axes.get_legend_handles_labels()[1]:
                    how["label"] = "_nolegend_"  # once, with the marks below
                axes.errorbar(at[chosen], up[chosen], **its, **how, markerfacecolor=fill)
        if marks.text:
            for text, place in zip(own[marks.text], zip(at, up, strict=True), strict=True):
                axes.annotate(
                    text, place, (5, 5), textcoords="offset points", fontsize=TEXT, color=INK
                )


def _distances(at: np.ndarray, own: pd.DataFrame, ends: Sequence[str]) -> np.ndarray:
    """Distances down and up, shape (2, n); resampling may leave an end beyond the value by an ulp."""
    low, high = (own[end].to_numpy(float) for end in ends)
    return np.maximum(np.stack([at - low, high - at]), 0)


def _draw_legends(
    figure: Figure, drawn: list[tuple[Axes, Panel]], chart: Chart, columns: int, below: int
) -> None:
    """One legend, whose labels have so many columns above so many lines of text; or names at lines' ends."""
    axes = drawn[0][0]
    if chart.legend == "inside":
        axes.legend(loc="upper left", fontsize=TEXT, handletextpad=0.2)
    if chart.legend == "beside":
        handles = {
            label: handle
            for axes, _ in drawn
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            handles.values(), handles.keys(), loc="lower center", ncols=columns, handlelength=3,
            bbox_to_anchor=(0.5, _LINE * below / figure.get_size_inches()[1]),
        )  # fmt: skip
    if chart.legend == "ends":
        for axes, panel in drawn:
            _name_ends(figure, axes, panel, chart)


def _name_ends(figure: Figure, axes: Axes, panel: Panel, chart: Chart) -> None:
    """The name of each line right of the panel, and a line of its colour that leads there."""
    looks = next(marks.looks for marks in panel.marks if marks.joined)
    x = panel.x or chart.x
    places = _places(x)
    beside = offset_copy(axes.transData, figure, x=_BESIDE, units="points")
    for label, name, value, right, place in chart.names_at_ends(panel).itertuples(index=False):
        led = {
            "arrowstyle": "-", "color": looks[label].colour, "linewidth": 1.2, "relpos": (0, 0.5),
            "shrinkA": 0,
        }  # fmt: skip
        axes.annotate(
            label, (places[name], value), (places[right], place), textcoords=beside, color=INK,
            va="center", arrowprops=led, annotation_clip=False,
        )  # fmt: skip


def save_figure(figure: Figure, folder: str | Path, stem: str) -> list[Path]:
    """Write ``<stem>.svg`` and ``<stem>.png`` into ``folder``; their paths, in this order.

    The figure keeps the layout that it is written with. In a notebook it is recorded, so that its
    page offers both files.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = [target / f"{stem}.svg", target / f"{stem}.png"]
    with matplotlib.rc_context(_LOOK):
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
