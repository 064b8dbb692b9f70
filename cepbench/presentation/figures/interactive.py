"""Every chart to point at (altair) under its plain name; each is built in its own module."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from cepbench.presentation.figures import averages, cost_points, q_errors, ranges, trade_off
from cepbench.presentation.figures import gain_map as gains
from cepbench.presentation.figures import sweep_ratios as sweeps
from cepbench.presentation.figures.altair_panels import interactive_chart
from cepbench.presentation.figures.chart import Chart
from cepbench.presentation.figures.vega import alt

_P = ParamSpec("_P")

__all__ = [
    "bars_by_group",
    "gain_map",
    "lines_by_setting",
    "lines_by_size",
    "points_by_cost",
    "q_errors_by_events",
    "ranges_by_factor",
    "scatter_in_panels",
    "sweep_ratios",
    "throughput_against_latency",
]


def _drawn(build: Callable[_P, Chart]) -> Callable[_P, alt.TopLevelMixin]:
    """The function that builds a chart as one that draws it with tooltips."""

    @wraps(build)
    def draw(*given: _P.args, **named: _P.kwargs) -> alt.TopLevelMixin:
        return interactive_chart(build(*given, **named))

    return draw


bars_by_group = _drawn(averages.bars_by_group)
gain_map = _drawn(gains.gain_map)
lines_by_setting = _drawn(averages.lines_by_setting)
lines_by_size = _drawn(averages.lines_by_size)
points_by_cost = _drawn(cost_points.points_by_cost)
q_errors_by_events = _drawn(q_errors.q_errors_by_events)
ranges_by_factor = _drawn(ranges.ranges_by_factor)
scatter_in_panels = _drawn(q_errors.scatter_in_panels)
sweep_ratios = _drawn(sweeps.sweep_ratios)
throughput_against_latency = _drawn(trade_off.throughput_against_latency)
