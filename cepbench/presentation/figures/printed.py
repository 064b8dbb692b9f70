"""What was measured beside the numbers that a paper prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from cepbench.presentation.figures.averages import lines_by_setting
from cepbench.presentation.figures.chart import Axis, Chart, Marks, Tip, around
from cepbench.presentation.figures.rows import log_ticks

_PRINTED = "hollow: printed in the paper"


def lines_with_printed(
    summary: pd.DataFrame,
    metric: str,
    setting: str,
    printed: Mapping[str, Mapping[str, float]],
    **drawn: Any,
) -> Chart:
    """As :func:`cepbench.presentation.figures.averages.lines_by_setting`, with printed numbers as hollow marks.

    Parameters
    ----------
    printed : mapping of str to mapping of str to float
        Series → setting → the number in the paper's text or tables, in each panel.
    **drawn
        Of the other function.

    Raises
    ------
    ExperimentError
        If the summary has no such rows.
    """
    chart = lines_by_setting(summary, metric, setting, **drawn)
    table = pd.DataFrame(
        [
            {"series": series, "group": name, "value": number, "measured": False}
            for series, its in printed.items()
            for name, number in its.items()
        ]
    )
    tips = [Tip("series:N", "plan"), Tip("group:N", "setting"), Tip("value:Q", "printed", ",.4~g")]
    panels = []
    for panel in chart.panels:
        (measured,) = panel.marks
        hollow = Marks(
            table[table["series"].isin(measured.looks)], "group", "value", measured.looks,
            beside=measured.beside, size=9, filled="measured", tips=tips,
        )  # fmt: skip
        panels.append(replace(panel, marks=[measured, hollow]))
    return replace(
        chart,
        y=_longer(chart.y, table["value"]),
        panels=panels,
        explained=f"{chart.explained}; {_PRINTED}",
    )


def _longer(axis: Axis, values: pd.Series) -> Axis:
    """An axis on which these values are, too."""
    low, high = axis.ends or (0.0, 0.0)
    if low <= values.min() and values.max() <= high:
        return axis
    low, high = min(low, float(values.min())), max(high, float(values.max()))
    if not axis.log:
        return replace(axis, ends=(low, high))
    low, high = around(low, high, log=True)
    return replace(axis, ends=(low, high), ticks=log_ticks(low, high))
