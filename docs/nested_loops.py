"""An engine of one's own: nested loops over the events of the last window.

A state for each variable, in the order of a plan: it loops over the partial matches of the states before
it, and for each of them over the events of its variable that are near enough in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import numpy as np

import cepbench as cep
from cepbench.engines.plan_runs.compiled import CompiledBranch
from cepbench.engines.plan_runs.engine import BranchTask, Engine
from cepbench.engines.plan_runs.groups import GroupEngine
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.engines.plan_runs.run import PlanRun
from cepbench.engines.runs.matches import BranchMatches, Found, ranges_of
from cepbench.engines.runs.protocol import Task
from cepbench.kernels import counts
from cepbench.patterns.arrays import clause_holds
from cepbench.planning.plans.tree import leaves
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents


class NestedLoopEngine(Engine):
    """Finds the matches of plain variables; groups and negated ones are added to these."""

    SAVED = ("_recent", "_counts[:]", "_peaks[:]")

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task)
        (pattern,), (tree,) = task.branches, task.trees
        self._branch = CompiledBranch.of(pattern)
        self._states = [*accumulate((name,) for name in leaves(tree))]
        self._recent = RecentEvents(pattern.attributes, pattern.window.length, 0)
        self._counts = np.zeros((2 * len(self._states), counts.COUNT_COLUMNS), np.int64)

    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """Find the matches whose last event is in a batch."""
        pattern = self._branch.pattern
        rows = np.empty((len(pattern.positive), 0), np.int64)
        if batch is not None:
            if not self._recent.pushed:
                self._recent.first = first_position
            self._recent.push(batch)
            rows = self._matches(first_position - self._recent.first) + self._recent.first
        found = BranchMatches(pattern.positive_names, [[*rows]])
        return Found(len(found), (found if self.task.reports else None,))

    def _matches(self, new: int) -> np.ndarray:
        """Rows of recent events by variable of the pattern; one of each match is ``new`` or later."""
        events = self._recent.stream
        self._peaks[counts.PEAK_EVENTS] = max(self._peaks[counts.PEAK_EVENTS], len(events))
        rows = np.empty((0, 1), np.int64)
        for number, names in enumerate(self._states):
            rows = self._extended(rows, names, events)
            if rows.shape[1] > self.task.limit:
                raise self.too_many(names)
            self._counts[len(self._states) + number, counts.CREATED] += rows.shape[1]
        rows = rows[:, rows.max(axis=0) >= new]
        return rows[[names.index(name) for name in self._branch.pattern.positive_names]]

    def _extended(self, rows: np.ndarray, names: Sequence[str], events: EventStream) -> np.ndarray:
        """The partial matches of a state, by those of the one before it."""
        *_, name = names
        times, window = events.timestamps, self._branch.pattern.window.length
        own = events.rows_of(self._branch.variables[name].type)
        if len(rows):
            bound = times[rows]
            begin = np.searchsorted(times[own], bound.max(axis=0) - window)
            sizes = np.searchsorted(times[own], bound.min(axis=0) + window, "right") - begin
        else:
            begin, sizes = np.zeros(1, np.int64), np.array([len(own)])
        tried = np.vstack((np.repeat(rows, sizes, axis=1), own[ranges_of(begin, sizes)]))
        kept = (tried[:-1] != tried[-1]).all(axis=0)
        for x, earlier in enumerate(names):
            for y, later in enumerate(names):
                if (earlier, later) in self._branch.before:
                    kept &= times[tried[x]] < times[tried[y]]
        tried = tried[:, kept]
        reader = self.task.reader
        for clause in self._branch.pattern.conditions:
            if name in clause.variables and set(clause.variables) <= set(names):

                def read(attribute, tried=tried):
                    return reader.read(
                        events, attribute.name, tried[names.index(attribute.variable)]
                    )

                with np.errstate(all="ignore"):
                    tried = tried[:, clause_holds(clause, read, reader.code)]
        self._counts[len(self._states) + len(names) - 1, counts.COMPARED] += kept.sum()
        return tried

    def node_counts(self) -> Sequence[NodeCounts]:
        """The states, behind the leaves."""
        variables = [names[-1:] for names in self._states] + self._states
        window = self._branch.pattern.window.length
        return [NodeCounts(variables, len(self._states), window, self._counts)]


@cep.plan_evaluator(
    "nested-loops",
    kinds=("order", "tree"),
    constructs=("SEQ", "AND", "OR", "NOT", "GROUP", "nesting", "concept"),
    strategies=("any",),
    node_times=True,
)
class NestedLoops(PlanRun):
    """A run: an engine for each branch of an OR, whose matches get their groups and negated events."""

    def __init__(self, task: Task) -> None:
        trees = [part.tree for part in task.plan.parts]
        complete = partial(GroupEngine, engine=NestedLoopEngine, waits=False, negates=False)
        super().__init__(task, trees, complete)
