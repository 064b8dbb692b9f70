"""Looks and ranges that the charts of estimates share. Chooses and labels; computes nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.figures.rows import log_ticks
from cepbench.figures.styles import Mark, Style

MARKS = (Mark("o", "circle"), Mark("s", "square"), Mark("^", "triangle-up"), Mark("D", "diamond"))

#: Colours that can be told apart without red or green, dark to light.
_PALETTE = ("#332288", "#CC6677", "#117733", "#DDAA33")

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


def model_style(model: str) -> Style:
    """The look of a model of estimates."""
    return _MODELS[model]


def models_of(rows: pd.DataFrame) -> list[str]:
    """The models in the rows, in the order of their looks."""
    return [name for name in _MODELS if (rows["model"] == name).any()]


def panels_by(rows: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Value of a column → its rows, in the order of the rows.

    Raises
    ------
    ExperimentError
        If there are none.
    """
    if rows.empty:
        raise ExperimentError("there are no rows to draw; measure more patterns or a longer stream")
    return {str(value): part for value, part in rows.groupby(column, sort=False)}


def palette_of(values: pd.Series) -> dict[str, str]:
    """Each value's colour, in the order of appearance in a sorted list."""
    return {
        value: _PALETTE[rank % len(_PALETTE)] for rank, value in enumerate(sorted(values.unique()))
    }


def ends_of_scatter(rows: pd.DataFrame, x: Axis, y: Axis) -> tuple[float, float]:
    """Smallest and largest number on either axis."""
    both = rows[[x.column, y.column]]
    return float(both.min().min()), float(both.max().max())


def ticks_of_factors(largest: float) -> list[float]:
    """Ticks from a factor of 1 to the largest."""
    return log_ticks(1.0, max(2.0, largest))
