"""Runs of one task by the automaton of each branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.automata.model import Automaton
from cepbench.engines.plan_runs.engine import BranchTask, Engine
from cepbench.engines.plan_runs.groups import GroupEngine
from cepbench.engines.plan_runs.run import PlanRun
from cepbench.engines.runs.protocol import Evaluator, Task
from cepbench.engines.runs.result import Metrics, RunCounts
from cepbench.engines.runs.work import Work
from cepbench.engines.sase.automaton_engine import AutomatonEngine
from cepbench.engines.sase.edge_table import EdgeTable, edge_counts
from cepbench.engines.sase.kernels import tables
from cepbench.kernels import counts
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.patterns.reach import with_shared_keys
from cepbench.streams.event_stream import EventStream


class AutomatonRun(PlanRun):
    """A run of one task by the automaton of each branch.

    Parameters
    ----------
    engine : callable
        :class:`~cepbench.engines.plan_runs.engine.BranchTask` → engine.
    automata : sequence of Automaton, optional
        One for each branch, instead of those of the task; the engine heeds their forbid edges.
    **options
        For the engine.
    """

    def __init__(
        self,
        task: Task,
        engine: Callable[..., AutomatonEngine],
        automata: Sequence[Automaton] | None = None,
        **options: Any,
    ) -> None:
        warm_up(engine)
        self._of_automata: list[AutomatonEngine] = []
        automata = automata_of(task) if automata is None else automata
        if not prunes(task.pattern):
            task = replace(task, pattern=replace(task.pattern, output="all"))
        super().__init__(task, automata, partial(self._engine, partial(engine, **options)))

    def _engine(
        self, engine: Callable[[BranchTask], AutomatonEngine], task: BranchTask
    ) -> Engine | GroupEngine:
        """An engine for a branch; its matches are filtered by the negated items that are left."""
        (branch,), (tree,) = task.branches, task.trees
        branch = branch.without(tree.forbidden)
        task = replace(task, branches=[branch])

        def positive(its: BranchTask) -> Engine:
            self._of_automata.append(engine(its))
            return self._of_automata[-1]

        if branch.negated:
            return GroupEngine(task, positive, negates=False)
        return positive(task)

    def node_table(self) -> EdgeTable:  # type: ignore[override]
        """What happened at the edges of each branch."""
        return EdgeTable(
            [
                edge_counts(engine.task.trees[0], engine.tallies, engine.profile, engine.events)
                for engine in self._of_automata
            ]
        )

    def metrics(self) -> Metrics:
        """Metrics of the run so far, summed over branches."""
        engines = self._of_automata
        tallies = np.sum([engine.tallies for engine in engines], axis=0)
        peaks = np.sum([engine.peaks for engine in engines], axis=0)
        matching, construction, buffer = np.sum([engine.seconds for engine in engines], axis=0)
        events = max(engine.events for engine in engines)
        constructed = sum(engine.constructed for engine in engines)
        written = sum(engine.written for engine in engines)
        apart = sum(engine.visits_apart for engine in engines)
        return Metrics(
            peak_partial_matches=int(peaks[counts.PEAK_PARTIAL_MATCHES]),
            peak_bytes=int(peaks[counts.PEAK_BYTES]),
            work=Work.total(engine.work for engine in engines),
            runs=RunCounts(
                runs_started=int(tallies[tables.STARTED]),
                runs_split=int(tallies[tables.SPLIT]),
                runs_merged=int(tallies[tables.MERGED]),
                runs_per_step=float(tallies[tables.VISITED] / events) if events else nan,
                runs_apart_per_step=apart / events if events else nan,
                peak_runs=int(tallies[tables.PEAK_RUNS]),
                match_length=written / constructed if constructed else nan,
                output_complexity=written,
                events_reprocessed=int(tallies[tables.REPROCESSED]),
                seconds_matching=float(matching),
                seconds_construction=float(construction),
                seconds_buffer=float(buffer),
            ),
        )


def automata_of(task: Task) -> Sequence[Automaton]:
    """The automaton of each branch, compiled unless it was given, with all attributes that its events share
    as ``[attribute]``, by which runs are in partitions.
    """
    plan = automaton(task.pattern) if task.plan is None else task.plan
    return [_keyed(part) for part in plan.parts if isinstance(part, Automaton)]


def _keyed(given: Automaton) -> Automaton:
    pattern = with_shared_keys(given.pattern)
    if pattern is given.pattern:
        return given
    (keyed,) = automaton(pattern, push_window=given.push_window, peek=given.peek).parts
    assert isinstance(keyed, Automaton)
    return keyed


def evaluator_of_automata(
    name: str, runs: Callable[[Task], AutomatonRun], **declared: Any
) -> Evaluator:
    """The declaration of an engine of automata, with what not all of these engines declare."""
    return Evaluator(
        name,
        runs,
        kinds=("automaton",),
        without_plan=True,
        constructs=("SEQ", "OR", "NOT", "KL", "nesting", "concept"),
        strategies=("any", "next", "strict_contiguity", "partition_contiguity"),
        node_times=True,
        outputs=("matches", "count", "compressed"),
        snapshots=True,
        source="[agrawal2008]_",
        **declared,
    )


def prunes(pattern: Pattern) -> bool:
    """Whether engines may leave out matches that OUTPUT does not report.

    They must know all matches of a partition, and their partitions must be those of OUTPUT.
    """
    attribute = pattern.strategy.attribute
    finer = attribute is not None and not {*pattern.equivalences} <= {attribute}
    return len(pattern.branches()) == 1 and not (pattern.negated or finer)


@cache
def warm_up(engine: Callable[..., AutomatonEngine]) -> None:
    """Compile the kernels, or load them from the disk cache, so that no timed run does."""
    events = pd.DataFrame({"type": list("ABB"), "time": range(3), "x": [1.0, 2.0, 3.0]})
    stream = EventStream.from_pandas(events, type="type", time="time")
    for condition, reports in (("[x]", False), ("[x] AND a.x > 0", True)):
        pattern = parse(f"PATTERN SEQ(A a, KL(B b)) WHERE {condition} WITHIN 9 units")
        (plan,) = automaton(pattern).parts
        engine(BranchTask.of_one(pattern, plan, reports=reports)).run(stream, 0, ended=True)
