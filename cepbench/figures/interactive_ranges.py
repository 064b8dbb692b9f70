"""Charts for the screen of plans from wrong numbers: altair, with tooltips."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from cepbench.figures.interactive import _joined
from cepbench.figures.ranges import (
    LEGEND,
    MARKS,
    range_ends,
    range_notes,
    range_rows,
    range_ticks,
    range_title,
)
from cepbench.figures.rows import quantity_of
from cepbench.figures.styles import style_of

_CROSS = "M-1,-1L1,1M-1,1L1,-1"


def ranges_by_factor(summary: pd.DataFrame, metric: str) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.figures.static_ranges.ranges_by_factor`, with tooltips."""
    rows = range_rows(summary, metric)
    named = rows[["plan_kind", "generator"]].drop_duplicates()
    order = list(named["generator"])
    colours = [style_of(name, plans).colour for plans, name in named.itertuples(index=False)]
    ends = list(range_ends(rows))
    # Names that Vega reads as names.
    plain = rows.rename(columns={"90th percentile": "p90", "worst case": "worst"})
    colour = alt.Color("generator:N", legend=None, scale=alt.Scale(domain=order, range=colours))
    tooltip = [
        alt.Tooltip("generator:N", title="plan generator"),
        *(alt.Tooltip(f"{name}:Q", title=title, format=",.4~g")
          for name, title in zip(("median", "p90", "worst"), MARKS, strict=True)),
        alt.Tooltip("patterns:Q"),
    ]  # fmt: skip

    def x(name: str) -> alt.X:
        scale = alt.Scale(type="log", domain=ends, nice=False)
        axis = alt.Axis(values=range_ticks(*ends), format="~g")
        return alt.X(f"{name}:Q", title=None, scale=scale, axis=axis)

    panels: list[Any] = []
    for factor in rows["factor"].unique():
        y = alt.Y("generator:N", sort=order, title=None,
                  axis=alt.Axis(labels=not panels, ticks=False))  # fmt: skip
        base = alt.Chart(plain[plain["factor"] == factor]).encode(
            y=y, color=colour, tooltip=tooltip
        )
        layers = (
            base.mark_rule().encode(x=x("median"), x2="worst:Q"),
            base.mark_point(filled=True, size=50, opacity=1).encode(x=x("median")),
            base.mark_tick(thickness=2, size=12).encode(x=x("p90")),
            base.mark_point(shape=_CROSS, size=40, strokeWidth=1.5).encode(x=x("worst")),
        )
        panels.append(
            alt.layer(*layers).properties(
                title=f"wrong by up to {factor:g}", width=185, height=17 * len(order)
            )
        )
    told = f"{quantity_of(metric).axis}; {LEGEND}"
    return _joined(panels, range_title(metric), told, range_notes(summary, metric))
