"""Aggregation under ORDER BY arrival: a run in the order of time, on stamped events.

See :mod:`cepbench.streams.arrival`. Rows have the timestamps of events, not their stamps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cepbench.engines.aggregation.protocol import AggregateMetrics, AggregationTask, Row
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.detection.arrival import StampedRun
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream


def by_arrival(opener: Callable[..., Any], *tasks: AggregationTask) -> Any:
    """Open tasks of one order, under ORDER BY arrival as tasks in the order of time."""
    if tasks[0].pattern.order == "time":
        return opener(*tasks)
    return ArrivalAggregation(opener, *tasks)


class ArrivalAggregation(StampedRun):
    """A run by a run in the order of time; see :class:`cepbench.engines.aggregation.protocol.AggregationRun`.

    ``opener`` opens the other one for tasks in the order of time.
    """

    SAVED = ("_run",)

    def __init__(self, opener: Callable[..., Any], *tasks: AggregationTask) -> None:
        self._opener, self._tasks = opener, tasks
        self._patterns = [task.pattern for task in tasks]
        self._clock = ArrivalClock.live(self._patterns, asked=True)
        self._run = self._opened(self._clock)

    def _opened(self, clock: ArrivalClock) -> Any:
        clock.check_windows(self._patterns)
        return self._opener(
            *(replace(its, pattern=clock.pattern(its.pattern)) for its in self._tasks)
        )

    def push(self, batch: EventStream) -> Any:
        """The rows of the next events."""
        stamped, after = self._stamped(batch)
        rows = self._run.push(stamped)
        self._clock = after
        return _with_times(rows, after.times)

    def _begin(self, batch: EventStream) -> None:
        self._resume(ArrivalClock.live(self._patterns, batch, asked=True))

    def _resume(self, clock: ArrivalClock) -> None:
        if not clock.is_like(self._clock):
            self._run = self._opened(clock)
        self._clock = clock

    def value(self, time: int) -> Any:
        """The values at a time."""
        rows = self._run.value(self._clock.asked(time, self._patterns[0].window))
        return _with_times(rows, lambda stamps: np.full_like(stamps, time))

    def metrics(self) -> AggregateMetrics:
        """Those of the other run."""
        found: AggregateMetrics = self._run.metrics()
        return found


def _with_times(rows: Any, times: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Rows, or those of each query, with the timestamps of their stamps."""
    if isinstance(rows, Mapping):
        return {query: _with_times(its, times) for query, its in rows.items()}
    if isinstance(rows, Rows):
        return replace(rows, times=times(rows.times))
    known = times(np.array([row.time for row in rows], np.int64)).tolist()
    return [Row(*row)._replace(time=time) for row, time in zip(rows, known, strict=True)]
