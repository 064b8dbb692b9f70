"""Which event of a pattern arrives last, as seen on the beginning of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from cepbench.costs.temporal import TemporalOrder
from cepbench.evaluators.detector import Detector
from cepbench.planners.generate import plan
from cepbench.statistics.model import Statistics
from cepbench.statistics.output_profiler import OutputProfiler
from cepbench.streams.event_stream import EventStream

if TYPE_CHECKING:
    from cepbench.patterns.model import Pattern

#: Matches that are enough to tell orders of arrival apart, and the most events looked at for them.
ENOUGH_MATCHES = 1_000
MOST_EVENTS = 100_000

_BATCH = 500


def expected_last(
    pattern: Pattern, stream: EventStream, statistics: Statistics
) -> list[str | None]:
    """The variable whose event most matches wait for, for each branch of a pattern.

    Parameters
    ----------
    pattern : Pattern
    stream : EventStream
        Read until :data:`ENOUGH_MATCHES` are found, or :data:`MOST_EVENTS` are seen.
    statistics : Statistics
        For the plans by which they are found.

    Returns
    -------
    list of (str or None)
        None where the pattern says by itself which event comes last. Where no match is seen, any
        order is as good as another, and the last variable that is written stands for it.

    Notes
    -----
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
