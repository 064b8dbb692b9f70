"""Every plan of a comparison on a stream: throughput and peak memory side by side."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cepbench.experiments.sweeps.cells import OK
from cepbench.presentation.figures.altair_panels import interactive_chart
from cepbench.presentation.figures.chart import Axis, Chart, Marks, Panel, Tip
from cepbench.presentation.figures.rows import axis_from_zero
from cepbench.presentation.figures.styles import series_labels, style_of
from cepbench.presentation.figures.vega import alt


def comparison_bars(comparison: pd.DataFrame) -> alt.TopLevelMixin:
    """Throughput and peak memory of each plan, or method, in what ``cep.compare`` returns, side by side.

    Runs that did not end well are named in the subtitle.
    """
    plain = pd.DataFrame(comparison)
    kind = next(name for name in ("generator", "planner", "method") if name in plain)
    of_plans: dict[str, Any] = {
        "generator": plain[kind],
        "plan_kind": "none",
        "evaluator": "",
        "plan": "",
    }
    plain = plain.assign(**{name: its for name, its in of_plans.items() if name not in plain})
    rows = plain[plain["status"] == OK]
    rows = rows.assign(series=series_labels(rows))
    named = rows[["series", "generator", "plan_kind"]].itertuples(index=False)
    looks = {label: style_of(generator, plans) for label, generator, plans in named}
    quartiles = tuple(
        name for name in ("events_per_second_q1", "events_per_second_q3") if name in rows
    )
    found = "values" if kind == "method" else "matches"
    data = rows[["series", "plan", "events_per_second", *quartiles, "peak_bytes", found]]
    tips = [
        Tip("series:N", "plan generator" if kind == "generator" else kind),
        Tip("plan:N"),
        Tip("events_per_second:Q", "events per second", ",.4~g"),
        *(
            Tip(f"{name}:Q", f"{which} quartile", ",.4~g")
            for name, which in zip(quartiles, ("lower", "upper"), strict=False)
        ),
        Tip("peak_bytes:Q", "peak bytes", ",.4~s"),
        Tip(f"{found}:Q", format=","),
    ]
    panels = [
        Panel(0, column, [heading], [
            Marks(data, name, "series", looks, form="bar", x_ends=ends, tips=tips),
        ], x=axis_from_zero(title, data[[name, *ends]], unit))
        for column, (name, ends, heading, title, unit) in enumerate((
            ("events_per_second", quartiles, "Throughput (higher is better)",
             "events per second, median", "1"),
            ("peak_bytes", (), "Peak memory (lower is better)", "bytes", "B"),
        ))
    ]  # fmt: skip
    failed = [f"{row.generator}: {row.status}" for row in plain.itertuples() if row.status != OK]
    lines = ["lines: the middle half of the runs"] if quartiles else []
    chart = Chart(
        f"Every {'method' if kind == 'method' else 'plan'} on the stream",
        Axis(), Axis(names=tuple(looks)), panels, legend="",
        explained="; ".join([*lines, *failed]),
        size=(300, 20 * max(len(looks), 1)),
    )  # fmt: skip
    return interactive_chart(chart)
