"""Throughput against latency: a line a generator through its points for every α."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from cepbench.analysis.common_patterns import left_out_notes
from cepbench.errors import ExperimentError
from cepbench.figures.altair_panels import (
    colour_of,
    dash_of,
    joined_panels,
    kind_of_scale,
    layered_panel,
    picked,
    picker,
    shape_of,
)
from cepbench.figures.matplotlib_panels import (
    TEXT,
    distances_to_ends,
    panel_row,
    print_look,
    write_notes,
    write_title,
)
from cepbench.figures.offline import prefixed
from cepbench.figures.rows import LOG_SPREAD, series_of
from cepbench.figures.styles import series_labels, style_of
from cepbench.figures.vega import alt

#: Heading of the chart.
TRADE_OFF = "Throughput against latency; numbers are α (up and to the left is better)"


def static_throughput_against_latency(
    points: pd.DataFrame, *, statistic: str = "geometric mean"
) -> Figure:
    """A line for each generator through its points for every α.

    Parameters
    ----------
    points : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.figure_data.latency_points` returns it.
    statistic : str
        ``geometric mean``, ``median`` or ``mean``.

    Notes
    -----
    Source: [kolchinsky2018]_, Figure 8.
    """
    rows = trade_off(points, statistic)
    with print_look():
        figure, [axes] = panel_row(1, 7.4, 4.8)
        for label, generator, plans in series_of(rows):
            own = rows[rows["series"] == label].sort_values("alpha")
            style = style_of(generator, plans)
            axes.errorbar(
                own["latency_ms"], own["throughput"],
                distances_to_ends(own, "throughput", "throughput_low", "throughput_high"),
                distances_to_ends(own, "latency_ms", "low_ms", "high_ms"),
                color=style.colour, marker=style.mark.matplotlib, markersize=6, linewidth=1.4,
                linestyle=(0, style.dash) if style.dash else "solid", elinewidth=0.5, label=label,
            )  # fmt: skip
            for _, row in own.iterrows():
                axes.annotate(
                    row["label"], (row["latency_ms"], row["throughput"]), (5, 5), fontsize=TEXT,
                    textcoords="offset points", color=style.colour,
                )  # fmt: skip
        write_title(figure, TRADE_OFF)
        write_notes(figure, left_out_notes(rows))
        axes.set_xlabel(f"{statistic} of latency, milliseconds")
        axes.set_ylabel(f"{statistic} of throughput, events per second")
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        if needs_log_latency(rows):
            axes.set_xscale("log")
        axes.grid(True)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=5, fontsize=TEXT)
        return figure


def interactive_throughput_against_latency(
    points: pd.DataFrame, *, statistic: str = "geometric mean"
) -> alt.TopLevelMixin:
    """The chart of :func:`static_throughput_against_latency`, with tooltips."""
    rows = trade_off(points, statistic)
    pick = picker("all")
    columns = ["series", "alpha", "label", "throughput", "throughput_low", "throughput_high",
               "latency_ms", "low_ms", "high_ms"]  # fmt: skip
    far = needs_log_latency(rows)
    scale = alt.Scale(**kind_of_scale(far), padding=25)
    horizontal = f"{statistic} of latency, milliseconds"
    vertical = f"{statistic} of throughput, events per second"
    y = alt.Y("throughput:Q", title=vertical, scale=alt.Scale(zero=False, padding=20),
              axis=alt.Axis(labelExpr=prefixed("1")))  # fmt: skip
    base = alt.Chart(rows[columns]).encode(
        x=alt.X("latency_ms:Q", title=horizontal, scale=scale),
        color=colour_of(rows), opacity=picked(pick),
    )  # fmt: skip
    line = base.mark_line(strokeWidth=2).encode(y=y, order="alpha:Q", strokeDash=dash_of(rows))
    up = base.mark_rule(strokeWidth=0.8).encode(
        y=alt.Y("throughput_low:Q", title=vertical), y2="throughput_high:Q"
    )
    across = base.mark_rule(strokeWidth=0.8).encode(
        x=alt.X("low_ms:Q", title=horizontal), x2="high_ms:Q", y=y
    )
    marks = base.mark_point(filled=True, size=80, opacity=1).encode(
        y=y, shape=shape_of(rows),
        tooltip=[
            alt.Tooltip("series:N", title="plan generator"),
            alt.Tooltip("alpha:Q", title="α"),
            alt.Tooltip("throughput:Q", title="events per second", format=",.4~g"),
            alt.Tooltip("throughput_low:Q", title="95 % from", format=",.4~g"),
            alt.Tooltip("throughput_high:Q", title="to", format=",.4~g"),
            alt.Tooltip("latency_ms:Q", title="latency, ms", format=",.4~g"),
            alt.Tooltip("low_ms:Q", title="95 % from", format=",.4~g"),
            alt.Tooltip("high_ms:Q", title="to", format=",.4~g"),
        ],
    )  # fmt: skip
    text = base.mark_text(dx=8, dy=-8, align="left").encode(y=y, text="label:N")
    panel = layered_panel("", pick, line, up, across, marks, text).properties(width=560, height=340)
    return joined_panels([panel], TRADE_OFF, notes=left_out_notes(rows))


def trade_off(points: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Throughput and latency in milliseconds for each generator and α, labelled.

    Parameters
    ----------
    points : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.figure_data.latency_points` returns it.
    statistic : str
        ``geometric mean``, ``median`` or ``mean``.

    Raises
    ------
    ExperimentError
        If no latency was measured.
    """
    rows = points[(points["statistic"] == statistic) & points["latency"].notna()]
    if rows.empty:
        raise ExperimentError("no latency was measured; run the sweep with latency=True")
    rows = rows.assign(
        series=series_labels(rows),
        latency_ms=rows["latency"] * 1e3,
        low_ms=rows["latency_low"] * 1e3,
        high_ms=rows["latency_high"] * 1e3,
    ).sort_values("alpha", kind="stable")
    return rows.assign(label=_alphas_at_points(rows)).sort_index()


def _alphas_at_points(rows: pd.DataFrame) -> list[str]:
    """The α of each point; all of them at the first of points that lie on each other."""
    labels: list[str] = []
    first: dict[tuple[str, float, float], int] = {}
    for series, x, y, alpha in rows[["series", "latency_ms", "throughput", "alpha"]].itertuples(
        index=False
    ):
        place = first.setdefault((series, x, y), len(labels))
        if place < len(labels):
            labels[place] += f", {alpha:g}"
            labels.append("")
        else:
            labels.append(f"{alpha:g}")
    return labels


def needs_log_latency(rows: pd.DataFrame) -> bool:
    """Whether the latencies of :func:`trade_off` ask for a logarithmic axis."""
    low = rows["latency_ms"].min()
    return bool(low > 0 and rows["latency_ms"].max() / low > LOG_SPREAD)
