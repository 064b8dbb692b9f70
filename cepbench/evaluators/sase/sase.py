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

from functools import cache
from math import nan

import numpy as np
import pandas as pd

from cepbench.automata.compilation import automaton
from cepbench.errors import UnsupportedTaskError
from cepbench.evaluators.matches import Found
from cepbench.evaluators.plan_runs.engine import BranchTask, Engine
from cepbench.evaluators.plan_runs.groups import GroupEngine
from cepbench.evaluators.plan_runs.run import PlanRun
from cepbench.evaluators.protocol import Evaluator, Task
from cepbench.evaluators.result import Metrics, RunCounts
from cepbench.evaluators.sase.engine import SaseEngine
from cepbench.kernels import counts
from cepbench.kernels.sase import tables
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


class SaseRun(PlanRun):
    """A run of one task by the automaton of each branch.

    Parameters
    ----------
    task : Task
    """

    def __init__(self, task: Task) -> None:
        warm_up()
        self._of_automata: list[SaseEngine] = []
        self._compresses = task.output == "compressed"
        plan = task.plan if task.plan is not None else automaton(task.pattern)
        super().__init__(task, list(plan.parts), self._engine)
        if self._compresses:
            self._check_compression(task.pattern)

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

    def _engine(self, task: BranchTask) -> Engine | GroupEngine:
        """An engine for a branch; its matches are filtered by the negated items."""
        if any(branch.negated for branch in task.branches):
            return GroupEngine(task, self._positive, negates=False)
        return self._positive(task)

    def _positive(self, task: BranchTask) -> Engine:
        engine = SaseEngine(task, compresses=self._compresses)
        self._of_automata.append(engine)
        return engine

    def _run(self, batch: EventStream | None, *, ended: bool) -> Found:
        if not self._compresses:
            return super()._run(batch, ended=ended)
        graphs = []
        for number, engine in enumerate(self._engines):
            found = engine.run(batch, self._position, ended=ended)
            graphs += [(number, graph) for _, graph in found.graphs]
        return Found.of_graphs(graphs)

    def metrics(self) -> Metrics:
        """Metrics of the run so far, summed over branches."""
        engines = self._of_automata
        tallies = np.sum([engine.tallies for engine in engines], axis=0)
        peaks = np.sum([engine.peaks for engine in engines], axis=0)
        seconds = np.sum([engine.seconds for engine in engines], axis=0)
        events = max(engine.events for engine in engines)
        return Metrics(
            peak_partial_matches=int(peaks[counts.PEAK_PARTIAL_MATCHES]),
            peak_bytes=int(peaks[counts.PEAK_BYTES]),
            runs=RunCounts(
                runs_started=int(tallies[tables.STARTED]),
                runs_split=int(tallies[tables.SPLIT]),
                runs_merged=int(tallies[tables.MERGED]),
                runs_per_step=float(tallies[tables.VISITED] / events) if events else nan,
                peak_runs=int(tallies[tables.PEAK_RUNS]),
                output_complexity=sum(engine.written for engine in engines),
                seconds_matching=float(seconds[0]),
                seconds_construction=float(seconds[1]),
            ),
        )


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from the disk cache, so that no timed run does."""
    events = pd.DataFrame({"type": list("ABB"), "time": range(3), "x": [1.0, 2.0, 3.0]})
    stream = EventStream.from_pandas(events, type="type", time="time")
    pattern = parse("PATTERN SEQ(A a, KL(B b)) WHERE [x] WITHIN 9 units")
    (plan,) = automaton(pattern).parts
    for reports in (False, True):
        task = BranchTask(
            branches=[pattern],
            trees=[plan],
            placements=[()],
            written=pattern.positive_names,
            reader=NumericReader(),
            reports=reports,
            limit=99,
            timed=False,
            watched=False,
        )
        SaseEngine(task).run(stream, 0, ended=True)


SASE = Evaluator(
    "sase",
    SaseRun,
    kinds=("automaton",),
    without_plan=True,
    constructs=("SEQ", "OR", "NOT", "KL", "nesting"),
    outputs=("matches", "count", "compressed"),
    strategies=("any", "next", "strict_contiguity", "partition_contiguity"),
    snapshots=True,
    source="[agrawal2008]_",
)
