"""The instance-based tree: tree plans, a node per set of variables [kolchinsky2018]_, section 2.3.

Every partial match is an instance at the node of its variables. A new instance is joined with the
instances of the sibling node, which creates instances at their parent, up to the root.

Differs from the paper: an instance is evicted as soon as no later event can extend it, not only at
the end of its window; and the instances of a node are stored by column. Matches are the same.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter

from cepbench.engines.joins.neighbours import joins_of
from cepbench.engines.plan_runs.run import run_of_parts
from cepbench.engines.runs.protocol import Evaluator

TREE = Evaluator(
    "tree",
    partial(run_of_parts, joins_of, attrgetter("tree")),
    kinds=("tree", "order"),
    constructs=("SEQ", "AND", "OR", "NOT", "KL", "GROUP", "nesting", "concept"),
    strategies=("any", "consuming", "strict_contiguity", "partition_contiguity"),
    latency=True,
    node_times=True,
    snapshots=True,
    source="[kolchinsky2018]_, section 2.3",
)
