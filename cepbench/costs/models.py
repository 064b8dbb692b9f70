"""The cost models by name, the project's own and the users'."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from cepbench.arguments import choice, flag, folded, number, shown
from cepbench.costs.comparisons import Comparisons
from cepbench.costs.latency import Latency
from cepbench.costs.model import CostModel, tree_of
from cepbench.costs.problem import SMALLEST, PlanningProblem
from cepbench.costs.throughput import Throughput
from cepbench.errors import PlanGeneratorError, PlanningRefusedError, StatisticsError, did_you_mean

_F = TypeVar("_F", bound=Callable[..., float])

_MODELS: dict[str, CostModel] = {
    model.name: model for model in (Throughput(), Latency(), Comparisons())
}

#: Name → cost model, in the order in which they were registered.
COST_MODELS: Mapping[str, CostModel] = MappingProxyType(_MODELS)

#: What a user's function may be asked for.
_ASKED = ("order", "tree", "join")


@dataclass(frozen=True)
class UserCost(CostModel):
    """A cost that a user's function tells.

    Attributes
    ----------
    name : str
    function : callable
    of : {"order", "tree", "join"}
        What it is asked for.
    in_logs : bool
        Whether it returns logarithms.
    form, source : str
        As of every cost model.
    """

    name: str
    function: Callable[..., float]
    of: str
    in_logs: bool
    form: str
    source: str = ""

    def log_cost(self, problem: PlanningProblem, kind: str, plan: Any) -> float:
        """What the function says of a plan."""
        if self.of == "join":
            return super().log_cost(problem, kind, plan)
        if self.of == "order":
            if kind != "order":
                raise PlanningRefusedError(f"the cost {self.name} is one of orders, not of trees")
            return self._value(problem, plan)
        return self._value(problem, tree_of(kind, plan))

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """What the function says of single variables."""
        return np.array([self._value(problem, (v,), ()) for v in range(problem.n)])

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """What the function says of each join."""
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        return np.array([self._value(problem, _members(a), _members(b)) for a, b in pairs])

    def _value(self, problem: PlanningProblem, *plan: Any) -> float:
        """ln of what the function returned, checked."""
        found = number(
            self.function(problem, *plan),
            f"what the cost {self.name} returns",
            PlanGeneratorError,
            least=None if self.in_logs else 0.0,
        )
        return found if self.in_logs else math.log(max(found, SMALLEST))


def cost_model(
    name: str, *, of: str = "tree", in_logs: bool = False, source: str = ""
) -> Callable[[_F], _F]:
    """Register the decorated function as a cost model; it is returned unchanged.

    ``cep.plan(pattern, statistics, "SA", cost=name)`` then searches plans of least such cost. How
    many generators can do so depends on what the function is asked for, ``cepbench generators``
    lists them. Registering a name again replaces the user's cost that had it.

    Parameters
    ----------
    name : str
        Compared without regard to case, ``-`` and ``_``.
    of : {"tree", "order", "join"}
        What the function is called with after the
        :class:`~cepbench.costs.problem.PlanningProblem`: the nested pairs of a tree (an order is
        a left-deep one); the list of an order; or two tuples of variables that are joined, the
        second one empty for a single variable. A plan costs the sum of its joins and variables.
    in_logs : bool
        Whether the function returns natural logarithms; else numbers of at least 0.
    source : str
        Where it comes from.

    Raises
    ------
    PlanGeneratorError
        If an argument makes no sense, or the name is that of one of cepbench's own.

    Examples
    --------
    >>> @cost_model("LARGEST", of="tree")
    ... def largest(problem, tree):
    ...     return max(problem.partial_matches(leaves(node)) for node in post_order(tree))
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise PlanGeneratorError(
            f'a cost model needs a name, as in @cost_model("MINE"), not {shown(name)}'
        )
    choice(of, f"{name}: of", _ASKED, PlanGeneratorError)
    form = "joins" if of == "join" else "plans"
    in_logs = flag(in_logs, f"{name}: in_logs", PlanGeneratorError)

    def register(function: _F) -> _F:
        if not callable(function):
            raise PlanGeneratorError(f"{name}: a cost is a function, not {shown(function)}")
        for known, taken in list(_MODELS.items()):
            if folded(known) != folded(name):
                continue
            if not isinstance(taken, UserCost):
                raise PlanGeneratorError(
                    f"the name {known} is taken by cepbench itself; choose another one"
                )
            del _MODELS[known]
        _MODELS[name] = UserCost(name, function, of, in_logs, form, source)
        return function

    return register


def cost_from(given: Any, alpha: float = 0.0) -> CostModel:
    """The cost that was asked for, with that weight of latency.

    Parameters
    ----------
    given : str or CostModel
        A name in :data:`COST_MODELS`, in any case, or a cost model.
    alpha : float
        Not 0 only for the cost ``throughput``.

    Raises
    ------
    PlanGeneratorError
        If there is no such cost.
    StatisticsError
        If ``alpha`` is no weight, or the cost takes none.
    """
    if isinstance(given, CostModel):
        found = given
    else:
        by_name = {folded(name): model for name, model in _MODELS.items()}
        wanted = folded(given) if isinstance(given, str) else ""
        if wanted not in by_name:
            raise PlanGeneratorError(
                f"there is no cost {shown(given)}{did_you_mean(given, _MODELS)} Known are "
                f"{', '.join(_MODELS)}"
            )
        found = by_name[wanted]
    weighed = Throughput(alpha)
    if not weighed.alpha or weighed == found:
        return found
    if found != Throughput():
        raise StatisticsError(
            f'alpha = {weighed.alpha:g} weighs latency in cost="throughput"; the cost '
            f"{found.name} takes no such weight"
        )
    return weighed


def _members(mask: int) -> tuple[int, ...]:
    return tuple(v for v in range(mask.bit_length()) if mask >> v & 1)
