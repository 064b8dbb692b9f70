"""Plan arguments; the error for other objects names the call that makes a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cepbench.arguments import kind_of, shown
from cepbench.errors import PlanError
from cepbench.planning.plans.model import AnyPlan, Plan, UnionPlan


def plan_from(given: Any) -> AnyPlan:
    """The plan of an argument; PlanError if it is not a plan."""
    if isinstance(given, Plan | UnionPlan):
        return given
    raise PlanError(
        f"plan must be an OrderPlan, a TreePlan or a UnionPlan, not {kind_of(given)}; "
        f"{_advice(given)}"
    )


def plan_for(plan: AnyPlan, branches: Sequence[Sequence[str]]) -> AnyPlan:
    """The plan with one part per branch of a pattern, over the variables that a match of it binds.

    It is the plan itself, or a union of the alternatives of its trees with
    :class:`~cepbench.planning.plans.tree.Either`.

    Raises PlanError if the number of plans or the variables of one differ.
    """
    parts = [alternative for part in plan.parts for alternative in part.alternatives()]
    if len(parts) > len(plan.parts):
        # Trees need not have the alternatives in written order.
        place = {frozenset(names): number for number, names in enumerate(branches)}
        parts.sort(key=lambda part: place.get(frozenset(part.names), len(branches)))
    if len(parts) != len(branches):
        raise PlanError(
            f"the pattern has {len(branches)} branches and the plan {len(parts)}; give "
            f"{'a UnionPlan with a plan for each' if len(branches) > 1 else 'a single plan'}"
        )
    for part, names in zip(parts, branches, strict=True):
        part.check(names)
    return plan if len(parts) == len(plan.parts) else UnionPlan(parts)


def _advice(given: Any) -> str:
    if isinstance(given, str):
        return (
            f"cep.plan(pattern, statistics, {shown(given)}) lets a generator of that name make one"
        )
    if isinstance(given, list | tuple) and given:
        if all(isinstance(part, Plan) for part in given):
            return "write cep.UnionPlan([...]), one plan for each branch"
        if all(isinstance(part, str) for part in given):
            return f"write cep.OrderPlan({shown(list(given))})"
        return "write cep.TreePlan of nested pairs of names, or cep.OrderPlan of a list of names"
    return "cep.plan(pattern, statistics) makes one; see to the order of the arguments"
