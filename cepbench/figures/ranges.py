"""Distributions of plans from wrong numbers: rows of their chart. Chooses and labels; computes nothing."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from cepbench.analysis.common_patterns import left_out_notes
from cepbench.errors import ExperimentError
from cepbench.figures.rows import PANELS, log_ticks, quantity_of

#: Statistic -> its mark, as the legend writes it.
MARKS = {"median": "●", "90th percentile": "|", "worst case": "×"}

#: More numbers than this meet below a panel.
MOST_TICKS = 7

#: What the marks are, below or above a chart of ranges.
LEGEND = ", ".join(f"{mark} {statistic}" for statistic, mark in MARKS.items())


def range_rows(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Median, 90th percentile and worst case of each generator at each factor above 1.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.regrets.regret_summary` returns it.
    metric : str

    Returns
    -------
    DataFrame
        Columns ``plan_kind``, ``generator``, ``factor``, the statistics of :data:`MARKS` and
        ``patterns``; orders before trees, else in the order of the summary.

    Raises
    ------
    ExperimentError
        If the summary has no such rows.
    """
    chosen = summary[
        (summary["metric"] == metric)
        & (summary["factor"] > 1)
        & summary["statistic"].isin(list(MARKS))
        & np.isfinite(summary["value"])
    ]
    if chosen.empty:
        raise ExperimentError(f"the summary has no distribution of {metric!r} at a factor above 1")
    key = ["plan_kind", "generator", "factor", "patterns"]
    wide = chosen.pivot(index=key, columns="statistic", values="value").reset_index()
    rank = {name: place for place, name in enumerate(chosen["generator"].drop_duplicates())}
    kinds = {kind: place for place, kind in enumerate(PANELS)}
    order = pd.DataFrame({"kind": wide["plan_kind"].map(kinds), "rank": wide["generator"].map(rank),
                          "factor": wide["factor"]})  # fmt: skip
    wide = wide.loc[order.sort_values(["factor", "kind", "rank"], kind="stable").index]
    return wide[[*key, *MARKS]].reset_index(drop=True)


def range_notes(summary: pd.DataFrame, metric: str) -> list[str]:
    """What a chart of :func:`range_rows` leaves out."""
    rows = summary[(summary["metric"] == metric) & (summary["factor"] > 1)]
    return left_out_notes(rows)


def range_title(metric: str) -> str:
    """Heading of a chart of ranges."""
    quantity = quantity_of(metric)
    return f"{quantity.title} of plans from wrong numbers ({quantity.better} is better)"


def range_ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of the logarithmic axis of these rows, 1 among what lies between them."""
    low = min(1.0, float(rows[list(MARKS)].min().min()))
    high = max(1.0, float(rows[list(MARKS)].max().max()))
    beyond = (high / low) ** 0.05 * 1.02
    return low / beyond, high * beyond


def range_ticks(low: float, high: float) -> list[float]:
    """Ticks for a panel as narrow as these: powers of ten where there would be many others."""
    ticks = log_ticks(low, high)
    tens = [tick for tick in ticks if round(math.log10(tick), 9) % 1 == 0]
    return tens if len(ticks) > MOST_TICKS and len(tens) > 1 else ticks
