"""The event of a pattern that arrives last, measured on the beginning of a stream."""

from __future__ import annotations

import pandas as pd

from cepbench.engines.detection.detector import Detector
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.temporal import TemporalOrder
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.statistics.output_profiler import OutputProfiler
from cepbench.streams.event_stream import EventStream

#: Matches from which orders of arrival are compared, and the most events read for them.
ENOUGH_MATCHES = 1_000
MOST_EVENTS = 100_000

_BATCH = 500


def expected_last(
    pattern: Pattern, stream: EventStream, statistics: Statistics
) -> list[str | None]:
    """The variable whose event completes most matches, for each branch of a pattern.

    None if the pattern alone determines the last event. Without any match it is the last variable
    in the pattern's text.

    ``stream``: read until :data:`ENOUGH_MATCHES` are found, or :data:`MOST_EVENTS` are seen.
    ``statistics``: for the plans of these runs.

    Source: [kolchinsky2018]_, section 5.1.
    """
    return [_last(branch, stream, statistics) for branch in pattern.branches()]


def _last(branch: Pattern, stream: EventStream, statistics: Statistics) -> str | None:
    possible = TemporalOrder(branch).latest()
    if len(possible) == 1:
        return None
    profiler = OutputProfiler(branch)
    (found_plan,) = plan(branch, statistics, "GREEDY").parts
    detector = Detector(branch, found_plan)
    for batch in stream[:MOST_EVENTS].batches(_BATCH):
        found = detector.push(batch)
        assert isinstance(found, pd.DataFrame)
        profiler.add(found)
        if profiler.matches_seen >= ENOUGH_MATCHES:
            break
    return str(profiler.last_variable) if profiler.matches_seen else possible[-1]
