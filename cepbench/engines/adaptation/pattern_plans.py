"""The plans of a pattern that follow a stream's statistics [mei2009]_, section 5.3."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from cepbench.engines.adaptation.rounds import TAKEN, Plans
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.planned import equal_rates, generator_for
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.detection.tasks import task_for
from cepbench.engines.detection.workload_evaluate import in_written_order
from cepbench.engines.runs.protocol import Arguments, Evaluator, Task
from cepbench.engines.runs.result import Metrics
from cepbench.errors import AdaptationError
from cepbench.patterns.model import (
    Aggregate,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Kind,
    Pattern,
    Variable,
)
from cepbench.planning.costs.bounds import check_bounded, log_lower_bound
from cepbench.planning.costs.branches import branch_problems, log_plan_cost
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.engine_work import (
    counted_seconds,
    joining_seconds,
    opening_seconds,
)
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.models import cost_from
from cepbench.planning.costs.zstream_columnar import EVENT
from cepbench.planning.planners.generate import check_takes, plan_branches
from cepbench.planning.planners.registry import PlanGenerator, find_generator
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.notes import log_sum
from cepbench.planning.statistics.model import Statistics

#: The default cost.
COST = "throughput"

#: How many times as long as opening a run planning takes for a branch, switching included, and for each variable, or
#: for two of the sets of variables that an exact generator tries, if the cost is one of joins.
PLANNING, JOINS = 4.0, 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternPlans(Plans):
    """Plans of a generator."""

    queries: Pattern
    generator: PlanGenerator
    cost: CostModel
    task: Task

    @classmethod
    def of(
        cls,
        pattern: Pattern,
        asked: Arguments,
        *,
        generator: str | PlanGenerator | None,
        planner: str | None,
        cost: str | CostModel | None,
        initial: AnyPlan | None,
        **how: Any,
    ) -> tuple[Self, AnyPlan]:
        """Those of the checked arguments of :class:`cepbench.AdaptiveDetector`, and the first plan."""
        if planner is not None:
            raise AdaptationError(
                "planner= is of workloads; the plans of a pattern are made by generator="
            )
        model = cost_from(COST if cost is None else cost)
        if how["policy"].name == "bound":
            check_bounded(model)
        if generator is None:
            generator = generator_for([pattern], asked.evaluator, model)
        chosen = find_generator(generator)
        if not pattern.window.length:
            raise AdaptationError(
                "a window of length 0 has no arrival rates to adapt to; use cep.evaluate or "
                "cep.Detector with a plan"
            )
        # Without statistics, to check all arguments before the first event.
        problems = branch_problems(pattern, equal_rates(pattern), cost=model)
        for problem in problems:
            check_takes(chosen, problem)
        if not (chosen.is_builtin and model.is_builtin):
            plan_branches(pattern, problems, chosen, seed=how["seed"])
        first = in_written_order(pattern, chosen.kind) if initial is None else initial
        task = task_for(pattern, first, asked)
        assert task.plan is not None  # given or made above
        check_kind(task.plan, chosen)
        check_runs(task.evaluator, chosen)
        plans = cls(
            queries=pattern, asked=asked, generator=chosen, cost=model, task=task,
            planned=initial is None, **how,
        )  # fmt: skip
        return plans, task.plan

    def packed(self) -> dict[str, Any]:
        return {"generator": self.generator.name, "cost": self.cost.name, **super().packed()}

    def attributes(self, plan: AnyPlan) -> Iterable[str]:
        return self.queries.attributes

    def opened(self, plan: AnyPlan, position: int) -> Detector:
        task = replace(self.task, plan=plan, position=position)
        if not self.consumes:
            return Detector.of_task(task)
        # Matches are asked for where their events are taken.
        free = _free(self.queries)
        detector = Detector.of_task(replace(task, pattern=free, output="matches"))
        detector.output = task.output
        return detector

    def checked(self, plan: AnyPlan, running: AnyPlan, kept: Iterable[str]) -> AnyPlan:
        found = task_for(self.queries, plan, self.task).plan
        assert found is not None
        check_kind(found, self.generator)
        return found

    def problem(self, statistics: Statistics) -> list[CostedProblem]:
        return branch_problems(self.queries, statistics, cost=self.cost)

    def plan(self, problem: Sequence[CostedProblem]) -> AnyPlan:
        made: AnyPlan = plan_branches(self.queries, problem, self.generator, seed=self.seed)
        return made

    def noted_cost(self, plan: AnyPlan) -> float:
        assert plan.log_cost is not None  # the generator's front end notes it
        return plan.log_cost

    def log_cost(self, plan: AnyPlan, problem: Sequence[CostedProblem]) -> float:
        return log_plan_cost(plan, problem)

    def log_bound(self, plan: AnyPlan, problem: Sequence[CostedProblem]) -> float:
        return log_sum([log_lower_bound(its, plan.kind) for its in problem])

    @property
    def planning_seconds(self) -> float:
        sizes = [len(branch.planned_names) for branch in self.queries.branches()]
        times = PLANNING * len(sizes)
        if self.cost.form != "sets":
            times += JOINS * sum(2**n / 2 if self.generator.exact else n for n in sizes)
        return times * opening_seconds()

    def counted_seconds(self, metrics: Metrics) -> float:
        items = len(self.queries.variables)
        written = 0 if self.task.output == "count" else items * metrics.matches
        name = self.task.evaluator.name
        return counted_seconds(name, metrics.events, items, metrics.work, written=written)

    def expected_seconds(self, plan: AnyPlan, statistics: Statistics) -> float:
        pattern, counts = self.queries, self.task.output == "count"
        engine = self.task.evaluator.name
        assert statistics.stream_rate is not None  # averages have it
        if engine == "zstream" and pattern.strategy.name == "any":
            cost = cost_from("zstream-columnar-count" if counts else "zstream-columnar")
            problems = branch_problems(pattern, statistics, cost=cost)
            seconds = EVENT * math.exp(log_plan_cost(plan, problems)) / pattern.window.seconds
        else:
            seconds = joining_seconds(pattern, statistics, plan, engine, counts=counts)
        return seconds / statistics.stream_rate

    def text(self, plan: AnyPlan) -> str:
        return plan.text


def check_kind(plan: AnyPlan, generator: PlanGenerator) -> None:
    """An AdaptationError if a plan is not of the kind of a generator's."""
    if plan.kind != generator.kind:
        raise AdaptationError(
            f"{plan.text} is one of the {plan.kind} plans and {generator.name} makes "
            f"{generator.kind} plans, whose costs are not comparable; give one of these, or choose "
            "another generator"
        )


def check_runs(evaluator: Evaluator, generator: PlanGenerator) -> None:
    """An AdaptationError if an evaluator does not run all plans of a generator."""
    kind = generator.kind
    if kind not in evaluator.kinds:
        able = [each.name for each in EVALUATORS.values() if kind in each.kinds]
        raise AdaptationError(
            f"the evaluator {evaluator.name} does not run all {kind} plans, so it may not run the "
            f"next one of {generator.name}; {', '.join(able)} can"
        )


def _free(pattern: Pattern) -> Pattern:
    """The pattern with the condition on each positive variable that no event of it is taken."""
    clauses = tuple(map(_is_free, pattern.positive))
    return replace(pattern, conditions=pattern.conditions + clauses)


def _is_free(variable: Variable) -> Clause:
    attribute = Attribute(variable.name, TAKEN)
    if variable.kind is not Kind.GROUP:
        return Clause((Comparison("=", attribute, Constant(0)),))
    # Tested on the finished group, which a condition on single events would change.
    return Clause(
        (
            Comparison("=", Aggregate("count", attribute), Constant(0)),
            Comparison("=", Aggregate("max", attribute), Constant(0)),
        )
    )
