"""One chart of each kind that pages show, with as much in it as the fullest real one."""

from __future__ import annotations

from typing import Any

import pandas as pd

import cepbench as cep
from cepbench.experiments.analysis.cost_fit import cost_fit
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.presentation.comparison.bars import comparison_bars
from cepbench.presentation.exploration.rates_chart import rates_chart
from cepbench.presentation.figures import interactive
from cepbench.presentation.figures.q_errors import Axis
from tests.drawn_events import drawn_events
from tests.presentation.exploration.test_timeline import PATTERNS, found_in, stream_of
from tests.presentation.figures.test_figures import OURS, failed, plans_of, summary_of, trade_offs
from tests.presentation.figures.test_q_error_charts import LOOK, POINTS, SUMMARY
from tests.presentation.figures.test_ranges import by_size
from tests.presentation.figures.test_ranges import summary_of as ranges_of
from tests.presentation.figures.test_sweep_ratios import grouped_ratios

EVERY = {name: one.kind for name, one in PLAN_GENERATORS.items() if one.is_builtin}


#: Counts of sets, on a logarithmic axis, and missing averages.
AGGREGATED = (
    "PATTERN SEQ(A a, KL(B b), C c) GROUP BY venue AGG COUNT, AVG(b.price) WITHIN 9 minutes"
)


def every_chart() -> dict[str, Any]:
    """What it is → the chart."""
    summary = summary_of(EVERY | {"MY-OWN-IDEA": "order"})
    trees = summary_of({name: kind for name, kind in EVERY.items() if kind == "tree"})
    points = plans_of(EVERY)
    stream = stream_of(300)
    pattern, _ = found_in(stream, PATTERNS["sequence"])
    plan = cep.plan(pattern, cep.measure_statistics(pattern, stream))
    result = cep.evaluate(pattern, stream, plan)
    comparison = cep.compare(
        pattern,
        stream,
        generators=["TRIVIAL", "EFREQ", "GREEDY", "DP-LD", "DP-B"],
        repetitions=1,
        seconds=0,
    )
    axes = Axis("measured", "measured"), Axis("estimated", "estimated")
    sizes = [*range(3, 23)]
    return {
        "bars": interactive.bars_by_group(summary, "events_per_second"),
        "rows of one panel": interactive.bars_by_group(
            pd.concat([trees.assign(regime=regime) for regime in ("sparse", "dense")]),
            "events_per_second",
        ),
        "failures": interactive.bars_by_group(failed(summary), "events_per_second"),
        "marks": interactive.bars_by_group(summary_of(EVERY, 1e6), "events_per_second"),
        "memory": interactive.bars_by_group(summary_of(OURS, metric="peak_bytes"), "peak_bytes"),
        "ratios": interactive.lines_by_size(
            summary.assign(statistic="ratio"), "events_per_second", "sequence", statistic="ratio"
        ),
        "sizes": interactive.lines_by_size(
            by_size(sizes, "plan_seconds"), "plan_seconds", "sequence"
        ),
        "far": interactive.lines_by_size(
            by_size([*sizes, 50, 100, 200], "distance"), "distance", "sequence"
        ),
        "points": interactive.points_by_cost(
            points, cost_fit(points, resamples=20), "events_per_second"
        ),
        "trade-off": interactive.throughput_against_latency(trade_offs()),
        "ranges": interactive.ranges_by_factor(ranges_of((1.0, 2.0, 5.0, 10.0, 100.0)), "regret"),
        "q-errors": interactive.q_errors_by_events(SUMMARY),
        "scatter": interactive.scatter_in_panels(
            POINTS, *axes, **LOOK, diagonal=True, label="name"
        ),
        "two sweeps": interactive.sweep_ratios(grouped_ratios(), "events_per_second"),
        "rates": rates_chart(rates_of_days()),
        "comparison": comparison_bars(comparison),
        "values": cep.value_series(cep.aggregate(AGGREGATED, stream)),
        "timeline": cep.match_timeline(stream, result, pattern, highlight=1),
    }


def rates_of_days() -> pd.DataFrame:
    """Rates of eight types on two days; between them and in one interval nothing arrives."""
    frame = drawn_events(4000, [f"SYMBOL-{k}" for k in range(8)], seed=1, seconds=23_400)
    frame.loc[2000:, "time"] += pd.Timedelta(days=1)
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    return cep.rates_over_time(stream, every="20 minutes")
