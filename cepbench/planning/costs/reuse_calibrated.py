"""The cost of reused matches in our engines: ``calibrated``, in nanoseconds per second of a stream.

A query from scratch is joined along its plan, without one in written order. Down, each match of the
source is tested, and joined with the missing items one by one, those of fewest events first. Up, the
matches of the source are projected and equal ones dropped; the others come from joins that begin with
the items at which the two queries differ, and then drop what the source contains.

How many matches are expected is in :mod:`cepbench.planning.costs.expected_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from cepbench.planning.costs.expected_rows import ExpectedRows, share_without
from cepbench.planning.costs.unit_costs import TREE, priced_as, unit_costs
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.reuse import Reuse
from cepbench.planning.plans.tree import leaves, left_deep, post_order, right_deep
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload


@dataclass
class Work:
    """What a query does per second of the stream."""

    #: Events of the stream, once for each type whose events a query from scratch lists.
    scanned: float = 0.0
    #: Events that a query from scratch reads.
    events: float = 0.0
    #: Pairs of partial matches of which it tests the conditions.
    paired: float = 0.0
    #: Partial and full matches that it makes of them.
    joined: float = 0.0
    #: Matches for which an event of one more item is looked up.
    probed: float = 0.0
    #: Events that are found so, whose conditions are tested.
    looked: float = 0.0
    #: Matches made of those that are probed.
    made: float = 0.0
    #: Matches of a source whose types, conditions or window are tested.
    tested: float = 0.0
    #: Matches of a source that are projected.
    projected: float = 0.0
    #: Events of the stream, once for each item whose events are looked up.
    indexed: float = 0.0
    #: Positions of matches that are reused, and of those made of them.
    copied: float = 0.0

    def nanoseconds(self, evaluator: str = TREE) -> float:
        """The time that this takes an evaluator of :data:`~cepbench.planning.costs.unit_costs.FIXED`."""
        return math.fsum(
            cost * getattr(self, kind) for kind, cost in unit_costs()["reuse"][evaluator].items()
        )


class Calibrated:
    """The cost model ``calibrated`` of a workload, by the statistics of every query.

    A query is computed from scratch along its plan, without one in written order, by the evaluator,
    see :func:`~cepbench.planning.costs.unit_costs.priced_as`.
    """

    def __init__(
        self,
        workload: Workload,
        statistics: Mapping[str, Statistics],
        plans: Mapping[str, AnyPlan],
        evaluator: str | None = None,
    ) -> None:
        self._evaluator = priced_as(evaluator)
        self._plans = plans
        self._queries = ExpectedRows.of_queries(workload, statistics)

    def scratch(self, query: str) -> float:
        """The cost of a query by itself."""
        return self.work_from_scratch(query).nanoseconds(self._evaluator)

    def reused(self, way: Reuse) -> float:
        """The cost of a query from the matches of its source."""
        return self.work(way).nanoseconds()

    def matches(self, query: str) -> float:
        """The expected number of matches of a query per second."""
        return math.fsum(branch.all for branch in self._queries[query])

    def contained(self, way: Reuse) -> float:
        """The expected share of a query's matches that those of its more specific source contain."""
        query = self._queries[way.query][0]
        # Of a union as if its sources had no match in common.
        found = (_contained(its, self._queries[its.sources[0]][0], query) for its in way.parts)
        return min(1.0, math.fsum(found))

    def work_from_scratch(self, query: str) -> Work:
        """What a query does by itself."""
        work = Work()
        branches = self._queries[query]
        plan = self._plans.get(query)
        # Stacks are read from the last item on, whatever the plan.
        written = left_deep if self._evaluator == TREE else right_deep
        trees = [written(its.names) for its in branches]
        if plan is not None and self._evaluator == TREE:
            trees = [each.tree for part in plan.parts for each in part.alternatives()]
        for branch, tree in zip(branches, trees, strict=True):
            work.events += sum(branch.rates.values())
            work.scanned += branch.stream_rate * (len(branch.names) + branch.checks)
            work.probed += branch.checks * branch.all
            for node in post_order(tree):
                if isinstance(node, tuple):
                    work.joined += branch.rows(leaves(node))
                    apart = node[1] if self._evaluator == TREE else node[0]
                    work.paired += branch.compared(leaves(node), leaves(apart))
        return work

    def work(self, way: Reuse) -> Work:
        """What a query does with the matches of its sources."""
        sources = [self._queries[source][0] for source in way.sources]
        query = self._queries[way.query][0]
        if way.method == "down":
            return _down(way, sources[0], query)
        return _up(way, sources, query, 1.0 - self.contained(way))


def _down(way: Reuse, general: ExpectedRows, specific: ExpectedRows) -> Work:
    images = {specific.names[place] for place in way.embedding}
    rows = min(general.all, specific.rows(images))
    work = Work(tested=general.all * len(_retyped(way, general, specific)))
    work.tested += general.all * (way.change == "condition")
    work.indexed = specific.stream_rate * (len(specific.names) - len(images) + specific.checks)
    left_out = (name for name in specific.names if name not in images)
    missing = sorted(left_out, key=specific.sizes.__getitem__)
    for name in way.order or missing:
        images.add(name)
        work.probed += rows
        work.looked += specific.compared(images, (name,))
        rows = specific.rows(images)
        work.made += rows
    work.probed += specific.checks * rows
    work.copied = specific.all * len(specific.names) + general.all * len(general.names)
    return _by_sizes(work, specific, missing)


def _up(way: Reuse, sources: Sequence[ExpectedRows], general: ExpectedRows, left: float) -> Work:
    work = Work(indexed=general.stream_rate * len(general.names))
    decisive: set[str] = set()
    completed = 0
    work.copied = left * general.all * len(general.names)
    for part, specific in zip(way.parts, sources, strict=True):
        images = [specific.names[place] for place in part.embedding]
        missing = [place for place, name in enumerate(specific.names) if name not in images]
        work.projected += specific.all if missing else 0.0
        work.copied += specific.all * (len(specific.names) + len(images)) if missing else 0.0
        work.indexed += general.stream_rate * (len(missing) + specific.checks)
        its = {general.names[number] for number in _retyped(part, general, specific)}
        more = specific.checks > general.checks
        added = [place for place, negated in enumerate(specific.negated) if negated and more]
        for place in (*missing, *added):
            its |= _neighbours(part, place, general)
        completed += len(missing) + len(added)
        decisive |= its or {*general.names}
    last = general.names[::-1]
    behind = way.order or sorted(last, key=lambda name: name not in decisive)
    bound: set[str] = set()
    rows = 0.0
    for name in behind:
        work.probed += rows
        is_decided = decisive <= bound
        share = left if is_decided else 1.0
        bound.add(name)
        work.looked += general.compared(bound, (name,)) * share
        rows = general.rows(bound) * share
        work.made += rows
        if not is_decided and decisive <= bound:
            work.tested += rows * len(sources)
            work.probed += rows * completed
            rows *= left
    work.probed += general.checks * rows
    return _by_sizes(work, general, general.names)


def _by_sizes(work: Work, query: ExpectedRows, sought: Collection[str]) -> Work:
    """The work of joins, which are made anew for each number of events that a sought set may have."""
    sizes = math.prod(
        1.0 + query.rates[item.name] * query.window
        for item in query.items
        if item.is_set and item.name in sought
    )
    return replace(
        work, probed=work.probed * sizes, looked=work.looked * sizes, made=work.made * sizes
    )


def _contained(way: Reuse, specific: ExpectedRows, general: ExpectedRows) -> float:
    """The share of a query's matches that matches of a more specific one contain."""
    images = [specific.names[place] for place in way.embedding]
    between = specific.rows(images)
    if not between or not general.all:
        return 0.0
    share = min(1.0, between / general.all)
    if len(images) < len(specific.names):
        # As many as there are, on average, in one of the gaps of the window.
        share *= 1.0 - share_without(len(images) * specific.all / between, len(images))
    return share


def _retyped(way: Reuse, general: ExpectedRows, specific: ExpectedRows) -> list[int]:
    """The items of the more general query whose images have another type."""
    return [
        number
        for number, place in enumerate(way.embedding)
        if general.items[number].type != specific.items[place].type
    ]


def _neighbours(way: Reuse, place: int, general: ExpectedRows) -> set[str]:
    """The items of the more general query next to a place of the more specific one."""
    before = [number for number, image in enumerate(way.embedding) if image < place]
    after = [number for number, image in enumerate(way.embedding) if image >= place]
    return {general.names[number] for number in (*before[-1:], *after[:1])}
