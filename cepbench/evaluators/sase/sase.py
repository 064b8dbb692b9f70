"""The engine of SASE+ with merged runs [agrawal2008]_, section 5.2.2.

The runs of an automaton that are in one state, and whose values V agree on all columns that are read
from there on, become one run with the youngest start of theirs. Their histories are a graph of
matches, from which those that have not expired are enumerated when the run accepts; if matches are
only counted, they are numbers of histories by start. A run ends at an event that a NOT between two
items forbids, see :func:`cepbench.automata.negation.with_negation`.

Differs from the paper: the graph has no versions, see :mod:`cepbench.kernels.match_graph.graph`. The
runs of a partition are found by hashing ``[attribute]``, and equivalent ones by hashing V.
Conditions on an event alone are tested for a batch at once.
"""

from __future__ import annotations

from typing import Any

from cepbench.arguments import choice
from cepbench.errors import CepbenchError, UnsupportedTaskError
from cepbench.evaluators.matches import Found
from cepbench.evaluators.protocol import Option, Task
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
        early = task.options["negation"] == "early"
        super().__init__(task, SaseEngine, forbids=early, compresses=self._compresses)
        if self._compresses:
            self._check_compression(task.pattern)

    def _check_compression(self, pattern: Pattern) -> None:
        branches = pattern.branches()
        for branch, automaton in zip(branches, self._automata, strict=True):
            filtered = branch.without(automaton.forbidden).negated
            if filtered:
                raise UnsupportedTaskError(
                    f'output="compressed" with NOT {filtered[0].name}, which is tested match by '
                    'match; use output="arrow"'
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


def _negation(given: Any, name: str, error: type[CepbenchError]) -> str:
    return choice(given, name, ("early", "filter"), error)


SASE = evaluator_of_automata(
    "sase",
    SaseRun,
    outputs=("matches", "count", "compressed"),
    options={
        "negation": Option(
            "early",
            _negation,
            "early: runs end at forbidden events where these decide; filter: matches are tested",
        )
    },
)
