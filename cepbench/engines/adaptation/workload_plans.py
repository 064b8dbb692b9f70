"""The plans of a workload that follow a stream's statistics [liu2011]_, section 6."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from cepbench.arguments import choice
from cepbench.engines.adaptation.pattern_plans import check_runs
from cepbench.engines.adaptation.rounds import Plans
from cepbench.engines.detection.live import attributes_of
from cepbench.engines.detection.planned import equal_rates
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import task_for
from cepbench.engines.detection.workload_detector import WorkloadDetector
from cepbench.engines.detection.workload_evaluate import PLANNING, chosen_for, workload_plan
from cepbench.engines.runs.protocol import Arguments
from cepbench.engines.runs.result import Metrics
from cepbench.errors import AdaptationError, StatisticsError, errors_naming
from cepbench.planning.costs.engine_work import opening_seconds
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.reuse import REUSE_COSTS, ReuseProblem, plan_cost
from cepbench.planning.costs.unit_costs import TREE, unit_costs
from cepbench.planning.planners.registry import PlanGenerator, find_generator
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload

#: The default planner and cost.
PLANNER, COST = "CHASE", "calibrated"

#: How many times as long as opening a run the reuse of matches for a query takes in a round, whatever its events.
REUSING = 1.5


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkloadPlans(Plans):
    """Plans of a planner of workloads."""

    queries: Workload
    planner: str
    cost: str
    generator: str | None
    evaluator: str | None

    @classmethod
    def of(
        cls,
        workload: Workload,
        asked: Arguments,
        *,
        generator: str | PlanGenerator | None,
        planner: str | None,
        cost: str | CostModel | None,
        initial: WorkloadPlan | None,
        **how: Any,
    ) -> tuple[Self, WorkloadPlan, WorkloadDetector | None]:
        """Those of the checked arguments of :class:`cepbench.AdaptiveDetector`, the first plan, and its detector if opened."""
        entry = WORKLOAD_PLANNERS.find(PLANNER if planner is None else planner)
        if entry.shares != "matches":
            able = [its.name for its in WORKLOAD_PLANNERS.values() if its.shares == "matches"]
            raise AdaptationError(
                f"the planner {entry.name} shares counts, and an adaptive run finds matches; choose one "
                f"of {', '.join(able)}"
            )
        plans = cls(
            queries=workload,
            asked=asked,
            planner=entry.name,
            cost=choice(COST if cost is None else cost, "cost", REUSE_COSTS, AdaptationError),
            generator=None if generator is None else find_generator(generator).name,
            evaluator=None if asked.evaluator is None else evaluator_for(asked.evaluator).name,
            # Planning takes as long as many short rounds.
            planned=initial is None and not how["policy"].amortizes,
            **how,
        )
        for query, pattern in workload.patterns.items():
            if not pattern.window.length:
                raise AdaptationError(
                    f"query {query!r}: a window of length 0 has no arrival rates to adapt to; use "
                    "cep.evaluate or cep.Detector with a plan"
                )
        if generator is not None and asked.evaluator is not None:
            check_runs(evaluator_for(asked.evaluator), find_generator(generator))
        if plans.policy.name == "bound" and (generator is not None or entry.virtual):
            raise AdaptationError(
                "with virtual queries or plans of a generator there is no lower bound of the cost of a "
                'workload; choose policy="threshold", or another planner without generator='
            )
        # Without statistics, to check all arguments before the first event.
        statistics = {query: equal_rates(its) for query, its in workload.patterns.items()}
        if not entry.is_builtin or generator is not None:
            plans.plan(statistics)
        plan = WorkloadPlan(workload, sources=dict.fromkeys(workload.patterns))
        opened: WorkloadDetector | None = None
        if initial is None:
            opened = WorkloadDetector.of_plan(plan, asked)
        else:
            # A later plan may compute any query from scratch.
            for query, pattern in workload.patterns.items():
                with errors_naming(query):
                    evaluator, alone = chosen_for(pattern, None, asked.evaluator)
                    task_for(pattern, alone, replace(asked, evaluator=evaluator))
            plan = checked_plan(workload, initial)
            try:
                if plan.virtual:
                    plan_cost(plan, statistics, plans.cost, plans.evaluator)
            except StatisticsError as error:
                raise AdaptationError(
                    f"of a virtual query of initial= ({', '.join(plan.virtual)}) nothing can be estimated, "
                    "as it is more specific than all queries; leave it out, or run the plan by cep.Detector"
                ) from error
        # A mapping, as was just checked; the given one may change.
        asked = replace(asked, options=dict(asked.options or {}))
        return replace(plans, asked=asked), plan, opened

    def packed(self) -> dict[str, Any]:
        names = ("planner", "generator", "cost")
        return {name: getattr(self, name) for name in names} | super().packed()

    def attributes(self, plan: WorkloadPlan) -> Iterable[str]:
        """Those that the queries read, virtual ones included."""
        return attributes_of(plan.computed.patterns.values())

    def opened(self, plan: WorkloadPlan, position: int) -> WorkloadDetector:
        return WorkloadDetector.of_plan(plan, replace(self.asked, position=position))

    def checked(
        self, plan: WorkloadPlan, running: WorkloadPlan, kept: Iterable[str]
    ) -> WorkloadPlan:
        plan = checked_plan(self.queries, plan)
        lacking = [name for name in self.attributes(plan) if name not in kept]
        if lacking:
            raise AdaptationError(
                f"virtual queries of the plan read {', '.join(lacking)}, of which no values are kept; give "
                "it as initial=, or leave these queries out"
            )
        return self.following(plan, running)

    def following(self, plan: WorkloadPlan, running: WorkloadPlan) -> WorkloadPlan:
        """A plan but for queries whose matches depend on all earlier ones."""
        lasting = [query for query, its in self.queries.patterns.items() if its.selects]
        if not lasting:
            return plan
        plans = {query: its for query, its in plan.plans.items() if query not in lasting}
        plans |= {query: its for query, its in running.plans.items() if query in lasting}
        return replace(plan, plans=plans)

    def plan(self, problem: Mapping[str, Statistics]) -> WorkloadPlan:
        """The planner's plan; where adapting has to pay, the one that shares nothing if reuse is expected to take as long."""
        found = plan_workload(
            self.queries,
            problem,
            self.planner,
            cost=self.cost,
            generator=self.generator,
            seed=self.seed,
            evaluator=self.evaluator,
        )
        reused = sum(way.source is not None for way in map(found.reuse, found.order))
        is_asked = self.policy.amortizes and self.cost == COST and self.generator is None
        if not is_asked or not reused or found.cost is None:
            return found
        rate = _stream_rate(problem)
        by_round = 1e9 * REUSING * opening_seconds() * reused * rate / self.batch_size
        scratch = {its.query: its.cost for its in found.candidates if its.source is None}
        alone = math.fsum(scratch[query] or 0.0 for query in self.queries.patterns)
        if by_round < alone - found.cost:
            return found
        sources = dict.fromkeys(self.queries.patterns)
        return WorkloadPlan(self.queries, sources=sources, planner=found.planner, cost=alone)

    def noted_cost(self, plan: WorkloadPlan) -> float:
        assert plan.cost is not None  # the planner notes it
        return math.log(plan.cost)

    def log_cost(self, plan: WorkloadPlan, problem: Mapping[str, Statistics]) -> float:
        return math.log(plan_cost(plan, problem, self.cost, self.evaluator))

    def log_bound(self, plan: WorkloadPlan, problem: Mapping[str, Statistics]) -> float:
        """ln of the sum of what each query costs at least, from scratch or from any other one."""
        costs = ReuseProblem.of(self.queries, problem, self.cost, evaluator=self.evaluator)
        least = dict(costs.scratch)
        for edge in costs.edges:
            least[edge.query] = min(least[edge.query], edge.cost)
        return math.log(math.fsum(least.values()))

    @property
    def planning_seconds(self) -> float:
        return PLANNING * len(self.queries.patterns)

    def counted_seconds(self, metrics: Metrics) -> float:
        costs, work = unit_costs()["reuse"][TREE], metrics.work
        counted = {
            "scanned": metrics.events * len(self.queries.patterns),
            "joined": work.get("assembled", 0),
            "looked": work.get("source_matches", 0),
            "tested": work.get("types_tested", 0),
        }
        return 1e-9 * sum(costs[kind] * amount for kind, amount in counted.items())

    def expected_seconds(self, plan: WorkloadPlan, statistics: Mapping[str, Statistics]) -> float:
        seconds = 1e-9 * plan_cost(plan, statistics, COST, self.evaluator)
        return seconds / _stream_rate(statistics)

    def text(self, plan: WorkloadPlan) -> str:
        """The sources of the queries, the plans and orders of joins, and the virtual queries."""
        ways = map(plan.reuse, plan.order)
        parts = [
            *(f"{way.query} from {' and '.join(way.sources)}" for way in ways if way.sources),
            *(f"{query} by {its.text}" for query, its in plan.plans.items()),
            *(f"{query} in the order {', '.join(its)}" for query, its in plan.orders.items()),
            *(f"{query} = {its}" for query, its in plan.virtual.items()),
        ]
        return ", ".join(parts) or "each query from scratch"


def _stream_rate(statistics: Mapping[str, Statistics]) -> float:
    rate = next(iter(statistics.values())).stream_rate
    assert rate is not None  # averages have it
    return rate


def checked_plan(workload: Workload, given: Any) -> WorkloadPlan:
    """A plan of this workload, or a PlanError; an AdaptationError if it delays matches."""
    plan = workload_plan(workload, given)
    late = [query for query in plan.order if plan.reuse(query).waits]
    if late:
        raise AdaptationError(
            f"the plan reports matches of {', '.join(late)} late, so a change of the plan would lose or "
            "double some; choose a plan without delays"
        )
    return plan
