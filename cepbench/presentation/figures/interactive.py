"""Every chart for the screen (altair) under its plain name; each is drawn in its own module."""

from __future__ import annotations

from cepbench.presentation.figures.averages import interactive_bars_by_group as bars_by_group
from cepbench.presentation.figures.averages import interactive_lines_by_setting as lines_by_setting
from cepbench.presentation.figures.averages import interactive_lines_by_size as lines_by_size
from cepbench.presentation.figures.cost_points import interactive_points_by_cost as points_by_cost
from cepbench.presentation.figures.gain_map import interactive_gain_map as gain_map
from cepbench.presentation.figures.q_errors import (
    interactive_q_errors_by_events as q_errors_by_events,
)
from cepbench.presentation.figures.q_errors import (
    interactive_scatter_in_panels as scatter_in_panels,
)
from cepbench.presentation.figures.ranges import interactive_ranges_by_factor as ranges_by_factor
from cepbench.presentation.figures.sweep_ratios import interactive_sweep_ratios as sweep_ratios
from cepbench.presentation.figures.trade_off import (
    interactive_throughput_against_latency as throughput_against_latency,
)

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
