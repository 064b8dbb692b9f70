"""The out-of-order lazy NFA: order plans, one state a prefix [kolchinsky2018]_, section 2.2.

State ``k`` holds the partial matches over the first ``k`` variables of the plan's order; events of
the other variables wait in buffers. A partial match moves on with an event from the buffer, or with
one that arrives later.

Differs from the paper: a partial match or event is forgotten as soon as no event still to come can
extend it (in a sequence those that already hold the last event need never wait), where the paper
keeps it until its window ends. Matches are the same.
"""

from __future__ import annotations

from cepbench.errors import EvaluationError
from cepbench.evaluators.joins.run import JoinRun
from cepbench.evaluators.protocol import Evaluator, Task
from cepbench.plans.model import OrderPlan, Tree, TreePlan, leaves


def open_lazy_nfa(task: Task) -> JoinRun:
    """Run the chains of states that the plan's parts are, if they are chains."""
    assert task.plan is not None
    return JoinRun(task, [chain(part) for part in task.plan.parts])


def chain(plan: OrderPlan | TreePlan) -> Tree:
    """The chain of states as a left-deep tree: each state on the left, a buffer on the right.

    Raises
    ------
    EvaluationError
        If the plan joins two partial matches with each other, which no chain of states does.
    """
    order: list[str] = []
    tree = plan.tree
    while isinstance(tree, tuple):
        left, right = tree
        if isinstance(left, tuple) and isinstance(right, tuple):
            raise EvaluationError(
                f"the lazy NFA takes up one event at a time, but this plan joins "
                f"({', '.join(leaves(left))}) with ({', '.join(leaves(right))}); "
                'use evaluator="tree", or an order plan'
            )
        if isinstance(left, tuple):
            tree, buffer = left, right
        else:
            # Of two single events the left one comes first in the order.
            tree, buffer = (right, left) if isinstance(right, tuple) else (left, right)
        order.append(buffer)
    order.append(tree)
    return OrderPlan(order[::-1]).tree


LAZY_NFA = Evaluator(
    "lazy-nfa",
    open_lazy_nfa,
    kinds=("order",),
    some_kinds=("tree",),
    check_plan=chain,
    constructs=("SEQ", "AND", "OR", "NOT", "KL", "nesting"),
    strategies=("any", "consuming", "strict_contiguity", "partition_contiguity"),
    latency=True,
    node_times=True,
    snapshots=True,
    source="[kolchinsky2018]_, section 2.2",
)
