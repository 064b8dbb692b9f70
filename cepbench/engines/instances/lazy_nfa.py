"""The out-of-order lazy NFA, event by event: a chain of states [kolchinsky2018]_, section 2.2.

An instance at state ``k`` holds events of the first ``k`` variables of the plan's order. An
arriving event is stored in the buffers of its variables and offered to the instances that wait for
one of them; an instance that reaches a state retrieves earlier events from the buffer of the next
variable. Instances and events are evicted when they are out of the window, not earlier.

Differs from the paper: there is a buffer per variable instead of one per type; conditions on an
event alone are tested before it is stored; and an event is not offered to states whose instances it
cannot extend according to the temporal order.
"""

from __future__ import annotations

from functools import partial

from cepbench.engines.instances.engine import InstanceEngine
from cepbench.engines.plan_runs.run import chain, run_of_parts
from cepbench.engines.runs.protocol import Evaluator

LAZY_NFA_INSTANCES = Evaluator(
    "lazy-nfa-instances",
    partial(run_of_parts, InstanceEngine, chain),
    kinds=("order",),
    some_kinds=("tree",),
    check_plan=chain,
    strategies=("any", "consuming"),
    latency=True,
    node_times=True,
    snapshots=True,
    source="[kolchinsky2018]_, section 2.2",
)
