"""The out-of-order lazy NFA, event by event: a chain of states [kolchinsky2018]_, section 2.2.

An instance at state ``k`` holds events of the first ``k`` variables of the plan's order. Every event
that arrives is stored in the buffers of its variables and offered to the instances that wait for
one of them; an instance that reaches a state retrieves from the buffer of the next variable the
events that came before. Instances and events leave when they are out of the window, not sooner.

Differs from the paper: a variable has a buffer of its own, where the paper has one for each type;
conditions on an event alone are tested before it is stored; and an event is not offered to a state
that it cannot follow in time, whatever the instance.
"""

from __future__ import annotations

from cepbench.evaluators.instances.engine import InstanceEngine
from cepbench.evaluators.plan_runs.chain import chain
from cepbench.evaluators.plan_runs.run import PlanRun
from cepbench.evaluators.protocol import Evaluator, Task


def open_lazy_nfa(task: Task) -> PlanRun:
    """Run the chains of states that the plan's parts are, if they are chains."""
    assert task.plan is not None
    return PlanRun(task, [chain(part) for part in task.plan.parts], InstanceEngine)


LAZY_NFA_INSTANCES = Evaluator(
    "lazy-nfa-instances",
    open_lazy_nfa,
    kinds=("order",),
    some_kinds=("tree",),
    check_plan=chain,
    strategies=("any", "consuming"),
    latency=True,
    node_times=True,
    snapshots=True,
    source="[kolchinsky2018]_, section 2.2",
)
