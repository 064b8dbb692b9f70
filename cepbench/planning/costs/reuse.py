"""The problem of planners that reuse matches: what each query costs, from scratch and from others."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from types import MappingProxyType

from cepbench.arguments import choice
from cepbench.errors import PlanGeneratorError
from cepbench.planning.costs.e_cube import ECube
from cepbench.planning.costs.reuse_calibrated import Calibrated
from cepbench.planning.costs.virtual import VirtualStatistics
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.reuse import Reuse, Source, candidates_of, items_joined, union_of
from cepbench.planning.plans.tree import leaves
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.given import workload_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload

#: Items of which all orders are tried.
MOST_ITEMS = 4

#: Query → the query whose matches it reuses, several, or None.
Sources = Mapping[str, Source]

#: A cost model of reused matches.
ReuseCost = Calibrated | ECube

#: Name → cost model, of a workload, the statistics of its queries, their plans from scratch, and the
#: evaluator that computes these.
REUSE_COSTS: Mapping[str, type[ReuseCost]] = {"calibrated": Calibrated, "e-cube": ECube}


def reuse_cost(
    cost: str,
    workload: Workload,
    statistics: Mapping[str, Statistics],
    plans: Mapping[str, AnyPlan],
    evaluator: str | None = None,
) -> ReuseCost:
    """The cost model of a name in :data:`REUSE_COSTS`; PlanGeneratorError if it is unknown."""
    choice(cost, "the cost of reused matches", REUSE_COSTS, PlanGeneratorError)
    return REUSE_COSTS[cost](workload, statistics, plans, evaluator)


@dataclass(frozen=True)
class ReuseProblem:
    """A workload as numbers: a graph whose vertices are queries [liu2011]_, section 5."""

    #: Query → its cost from scratch, the edge from the paper's virtual ground; in the order of the
    #: workload.
    scratch: Mapping[str, float]
    #: The other ways to compute a query, each with a cost; at most one for each source and query,
    #: and of equal queries from the first one only, so that those of method ``down`` have no
    #: circles.
    edges: Sequence[Reuse]
    #: The queries, among those of ``scratch``, that nobody asked for: a plan may leave them out.
    #: Only planners that are registered for it get any.
    virtual: frozenset[str] = frozenset()
    #: Ways to compute a query from several others, none of them virtual; for these planners too.
    unions: Sequence[Reuse] = ()

    def __post_init__(self) -> None:
        # Several planners get the same problem.
        object.__setattr__(self, "scratch", MappingProxyType(dict(self.scratch)))
        object.__setattr__(self, "edges", tuple(self.edges))
        object.__setattr__(self, "unions", tuple(self.unions))

    @classmethod
    def of(
        cls,
        workload: Workload,
        statistics: Mapping[str, Statistics],
        cost: str = "calibrated",
        *,
        plans: Mapping[str, AnyPlan] = MappingProxyType({}),
        delays: bool = False,
        virtual: Collection[str] = (),
        unions: bool = False,
        all_orders: bool = False,
        evaluator: str | None = None,
    ) -> ReuseProblem:
        """The problem of a workload with its virtual queries, by the statistics of every query.

        The cost is a name in :data:`REUSE_COSTS`. ``calibrated`` reads the plans along which queries are
        computed from scratch, without one in written order, and the evaluator that does so, by default
        ``tree``. Items are joined to reused matches in a plan's order if that is cheaper; with
        ``all_orders`` in the cheapest of all orders, of more than four items of those with the written
        order reversed behind the first. With ``delays`` matches may be reported late, with ``unions``
        queries be computed from several others; nobody asked for those named in ``virtual``.

        Raises PlanError if it is not a workload; PlanGeneratorError if the cost is unknown;
        StatisticsError if the statistics of a query are missing or insufficient.
        """
        known = workload_statistics(workload, statistics)
        model = reuse_cost(cost, workload, known, plans, evaluator)
        edges: dict[tuple[Source, str], Reuse] = {}
        ways = [way for way in candidates_of(workload) if delays or not way.waits]
        if unions:
            ways += _unions(workload, ways, virtual)
        for way in ways:
            orders = [(), *_orders(workload, way, plans.get(way.query), every=all_orders)]
            for order in orders:
                its = replace(way, order=order)
                its = replace(its, cost=model.reused(its))
                best = edges.setdefault((way.source, way.query), its)
                if its.cost < best.cost:
                    edges[way.source, way.query] = its
        return cls(
            {query: model.scratch(query) for query in workload.patterns},
            [its for its in edges.values() if its.method != "union"],
            frozenset(virtual),
            [its for its in edges.values() if its.method == "union"],
        )

    @cached_property
    def _edges(self) -> dict[tuple[Source, str], Reuse]:
        return {(edge.source, edge.query): edge for edge in (*self.edges, *self.unions)}

    def edge(self, source: Source, query: str) -> Reuse | None:
        """The way to compute a query from another one, or several, if there is any."""
        return self._edges.get((source, query))

    def cost(self, sources: Sources) -> float:
        """The sum of the costs of all queries, and of the virtual ones that are computed."""
        return math.fsum(
            self.scratch[query] if source is None else self._edges[source, query].cost
            for query, source in sources.items()
        )


def _unions(workload: Workload, ways: Iterable[Reuse], virtual: Collection[str]) -> Iterator[Reuse]:
    """For each query and item, the union of queries with disjoint types below that of the item."""
    groups: dict[tuple[str, int], dict[str | None, Reuse]] = {}
    for way in ways:
        if way.method != "up" or way.change != "concept" or {way.query, *way.sources} & {*virtual}:
            continue
        general = workload.patterns[way.query]
        specific = workload.patterns[way.sources[0]].positive
        for item, place in enumerate(way.embedding):
            if specific[place].type != general.positive[item].type:
                groups.setdefault((way.query, item), {}).setdefault(specific[place].type, way)
    found: dict[Source, Reuse] = {}
    for (query, _), its in groups.items():
        chosen: dict[str | None, Reuse] = {}
        hierarchy = workload.hierarchy
        for type_, way in its.items():
            if type_ and not any(
                other == type_ or (hierarchy and other and hierarchy.overlap(type_, other))
                for other in chosen
            ):
                chosen[type_] = way
        if len({way.source for way in chosen.values()}) == len(chosen) > 1:
            union = union_of([*chosen.values()])
            found.setdefault((query, *union.sources), union)
    yield from found.values()


def _orders(
    workload: Workload, way: Reuse, plan: AnyPlan | None, *, every: bool
) -> Iterator[tuple[str, ...]]:
    """Orders in which items are joined, besides the one that the evaluator chooses."""
    names = items_joined(workload, way)
    if len(names) < 2:
        return
    if every and len(names) <= MOST_ITEMS:
        yield from permutations(names)
        return
    if every:
        for first in names:
            yield (first, *(name for name in reversed(names) if name != first))
    if plan is not None and len(workload.patterns[way.query].branches()) == 1:
        (tree,) = (each.tree for part in plan.parts for each in part.alternatives())
        yield tuple(name for name in leaves(tree) if name in names)


def plan_cost(
    plan: WorkloadPlan,
    statistics: Mapping[str, Statistics],
    cost: str,
    evaluator: str | None = None,
) -> float:
    """The cost of a plan of sources, also under other statistics than those it was made from.

    Those of virtual queries are estimated where there are none. The cost is a name in
    :data:`REUSE_COSTS`, the evaluator as for :meth:`ReuseProblem.of`.
    """
    known = VirtualStatistics(plan.workload, statistics).with_virtual(plan.virtual)
    known = workload_statistics(plan.computed, known)
    model = reuse_cost(cost, plan.computed, known, plan.plans, evaluator)
    ways = map(plan.reuse, plan.order)
    return math.fsum(
        model.scratch(way.query) if way.source is None else model.reused(way) for way in ways
    )
