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

from cepbench.evaluators.matches import Found
from cepbench.evaluators.plan_runs.union import Union
from cepbench.evaluators.protocol import Task
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
        self._compresses = task.output == "compressed" and _keeps_graphs(task.pattern)
        super().__init__(task, SaseEngine, compresses=self._compresses)

    def _run(self, batch: EventStream | None, *, ended: bool) -> Found:
        if not self._compresses:
            return super()._run(batch, ended=ended)
        graphs = []
        for number, engine in enumerate(self._engines):
            found = engine.run(batch, self._position, ended=ended)
            graphs += [(number, graph) for _, graph in found.graphs]
        return Found.of_graphs(graphs)


def _keeps_graphs(pattern: Pattern) -> bool:
    """Whether no match has to be looked at by itself: by NOT, or as one that two branches have."""
    branches = pattern.branches()
    return not pattern.negated and not any(map(Union(branches).compares, range(len(branches))))


SASE = evaluator_of_automata("sase", SaseRun)
