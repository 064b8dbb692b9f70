"""The cost of reused matches in our engines: ``calibrated``, in nanoseconds per second of a stream.

A query from scratch is joined along its plan, without one in written order. Down, each match of the
source is tested, and joined with the missing items one by one, those of fewest events first. Up, the
matches of the source are projected and equal ones dropped; the others come from joins that begin with
the items at which the two queries differ, and then drop what the source contains.

Items that arrive independently, at the rates r1 to rk, are in order and within a window W about
r1·…·rk·W^(k−1)/(k−1)! times per second, and k! times as often in any order. E-Cube has 1/2 for each two
neighbours instead.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from cepbench.patterns.equivalences import equal_attributes
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.query_terms import QueryTerms
from cepbench.planning.costs.unit_costs import TREE, priced_as, unit_costs
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.reuse import Reuse
from cepbench.planning.plans.tree import leaves, left_deep, post_order, right_deep
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload

#: Expected events in a window beyond which their number is taken for exact.
_MANY = 200.0

#: Expected events in a window of which sets are counted; more would overflow.
_LARGEST_SET = 100.0


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
            cost * getattr(self, kind) for kind, cost in unit_costs()[evaluator].items()
        )


class _Query(QueryTerms):
    """A branch of a query with the expected numbers of its partial matches."""

    def __init__(self, pattern: Pattern, statistics: Statistics) -> None:
        super().__init__(pattern, statistics)
        equal = equal_attributes(pattern.expanded.conditions, self.names)
        self._equal_names = [{term.variable for term in its} for its in equal]
        window = self.window or math.inf
        self.rates = {name: size / window for name, size in self.sizes.items()}
        for item in self.items:
            if item.is_set:
                # The expected number of subsets, if the number of events is Poisson's.
                self.sizes[item.name] = math.expm1(min(self.sizes[item.name], _LARGEST_SET))
        self.stream_rate = statistics.stream_rate or sum(self.rates.values())
        self.all = self.rows(self.names)

    def rows(self, names: Collection[str], apart: Collection[str] = ()) -> float:
        """Matches of some of the positive variables per second.

        Conditions between the variables ``apart`` and the others are not tested, but for equalities, by
        which engines look events up.
        """
        bound = [name for name in self.names if name in names]
        if not bound or not self.window:
            return 0.0
        found = math.prod(self.sizes[name] for name in bound) / self.window
        for place, one in enumerate(bound):
            for other in bound[place + 1 :]:
                tested = other == bound[place + 1] or self.statistics.has_selectivity(one, other)
                is_looked_up = any({one, other} <= its for its in self._equal_names)
                if tested and ((one in apart) == (other in apart) or is_looked_up):
                    found *= self.selectivity(one, other)
        count = len(bound)
        found *= 1.0 / math.factorial(count - 1) if self.in_order else count
        return found * self._kept(bound)

    def compared(self, names: Collection[str], apart: Collection[str]) -> float:
        """Pairs per second whose conditions are tested to join the variables ``apart`` to the others."""
        others = [name for name in names if name not in apart]
        if any(self.statistics.has_selectivity(x, y) for x in apart for y in others):
            return self.rows(names, apart)
        return 0.0

    def _kept(self, bound: Sequence[str]) -> float:
        """The share of matches in which no NOT whose neighbours are bound finds an event."""
        kept = 1.0
        for place, variables in enumerate(self.negated):
            sides = self.names[max(place - 1, 0) : place + 1]
            if {*sides} <= {*bound}:
                for variable in variables:
                    fitting = math.prod(self.selectivity(variable.name, side) for side in sides)
                    kept *= share_without(self.size(variable.name) * fitting, len(bound))
        return kept

    @property
    def checks(self) -> int:
        """The number of negated variables."""
        return sum(map(len, self.negated))


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
        self._queries = _Query.of_queries(workload, statistics)

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


def _down(way: Reuse, general: _Query, specific: _Query) -> Work:
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


def _up(way: Reuse, sources: Sequence[_Query], general: _Query, left: float) -> Work:
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


def _by_sizes(work: Work, query: _Query, sought: Collection[str]) -> Work:
    """The work of joins, which are made anew for each number of events that a sought set may have."""
    sizes = math.prod(
        1.0 + query.rates[item.name] * query.window
        for item in query.items
        if item.is_set and item.name in sought
    )
    return replace(
        work, probed=work.probed * sizes, looked=work.looked * sizes, made=work.made * sizes
    )


def _contained(way: Reuse, specific: _Query, general: _Query) -> float:
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


def share_without(events: float, items: int) -> float:
    """The share of gaps between two of k ordered items in which none of some other events is.

    The k − 1 gaps and the rest of the window divide it like as many events at random, so that the gap
    has the distribution Beta(1, k − 1), and (k − 1) / (k − 1 + N) is the share for N events in the
    whole window, whose distribution is Poisson's.

    The events are an expected number in a window; of one item the gap is the whole window.
    """
    others = items - 1
    if events > _MANY:
        return min(1.0, others / events)
    found = 0.0
    probability = math.exp(-events)
    for number in range(int(events + 10 * math.sqrt(events)) + 10):
        found += probability * (others / (others + number) if number else 1.0)
        probability *= events / (number + 1)
    return found


def _retyped(way: Reuse, general: _Query, specific: _Query) -> list[int]:
    """The items of the more general query whose images have another type."""
    return [
        number
        for number, place in enumerate(way.embedding)
        if general.items[number].type != specific.items[place].type
    ]


def _neighbours(way: Reuse, place: int, general: _Query) -> set[str]:
    """The items of the more general query next to a place of the more specific one."""
    before = [number for number, image in enumerate(way.embedding) if image < place]
    after = [number for number, image in enumerate(way.embedding) if image >= place]
    return {general.names[number] for number in (*before[-1:], *after[:1])}
