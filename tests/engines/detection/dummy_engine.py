"""An engine in one file: every combination of events in a window is tried, without a plan."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import whole
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.protocol import Option, Task
from cepbench.engines.runs.result import Metrics
from cepbench.streams.event_stream import EventStream
from tests.naive.values import clause_true

#: What the class below is registered with.
DECLARED: dict[str, Any] = {
    "kinds": (),
    "without_plan": True,
    "constructs": ("SEQ", "AND", "nesting"),
    "strategies": ("any",),
    "options": {
        "windows": Option(1, partial(whole, least=1), "how long events are kept, in windows")
    },
    "latency": True,
    "source": "tests",
}


class EveryCombination:
    """A run: events of the last windows, each with its position and time."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._pattern = task.pattern
        self._before = task.pattern.structure.precedence()
        self._position = task.position
        self._kept: list[dict[str, Any]] = []
        self._tried = 0
        self._latencies: list[float] = []

    def push(self, batch: EventStream) -> pd.DataFrame:
        found: list[dict[str, int]] = []
        rows = batch.to_pandas().to_dict("records")
        for row, timestamp in zip(rows, batch.timestamps.tolist(), strict=True):
            began = time.perf_counter()
            event = {**row, "at": self._position, "timestamp": timestamp}
            keep = self._task.options["windows"] * self._pattern.window.length
            self._kept = [one for one in self._kept if timestamp - one["timestamp"] <= keep]
            known = len(found)
            for variable in self._pattern.positive:
                if variable.type in (None, event["type"]):
                    found += self._matches({variable.name: event})
            self._kept.append(event)
            self._position += 1
            self._latencies += [time.perf_counter() - began] * (len(found) - known)
        return pd.DataFrame(found, columns=list(self._pattern.positive_names))

    def _matches(self, bound: dict[str, Any]) -> Iterator[dict[str, int]]:
        """All ways to bind the other variables to events that came before."""
        self._tried += 1
        if not self._fits(bound):
            return
        missing = [v for v in self._pattern.positive if v.name not in bound]
        if not missing:
            yield {name: event["at"] for name, event in bound.items()}
        else:
            for event in self._kept:
                if missing[0].type in (None, event["type"]):
                    yield from self._matches({**bound, missing[0].name: event})

    def _fits(self, bound: dict[str, Any]) -> bool:
        events = list(bound.values())
        times = [event["timestamp"] for event in events]
        return (
            max(times) - min(times) <= self._pattern.window.length
            and len({event["at"] for event in events}) == len(events)
            and all(
                bound[x]["timestamp"] < bound[y]["timestamp"]
                for x, y in self._before
                if x in bound and y in bound
            )
            and all(
                clause_true(clause, bound)
                for clause in self._pattern.conditions
                if set(clause.variables) <= set(bound)
            )
        )

    def finish(self) -> int:
        return 0

    def metrics(self) -> Metrics:
        latency = Latency.of(np.array(self._latencies)) if self._task.latency else None
        return Metrics(
            peak_buffered_events=len(self._kept), latency=latency, details={"tried": self._tried}
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        state = json.dumps([self._kept, self._tried], default=str)
        return {"state": np.frombuffer(state.encode(), np.uint8)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self._kept, self._tried = json.loads(state["state"].tobytes())
