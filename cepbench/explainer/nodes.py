"""The nodes of an explanation.

They are the nodes of the plan's tree (left-deep for an order), and the negated variables, as
children of the nodes that check them.
"""

from __future__ import annotations

from dataclasses import dataclass

from cepbench.errors import UnsupportedPatternError
from cepbench.evaluators.plan_runs.nodes import PlannedNodes
from cepbench.patterns.model import Kind, Pattern, Variable
from cepbench.plans.model import Plan
from cepbench.plans.tree import leaves, post_order


@dataclass(frozen=True)
class ExplainedNode:
    """A node of a plan's tree, or a negated variable.

    Attributes
    ----------
    kind : str
        ``event``, ``set`` (a Kleene variable), ``join``, or ``negated``.
    variables : tuple of str
        In the order of the plan.
    parent : int
        Number of its parent, or of the node that checks a negated variable; -1 for the root.
    step : int
        Step of an order plan: 1 for its first variable, then its joins; otherwise 0.
    """

    kind: str
    variables: tuple[str, ...]
    parent: int
    step: int


def explained_nodes(branch: Pattern, plan: Plan) -> list[ExplainedNode]:
    """The plan's nodes in post-order, then the negated variables in written order.

    Parameters
    ----------
    branch : Pattern
        Without OR.
    plan : OrderPlan or TreePlan

    Raises
    ------
    UnsupportedPatternError
        If the branch has groups, which no node of a plan forms.
    """
    for group in branch.groups:
        raise UnsupportedPatternError(
            f"{group} is formed from the matches of a plan, and no node shows it; explain the pattern "
            "without the group, or see the metrics of cep.evaluate",
            culprit=group,
        )
    kinds = {variable.name: _kind(variable) for variable in branch.variables}
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
    planned = PlannedNodes(
        branch.with_partition(), plan.tree, positions=False, placements=plan.placements
    )
    checked_at = {
        check.name: number_of[frozenset(node.variables)]
        for node in planned.nodes
        for check in node.checks
    }
    return nodes + [
        ExplainedNode("negated", (v.name,), checked_at[v.name], 0) for v in branch.negated
    ]


def _kind(variable: Variable) -> str:
    return {Kind.PLAIN: "event", Kind.KLEENE: "set", Kind.NEGATED: "negated"}[variable.kind]
