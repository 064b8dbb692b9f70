"""The instance-based tree, event by event: a list of instances a node [kolchinsky2018]_, section 2.3.

An event that arrives becomes an instance at the leaves of its variables. A new instance is combined
with those of the sibling node, which makes instances at their parent, and so on up to the root.
Instances leave when their first event is out of the window, not sooner.

Differs from the paper: a Kleene variable's sets grow at the node where its leaf is joined, so that
sets whose members do not fit the sibling's events are never made; conditions on an event alone are
tested before it is stored; and a new instance is not combined with siblings that would have to be
later in time, whatever events they hold.
"""

from __future__ import annotations

from cepbench.evaluators.instances.engine import InstanceEngine
from cepbench.evaluators.plan_runs.run import PlanRun
from cepbench.evaluators.protocol import Evaluator, Task


def open_tree(task: Task) -> PlanRun:
    """Run the trees of the plan as they are; an order plan is a left-deep one."""
    assert task.plan is not None
    return PlanRun(task, [part.tree for part in task.plan.parts], InstanceEngine)


TREE_INSTANCES = Evaluator(
    "tree-instances",
    open_tree,
    kinds=("tree", "order"),
    strategies=("any", "consuming"),
    latency=True,
    node_times=True,
    snapshots=True,
    source="[kolchinsky2018]_, section 2.3",
)
