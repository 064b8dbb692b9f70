"""The NFA of SASE [wu2006]_: active instance stacks and backward search.

Each item of a SEQ has a stack of instances, its active events in the order of time. An event is
pushed if an instance in the previous stack precedes it within the window; its pointer to the most
recent instance in the previous stack (RIP) is then set. Each event of the last item accepts, and
starts a backward search that enumerates its sequences depth first. Nothing is materialized in
between. Equalities that all events of a match share partition the stacks (PAIS). Negation is a
filter of the sequences found. The order of evaluation is fixed, so there is no plan.

Differs from the paper: a condition on several events is tested as soon as the search has chosen all
of them, not on complete sequences. Events of one timestamp do not follow each other. Stacks are
arrays, in which a RIP limits a range of rows; they are set up for up to 32,768 events at a time. The
first items' candidates are counted without being visited if no condition restricts them. OR,
groups, negation at the end, and several partitioning attributes are additions.
"""

from __future__ import annotations

from cepbench.engines.plan_runs.engine import BranchTask, PlanEngine, warm_up_sequence
from cepbench.engines.plan_runs.groups import GroupEngine
from cepbench.engines.plan_runs.run import PlanRun
from cepbench.engines.plan_runs.union import waits
from cepbench.engines.runs.protocol import Evaluator, Task
from cepbench.engines.stack_nfa.engine import StackEngine
from cepbench.planning.plans.tree import right_deep


def open_stack_nfa(task: Task) -> PlanRun:
    """Run each branch of the pattern in its written order."""
    warm_up_sequence(StackEngine)
    # The search binds the last item first.
    trees = [right_deep(branch.planned_names) for branch in task.pattern.branches()]
    return PlanRun(task, trees, _engine)


def _engine(task: BranchTask) -> PlanEngine | GroupEngine:
    """Matches that wait for a negated event are kept as those that wait for a group's events."""
    if any(map(waits, task.branches)):
        return GroupEngine(task, StackEngine, waits=False)
    return StackEngine(task)


STACK_NFA = Evaluator(
    "stack-nfa",
    open_stack_nfa,
    without_plan=True,
    constructs=("SEQ", "OR", "NOT", "GROUP", "nesting", "concept"),
    strategies=("any",),
    snapshots=True,
    source="[wu2006]_",
)
