"""Throughput against latency: a line a generator through its points for every α."""

from __future__ import annotations

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.common_patterns import left_out_notes
from cepbench.presentation.figures.chart import Axis, Chart, Marks, Panel, Tip
from cepbench.presentation.figures.rows import (
    APART,
    LOG_SPREAD,
    axis_around,
    log_ticks,
    looks_of,
    with_series,
)

#: With several panels an axis is logarithmic beyond this ratio: in a linear one the panel of the
#: smaller values would be a spot.
_SPREAD_OF_PANELS = 4.0

_STATISTIC = "geometric mean"


def throughput_against_latency(points: pd.DataFrame) -> Chart:
    """A line for each generator through its points for every α, in a panel for each regime.

    ``points`` is as :func:`cepbench.experiments.studies.kolchinsky2018.figure_data.latency_points`
    returns it.

    Source: [kolchinsky2018]_, Figure 8.
    """
    rows = trade_off(points)
    tips = [
        Tip("series:N", "plan generator"),
        Tip("alpha:Q", "α"),
        Tip("throughput:Q", "events per second", ",.4~g"),
        Tip("throughput_low:Q", "95 % from", ",.4~g"),
        Tip("throughput_high:Q", "to", ",.4~g"),
        Tip("latency_ms:Q", "latency, ms", ",.4~g"),
        Tip("low_ms:Q", "95 % from", ",.4~g"),
        Tip("high_ms:Q", "to", ",.4~g"),
    ]
    across, up = ("low_ms", "high_ms"), ("throughput_low", "throughput_high")
    columns = ["series", "alpha", "label", "throughput", *up, "latency_ms", *across]
    panels = [
        Panel(0, column, [str(apart)], [
            Marks(part[columns], "latency_ms", "throughput", looks_of(part), x_ends=across, y_ends=up,
                  size=6, joined=True, order="alpha", text="label", tips=tips),
        ], x=_axis(part, f"{_STATISTIC} of latency, milliseconds", "latency_ms", *across))
        for column, (apart, part) in enumerate(rows.groupby("panel", sort=False))
    ]  # fmt: skip
    return Chart(
        "Throughput against latency; numbers are α (up and to the left is better)", Axis(),
        _axis(rows, f"{_STATISTIC} of throughput, events per second", "throughput", *up, unit="1"),
        panels, notes=left_out_notes(rows), size=(420, 370),
    )  # fmt: skip


def _axis(rows: pd.DataFrame, title: str, name: str, *ends: str, unit: str = "") -> Axis:
    """The axis of a column with these ends of intervals, in all panels of the rows."""
    low, high = rows[name].min(), rows[name].max()
    most = LOG_SPREAD if rows["panel"].nunique() == 1 else _SPREAD_OF_PANELS
    log = bool(low > 0 and high / low > most)
    return axis_around(title, rows[[name, *ends]], unit, log=log, ticks=log_ticks)


def trade_off(points: pd.DataFrame) -> pd.DataFrame:
    """Throughput and latency in milliseconds for each generator and α, labelled.

    An ExperimentError if no latency was measured.
    """
    rows = points[(points["statistic"] == _STATISTIC) & points["latency"].notna()]
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


def _alphas_at_points(rows: pd.DataFrame) -> pd.Series:
    """The least and the largest α of each line; all of them at the first of points that lie on each other."""
    line = ["panel", "series"]
    place = [*line, "latency_ms", "throughput"]
    listed = rows.groupby(place, dropna=False)["alpha"].transform(
        lambda its: ", ".join(map("{:g}".format, its))
    )
    of_line = rows.groupby(line)["alpha"]
    at_end = (rows["alpha"] == of_line.transform("min")) | (
        rows["alpha"] == of_line.transform("max")
    )
    shown = at_end.groupby([rows[name] for name in place], dropna=False).transform("any")
    return listed.where(shown & ~rows.duplicated(place), "")
