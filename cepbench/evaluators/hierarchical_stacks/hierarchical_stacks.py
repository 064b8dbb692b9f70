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

from functools import cache

import pandas as pd

from cepbench.evaluators.hierarchical_stacks.engine import StackEngine
from cepbench.evaluators.plan_runs.engine import BranchTask, Engine
from cepbench.evaluators.plan_runs.groups import GroupEngine
from cepbench.evaluators.plan_runs.run import PlanRun
from cepbench.evaluators.plan_runs.union import waits
from cepbench.evaluators.protocol import Evaluator, Task
from cepbench.patterns.parse import parse
from cepbench.plans.tree import right_deep
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


def open_hierarchical_stacks(task: Task) -> PlanRun:
    """Run the branches of the pattern over one set of stacks.

    Those that wait for a group or a negated event have stacks of their own.
    """
    warm_up()
    branches = task.pattern.branches()
    apart = [number for number, branch in enumerate(branches) if branch.groups or waits(branch)]
    together = [number for number in range(len(branches)) if number not in apart]
    groups = [*([together] if together else []), *([number] for number in apart)]
    trees = [right_deep(branch.planned_names) for branch in branches]
    return PlanRun(task, trees, _engine, groups)


def _engine(task: BranchTask) -> Engine | GroupEngine:
    """Matches that wait for a negated event are kept as those that wait for a group's events."""
    if any(map(waits, task.branches)):
        return GroupEngine(task, StackEngine, waits=False)
    return StackEngine(task)


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from the disk cache, so that no timed run does."""
    events = pd.DataFrame({"type": list("ANB"), "time": range(3), "x": [1.0, 2.0, 1.0]})
    stream = EventStream.from_pandas(events, type="type", time="time")
    pattern = parse("PATTERN SEQ(A a, NOT(N n), B b) WHERE a.x = b.x AND n.x < b.x WITHIN 9 units")
    task = BranchTask(
        branches=[pattern],
        trees=[right_deep(pattern.positive_names)],
        placements=[()],
        written=pattern.positive_names,
        reader=NumericReader(),
        reports=True,
        limit=9,
        timed=False,
        watched=False,
    )
    StackEngine(task).run(stream, 0, ended=True)


HIERARCHICAL_STACKS = Evaluator(
    "hierarchical-stacks",
    open_hierarchical_stacks,
    without_plan=True,
    constructs=("SEQ", "OR", "NOT", "GROUP", "nesting"),
    strategies=("any",),
    snapshots=True,
    source="[liu2011]_",
)
