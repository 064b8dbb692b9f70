"""Charts of a detection on a cluster: its slices, what they copy, and more cores."""

from __future__ import annotations

import pandas as pd

from cepbench.presentation.exploration.time_axis import WIDTH
from cepbench.presentation.figures.altair_panels import kind_of_scale
from cepbench.presentation.figures.offline import offline
from cepbench.presentation.figures.vega import alt

_HEIGHT = 240
_EXPECTED, _MEASURED = "#0072B2", "#D55E00"


def slices_chart(slices: pd.DataFrame) -> alt.TopLevelMixin:
    """Seconds of slices over time: expected as a step, measured as a bar.

    Slices have the columns ``start`` and ``end`` (times), ``expected`` and ``measured``, in seconds.
    """
    base = alt.Chart(slices).encode(
        x=alt.X("start:T", title=None, axis=alt.Axis(format="%H:%M", labelOverlap=True)),
        x2="end:T",
        tooltip=[
            alt.Tooltip("start:T", format="%H:%M"),
            alt.Tooltip("end:T", format="%H:%M"),
            alt.Tooltip("expected:Q", format=".3~g"),
            alt.Tooltip("measured:Q", format=".3~g"),
        ],
    )
    measured = base.mark_bar(color=_MEASURED, opacity=0.5, stroke="white")
    expected = base.mark_rule(color=_EXPECTED, strokeWidth=3)
    title = alt.TitleParams(
        "Seconds in the detectors of each slice",
        subtitle="bars: measured; lines: expected",
        anchor="start",
    )
    layers = [
        measured.encode(y=alt.Y("measured:Q", title="seconds"), y2=alt.datum(0)),
        expected.encode(y=alt.Y("expected:Q", title="seconds")),
    ]
    return offline(alt.layer(*layers, title=title, width=WIDTH, height=_HEIGHT))


def curves_chart(
    points: pd.DataFrame, x: str, y: str, title: str, *, log_y: bool = True
) -> alt.TopLevelMixin:
    """Curves and measured points on a logarithmic horizontal axis; with ``log_y`` the vertical one, too.

    The columns ``x`` and ``y`` of the points are named on the axes. Of their column ``series``, one whose
    name begins with ``measured`` has points, others a line.
    """
    names = list(points["series"].unique())
    colours = [_EXPECTED, "#999999", _MEASURED][: len(names)]
    base = alt.Chart(points).encode(
        x=alt.X(f"{x}:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", tickCount=6)),
        y=alt.Y(f"{y}:Q", scale=alt.Scale(**kind_of_scale(log_y)), axis=alt.Axis(tickCount=6)),
        color=alt.Color(
            "series:N",
            title=None,
            legend=alt.Legend(orient="bottom"),
            scale=alt.Scale(domain=names, range=colours),
        ),
        tooltip=[alt.Tooltip("series:N"), *(alt.Tooltip(f"{n}:Q", format=",.3~g") for n in (x, y))],
    )
    is_measured = points["series"].str.startswith("measured")
    layers = [base.properties(data=points[~is_measured]).mark_line(point=True)]
    if is_measured.any():  # Vega warns of a layer without rows
        layers.append(base.properties(data=points[is_measured]).mark_point(filled=True, size=90))
    heading = alt.TitleParams(title, anchor="start")
    return offline(alt.layer(*layers, title=heading, width=WIDTH, height=_HEIGHT))
