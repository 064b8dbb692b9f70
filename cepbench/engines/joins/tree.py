"""The instance-based tree: tree plans, a node per set of variables [kolchinsky2018]_, section 2.3.

Every partial match is an instance at the node of its variables. A new instance is joined with the
instances of the sibling node, which creates instances at their parent, up to the root.

Differs from the paper: an instance is evicted as soon as no later event can extend it, not only at
the end of its window; and the instances of a node are stored by column. Matches are the same.
"""

from __future__ import annotations

from cepbench.engines.joins.engine import JoinEngine
from cepbench.engines.plan_runs.run import PlanRun
from cepbench.engines.runs.protocol import Evaluator, Task


def open_tree(task: Task) -> PlanRun:
    """Run the trees of the plan; that of an order plan is left-deep."""
    assert task.plan is not None
    return PlanRun(task, [part.tree for part in task.plan.parts], JoinEngine)


TREE = Evaluator(
    "tree",
    open_tree,
    kinds=("tree", "order"),
    constructs=("SEQ", "AND", "OR", "NOT", "KL", "GROUP", "nesting", "concept"),
    strategies=("any", "consuming", "strict_contiguity", "partition_contiguity"),
    latency=True,
    node_times=True,
    snapshots=True,
    source="[kolchinsky2018]_, section 2.3",
)
