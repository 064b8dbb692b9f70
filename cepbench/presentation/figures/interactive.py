"""Every chart to point at (altair) under its plain name; each is built in its own module."""

from __future__ import annotations

from cepbench.presentation.figures import averages, cost_points, q_errors, ranges, trade_off
from cepbench.presentation.figures import gain_map as gains
from cepbench.presentation.figures import over_time as curves
from cepbench.presentation.figures import printed as with_printed
from cepbench.presentation.figures import sweep_ratios as sweeps
from cepbench.presentation.figures.altair_panels import interactive_chart
from cepbench.presentation.figures.chart import drawn_by

bars_by_group = drawn_by(interactive_chart, averages.bars_by_group)
gain_map = drawn_by(interactive_chart, gains.gain_map)
lines_by_setting = drawn_by(interactive_chart, averages.lines_by_setting)
lines_by_size = drawn_by(interactive_chart, averages.lines_by_size)
lines_with_printed = drawn_by(interactive_chart, with_printed.lines_with_printed)
points_by_cost = drawn_by(interactive_chart, cost_points.points_by_cost)
q_errors_by_events = drawn_by(interactive_chart, q_errors.q_errors_by_events)
ranges_by_factor = drawn_by(interactive_chart, ranges.ranges_by_factor)
results_over_time = drawn_by(interactive_chart, curves.results_over_time)
scatter_in_panels = drawn_by(interactive_chart, q_errors.scatter_in_panels)
sweep_ratios = drawn_by(interactive_chart, sweeps.sweep_ratios)
throughput_against_latency = drawn_by(interactive_chart, trade_off.throughput_against_latency)
