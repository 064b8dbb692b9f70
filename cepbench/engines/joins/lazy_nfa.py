"""The out-of-order lazy NFA: order plans, one state per prefix [kolchinsky2018]_, section 2.2.

State ``k`` has the partial matches over the first ``k`` variables of the plan's order; events of
the other variables are buffered. A partial match is extended by an event from the buffer or by one
that arrives later.

Differs from the paper: a partial match or event is evicted as soon as no later event can extend it
(in a sequence, partial matches with the last event are never stored), not only at the end of its
window. Matches are the same.
"""

from __future__ import annotations

from functools import partial

from cepbench.engines.joins.neighbours import joins_of
from cepbench.engines.plan_runs.run import chain, run_of_parts
from cepbench.engines.runs.protocol import Evaluator

LAZY_NFA = Evaluator(
    "lazy-nfa",
    partial(run_of_parts, joins_of, chain),
    kinds=("order",),
    some_kinds=("tree",),
    check_plan=chain,
    constructs=("SEQ", "AND", "OR", "NOT", "KL", "GROUP", "nesting", "concept"),
    strategies=("any", "consuming", "strict_contiguity", "partition_contiguity"),
    latency=True,
    node_times=True,
    snapshots=True,
    source="[kolchinsky2018]_, section 2.2",
)
