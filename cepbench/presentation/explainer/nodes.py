"""The nodes of an explanation.

They are the nodes of the plan's tree (left-deep for an order), and the negated variables and groups, as
children of the nodes that check or form them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cepbench.engines.plan_runs.nodes import PlannedNodes
from cepbench.patterns.model import Kind, Pattern
from cepbench.patterns.negations import negated_apart
from cepbench.planning.plans.model import Plan
from cepbench.planning.plans.tree import leaves, post_order


@dataclass(frozen=True)
class ExplainedNode:
    """A node of a plan's tree, a negated variable or a group.

    Attributes
    ----------
    kind : str
        ``event``, ``set`` (a Kleene variable), ``join``, ``negated`` or ``group``.
    variables : tuple of str
        In the order of the plan.
    parent : int
        Number of its parent, or of the node that checks a negated variable or forms a group; -1 for
        the root.
    step : int
        Step of an order plan: 1 for its first variable, then its joins; otherwise 0.
    """

    kind: str
    variables: tuple[str, ...]
    parent: int
    step: int


def explained_nodes(
    branch: Pattern, plan: Plan, placed: Mapping[str, Collection[str]] | None = None
) -> list[ExplainedNode]:
    """The nodes of a branch's plan in post-order, then the negated variables and groups in written order.

    ``placed`` has for each negated variable and group the variables of its node; by default the nodes where
    evaluators of joins check them: groups and what depends on them at the root.
    """
    kinds = {variable.name: _KINDS[variable.kind] for variable in branch.variables}
    below: list[tuple[str, ...]] = []
    parents: list[int] = []
    waiting: list[int] = []  # nodes whose parent was not visited yet
    for number, tree in enumerate(post_order(plan.tree)):
        below.append(tuple(leaves(tree)))
        parents.append(-1)
        if isinstance(tree, tuple):
            for child in (waiting.pop(), waiting.pop()):
                parents[child] = number
        waiting.append(number)
    number_of = {frozenset(names): number for number, names in enumerate(below)}
    nodes = [
        ExplainedNode(
            kind="join" if len(names) > 1 else kinds[names[0]],
            variables=names,
            parent=parents[number],
            # In post-order the prefix of an order immediately follows its last leaf.
            step=number // 2 + 1 if plan.kind == "order" and number % 2 == 0 else 0,
        )
        for number, names in enumerate(below)
    ]
    if placed is None:
        placed = _checked_at(branch, plan)
    return nodes + [
        ExplainedNode(kinds[v.name], (v.name,), number_of[frozenset(placed[v.name])], 0)
        for v in branch.variables
        if v.kind in (Kind.NEGATED, Kind.GROUP)
    ]


def _checked_at(branch: Pattern, plan: Plan) -> dict[str, tuple[str, ...]]:
    """The variables of the nodes that check negated variables and form groups."""
    at_root = dict.fromkeys((v.name for v in branch.groups), tuple(plan.names))
    if branch.groups:
        apart = negated_apart(branch)
        touched = [v for v in branch.negated if v not in apart]
        at_root |= dict.fromkeys((v.name for v in touched), tuple(plan.names))
        branch = branch.without((*branch.groups, *touched))
    placements = tuple(its for its in plan.placements if its[0] not in at_root)
    planned = PlannedNodes(
        branch.with_partition(), plan.tree, positions=False, placements=placements
    )
    return at_root | {check.name: node.variables for node in planned.nodes for check in node.checks}


_KINDS = {
    Kind.PLAIN: "event",
    Kind.KLEENE: "set",
    Kind.NEGATED: "negated",
    Kind.GROUP: "group",
}
