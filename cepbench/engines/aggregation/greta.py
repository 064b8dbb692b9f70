"""GRETA: counts by event, for conditions between neighbouring events of a match.

Source: [poppe2017]_, sections 4 to 6. See :mod:`cepbench.engines.aggregation.kernels.event_graph.advance`.

Each event of the window is a node with the number of histories that end in it, for each active first
event (START): for n events and k STARTs an event takes O(n k) at most, and the window O(n k) space,
where A-Seq takes O(k), and two-step the number of matches.

Differs from the paper: any SEQ instead of trends of one type; counts by START, so that the window
slides with each event; NOT forbids edges between the nodes around it.
"""

from __future__ import annotations

from functools import cache

import pandas as pd

from cepbench.engines.aggregation.counting import CountingRun
from cepbench.engines.aggregation.event_graphs import CountedGraph, graph_layout
from cepbench.engines.aggregation.protocol import AggregationMethod, AggregationTask
from cepbench.engines.aggregation.sequences import check_items, counted_layout
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream


class GraphRun(CountingRun):
    """A run of ``greta``."""

    def __init__(self, task: AggregationTask) -> None:
        super().__init__(task, "greta", by_start=True)

    def _compiled(self, name: str, *, by_start: bool) -> CountedGraph:
        pattern = check_items(self._task, name)
        layout, graph = counted_layout(pattern, self._reader, name, graph_layout)
        return CountedGraph(pattern, layout, graph, self._task.scope)


def _open(task: AggregationTask) -> GraphRun:
    run = GraphRun(task)
    warm_up()
    return run


GRETA = AggregationMethod("greta", _open, source="[poppe2017]_, sections 4 to 6")


@cache
def warm_up() -> None:
    """Compile the kernels of integers, of large ones and of floats, or load them from the disk cache."""
    events = pd.DataFrame({"type": list("AAAABB"), "time": range(6), "v": 2**62, "x": 0.5})
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x <= b.x AGG SUM(a.v), SUM(a.x) WITHIN 9 units")
    run = GraphRun(AggregationTask(pattern, "trigger", "window"))
    run.push(EventStream.from_pandas(events, type="type", time="time"))
    run.value(6)
