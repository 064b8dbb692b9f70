"""The out-of-order lazy NFA: order plans, one state a prefix [kolchinsky2018]_, section 2.2.

State ``k`` holds the partial matches over the first ``k`` variables of the plan's order; events of
the other variables wait in buffers. A partial match moves on with an event from the buffer, or with
one that arrives later.

Differs from the paper: a partial match or event is evicted as soon as no event still to come can
extend it (in a sequence those that already hold the last event need never wait), where the paper
keeps it until its window ends. Matches are the same.
"""

from __future__ import annotations

from cepbench.evaluators.joins.engine import JoinEngine
from cepbench.evaluators.plan_runs.chain import chain
from cepbench.evaluators.plan_runs.run import PlanRun
from cepbench.evaluators.protocol import Evaluator, Task


def open_lazy_nfa(task: Task) -> PlanRun:
    """Run the chains of states that the plan's parts are, if they are chains."""
    assert task.plan is not None
    return PlanRun(task, [chain(part) for part in task.plan.parts], JoinEngine)


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
