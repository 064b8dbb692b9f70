"""Charts for the screen of estimated against measured numbers: altair, with tooltips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from cepbench.figures.interactive import kind_of_scale
from cepbench.figures.offline import offline, prefixed
from cepbench.figures.q_error_rows import (
    MARKS,
    Axis,
    ends_of_scatter,
    model_style,
    models_of,
    palette_of,
    panels_by,
    ticks_of_factors,
)


def q_errors_by_events(summary: pd.DataFrame) -> alt.TopLevelMixin:
    """The chart of :func:`cepbench.figures.static_q_errors.q_errors_by_events`, with tooltips."""
    models = models_of(summary)
    looks = [model_style(model) for model in models]
    colour = alt.Color(
        "model:N", title=None,
        scale=alt.Scale(domain=models, range=[look.colour for look in looks]),
    )  # fmt: skip
    shape = alt.Shape(
        "model:N", title=None,
        scale=alt.Scale(domain=models, range=[look.mark.vega for look in looks]),
    )  # fmt: skip
    largest = float(summary["p95"].max())
    title = "q-error: median, up to the 95th percentile"
    scale = alt.Scale(type="log", domain=[0.95, max(2.0, largest * 1.05)], nice=False)
    y_axis = alt.Axis(values=ticks_of_factors(largest), format="~g")
    panels: list[Any] = []
    for name, part in panels_by(summary, "pattern_set").items():
        base = alt.Chart(part).encode(
            x=alt.X("events:O", title="variables in the node", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("model:N", sort=models),
            color=colour,
        )
        y = alt.Y("median:Q", title=title, scale=scale, axis=y_axis)
        whisker = base.mark_rule().encode(
            y=alt.Y("median:Q", title=title, scale=scale, axis=y_axis), y2="p95:Q"
        )
        marks = base.mark_point(filled=True, size=70, opacity=1).encode(
            y=y, shape=shape,
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("events:O", title="variables"),
                alt.Tooltip("nodes:Q"),
                alt.Tooltip("median:Q", format=",.3~g"),
                alt.Tooltip("p95:Q", title="95th percentile", format=",.3~g"),
                alt.Tooltip("largest:Q", format=",.3~g"),
                alt.Tooltip("median_ratio:Q", title="median estimated / measured", format=",.3~g"),
            ],
        )  # fmt: skip
        panels.append(alt.layer(whisker, marks).properties(title=name, width=340, height=260))
    return _finished(panels, "How far estimated partial matches are off (lower is better)")


def scatter_in_panels(
    rows: pd.DataFrame, x: Axis, y: Axis, *, panel: str, colour: str, title: str,
    headings: Mapping[str, str] | None = None, diagonal: bool = False, label: str = "",
    tooltip: Sequence[str] = (),
) -> alt.TopLevelMixin:  # fmt: skip
    """The chart of :func:`cepbench.figures.static_q_errors.scatter_in_panels`, with tooltips.

    Parameters
    ----------
    rows, x, y, panel, colour, title, headings, diagonal, label
        As there.
    tooltip : sequence of str
        More columns for the tooltip.
    """
    palette = palette_of(rows[colour])
    kept = list(
        dict.fromkeys([x.column, y.column, panel, colour, *([label] * bool(label)), *tooltip])
    )
    extra: dict[str, Any] = (
        {"domain": list(ends_of_scatter(rows, x, y)), "nice": False} if diagonal else {}
    )
    pick = alt.selection_point(name="pick_colour", fields=[colour], bind="legend")
    panels: list[Any] = []
    for name, part in panels_by(rows, panel).items():
        horizontal = alt.X(
            f"{x.column}:Q", title=x.title, axis=alt.Axis(labelExpr=prefixed("1"), tickCount=5),
            scale=alt.Scale(type="log", padding=20, **extra),
        )  # fmt: skip
        vertical = alt.Y(
            f"{y.column}:Q", title=y.title, axis=alt.Axis(labelExpr=prefixed("1"), tickCount=5),
            scale=alt.Scale(**kind_of_scale(y.log), padding=20, **extra),
        )  # fmt: skip
        base = alt.Chart(part[kept]).encode(x=horizontal, y=vertical)
        marks = base.mark_point(filled=True, size=40, opacity=0.75).encode(
            color=alt.Color(
                f"{colour}:N", title=None, legend=alt.Legend(orient="bottom", columns=4),
                scale=alt.Scale(domain=list(palette), range=list(palette.values())),
            ),
            shape=alt.Shape(
                f"{colour}:N", title=None,
                scale=alt.Scale(
                    domain=list(palette),
                    range=[MARKS[rank % len(MARKS)].vega for rank in range(len(palette))],
                ),
            ),
            opacity=alt.when(pick).then(alt.value(0.75)).otherwise(alt.value(0.05)),
            tooltip=[*(alt.Tooltip(f"{x.column}:Q", format=",.4~g"),
                       alt.Tooltip(f"{y.column}:Q", format=",.4~g")),
                     *(column for column in kept if column not in (x.column, y.column))],
        )  # fmt: skip
        layers = [marks]
        if diagonal:
            ends = pd.DataFrame({x.column: extra["domain"], y.column: extra["domain"]})
            line = alt.Chart(ends).mark_line(color="#333333", strokeWidth=1)
            layers.insert(0, line.encode(x=horizontal, y=vertical))
        if label:
            layers.append(base.mark_text(dx=7, dy=-6, align="left").encode(text=label))
        heading = (headings or {}).get(name, name)
        panels.append(alt.layer(*layers).properties(title=heading, width=250, height=260))
    panels[0] = panels[0].add_params(pick)
    return _finished(panels, title)


def _finished(panels: list[Any], heading: str) -> alt.TopLevelMixin:
    return offline(alt.hconcat(*panels).properties(title=alt.TitleParams(heading, anchor="start")))
