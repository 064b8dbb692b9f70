"""All plan generators side by side on one pattern and one stream."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cepbench.experiments.cells import OK, check_agreement, results_frame
from cepbench.experiments.measure import measure_pattern
from cepbench.experiments.workload import PatternSpec
from cepbench.patterns.model import Pattern
from cepbench.planners.registry import PLAN_GENERATORS, PlanGenerator
from cepbench.statistics.measure import measure_statistics
from cepbench.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

#: Columns of the comparison, in order.
COLUMNS = (
    "algorithm",
    "plans",
    "evaluator",
    "plan",
    "cost",
    "plan_seconds",
    "events_per_second",
    "events_per_second_min",
    "events_per_second_max",
    "peak_partial_matches",
    "peak_bytes",
    "comparisons",
    "matches",
    "status",
    "reason",
)


def compare(
    pattern: Pattern,
    stream: EventStream,
    *,
    statistics: Statistics | None = None,
    generators: Sequence[str | PlanGenerator] | None = None,
    evaluators: Sequence[str] | None = None,
    repetitions: int = 3,
    seed: int = 0,
    time_selectivity: str = "adjacent",
    partial_match_limit: int | None = None,
    output: str = "count",
) -> pd.DataFrame:
    """Plan a pattern with every plan generator and run every plan on the stream.

    Parameters
    ----------
    pattern : Pattern
    stream : EventStream
    statistics : Statistics, optional
        What plans are made from; measured on the stream if not given.
    generators : sequence of str or PlanGenerator, optional
        Such as names in ``cep.PLAN_GENERATORS``; by default all that are registered, a user's own too.
    evaluators : sequence of str, optional
        See :func:`cepbench.experiments.measure.cells_of`.
    repetitions : int
        Runs of each plan, after a warm-up.
    seed : int
        Of statistics and of plan generators that draw at random.
    time_selectivity : str
        See :func:`cepbench.planners.generate.plan`.
    partial_match_limit : int, optional
        A run that stores more partial matches stops, and its row says so.
    output : str
        ``count`` only counts matches, ``matches`` also builds them.

    Returns
    -------
    DataFrame
        One row a generator (and evaluator), as registered: the plan, its estimated ``cost``,
        ``plan_seconds`` to make it, median, least and most ``events_per_second``, peaks (number
        and bytes), ``comparisons``, ``matches``; ``status`` is ``ok``, or says with ``reason``
        why there are no figures.

    Raises
    ------
    PlanGeneratorError
        If a generator is unknown.
    ExperimentError
        If an evaluator is unknown, or two runs found different numbers of matches.
    """
    if statistics is None:
        statistics = measure_statistics(pattern, stream, seed=seed)
    spec = PatternSpec("pattern", str(pattern.operator), len(pattern.names), str(pattern), seed)
    rows = results_frame(
        measure_pattern(
            spec,
            stream,
            statistics,
            list(PLAN_GENERATORS) if generators is None else generators,
            evaluators=evaluators,
            repetitions=repetitions,
            seed=seed,
            time_selectivity=time_selectivity,
            partial_match_limit=partial_match_limit,
            output=output,
        )
    )
    check_agreement(rows)
    table = [_side(runs) for _, runs in rows.groupby(["algorithm", "evaluator"], sort=False)]
    return pd.DataFrame(table, columns=list(COLUMNS))


def _side(runs: pd.DataFrame) -> dict[str, object]:
    """One row of the comparison from all repetitions of one plan in one evaluator."""
    failed = runs[runs["status"] != OK]
    shown = runs.iloc[0] if failed.empty else failed.iloc[0]
    row: dict[str, object] = {name: shown[name] for name in COLUMNS if name in runs}
    row["cost"] = shown["plan_cost"]
    if failed.empty:
        speeds = runs["events_per_second"]
        row["events_per_second"] = speeds.median()
        row["events_per_second_min"] = speeds.min()
        row["events_per_second_max"] = speeds.max()
    return row
