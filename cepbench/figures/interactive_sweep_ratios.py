"""Charts for the screen of two sweeps compared: altair, with tooltips."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from cepbench.figures.interactive import _joined
from cepbench.figures.rows import log_ticks
from cepbench.figures.styles import style_of
from cepbench.figures.sweep_ratios import (
    LEGEND,
    sweep_ratio_ends,
    sweep_ratio_notes,
    sweep_ratio_rows,
    sweep_ratio_title,
)


def sweep_ratios(ratios: pd.DataFrame, metric: str) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.figures.static_sweep_ratios.sweep_ratios`, with tooltips."""
    rows = sweep_ratio_rows(ratios, metric)
    labels = list(dict.fromkeys(rows["label"]))
    styles = [
        style_of(name, kind)
        for name, kind in rows.drop_duplicates("label")[["generator", "kind"]].to_numpy()
    ]
    ends = list(sweep_ratio_ends(rows))
    colour = alt.Scale(domain=labels, range=[style.colour for style in styles])
    shape = alt.Scale(domain=labels, range=[style.mark.vega for style in styles])

    def x(name: str) -> alt.X:
        scale = alt.Scale(type="log", domain=ends, nice=False)
        axis = alt.Axis(values=log_ticks(*ends), format="~g")
        return alt.X(f"{name}:Q", title=None, scale=scale, axis=axis)

    tooltip = [
        alt.Tooltip("label:N", title="plan generator"),
        alt.Tooltip("value:Q", title="second / first", format=".3f"),
        alt.Tooltip("low:Q", title="95 % from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("common:Q", title="common to most runs", format=".3f"),
        alt.Tooltip("pairs:Q", title="patterns"),
        alt.Tooltip("left_out:Q", title="patterns left out"),
        alt.Tooltip("verdict:N"),
    ]
    panels: list[Any] = []
    for panel in dict.fromkeys(rows["panel"]):
        y = alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(labels=not panels, ticks=False))
        base = alt.Chart(rows[rows["panel"] == panel]).encode(
            y=y, color=alt.Color("label:N", legend=None, scale=colour), tooltip=tooltip
        )
        one = (
            alt.Chart(pd.DataFrame({"value": [1.0]}))
            .mark_rule(color="#333333")
            .encode(x=x("value"))
        )
        span = base.mark_rule(strokeWidth=2).encode(x=x("low"), x2="high:Q")
        marks = base.mark_point(size=80, opacity=1, strokeWidth=1.5).encode(
            x=x("value"),
            shape=alt.Shape("label:N", legend=None, scale=shape),
            fill=alt.condition(
                "datum.real", alt.Color("label:N", legend=None, scale=colour), alt.value("white")
            ),
        )
        common = base.mark_tick(thickness=2, size=16).encode(
            x=x("common"), color=alt.value("#777777")
        )
        panels.append(
            alt.layer(one, common, span, marks).properties(
                title=panel, width=260, height=max(60, 22 * len(labels))
            )
        )
    told, notes = f"ratio, geometric mean; {LEGEND}", sweep_ratio_notes(ratios, metric)
    return _joined(panels, sweep_ratio_title(metric), told, notes)
