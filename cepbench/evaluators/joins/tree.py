"""The instance-based tree: tree plans, one node a set of variables [kolchinsky2018]_, section 2.3.

Every partial match is an instance at the node of its variables. A new instance is combined with the
instances that wait at the sibling node, which makes instances at their parent, up to the root.

Differs from the paper: an instance is forgotten as soon as no event still to come can extend it,
where the paper keeps it until its window ends; and instances of one node lie side by side in
columns. Matches are the same.
"""

from __future__ import annotations

from cepbench.plans.model import Plan
from cepbench.plans.tree import Tree


def tree_of_instances(plan: Plan) -> Tree[str]:
    """The tree along which instances are combined; an order plan is a left-deep one."""
    return plan.tree
