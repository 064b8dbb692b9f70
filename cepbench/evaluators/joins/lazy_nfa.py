"""The out-of-order lazy NFA: order plans, one state a prefix [kolchinsky2018]_, section 2.2.

State ``k`` holds the partial matches over the first ``k`` variables of the plan's order; events of
the other variables wait in buffers. A partial match moves on with an event from the buffer, or with
one that arrives later.

Differs from the paper: a partial match or event is evicted as soon as no event still to come can
extend it (in a sequence those that already hold the last event need never wait), where the paper
keeps it until its window ends. Matches are the same.
"""

from __future__ import annotations

from cepbench.errors import EvaluationError
from cepbench.evaluators.joins.run import PlanRun
from cepbench.evaluators.protocol import Evaluator, Task
from cepbench.plans.model import Plan
from cepbench.plans.tree import Tree, leaves, left_deep


def open_lazy_nfa(task: Task) -> PlanRun:
    """Run the chains of states that the plan's parts are, if they are chains."""
    assert task.plan is not None
    return PlanRun(task, [chain(part) for part in task.plan.parts])


def chain(plan: Plan) -> Tree[str]:
    """The chain of states as a left-deep tree: each state on the left, a buffer on the right.

    Raises
    ------
    EvaluationError
        If the plan joins two partial matches with each other, which no chain of states does.
    """
    order: list[str] = []
    tree = plan.tree
    while isinstance(tree, tuple):
        # Of two single events the left one comes first in the order.
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
