"""The registry of cost models, built-in and user-defined."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from cepbench.arguments import choice, flag, number
from cepbench.errors import PlanGeneratorError, PlanningRefusedError, StatisticsError
from cepbench.planning.costs.comparisons import Comparisons
from cepbench.planning.costs.latency import Latency
from cepbench.planning.costs.logarithms import SMALLEST
from cepbench.planning.costs.model import CostModel, tree_of
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.costs.zstream import ZStream, ZStreamRepaired
from cepbench.planning.costs.zstream_columnar import ZStreamColumnar
from cepbench.registry import Registry

_F = TypeVar("_F", bound=Callable[..., float])

#: Name → cost model, in the order of registration.
COST_MODELS = Registry(
    CostModel,
    "cost model",
    PlanGeneratorError,
    (
        Throughput(),
        Latency(),
        Comparisons(),
        ZStream(),
        ZStreamRepaired(),
        ZStreamColumnar("zstream-columnar", counts=False),
        ZStreamColumnar("zstream-columnar-count", counts=True),
    ),
    example='@cost_model("MINE")',
    wanted="a cost is a function, not {}",
)

#: Arguments that user-defined functions take.
_ASKED = ("order", "tree", "join")


@dataclass(frozen=True)
class UserCost(CostModel):
    """A cost computed by a user-defined function, see :func:`cost_model`."""

    name: str
    function: Callable[..., float]
    of: str
    in_logs: bool
    form: str
    source: str = ""
    is_builtin = False

    def log_cost(self, problem: PlanningProblem, kind: str, plan: Any) -> float:
        """The function of a plan."""
        if self.of == "join":
            return super().log_cost(problem, kind, plan)
        if self.of == "order":
            if kind != "order":
                raise PlanningRefusedError(
                    f"the cost {self.name} is defined for orders, not for trees"
                )
            return self._value(problem, plan)
        return self._value(problem, tree_of(kind, plan))

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """The function of each single variable."""
        return np.array([self._value(problem, (v,), ()) for v in range(problem.n)])

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """The function of each join."""
        return np.array(
            [
                self._value(problem, *(tuple(np.flatnonzero(side).tolist()) for side in sides))
                for sides in zip(left, right, strict=True)
            ]
        )

    def _value(self, problem: PlanningProblem, *plan: Any) -> float:
        """ln of what the function returned, checked."""
        found = number(
            self.function(problem, *plan),
            f"the value of the cost {self.name}",
            PlanGeneratorError,
            least=None if self.in_logs else 0.0,
        )
        return found if self.in_logs else math.log(max(found, SMALLEST))


def cost_model(
    name: str, *, of: str = "tree", in_logs: bool = False, source: str = ""
) -> Callable[[_F], _F]:
    """Register the decorated function as a cost model; it is returned unchanged.

    ``cep.plan(pattern, statistics, "SA", cost=name)`` then minimizes it. Which generators can do so
    depends on ``of``; ``cepbench generators`` lists them. Registering a name again, compared
    without regard to case, ``-`` and ``_``, replaces a user-defined cost of that name.

    Raises PlanGeneratorError if an argument is invalid, or the name is that of a built-in cost
    model.

    Parameters
    ----------
    of : {"tree", "order", "join"}
        The function's argument after the :class:`~cepbench.planning.costs.problem.PlanningProblem`: the
        nested pairs of a tree (left-deep for an order); the list of an order; or two tuples of
        variables that are joined, the second one empty for a single variable. With ``join``, a plan
        costs the sum over its joins and variables.
    in_logs : bool
        Whether the function returns natural logarithms; else numbers of at least 0.
    source : str
        Where it comes from.

    Examples
    --------
    >>> @cost_model("LARGEST", of="tree")
    ... def largest(problem, tree):
    ...     return max(problem.partial_matches(leaves(node)) for node in post_order(tree))
    """
    COST_MODELS.check_name(name)
    choice(of, f"{name}: of", _ASKED, PlanGeneratorError)
    form = "joins" if of == "join" else "plans"
    in_logs = flag(in_logs, f"{name}: in_logs", PlanGeneratorError)
    return COST_MODELS.decorator(
        name, lambda function: UserCost(name, function, of, in_logs, form, source)
    )


def cost_from(given: Any, alpha: float = 0.0) -> CostModel:
    """The cost model of a name in :data:`COST_MODELS`, in any case, or the one given.

    Only the cost ``throughput`` takes a weight of latency other than 0.

    Raises PlanGeneratorError if the cost is unknown; StatisticsError if ``alpha`` is not a weight,
    or the cost takes none.
    """
    found = COST_MODELS.find(given)
    weighed = Throughput(alpha)
    if not weighed.alpha or weighed == found:
        return found
    if found != Throughput():
        raise StatisticsError(
            f'alpha = {weighed.alpha:g} weighs latency in cost="throughput"; the cost '
            f"{found.name} takes no such weight"
        )
    return weighed
