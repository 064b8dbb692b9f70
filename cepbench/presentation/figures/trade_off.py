"""Throughput against latency: a line a generator through its points for every α."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.common_patterns import left_out_notes
from cepbench.presentation.figures.altair_panels import (
    colour_of,
    dash_of,
    joined_panels,
    kind_of_scale,
    layered_panel,
    picked,
    picker,
    shape_of,
)
from cepbench.presentation.figures.matplotlib_panels import (
    TEXT,
    distances_to_ends,
    log_axis,
    panel_row,
    print_look,
    write_notes,
    write_title,
)
from cepbench.presentation.figures.offline import prefixed
from cepbench.presentation.figures.rows import APART, LOG_SPREAD, log_ticks, series_of, with_series
from cepbench.presentation.figures.styles import style_of
from cepbench.presentation.figures.vega import alt

#: Heading of the chart.
TRADE_OFF = "Throughput against latency; numbers are α (up and to the left is better)"


def static_throughput_against_latency(
    points: pd.DataFrame, *, statistic: str = "geometric mean"
) -> Figure:
    """A line for each generator through its points for every α, in a panel for each regime.

    Parameters
    ----------
    points : DataFrame
        As :func:`cepbench.experiments.studies.kolchinsky2018.figure_data.latency_points` returns it.
    statistic : str
        ``geometric mean``, ``median`` or ``mean``.

    Notes
    -----
    Source: [kolchinsky2018]_, Figure 8.
    """
    rows = trade_off(points, statistic)
    parts = dict(list(rows.groupby("panel", sort=False)))
    with print_look():
        figure, panels = panel_row(len(parts), 1.8 + 5.6 * len(parts), 4.8, sharex=True)
        for axes, (apart, part) in zip(panels, parts.items(), strict=True):
            for label, generator, plans in series_of(part):
                own = part[part["series"] == label].sort_values("alpha")
                style = style_of(generator, plans)
                axes.errorbar(
                    own["latency_ms"], own["throughput"],
                    distances_to_ends(own, "throughput", "throughput_low", "throughput_high"),
                    distances_to_ends(own, "latency_ms", "low_ms", "high_ms"),
                    color=style.colour, marker=style.mark.matplotlib, markersize=6, linewidth=1.4,
                    linestyle=(0, style.dash) if style.dash else "solid", elinewidth=0.5,
                    label=label,
                )  # fmt: skip
                for _, row in own.iterrows():
                    axes.annotate(
                        row["label"], (row["latency_ms"], row["throughput"]), (5, 5), fontsize=TEXT,
                        textcoords="offset points", color=style.colour,
                    )  # fmt: skip
            axes.set_title(str(apart))
            axes.set_xlabel(f"{statistic} of latency, milliseconds")
            axes.grid(True)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, fontsize=TEXT)
        write_title(figure, TRADE_OFF)
        write_notes(figure, left_out_notes(rows))
        panels[0].set_ylabel(f"{statistic} of throughput, events per second")
        if _is_far(rows, "throughput"):
            log_axis(panels[0], "y", _ticks(rows, "throughput_low", "throughput_high"))
        if _is_far(rows, "latency_ms"):
            for axes in panels:
                log_axis(axes, "x", _ticks(rows, "low_ms", "high_ms"))
        panels[0].yaxis.set_major_formatter(EngFormatter(sep=" "))
        return figure


def interactive_throughput_against_latency(
    points: pd.DataFrame, *, statistic: str = "geometric mean"
) -> alt.TopLevelMixin:
    """The chart of :func:`static_throughput_against_latency`, with tooltips."""
    rows = trade_off(points, statistic)
    columns = ["series", "alpha", "label", "throughput", "throughput_low", "throughput_high",
               "latency_ms", "low_ms", "high_ms"]  # fmt: skip
    # The same ends in all panels.
    ends = [
        [float(rows[low].min()), float(rows[high].max())]
        for low, high in (("low_ms", "high_ms"), ("throughput_low", "throughput_high"))
    ]
    of_latency, of_throughput = (
        alt.Scale(**kind_of_scale(_is_far(rows, name)), domain=its, padding=20, nice=False)
        for name, its in zip(("latency_ms", "throughput"), ends, strict=True)
    )
    horizontal = f"{statistic} of latency, milliseconds"
    vertical = f"{statistic} of throughput, events per second"
    y = alt.Y("throughput:Q", title=vertical, scale=of_throughput,
              axis=alt.Axis(labelExpr=prefixed("1"), tickCount=6))  # fmt: skip
    panels = []
    for number, (apart, part) in enumerate(rows.groupby("panel", sort=False)):
        pick = picker(f"all_{number}" if number else "all")
        base = alt.Chart(part[columns]).encode(
            x=alt.X("latency_ms:Q", title=horizontal, scale=of_latency),
            color=colour_of(part), opacity=picked(pick),
        )  # fmt: skip
        line = base.mark_line(strokeWidth=2).encode(y=y, order="alpha:Q", strokeDash=dash_of(part))
        up = base.mark_rule(strokeWidth=0.8).encode(
            y=alt.Y("throughput_low:Q", title=vertical), y2="throughput_high:Q"
        )
        across = base.mark_rule(strokeWidth=0.8).encode(
            x=alt.X("low_ms:Q", title=horizontal), x2="high_ms:Q", y=y
        )
        marks = base.mark_point(filled=True, size=80, opacity=1).encode(
            y=y, shape=shape_of(part),
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
        layers = (line, up, across, marks, text)
        panels.append(layered_panel(str(apart), pick, *layers).properties(width=420, height=340))
    return joined_panels(panels, TRADE_OFF, notes=left_out_notes(rows))


def trade_off(points: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Throughput and latency in milliseconds for each generator and α, labelled.

    Raises
    ------
    ExperimentError
        If no latency was measured.
    """
    rows = points[(points["statistic"] == statistic) & points["latency"].notna()]
    if rows.empty:
        raise ExperimentError("no latency was measured; run the sweep with latency=True")
    rows = (
        with_series(rows, APART)
        .assign(
            latency_ms=rows["latency"] * 1e3,
            low_ms=rows["latency_low"] * 1e3,
            high_ms=rows["latency_high"] * 1e3,
        )
        .sort_values("alpha", kind="stable")
    )
    return rows.assign(label=_alphas_at_points(rows)).sort_index()


def _alphas_at_points(rows: pd.DataFrame) -> list[str]:
    """The α of each point; all of them at the first of points that lie on each other."""
    labels: list[str] = []
    first: dict[tuple[str, str, float, float], int] = {}
    columns = ["panel", "series", "latency_ms", "throughput", "alpha"]
    for panel, series, x, y, alpha in rows[columns].itertuples(index=False):
        place = first.setdefault((panel, series, x, y), len(labels))
        if place < len(labels):
            labels[place] += f", {alpha:g}"
            labels.append("")
        else:
            labels.append(f"{alpha:g}")
    return labels


#: With several panels an axis is logarithmic beyond this ratio: in a linear one the panel of the
#: smaller values would be a spot.
_SPREAD_OF_PANELS = 4.0


def _is_far(rows: pd.DataFrame, name: str) -> bool:
    """Whether a column of :func:`trade_off` asks for a logarithmic axis."""
    low, high = rows[name].min(), rows[name].max()
    most = LOG_SPREAD if rows["panel"].nunique() == 1 else _SPREAD_OF_PANELS
    return bool(low > 0 and high / low > most)


def _ticks(rows: pd.DataFrame, low: str, high: str) -> list[float]:
    return log_ticks(float(rows[low].min()), float(rows[high].max()))
