"""The instance-based tree, event by event [kolchinsky2018]_, section 2.3.

Each node has a list of instances. An arriving event becomes an instance at the leaves of its
variables. A new instance is joined with those of the sibling node, which creates instances at their
parent, and so on up to the root. Instances are evicted when their first event is out of the window,
not earlier.

Differs from the paper: sets of a Kleene variable are built at the node that joins its leaf, so that
sets whose members do not fit the sibling's events are never created; conditions on an event alone
are tested before it is stored; and a new instance is not joined with instances that it cannot
precede according to the temporal order.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter

from cepbench.engines.instances.engine import InstanceEngine
from cepbench.engines.plan_runs.run import run_of_parts
from cepbench.engines.runs.protocol import Evaluator

TREE_INSTANCES = Evaluator(
    "tree-instances",
    partial(run_of_parts, InstanceEngine, attrgetter("tree")),
    kinds=("tree", "order"),
    strategies=("any", "consuming"),
    latency=True,
    node_times=True,
    snapshots=True,
    source="[kolchinsky2018]_, section 2.3",
)
