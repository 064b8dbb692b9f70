"""Plans that somebody chose, as plan generators: for comparing given plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.errors import PlanError, PlanningRefusedError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.registry import PlanGenerator
from cepbench.planning.plans.kinds import indices_of
from cepbench.planning.plans.model import Plan


def fixed_plan(name: str, plan: Plan) -> PlanGenerator:
    """A generator, unregistered, of one plan, which refuses patterns with other variables."""
    return PlanGenerator(name, plan.kind, _Fixed(plan), space="this plan alone")


@dataclass(frozen=True)
class _Fixed:
    plan: Plan

    def __call__(self, problem: CostedProblem, rng: np.random.Generator) -> Any:
        try:
            self.plan.check(problem.names)
        except PlanError as error:
            raise PlanningRefusedError(error) from error
        return indices_of(self.plan, problem.names)
