"""The planning problems of a pattern, one per branch of its disjunctive normal form, and costs by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cepbench.arguments import shown
from cepbench.errors import StatisticsError
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.models import cost_from
from cepbench.planning.plans.kinds import indices_of
from cepbench.planning.plans.model import AnyPlan, UnionPlan
from cepbench.planning.statistics.model import Statistics


def branch_problems(
    pattern: Pattern,
    statistics: Statistics,
    time_selectivity: str = "adjacent",
    alpha: float = 0.0,
    last: str | Sequence[str | None] | None = None,
    cost: str | CostModel = "throughput",
) -> list[CostedProblem]:
    """The planning problem of each branch of a pattern; a single one without OR.

    The variable of the event expected to arrive last is one name, for the branches that have it, or
    one for each branch; time_selectivity is that of
    :meth:`~cepbench.planning.costs.problem.PlanningProblem.from_pattern`, ``alpha`` the weight of
    latency.

    Raises PlanGeneratorError if the cost is unknown; StatisticsError, UnsupportedPatternError if
    the statistics are insufficient for a branch, or an argument is invalid.
    """
    branches = pattern.branches()
    model = cost_from(cost, alpha)
    return [
        CostedProblem.from_pattern(branch, statistics, time_selectivity, its_last, cost=model)
        for branch, its_last in zip(branches, _last_by_branch(last, branches), strict=True)
    ]


def log_plan_cost(plan: AnyPlan, problems: Sequence[CostedProblem]) -> float:
    """ln of the cost of a plan under other statistics, those of the problems of its branches."""
    shapes = [
        indices_of(*both) for both in zip(plan.parts, (p.names for p in problems), strict=True)
    ]
    if not isinstance(plan, UnionPlan):
        (problem,), (shape,) = problems, shapes
        return problem.cost.log_cost(problem, plan.kind, shape)
    # Latencies of branches do not add up.
    total = UnionPlan(
        replace(part, **{**problem.cost.notes(problem, part.kind, shape), "log_bound": None})
        for part, problem, shape in zip(plan.parts, problems, shapes, strict=True)
    ).log_cost
    assert total is not None  # every part has one from the notes
    return total


def _last_by_branch(
    last: str | Sequence[str | None] | None, branches: Sequence[Pattern]
) -> list[str | None]:
    if last is None:
        return [None] * len(branches)
    if isinstance(last, str):
        found = [last if last in branch.planned_names else None for branch in branches]
        if not any(found):
            names = dict.fromkeys(name for branch in branches for name in branch.planned_names)
            raise StatisticsError(
                f"last = {shown(last)}, but the pattern binds no such variable; it binds "
                f"{', '.join(names)}"
            )
        return found
    if not isinstance(last, Sequence) or len(last) != len(branches):
        raise StatisticsError(
            f"last = {shown(last)}; give one name, or a list of one name or None for each of the "
            f"pattern's {len(branches)} branches"
        )
    return list(last)
