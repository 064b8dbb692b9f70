"""The model of a chart: its data, where and as what they are drawn, and its words.

Every chart is built once as a :class:`Chart`. :mod:`.altair_panels` draws it where readers point and pick,
:mod:`.matplotlib_panels` where it is printed; both draw all that is here, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

import pandas as pd

from cepbench.presentation.figures.styles import Mark, Style

_P = ParamSpec("_P")
_Drawn = TypeVar("_Drawn")

#: What whiskers are, unless a chart says otherwise.
WHISKERS = "whiskers: 95 % of bootstrap resamples of patterns"

#: Colour of lines and marks of no series.
INK = "#333333"

#: Look of marks of no series.
PLAIN = {"": Style(INK, Mark("o", "circle"), ())}


class Tip(NamedTuple):
    """A line of a tooltip: column and Vega type, as ``value:Q``, title and format of d3."""

    field: str
    title: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of numbers or names, the same in all panels."""

    #: Empty if :attr:`Chart.explained` has it.
    title: str = ""
    #: Values with a place each, in this order; numbers keep their distances in print. Empty on an axis of
    #: any numbers.
    names: tuple[Any, ...] = ()
    log: bool = False
    #: Of an axis of numbers; by default those of what is drawn.
    ends: tuple[float, float] | None = None
    #: Of an axis of numbers; empty for those of the library.
    ticks: Sequence[float] = ()
    #: As in :class:`~.rows.Quantity`.
    unit: str = ""
    #: Whether a linear axis begins at 0; its upper end is then rounded.
    zero: bool = False
    #: Whether a line is at 1.
    one: bool = False
    #: Names before a line between two kinds.
    split: int = 0


@dataclass(frozen=True, slots=True)
class Marks:
    """Rows of a table as marks, with whiskers, lines and texts."""

    data: pd.DataFrame
    #: ``x``, ``y``: columns of the places.
    x: str
    y: str
    #: Value of the column ``series`` → its look, in the order of the legend.
    looks: Mapping[str, Style]
    #: Empty if all marks have the one look, without a legend.
    series: str = "series"
    #: ``x_ends``, ``y_ends``: columns of the lower and upper ends of whiskers.
    x_ends: tuple[str, ...] = ()
    y_ends: tuple[str, ...] = ()
    form: Literal["point", "bar", "tick", "cross"] = "point"
    #: Points across a mark; 0 for no marks.
    size: float = 5.5
    opacity: float = 1.0
    #: Whether a line joins the marks of a series, in the order of ``order``, by default of the rows.
    joined: bool = False
    #: Whether the series of a name stand side by side.
    beside: bool = False
    order: str = ""
    #: Column of texts beside marks.
    text: str = ""
    #: Column that tells filled marks from white ones.
    filled: str = ""
    tips: Sequence[Tip] = ()

    def by_series(self) -> Iterator[tuple[str, Style, pd.DataFrame]]:
        """Label, look and rows of each series, in the order of the legend."""
        for label, look in self.looks.items():
            own = self.data[self.data[self.series] == label] if self.series else self.data
            yield label, look, own.sort_values(self.order, kind="stable") if self.order else own

    def within(self, x: Axis, y: Axis) -> Marks:
        """The marks with whiskers that begin inside the panel: a logarithmic axis has no place for 0."""
        held = self
        for axis, field in ((x, "x_ends"), (y, "y_ends")):
            low, *high = getattr(held, field) or ("",)
            if low and axis.log and axis.ends and (held.data[low] < axis.ends[0]).any():
                drawn = f"{low}_drawn"
                data = held.data.assign(**{drawn: held.data[low].clip(lower=axis.ends[0])})
                other: dict[str, Any] = {"data": data, field: (drawn, *high)}
                held = replace(held, **other)
        return held


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of a chart, in a grid of rows and columns."""

    row: int
    column: int
    #: Lines above it.
    heading: Sequence[str]
    #: From the lowest to the topmost.
    marks: Sequence[Marks]
    #: Lines on the right above it.
    note: str = ""
    #: Its own, if the panels share none.
    x: Axis | None = None


@dataclass(slots=True)
class Chart:
    """Panels on the same axes under one title."""

    title: str
    x: Axis
    y: Axis
    panels: Sequence[Panel]
    #: What axes or marks are, in a line of its own.
    explained: str = WHISKERS
    #: Sentences on what is left out or hidden.
    notes: Sequence[str] = ()
    #: ``panels`` for one below each, ``below`` all or ``inside`` the first one for one of the chart, or empty.
    legend: Literal["panels", "below", "inside", ""] = "panels"
    #: Width and height of a panel in pixels.
    size: tuple[int, int] = (370, 270)

    def __post_init__(self) -> None:
        self.panels = [
            replace(panel, marks=[each.within(panel.x or self.x, self.y) for each in panel.marks])
            for panel in self.panels
        ]


def drawn_by(draw: Callable[[Chart], _Drawn], build: Callable[_P, Chart]) -> Callable[_P, _Drawn]:
    """A function that builds a chart as one that also draws it."""

    @wraps(build)
    def drawn(*given: _P.args, **named: _P.kwargs) -> _Drawn:
        return draw(build(*given, **named))

    return drawn


def around(low: float, high: float, *, log: bool) -> tuple[float, float]:
    """Ends of an axis a little beyond what is drawn."""
    if log:
        beyond = max((high / low) ** 0.06, 1.03)
        return low / beyond, high * beyond
    beyond = (high - low) * 0.06 or 1.0
    return low - beyond, high + beyond
