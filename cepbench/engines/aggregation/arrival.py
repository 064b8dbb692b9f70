"""Aggregation under ORDER BY arrival: a run in the order of time, on stamped events.

See :mod:`cepbench.streams.arrival`. Rows have the timestamps of events, not their stamps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from typing import Any

import numpy as np

from cepbench.engines.aggregation.protocol import AggregateMetrics, AggregationTask, Row
from cepbench.engines.aggregation.rows import Rows
from cepbench.state import Stateful
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream


def by_arrival(opener: Callable[..., Any], *tasks: AggregationTask) -> Any:
    """Open tasks of one order, under ORDER BY arrival as tasks in the order of time."""
    if tasks[0].pattern.order == "time":
        return opener(*tasks)
    return ArrivalAggregation(opener, *tasks)


class ArrivalAggregation(Stateful):
    """A run by a run in the order of time; see :class:`cepbench.engines.aggregation.protocol.AggregationRun`.

    ``opener`` opens the other one for tasks in the order of time.
    """

    SAVED = ("_stamped_by", "_run")

    def __init__(self, opener: Callable[..., Any], *tasks: AggregationTask) -> None:
        self._opener, self._tasks = opener, tasks
        self._patterns = [task.pattern for task in tasks]
        self._clock = ArrivalClock.live(self._patterns, asked=True)
        self._run = self._opened(self._clock)
        #: The next batch, with stamps, and the clock after it.
        self._prepared: tuple[EventStream, EventStream, ArrivalClock] | None = None

    def _opened(self, clock: ArrivalClock) -> Any:
        clock.check_windows(self._patterns)
        return self._opener(
            *(replace(its, pattern=clock.pattern(its.pattern)) for its in self._tasks)
        )

    def prepare(self, batch: EventStream) -> None:
        """Stamp the events of the next push; an error changes nothing.

        Raises
        ------
        StreamError
            If they cannot be stamped.
        """
        if self._clock.last is None:
            self._begin(ArrivalClock.live(self._patterns, batch, asked=True))
        self._prepared = batch, *self._clock.stamped(batch)

    def push(self, batch: EventStream) -> Any:
        """The rows of the next events."""
        if self._prepared is None or self._prepared[0] is not batch:
            self.prepare(batch)
        assert self._prepared is not None
        _, stamped, after = self._prepared
        self._prepared = None
        rows = self._run.push(stamped)
        self._clock = after
        return _with_times(rows, after.times)

    def _begin(self, clock: ArrivalClock) -> None:
        """Let a clock stamp the events, before the first one."""
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

    @property
    def _stamped_by(self) -> tuple[Any, ...]:
        return astuple(self._clock)

    @_stamped_by.setter
    def _stamped_by(self, clock: tuple[Any, ...]) -> None:
        self._begin(ArrivalClock(*clock))


def _with_times(rows: Any, times: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Rows, or those of each query, with the timestamps of their stamps."""
    if isinstance(rows, Mapping):
        return {query: _with_times(its, times) for query, its in rows.items()}
    if isinstance(rows, Rows):
        return replace(rows, times=times(rows.times))
    known = times(np.array([row.time for row in rows], np.int64)).tolist()
    return [Row(*row)._replace(time=time) for row, time in zip(rows, known, strict=True)]
