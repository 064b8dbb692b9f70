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
    """An axis of numbers or names, the same in all panels.

    Attributes
    ----------
    title : str
        Empty if :attr:`Chart.explained` has it.
    names : tuple
        Values with a place each, in this order; numbers keep their distances in print. Empty on an axis of
        any numbers.
    ends : tuple of float, optional
        Of an axis of numbers; by default those of what is drawn.
    ticks : sequence of float
        Of an axis of numbers; empty for those of the library.
    unit : str
        As in :class:`~.rows.Quantity`.
    zero : bool
        Whether a linear axis begins at 0; its upper end is then rounded.
    one : bool
        Whether a line is at 1.
    split : int
        Names before a line between two kinds.
    """

    title: str = ""
    names: tuple[Any, ...] = ()
    log: bool = False
    ends: tuple[float, float] | None = None
    ticks: Sequence[float] = ()
    unit: str = ""
    zero: bool = False
    one: bool = False
    split: int = 0


@dataclass(frozen=True, slots=True)
class Marks:
    """Rows of a table as marks, with whiskers, lines and texts.

    Attributes
    ----------
    data : DataFrame
    x, y : str
        Columns of the places.
    looks : mapping of str to Style
        Value of the column ``series`` → its look, in the order of the legend.
    series : str
        Empty if all marks have the one look, without a legend.
    x_ends, y_ends : tuple of str
        Columns of the lower and upper ends of whiskers.
    size : float
        Points across a mark; 0 for no marks.
    joined : bool
        Whether a line joins the marks of a series, in the order of ``order``, by default of the rows.
    beside : bool
        Whether the series of a name stand side by side.
    text : str
        Column of texts beside marks.
    filled : str
        Column that tells filled marks from white ones.
    """

    data: pd.DataFrame
    x: str
    y: str
    looks: Mapping[str, Style]
    series: str = "series"
    x_ends: tuple[str, ...] = ()
    y_ends: tuple[str, ...] = ()
    form: Literal["point", "bar", "tick", "cross"] = "point"
    size: float = 5.5
    opacity: float = 1.0
    joined: bool = False
    beside: bool = False
    order: str = ""
    text: str = ""
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
    """One panel of a chart, in a grid of rows and columns.

    Attributes
    ----------
    heading : sequence of str
        Lines above it.
    marks : sequence of Marks
        From the lowest to the topmost.
    note : str
        Lines on the right above it.
    x : Axis, optional
        Its own, if the panels share none.
    """

    row: int
    column: int
    heading: Sequence[str]
    marks: Sequence[Marks]
    note: str = ""
    x: Axis | None = None


@dataclass(slots=True)
class Chart:
    """Panels on the same axes under one title.

    Attributes
    ----------
    explained : str
        What axes or marks are, in a line of its own.
    notes : sequence of str
        Sentences on what is left out or hidden.
    legend : str
        ``panels`` for one below each, ``below`` all or ``inside`` the first one for one of the chart, or
        empty.
    size : tuple of int
        Width and height of a panel in pixels.
    """

    title: str
    x: Axis
    y: Axis
    panels: Sequence[Panel]
    explained: str = WHISKERS
    notes: Sequence[str] = ()
    legend: Literal["panels", "below", "inside", ""] = "panels"
    size: tuple[int, int] = (370, 270)

    def __post_init__(self) -> None:
        self.panels = [
            replace(panel, marks=[each.within(panel.x or self.x, self.y) for each in panel.marks])
            for panel in self.panels
        ]


def drawn_by(
    draw: Callable[[Chart], _Drawn],
) -> Callable[[Callable[_P, Chart]], Callable[_P, _Drawn]]:
    """Makes a function that builds a chart one that also draws it."""

    def drawing(build: Callable[_P, Chart]) -> Callable[_P, _Drawn]:
        @wraps(build)
        def drawn(*given: _P.args, **named: _P.kwargs) -> _Drawn:
            return draw(build(*given, **named))

        return drawn

    return drawing


def around(low: float, high: float, *, log: bool) -> tuple[float, float]:
    """Ends of an axis a little beyond what is drawn."""
    if log:
        beyond = max((high / low) ** 0.06, 1.03)
        return low / beyond, high * beyond
    beyond = (high - low) * 0.06 or 1.0
    return low - beyond, high + beyond
