"""An engine that gives graphs: SEQ of plain and Kleene items without conditions, skip till any."""

from __future__ import annotations

import numpy as np

from cepbench.engines.runs.kernels import graph as graphs
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.protocol import Evaluator, Task
from cepbench.engines.runs.result import Metrics
from cepbench.engines.runs.rooted_graph import RootedGraph
from cepbench.patterns.model import Kind, Pattern
from cepbench.streams.event_stream import EventStream


class _Branch:
    """The histories of one SEQ, by the item that they end with."""

    def __init__(self, pattern: Pattern) -> None:
        self.items = pattern.positive
        self.window = pattern.window.length
        self.graph = graphs.empty_graph()
        self.reached = [graphs.NONE] * len(self.items)
        self.earlier = list(self.reached)  # without the last timestamp's

    def _united(self, one: int, other: int) -> int:
        self.graph = graphs.with_room(self.graph, graphs.UNION_NODES)
        return int(graphs.add_union(self.graph, one, other))

    def _after(self, position: int, item: int, before: int, earliest: int) -> int:
        if not graphs.is_live(self.graph, before, earliest):
            return graphs.NONE
        self.graph = graphs.with_room(self.graph, 1)
        return int(graphs.add_event(self.graph, position, item, before))

    def event(self, position: int, name: str, earliest: int) -> int:
        """The node of the matches that an event completes."""
        ended = graphs.NONE
        own = [item for item, variable in enumerate(self.items) if variable.type == name]
        fresh = {}
        for item in own:
            if item:
                node = self._after(position, item, self.earlier[item - 1], earliest)
            else:
                self.graph = graphs.with_room(self.graph, 1)
                node = int(graphs.add_event(self.graph, position, 0, graphs.NONE))
            if self.items[item].kind is Kind.KLEENE:
                more = self._after(position, item, self.reached[item], earliest)
                node = self._united(node, more)
            fresh[item] = node
            if item == len(self.items) - 1:
                ended = node
        for item, node in fresh.items():
            self.reached[item] = self._united(node, self.reached[item])
        return ended


class GraphRun:
    """A run of the engine."""

    def __init__(self, task: Task) -> None:
        self._branches = [_Branch(branch) for branch in task.pattern.branches()]
        self._times: list[int] = []
        self._first = task.position

    def push(self, batch: EventStream) -> Found:
        """The matches that end in a batch."""
        roots: list[list[tuple[int, int, int]]] = [[] for _ in self._branches]
        for code, ts in zip(batch.type_codes, batch.timestamps.tolist(), strict=True):
            if self._times and ts > self._times[-1]:
                for branch in self._branches:
                    branch.earlier = list(branch.reached)
            position = self._first + len(self._times)
            self._times.append(ts)
            for number, branch in enumerate(self._branches):
                earliest = self._first + int(np.searchsorted(self._times, ts - branch.window))
                root = branch.event(position, batch.type_names[code], earliest)
                if root != graphs.NONE:
                    roots[number].append((root, earliest, ts))
        given = []
        for number, its in enumerate(roots):
            branch = self._branches[number]
            columns = np.array(its, np.int64).reshape(-1, 3).T
            given.append((number, RootedGraph.of(branch.graph, *columns)))
            bound = self._first + int(np.searchsorted(self._times, self._times[-1] - branch.window))
            graphs.reclaim(branch.graph, bound)
        return Found.of_graphs(given)

    def finish(self) -> Found:
        """No further matches."""
        return Found.of_graphs(())

    def metrics(self) -> Metrics:
        """No metrics."""
        return Metrics()


GRAPHS = Evaluator(
    "graphs",
    GraphRun,
    without_plan=True,
    constructs=("SEQ", "OR", "KL"),
    strategies=("any",),
    outputs=("compressed",),
)
