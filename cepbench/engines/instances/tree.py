"""The instance-based tree, event by event [kolchinsky2018]_, section 2.3.

Each node has a list of instances. An arriving event becomes an instance at the leaves of its
variables. A new instance is joined with those of the sibling node, which creates instances at their
parent, and so on up to the root. Instances are evicted when their first event is out of the window,
not earlier.

Differs from the paper: sets of a Kleene variable are built at the node that joins its leaf, so that
sets whose members do not fit the sibling's events are never created; conditions on an event alone
are tested before it is stored; and a new instance is not joined with instances that it cannot
precede according to the temporal order.
"""

from __future__ import annotations

from cepbench.engines.instances.engine import InstanceEngine
from cepbench.engines.plan_runs.run import PlanRun
from cepbench.engines.runs.protocol import Evaluator, Task


def open_tree(task: Task) -> PlanRun:
    """Run the trees of the plan; that of an order plan is left-deep."""
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
