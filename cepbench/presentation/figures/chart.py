"""The model of a chart: its data, where and as what they are drawn, and its words.

Every chart is built once as a :class:`Chart`. :mod:`.altair_panels` draws it where readers point and pick,
:mod:`.matplotlib_panels` where it is printed; both draw all that is here, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from statistics import fmean
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from cepbench.presentation.figures.styles import Mark, Style

_P = ParamSpec("_P")
_Drawn = TypeVar("_Drawn")

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

#: What whiskers are, unless a chart says otherwise.
WHISKERS = "whiskers: 95 % of bootstrap resamples of patterns"

#: Pixels from a name at the end of a line to the next one below.
_APART = 19

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

    def shares(self, values: pd.Series) -> np.ndarray:
        """Parts of an axis with ends that lie below the values."""
        low, high = self._scaled(self.ends)
        return (self._scaled(values) - low) / (high - low)

    def values(self, shares: np.ndarray) -> np.ndarray:
        """What lies above these parts of the axis."""
        low, high = self._scaled(self.ends)
        at = low + shares * (high - low)
        return np.exp(at) if self.log else at

    def _scaled(self, values: Any) -> np.ndarray:
        numbers = np.asarray(values, float)
        return np.log(numbers) if self.log else numbers


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
    #: Series are named at the ``ends`` of their lines, or in one legend ``beside`` all panels or ``inside`` the
    #: first one, or not.
    legend: Literal["ends", "beside", "inside", ""] = "beside"
    #: Width and height of a panel in pixels.
    size: tuple[int, int] = (370, 270)

    def __post_init__(self) -> None:
        self.panels = [
            replace(panel, marks=[each.within(panel.x or self.x, self.y) for each in panel.marks])
            for panel in self.panels
        ]

    def looks(self, series: str) -> dict[str, Style]:
        """The look of each value of a column, over all panels."""
        each = [
            marks.looks for panel in self.panels for marks in panel.marks if marks.series == series
        ]
        return {label: look for looks in each for label, look in looks.items()}

    def names_at_ends(self, panel: Panel) -> pd.DataFrame:
        """The ends of a panel's lines, with the place of a name right of each.

        Columns are those of the marks, and ``right`` and ``place``, the values where the name is. Names
        have the order of the ends, and do not overlap.
        """
        x, y = panel.x or self.x, self.y
        lines = next(marks for marks in panel.marks if marks.joined)
        ranks = {name: rank for rank, name in enumerate(x.names)}
        known = lines.data[lines.data[lines.y].notna()]
        known = known.iloc[known[lines.x].map(ranks).to_numpy(int).argsort(kind="stable")]
        ends = known.groupby(lines.series, sort=False).tail(1)[[lines.series, lines.x, lines.y]]
        right = known[lines.x].iloc[-1] if len(known) else None
        if y.ends is None:
            return ends.assign(right=right, place=ends[lines.y])
        shares = y.shares(ends[lines.y].clip(*y.ends).astype(float))
        ends, shares = ends.iloc[np.argsort(shares)], np.sort(shares)
        spread = spread_apart(shares, _APART / self.size[1])
        return ends.assign(right=right, place=y.values(spread))


def drawn_by(draw: Callable[[Chart], _Drawn], build: Callable[_P, Chart]) -> Callable[_P, _Drawn]:
    """A function that builds a chart as one that also draws it."""

    @wraps(build)
    def drawn(*given: _P.args, **named: _P.kwargs) -> _Drawn:
        return draw(build(*given, **named))

    return drawn


def spread_apart(shares: np.ndarray, distance: float) -> np.ndarray:
    """Ascending shares between 0 and 1, moved as little as puts this distance between neighbours.

    The lowest is half of it above 0, where an axis is. The least squares of an isotonic regression, by
    pooling neighbours that are too near.
    """
    steps = np.arange(len(shares)) * min(distance, 1 / max(len(shares), 1))
    pools: list[list[float]] = []
    for place in shares - steps:
        pools.append([float(place)])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            above = pools.pop()
            pools[-1] += above
    means = [fmean(pool) for pool in pools for _ in pool]
    return np.clip(means, distance / 2, 1 - steps.max(initial=0)) + steps


def plain(value: float) -> str:
    """A number without a unit; powers of ten far from 1 have exponents."""
    exponent = math.log10(value) if value > 0 else 0.0
    if abs(exponent) < 4 or exponent % 1:
        return f"{value:g}"
    return "10" + f"{exponent:.0f}".translate(_RAISED)


def around(low: float, high: float, *, log: bool) -> tuple[float, float]:
    """Ends of an axis a little beyond what is drawn."""
    if log:
        beyond = max((high / low) ** 0.06, 1.03)
        return low / beyond, high * beyond
    beyond = (high - low) * 0.06 or 1.0
    return low - beyond, high + beyond
