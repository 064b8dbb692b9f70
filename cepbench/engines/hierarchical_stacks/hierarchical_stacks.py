"""E-Cube's hierarchical instance stacks and WinSeq [liu2011]_, section III.

Each event is stored once, in the stack of the finest type that a query has for it, with a pointer
for each outgoing edge of the hierarchical pattern graph: to the last event of another stack before
it. An event of a query's last type starts the construction of its sequences, depth first along the
pointers. An event of a negated type is found by a pointer too. Events outside of the window are
purged.

Differs from the paper: conditions are tested as soon as the construction has chosen all their
events. An equality of two items' values is a pointer of its own, to the last event with that value,
from which others lead to the ones before. Events of negated types have no pointers, since times tell
whether one stands between two others. Events of one timestamp do not follow each other. The
first items' events are counted without being visited if nothing restricts them. OR, groups, and
negation at the end are additions; the branches of an OR share their stacks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from cepbench.engines.hierarchical_stacks.engine import SharedStacks, StackEngine
from cepbench.engines.plan_runs.engine import BranchTask, Engine, warm_up_sequence
from cepbench.engines.plan_runs.groups import GroupEngine
from cepbench.engines.plan_runs.run import PlanRun
from cepbench.engines.plan_runs.union import waits
from cepbench.engines.runs.protocol import Evaluator, Task
from cepbench.engines.runs.result import Metrics
from cepbench.planning.plans.tree import right_deep


class StackRun(PlanRun):
    """A run of one task, on stacks that other runs may share.

    Branches that wait for a group or a negated event have stacks of their own.
    """

    def __init__(self, task: Task, shared: SharedStacks | None = None) -> None:
        warm_up_sequence(StackEngine)
        self._on_stacks: list[StackEngine] = []
        branches = task.pattern.branches()
        apart = [number for number, branch in enumerate(branches) if branch.groups or waits(branch)]
        together = [number for number in range(len(branches)) if number not in apart]
        groups = [together] * bool(together) + [[number] for number in apart]
        trees = [right_deep(branch.planned_names) for branch in branches]
        super().__init__(task, trees, partial(self._engine, shared or SharedStacks()), groups)

    def _engine(self, shared: SharedStacks, task: BranchTask) -> Engine | GroupEngine:
        """Matches that wait for a negated event are kept as those that wait for a group's events."""
        if any(map(waits, task.branches)):
            return GroupEngine(task, self._engine_of_own, waits=False)
        if any(branch.groups for branch in task.branches):
            return self._engine_of_own(task)
        return self._engine_on(shared, task)

    def _engine_of_own(self, task: BranchTask) -> StackEngine:
        return self._engine_on(SharedStacks(), task)

    def _engine_on(self, shared: SharedStacks, task: BranchTask) -> StackEngine:
        self._on_stacks.append(StackEngine(task, shared))
        return self._on_stacks[-1]

    def leave(self) -> None:
        """See :class:`cepbench.engines.runs.protocol.Run`."""
        for engine in self._on_stacks:
            engine.leave()

    def metrics(self) -> Metrics:
        """Metrics of the run; of shared stacks, peaks are those of all runs together."""
        seconds = sum(engine.seconds for engine in self._on_stacks)
        return replace(super().metrics(), details={"construction_seconds": seconds})


class Together:
    """See :attr:`cepbench.engines.runs.protocol.Evaluator.together`.

    A task that is opened after the first batch has new stacks, which those opened later share. It is no
    closure, which would share them with copies of a detector.
    """

    def __init__(self) -> None:
        self._shared = SharedStacks()

    def __call__(self, task: Task) -> StackRun:
        """A run of a task on the stacks of those opened before."""
        if self._shared.has_begun:
            self._shared = SharedStacks()
        return StackRun(task, self._shared)


HIERARCHICAL_STACKS = Evaluator(
    "hierarchical-stacks",
    StackRun,
    without_plan=True,
    constructs=("SEQ", "OR", "NOT", "GROUP", "nesting", "concept"),
    strategies=("any",),
    snapshots=True,
    together=Together,
    source="[liu2011]_",
)
