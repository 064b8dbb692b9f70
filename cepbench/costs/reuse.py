"""The problem of planners that reuse matches: what each query costs, from scratch and from others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

from cepbench.arguments import choice
from cepbench.costs.e_cube import ECube
from cepbench.costs.reuse_calibrated import Calibrated
from cepbench.errors import PlanGeneratorError
from cepbench.plans.model import AnyPlan
from cepbench.plans.reuse import Reuse, Source, candidates_of
from cepbench.plans.workload import WorkloadPlan
from cepbench.statistics.given import workload_statistics
from cepbench.statistics.model import Statistics
from cepbench.workloads.model import Workload

#: Query → the query whose matches it reuses, several, or None.
Sources = Mapping[str, Source]


class ReuseCost(Protocol):
    """A cost model of reused matches."""

    def scratch(self, query: str) -> float:
        """The cost of a query by itself."""

    def reused(self, way: Reuse) -> float:
        """The cost of a query from the matches of its source."""

    def matches(self, query: str) -> float:
        """The expected number of matches of a query per second."""


#: Name → cost model, of a workload, the statistics of its queries, and their plans from scratch.
REUSE_COSTS: Mapping[
    str, Callable[[Workload, Mapping[str, Statistics], Mapping[str, AnyPlan]], ReuseCost]
] = {
    "calibrated": Calibrated,
    "e-cube": ECube,
}


@dataclass(frozen=True)
class ReuseProblem:
    """A workload as numbers: a graph whose vertices are queries [liu2011]_, section 5.

    Attributes
    ----------
    scratch : mapping of str to float
        Query → its cost from scratch, the edge from the paper's virtual ground; in the order of the
        workload.
    edges : sequence of Reuse
        The other ways to compute a query, each with a cost; at most one for each source and query, and
        of equal queries from the first one only, so that those of method ``down`` have no circles.
    """

    scratch: Mapping[str, float]
    edges: Sequence[Reuse]

    def __post_init__(self) -> None:
        # Several planners get the same problem.
        object.__setattr__(self, "scratch", MappingProxyType(dict(self.scratch)))
        object.__setattr__(self, "edges", tuple(self.edges))

    @classmethod
    def of(
        cls,
        workload: Workload,
        statistics: Mapping[str, Statistics],
        cost: str = "calibrated",
        *,
        plans: Mapping[str, AnyPlan] = MappingProxyType({}),
        delays: bool = False,
    ) -> ReuseProblem:
        """The problem of a workload.

        Parameters
        ----------
        workload : Workload
        statistics : mapping of str to Statistics
            Of every query, as :func:`cepbench.measure_statistics` gives them.
        cost : str
            A name in :data:`REUSE_COSTS`.
        plans : mapping of str to plan
            Query → the plan along which it is computed from scratch, which the cost ``calibrated``
            reads; without one in written order.
        delays : bool
            Whether matches may be reported late.

        Raises
        ------
        PlanError
            If it is not a workload.
        PlanGeneratorError
            If the cost is unknown.
        StatisticsError
            If the statistics of a query are missing or insufficient.
        """
        known = workload_statistics(workload, statistics)
        choice(cost, "the cost of reused matches", REUSE_COSTS, PlanGeneratorError)
        model = REUSE_COSTS[cost](workload, known, plans)
        edges: dict[tuple[Source, str], Reuse] = {}
        for way in candidates_of(workload):
            if delays or not way.waits:
                its = replace(way, cost=model.reused(way))
                best = edges.setdefault((way.source, way.query), its)
                if its.cost < best.cost:
                    edges[way.source, way.query] = its
        return cls({query: model.scratch(query) for query in workload.patterns}, [*edges.values()])

    @cached_property
    def _edges(self) -> dict[tuple[Source, str], Reuse]:
        return {(edge.source, edge.query): edge for edge in self.edges}

    def edge(self, source: Source, query: str) -> Reuse | None:
        """The way to compute a query from another one, if there is any."""
        return self._edges.get((source, query))

    def cost(self, sources: Sources) -> float:
        """The sum of the costs of all queries.

        Parameters
        ----------
        sources : mapping of str to (str or None)
            Of every query.
        """
        return math.fsum(
            self.scratch[query] if source is None else self._edges[source, query].cost
            for query, source in sources.items()
        )


def plan_cost(plan: WorkloadPlan, statistics: Mapping[str, Statistics], cost: str) -> float:
    """The cost of a plan of sources, also under other statistics than those it was made from.

    Parameters
    ----------
    plan : WorkloadPlan
    statistics : mapping of str to Statistics
        Of every query, virtual ones too.
    cost : str
        A name in :data:`REUSE_COSTS`.
    """
    model = REUSE_COSTS[cost](plan.computed, statistics, plan.plans)
    ways = map(plan.reuse, plan.order)
    return math.fsum(
        model.scratch(way.query) if way.source is None else model.reused(way) for way in ways
    )
