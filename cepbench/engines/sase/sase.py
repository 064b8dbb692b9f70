"""The engine of SASE+ with merged runs [agrawal2008]_, section 5.2.2.

The runs of an automaton that are in one state, and whose values V agree on all columns that are read
from there on, become one run with the youngest start of theirs. Their histories are a graph of
matches, from which those that have not expired are enumerated when the run accepts; if matches are
only counted, they are numbers of histories by start; under ``any`` often no run is needed, see
:mod:`cepbench.engines.sase.counting`. A run ends at an event that a NOT between two
items forbids, see :func:`cepbench.engines.automata.negation.with_negation`.

Differs from the paper: the graph has no versions, see :mod:`cepbench.engines.runs.kernels.graph`. The
runs of a partition are found by hashing ``[attribute]``, and equivalent ones by hashing V.
Conditions on an event alone are tested for a batch at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cepbench.arguments import choice, flag
from cepbench.engines.automata.model import Automaton
from cepbench.engines.automata.negation import with_negation
from cepbench.engines.plan_runs.engine import BranchTask, Engine
from cepbench.engines.plan_runs.groups import GroupEngine
from cepbench.engines.plan_runs.union import Union
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.protocol import Option, Task
from cepbench.engines.sase.automaton_engine import AutomatonEngine
from cepbench.engines.sase.counting import CountingEngine, count_layout
from cepbench.engines.sase.engine import SaseEngine
from cepbench.engines.sase.order_statistics import ComparedEngine, compared_layout
from cepbench.engines.sase.postponing import PostponingEngine, check_postponable
from cepbench.engines.sase.returning import returned_columns
from cepbench.engines.sase.run import AutomatonRun, automata_of, evaluator_of_automata, warm_up
from cepbench.errors import CepbenchError
from cepbench.patterns.model import Operator, Pattern
from cepbench.patterns.neighbours import neighbours_of
from cepbench.patterns.reach import with_shared_keys
from cepbench.streams.event_stream import EventStream


class SaseRun(AutomatonRun):
    """A run of one task with merged runs."""

    def __init__(self, task: Task) -> None:
        automata = automata_of(_counted(task))
        if task.options["negation"] == "early":
            automata = [with_negation(automaton) for automaton in automata]
        self._values = task.values
        graphs = _keeps_graphs(task.pattern, automata)
        values = graphs and bool(task.values)
        # Of a whole stream, values are computed along the graph, too.
        self._compresses = (graphs and task.output == "compressed") or (values and task.whole)
        self._returns = False
        filters = task.options["negation"] == "filter" and bool(task.pattern.negated)
        self._without_runs = not (filters or task.options["postpone"])
        engine: type[SaseEngine] = SaseEngine
        how: dict[str, Any] = {"compresses": self._compresses}
        if task.options["postpone"]:
            check_postponable(task.pattern)
            engine = PostponingEngine
        elif values and returned_columns(automata[0], task.values) is not None:
            self._returns = True
            how = {"returns": task.values}
        super().__init__(task, engine, automata, **how)

    def _engine(
        self, engine: Callable[[BranchTask], AutomatonEngine], task: BranchTask
    ) -> Engine | GroupEngine:
        """Matches are counted without runs where these differ in their start only."""
        needs_runs = task.reports or task.watched or not self._without_runs
        if needs_runs:
            return super()._engine(engine, task)
        (branch,), (tree,), compared = task.branches, task.trees, compared_layout(task)
        if compared is not None and (
            any(compared.compared) or tree.pattern.operator is not branch.operator
        ):
            self._of_automata.append(ComparedEngine(task, compared))
        elif (layout := count_layout(task)) is not None:
            warm_up(CountingEngine)
            self._of_automata.append(CountingEngine(task, layout))
        else:
            return super()._engine(engine, task)
        return self._of_automata[-1]

    def _run(self, batch: EventStream | None, *, ended: bool) -> Found:
        if self._returns:
            return self._of_automata[0].run(batch, self._position, ended=ended)
        if not self._compresses:
            return super()._run(batch, ended=ended)
        graphs = []
        for number, engine in enumerate(self._engines):
            found = engine.run(batch, self._position, ended=ended)
            graphs += [(number, graph) for _, graph in found.graphs]
            if self._values:
                most = max((max(graph.counts, default=0) for _, graph in found.graphs), default=0)
                self._of_automata[number].check_matches(most, 1)
        return Found.of_graphs(graphs)


def _counted(task: Task) -> Task:
    """An AND in an order in which it is counted, if that is asked for and can be done."""
    found = None
    if (
        task.pattern.operator is Operator.AND
        and task.output == "count"
        and not (task.node_times or task.options["postpone"])
    ):
        found = neighbours_of(with_shared_keys(task.pattern))
    return task if found is None else replace(task, pattern=found.pattern)


def _keeps_graphs(pattern: Pattern, automata: Sequence[Automaton]) -> bool:
    """Whether no match has to be looked at by itself: by NOT, or as one that two branches have."""
    branches = pattern.branches()
    filters = [{*its.pattern.negated} - {*its.forbidden} for its in automata]
    return not any(filters) and not any(map(Union(branches).compares, range(len(branches))))


def _negation(given: Any, name: str, error: type[CepbenchError]) -> str:
    return choice(given, name, ("early", "filter"), error)


SASE = evaluator_of_automata(
    "sase",
    SaseRun,
    counted=("AND",),
    options={
        "negation": Option(
            "early",
            _negation,
            "early: runs end at forbidden events where these decide; filter: matches are tested",
        ),
        "postpone": Option(
            False, flag, "whether loops wait until all plain items of a match are there"
        ),
    },
)
