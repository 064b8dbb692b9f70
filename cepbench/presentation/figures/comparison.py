"""Every plan of a comparison on a stream: throughput and peak memory side by side."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cepbench.experiments.sweeps.cells import OK
from cepbench.presentation.figures.offline import offline, prefixed
from cepbench.presentation.figures.styles import series_labels, style_of
from cepbench.presentation.figures.vega import alt


def comparison_bars(comparison: pd.DataFrame) -> alt.TopLevelMixin:
    """Throughput and peak memory of each plan generator, side by side.

    Parameters
    ----------
    comparison : DataFrame
        As ``cep.compare`` returns it. Runs that did not end well are named in the subtitle.
    """
    plain = pd.DataFrame(comparison)
    rows = plain[plain["status"] == OK]
    rows = rows.assign(series=series_labels(rows))
    order = list(rows["series"])
    colours = [
        style_of(name, plans).colour
        for name, plans in rows[["generator", "plan_kind"]].itertuples(index=False)
    ]
    columns = ["series", "plan", "events_per_second", "events_per_second_q1",
               "events_per_second_q3", "peak_bytes", "matches"]  # fmt: skip
    base = alt.Chart(rows[columns]).encode(
        color=alt.Color("series:N", legend=None, scale=alt.Scale(domain=order, range=colours)),
        tooltip=[
            alt.Tooltip("series:N", title="plan generator"),
            alt.Tooltip("plan:N"),
            alt.Tooltip("events_per_second:Q", title="events per second", format=",.4~g"),
            alt.Tooltip("events_per_second_q1:Q", title="lower quartile", format=",.4~g"),
            alt.Tooltip("events_per_second_q3:Q", title="upper quartile", format=",.4~g"),
            alt.Tooltip("peak_bytes:Q", title="peak bytes", format=",.4~s"),
            alt.Tooltip("matches:Q", format=","),
        ],
    )

    def bars(column: str, title: str, unit: str, *, labels: bool) -> Any:
        y = alt.Y("series:N", sort=order, title=None, axis=alt.Axis(labels=labels, ticks=False))
        return base.mark_bar().encode(
            x=alt.X(
                f"{column}:Q", title=title, axis=alt.Axis(labelExpr=prefixed(unit), tickCount=5)
            ),
            y=y,
        )

    speed = bars("events_per_second", "events per second, median", "1", labels=True)
    reach = base.mark_rule(color="#333333", strokeWidth=1.2).encode(
        x=alt.X("events_per_second_q1:Q", title="events per second, median"),
        x2="events_per_second_q3:Q",
        y=alt.Y("series:N", sort=order),
        color=alt.value("#333333"),
    )
    size = {"width": 300, "height": 20 * max(len(order), 1)}
    panels = [
        alt.layer(speed, reach).properties(title="Throughput (higher is better)", **size),
        bars("peak_bytes", "bytes", "B", labels=False).properties(
            title="Peak memory (lower is better)", **size
        ),
    ]
    failed = [f"{row.generator}: {row.status}" for row in plain.itertuples() if row.status != OK]
    subtitle = "; ".join(["lines: the middle half of the runs", *failed])
    title = alt.TitleParams("Every plan on the stream", subtitle=subtitle, anchor="start")
    return offline(alt.hconcat(*panels, title=title))
