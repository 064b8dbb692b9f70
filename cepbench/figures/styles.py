"""How a plan generator looks: the same in every chart, whatever else is in it.

Colours are Paul Tol's "muted" scheme, which colour-blind readers can tell apart, and a grey. A chart never
relies on colour alone: order plans have solid lines and round or pointed marks, tree plans dashed
lines and angular marks, and every generator has a mark of its own.
"""

from __future__ import annotations

import colorsys
import zlib
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True, slots=True)
class Mark:
    """One shape under its names in both chart libraries."""

    matplotlib: str
    vega: str


@dataclass(frozen=True, slots=True)
class Style:
    """Look of one plan generator.

    Attributes
    ----------
    colour : str
        ``#rrggbb``.
    mark : Mark
    dash : tuple of int
        Lengths of ink and gap in points; empty for a solid line.
    """

    colour: str
    mark: Mark
    dash: tuple[int, ...]


_DASHES: dict[str, tuple[int, ...]] = {"order": (), "tree": (6, 3)}
_MARKS = {
    "order": (
        Mark("o", "circle"),
        Mark("^", "triangle-up"),
        Mark("v", "triangle-down"),
        Mark("<", "triangle-left"),
        Mark(">", "triangle-right"),
        Mark("*", "M0,-1L0.24,-0.32L0.95,-0.31L0.38,0.12L0.59,0.81L0,0.4L-0.59,0.81"
                  "L-0.38,0.12L-0.95,-0.31L-0.24,-0.32Z"),
    ),
    "tree": (Mark("s", "square"), Mark("D", "diamond"), Mark("P", "cross")),
}  # fmt: skip

#: Generator -> colour and the number of its mark among those of its kind of plan.
_KNOWN = {
    "TRIVIAL": ("#777777", 0),
    "EFREQ": ("#CC6677", 1),
    "GREEDY": ("#999933", 2),
    "II-RANDOM": ("#88CCEE", 3),
    "II-GREEDY": ("#44AA99", 4),
    "DP-LD": ("#332288", 5),
    "ZSTREAM": ("#882255", 0),
    "ZSTREAM-ORD": ("#AA4499", 1),
    "DP-B": ("#117733", 2),
}


def style_of(algorithm: str, plans: str) -> Style:
    """The look of a plan generator.

    A generator that a user adds gets its colour and mark from its name alone, so that they stay
    the same whatever other generators come and go. Two such names may look alike.

    Parameters
    ----------
    algorithm : str
        Name of the generator; its case does not matter.
    plans : str
        ``order`` or ``tree``.
    """
    marks = _MARKS[plans]
    name = algorithm.upper()
    if name in _KNOWN:
        colour, which = _KNOWN[name]
        return Style(colour, marks[which % len(marks)], _DASHES[plans])
    draw = zlib.crc32(name.encode())
    red, green, blue = colorsys.hls_to_rgb((draw % 360) / 360, 0.42, 0.75)
    colour = f"#{round(red * 255):02X}{round(green * 255):02X}{round(blue * 255):02X}"
    return Style(colour, marks[draw // 360 % len(marks)], _DASHES[plans])


def series_labels(rows: pd.DataFrame) -> pd.Series:
    """The name of each row's series: the generator, and its evaluator if it ran in several.

    Parameters
    ----------
    rows : DataFrame
        With columns ``algorithm`` and ``evaluator``.
    """
    evaluators = rows.groupby("algorithm")["evaluator"].transform("nunique")
    several = rows["algorithm"] + " in " + rows["evaluator"]
    return rows["algorithm"].where(evaluators == 1, several).rename("series")
