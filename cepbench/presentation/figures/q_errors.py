"""Estimated against measured numbers: q-errors by node size, and scatter plots in panels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.presentation.figures import chart
from cepbench.presentation.figures.chart import PLAIN, Chart, Marks, Panel, Tip
from cepbench.presentation.figures.rows import axis_around, log_ticks
from cepbench.presentation.figures.styles import Mark, Style

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


def q_errors_by_events(summary: pd.DataFrame) -> Chart:
    """Medians of q-errors by the number of variables in a node, whiskers up to the 95th percentile.

    The summary is as :func:`cepbench.experiments.studies.kolchinsky2018.q_error_tables.q_error_summary`
    returns it by ``pattern_set``, ``model`` and ``events``.
    """
    parts = panels_by(summary, "pattern_set")
    looks = {model: look for model, look in _MODELS.items() if (summary["model"] == model).any()}
    most = max(2.0, float(summary["p95"].max()))
    y = chart.Axis(_Q_ERROR, log=True, ends=(0.95, most * 1.05), ticks=log_ticks(1.0, most))
    tips = [
        Tip("model:N"),
        Tip("events:O", "variables"),
        Tip("nodes:Q"),
        Tip("median:Q", format=",.3~g"),
        Tip("p95:Q", "95th percentile", ",.3~g"),
        Tip("largest:Q", format=",.3~g"),
        Tip("median_ratio:Q", "median estimated / measured", ",.3~g"),
    ]
    panels = [
        Panel(0, column, [name], [
            Marks(part.sort_values("events"), "events", "median", looks, "model",
                  y_ends=("median", "p95"), joined=True, beside=True, tips=tips),
        ])
        for column, (name, part) in enumerate(parts.items())
    ]  # fmt: skip
    x = chart.Axis(
        "variables in the node", names=tuple(sorted(summary["events"].unique().tolist()))
    )
    return Chart(_Q_ERRORS, x, y, panels, explained="", legend="inside")


def scatter_in_panels(
    rows: pd.DataFrame, x: Axis, y: Axis, *, panel: str, colour: str, title: str,
    headings: Mapping[str, str] | None = None, diagonal: bool = False, label: str = "",
    tooltip: Sequence[str] = (),
) -> Chart:  # fmt: skip
    """A point a row, the horizontal axis logarithmic, in a panel for each value of a column.

    ``panel`` and ``colour`` are the columns that choose the panel and the colour of a point, ``label``
    that of a text beside it, if any, ``tooltip`` those that tooltips have as well. ``headings`` has
    that of each value of ``panel``. With ``diagonal`` both axes have one scale and a line where they are
    equal.
    """
    parts = panels_by(rows, panel)
    looks = looks_of_values(sorted(rows[colour].unique()))
    named = [panel, colour, *([label] if label else []), *tooltip]
    kept = list(dict.fromkeys([x.column, y.column, *named]))
    tips = [Tip(f"{axis.column}:Q", format=",.4~g") for axis in (x, y)]
    tips += [Tip(name) for name in kept if name not in (x.column, y.column)]
    both = [x.column, y.column]

    def drawn(axis: Axis, table: pd.DataFrame) -> chart.Axis:
        numbers = table[both if diagonal else [axis.column]]
        return axis_around(axis.title, numbers, "1", log=axis.log)

    of_x, of_y = drawn(x, rows), drawn(y, rows)
    panels = []
    for column, (name, part) in enumerate(parts.items()):
        marks = [Marks(part[kept], x.column, y.column, looks, colour, size=6 if label else 4.5,
                       opacity=0.75, text=label, tips=tips)]  # fmt: skip
        if diagonal:
            ends = pd.DataFrame(dict.fromkeys(both, of_x.ends))
            marks.append(Marks(ends, x.column, y.column, PLAIN, "", size=0, joined=True))
        own = None if diagonal else drawn(x, part)
        panels.append(Panel(0, column, [(headings or {}).get(name, name)], marks, x=own))
    return Chart(title, of_x, of_y, panels, explained="", legend="beside", size=(280, 260))


def panels_by(rows: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Value of a column → its rows, in the order of the rows; an ExperimentError if there are none."""
    if rows.empty:
        raise ExperimentError("there are no rows to draw; measure more patterns or a longer stream")
    return {str(value): part for value, part in rows.groupby(column, sort=False)}


def looks_of_values(values: Iterable[str]) -> dict[str, Style]:
    """A look for each value, by its place."""
    return {
        value: Style(_PALETTE[rank % len(_PALETTE)], MARKS[rank % len(MARKS)], ())
        for rank, value in enumerate(values)
    }
