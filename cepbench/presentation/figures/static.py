"""Every chart for print (matplotlib) under its plain name; each is drawn in its own module."""

from __future__ import annotations

from cepbench.presentation.figures.averages import static_bars_by_group as bars_by_group
from cepbench.presentation.figures.averages import static_lines_by_setting as lines_by_setting
from cepbench.presentation.figures.averages import static_lines_by_size as lines_by_size
from cepbench.presentation.figures.cost_points import static_points_by_cost as points_by_cost
from cepbench.presentation.figures.gain_map import static_gain_map as gain_map
from cepbench.presentation.figures.matplotlib_panels import save_figure, show_figure
from cepbench.presentation.figures.q_errors import static_q_errors_by_events as q_errors_by_events
from cepbench.presentation.figures.q_errors import static_scatter_in_panels as scatter_in_panels
from cepbench.presentation.figures.ranges import static_ranges_by_factor as ranges_by_factor
from cepbench.presentation.figures.sweep_ratios import static_sweep_ratios as sweep_ratios
from cepbench.presentation.figures.trade_off import (
    static_throughput_against_latency as throughput_against_latency,
)

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
