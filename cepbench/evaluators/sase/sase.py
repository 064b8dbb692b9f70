"""The engine of SASE+ with merged runs [agrawal2008]_, section 5.2.2.

The runs of an automaton that are in one state, and whose values V agree on all columns that are read
from there on, become one run with the youngest start of theirs. Their histories are a graph of
matches, from which those that have not expired are enumerated when the run accepts; if matches are
only counted, they are numbers of histories by start.

Differs from the paper: the graph has no versions, see :mod:`cepbench.kernels.match_graph.graph`. The
runs of a partition are found by hashing ``[attribute]``, and equivalent ones by hashing V.
Conditions on an event alone are tested for a batch at once.
"""

from __future__ import annotations

from collections.abc import Callable

from cepbench.errors import UnsupportedTaskError
from cepbench.evaluators.matches import Found
from cepbench.evaluators.plan_runs.engine import BranchTask, Engine
from cepbench.evaluators.plan_runs.groups import GroupEngine
from cepbench.evaluators.protocol import Task
from cepbench.evaluators.sase.automaton_engine import AutomatonEngine
from cepbench.evaluators.sase.counting import CountingEngine, count_layout
from cepbench.evaluators.sase.engine import SaseEngine
from cepbench.evaluators.sase.run import AutomatonRun, evaluator_of_automata
from cepbench.patterns.model import Pattern
from cepbench.streams.event_stream import EventStream


class SaseRun(AutomatonRun):
    """A run of one task with merged runs.

    Parameters
    ----------
    task : Task
    """

    def __init__(self, task: Task) -> None:
        self._compresses = task.output == "compressed"
        super().__init__(task, SaseEngine, compresses=self._compresses)
        if self._compresses:
            self._check_compression(task.pattern)

    def _engine(
        self, engine: Callable[[BranchTask], AutomatonEngine], task: BranchTask
    ) -> Engine | GroupEngine:
        """Matches are counted without runs where these differ in their start only."""
        layout = None if task.reports else count_layout(task)
        if layout is None:
            return super()._engine(engine, task)
        self._of_automata.append(CountingEngine(task, layout))
        return self._of_automata[-1]

    def _check_compression(self, pattern: Pattern) -> None:
        branches = pattern.branches()
        if pattern.negated:
            raise UnsupportedTaskError(
                'output="compressed" of a pattern with NOT, which is tested match by match; use '
                'output="arrow"'
            )
        if any(map(self._union.compares, range(len(branches)))):
            raise UnsupportedTaskError(
                'output="compressed" of an OR whose branches may have the same matches; use '
                'output="arrow", or give the branches different variables'
            )

    def _run(self, batch: EventStream | None, *, ended: bool) -> Found:
        if not self._compresses:
            return super()._run(batch, ended=ended)
        graphs = []
        for number, engine in enumerate(self._engines):
            found = engine.run(batch, self._position, ended=ended)
            graphs += [(number, graph) for _, graph in found.graphs]
        return Found.of_graphs(graphs)


SASE = evaluator_of_automata("sase", SaseRun, outputs=("matches", "count", "compressed"))
