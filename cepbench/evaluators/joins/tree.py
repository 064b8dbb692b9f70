"""The instance-based tree: tree plans, one node a set of variables [kolchinsky2018]_, section 2.3.

Every partial match is an instance at the node of its variables. A new instance is combined with the
instances that wait at the sibling node, which makes instances at their parent, up to the root.

Differs from the paper: an instance is evicted as soon as no event still to come can extend it,
where the paper keeps it until its window ends; and instances of one node lie side by side in
columns. Matches are the same.
"""

from __future__ import annotations

from cepbench.evaluators.joins.engine import JoinEngine
from cepbench.evaluators.plan_runs.run import PlanRun
from cepbench.evaluators.protocol import Evaluator, Task


def open_tree(task: Task) -> PlanRun:
    """Run the trees of the plan as they are; an order plan is a left-deep one."""
    assert task.plan is not None
    return PlanRun(task, [part.tree for part in task.plan.parts], JoinEngine)


TREE = Evaluator(
    "tree",
    open_tree,
    kinds=("tree", "order"),
    constructs=("SEQ", "AND", "OR", "NOT", "KL", "nesting"),
    strategies=("any", "consuming", "strict_contiguity", "partition_contiguity"),
    latency=True,
    node_times=True,
    snapshots=True,
    source="[kolchinsky2018]_, section 2.3",
)
