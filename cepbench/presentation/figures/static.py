"""Every chart for print (matplotlib) under its plain name; each is built in its own module."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from matplotlib.figure import Figure

from cepbench.presentation.figures import averages, cost_points, q_errors, ranges, trade_off
from cepbench.presentation.figures import gain_map as gains
from cepbench.presentation.figures import sweep_ratios as sweeps
from cepbench.presentation.figures.chart import Chart
from cepbench.presentation.figures.matplotlib_panels import (
    save_figure,
    show_figure,
    static_chart,
)

_P = ParamSpec("_P")

__all__ = [
    "bars_by_group",
    "gain_map",
    "lines_by_setting",
    "lines_by_size",
    "points_by_cost",
    "q_errors_by_events",
    "ranges_by_factor",
    "save_figure",
    "scatter_in_panels",
    "show_figure",
    "sweep_ratios",
    "throughput_against_latency",
]


def _printed(build: Callable[_P, Chart]) -> Callable[_P, Figure]:
    """The function that builds a chart as one that draws it for print."""

    @wraps(build)
    def draw(*given: _P.args, **named: _P.kwargs) -> Figure:
        return static_chart(build(*given, **named))

    return draw


bars_by_group = _printed(averages.bars_by_group)
gain_map = _printed(gains.gain_map)
lines_by_setting = _printed(averages.lines_by_setting)
lines_by_size = _printed(averages.lines_by_size)
points_by_cost = _printed(cost_points.points_by_cost)
q_errors_by_events = _printed(q_errors.q_errors_by_events)
ranges_by_factor = _printed(ranges.ranges_by_factor)
scatter_in_panels = _printed(q_errors.scatter_in_panels)
sweep_ratios = _printed(sweeps.sweep_ratios)
throughput_against_latency = _printed(trade_off.throughput_against_latency)
