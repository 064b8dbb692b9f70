"""Chains of states: the plans that extend a partial match by one event at a time."""

from __future__ import annotations

from cepbench.errors import EvaluationError
from cepbench.planning.plans.model import Plan
from cepbench.planning.plans.tree import Tree, leaves, left_deep


def chain(plan: Plan) -> Tree[str]:
    """The chain of states as a left-deep tree: states are left children, buffers right ones.

    Raises
    ------
    EvaluationError
        If the plan joins two partial matches, which a chain of states cannot.
    """
    order: list[str] = []
    tree = plan.tree
    while isinstance(tree, tuple):
        # Of two single events the left one is first in the order.
        before, buffer = reversed(tree) if isinstance(tree[1], tuple) else tree
        if isinstance(buffer, tuple):
            raise EvaluationError(
                f"the lazy NFA takes up one event at a time, but this plan joins "
                f"({', '.join(leaves(tree[0]))}) with ({', '.join(leaves(tree[1]))}); "
                'use evaluator="tree", or an order plan'
            )
        order.append(buffer)
        tree = before
    order.append(tree)
    return left_deep(order[::-1])
