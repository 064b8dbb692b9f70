"""The registry of plan generators, built-in and user-defined.

A plan generator is a function ``f(problem, rng)``: it takes a
:class:`~cepbench.planning.costs.costed.CostedProblem` and a seeded NumPy generator, and returns a plan of
its kind: an order is a list of the indices 0 … n−1, a tree nested pairs of them. An anytime search
is a function ``f(problem, rng, budget)``, see :mod:`cepbench.planning.planners.budget`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from cepbench.arguments import choice, elements, flag, texts, whole
from cepbench.errors import PlanError, PlanGeneratorError, PlanningRefusedError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.model import FORMS, CostModel
from cepbench.planning.plans.kinds import PLAN_KINDS, indices_of
from cepbench.planning.plans.model import Plan
from cepbench.registry import Registry

GeneratorFunction = Callable[..., Any]
_F = TypeVar("_F", bound=GeneratorFunction)

_OWN = "cepbench.planning.planners."


@dataclass(frozen=True)
class PlanGenerator:
    """A registered plan generator, with the arguments of :func:`plan_generator`."""

    name: str
    kind: str
    #: (problem, rng) → order, tree or other shape of that kind over indices.
    function: GeneratorFunction
    exact: bool = False
    space: str = ""
    description: str = ""
    source: str = ""
    max_size: int | None = None
    anytime: bool = False
    default: bool = True
    #: Forms of costs include the more specific forms.
    costs: tuple[str, ...] = ("plans",)

    def takes(self, cost: CostModel) -> bool:
        """Whether it minimizes the cost, exactly or heuristically."""
        special = FORMS[FORMS.index(cost.form) :]
        return cost.name in self.costs or any(form in self.costs for form in special)

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to cepbench."""
        return self.qualified_name.startswith(_OWN)

    @property
    def qualified_name(self) -> str:
        """Module and name of its function (or of its class, for an object that can be called)."""
        named = self.function if hasattr(self.function, "__qualname__") else type(self.function)
        return f"{named.__module__}.{named.__qualname__}"


#: Kind of plan → the generator of optimal plans.
OPTIMAL = {"order": "DP-LD", "tree": "DP-B"}

#: The generators of plans for which no generator is named: kind → the optimal one, and the one that takes
#: its place beyond its number of variables, in O(n³). Trees unless an evaluator runs orders alone: DP-B
#: finds the cheapest of all trees, every order's among them as a left-deep one, in about a millisecond
#: for 14 variables, a fifth of a second for 20 and seconds for its limit of 24.
DEFAULT_GENERATORS = {
    "tree": (OPTIMAL["tree"], "ZSTREAM-ORD"),
    "order": (OPTIMAL["order"], "GREEDY"),
}

#: The largest number of variables of the optimal generators for costs of other forms than ``sets``, which
#: take a few seconds: n·2^n and 3^n/2 joins are evaluated.
MOST_OF_OTHER_COSTS = {"order": 16, "tree": 14}

#: Relative tolerance of optimality: sums in another order differ by rounding.
TOLERANCE = 1e-9

#: Name → plan generator, in the order of registration.
PLAN_GENERATORS = Registry(
    PlanGenerator,
    "plan generator",
    PlanGeneratorError,
    example='@plan_generator("MY-IDEA", kind="order")',
    wanted="a plan generator is a function, not {}",
)


def plan_generator(
    name: str,
    *,
    kind: str,
    exact: bool = False,
    space: str = "",
    description: str | None = None,
    source: str = "",
    max_size: int | None = None,
    anytime: bool = False,
    default: bool = True,
    costs: str | Sequence[str] = "plans",
) -> Callable[[_F], _F]:
    """Register the decorated function as a plan generator; it is returned unchanged.

    Registering a name again, compared without regard to case, ``-`` and ``_``, replaces a
    user-defined generator; built-in ones cannot be replaced.

    Raises PlanGeneratorError if the kind is unknown, the name is that of a built-in generator, or
    the decorated object is not callable.

    Parameters
    ----------
    kind : str
        A name in :data:`~cepbench.planning.plans.kinds.PLAN_KINDS`: what the function returns, for
        ``"order"`` a list of the indices 0 … n−1, for ``"tree"`` nested pairs of them.
    exact : bool
        Whether its plan is always of least cost over its space, for each cost that it supports.
    space : str
        The plans that it searches, in words.
    description : str, optional
        One line; by default the first line of the docstring.
    source : str
        The paper.
    max_size : int, optional
        The largest number of variables; larger patterns are an error.
    anytime : bool
        Whether the function is a search that takes a :class:`~cepbench.planning.planners.budget.Budget` as
        its third argument, keeps to it and returns the best plan so far, alone or in a
        :class:`~cepbench.planning.planners.budget.Found`.
    default : bool
        Whether it is in the default set, see :func:`default_generators`.
    costs : str or sequence of str
        The costs that it supports; others are an error. Names of cost models, or forms: ``"plans"``
        is any cost, for a function that uses ``problem.log_order_cost`` or ``log_tree_cost``;
        ``"joins"`` needs ``problem.cost.log_joins``; ``"sets"`` needs ``problem.terms``. See
        :mod:`cepbench.planning.costs.model`.

    Examples
    --------
    >>> @plan_generator("MY-IDEA", kind="order")
    ... def my_idea(problem, rng):
    ...     return sorted(range(problem.n), key=problem.rate)
    """
    PLAN_GENERATORS.check_name(name)
    if max_size is not None:
        max_size = whole(max_size, f"{name}: max_size", PlanGeneratorError, least=1)
    listed = [costs] if isinstance(costs, str) else costs
    declared: dict[str, Any] = {
        "kind": choice(kind, f"{name}: kind", PLAN_KINDS, PlanGeneratorError),
        "exact": flag(exact, f"{name}: exact", PlanGeneratorError),
        "space": space,
        "source": source,
        "max_size": max_size,
        "anytime": flag(anytime, f"{name}: anytime", PlanGeneratorError),
        "default": flag(default, f"{name}: default", PlanGeneratorError),
        "costs": tuple(texts(listed, f"{name}: costs", PlanGeneratorError)),
    }

    def entry(function: GeneratorFunction) -> PlanGenerator:
        first_line = (function.__doc__ or "").strip().partition("\n")[0]
        about = first_line if description is None else description
        return PlanGenerator(name=name, function=function, description=about, **declared)

    return PLAN_GENERATORS.decorator(name, entry)


def default_generator(
    variables: int, kind: str = "tree", cost: CostModel | None = None
) -> PlanGenerator:
    """The plan generator if none is named, for a number of variables; see :data:`DEFAULT_GENERATORS`.

    The variables are those of the largest branch that is planned; without a cost it is one of the
    form ``sets``.
    """
    optimal, beyond = (PLAN_GENERATORS[name] for name in DEFAULT_GENERATORS[kind])
    most = optimal.max_size
    if cost is not None and cost.form != "sets":
        most = MOST_OF_OTHER_COSTS[kind]
    return optimal if most is None or variables <= most else beyond


def user_defined_generators() -> list[str]:
    """Names of the user-defined plan generators, in the order of registration."""
    return [name for name, entry in PLAN_GENERATORS.items() if not entry.is_builtin]


def default_generators(*, user_defined: bool = True) -> list[str]:
    """Names of the default set of plan generators, those registered with ``default``.

    They are the algorithms compared in [kolchinsky2018]_, section 6.1, and the user-defined ones
    that do not opt out.
    """
    return [
        name
        for name, entry in PLAN_GENERATORS.items()
        if entry.default and (user_defined or entry.is_builtin)
    ]


def find_generator(given: str | PlanGenerator) -> PlanGenerator:
    """The plan generator of a name, without regard to case, ``-`` and ``_``, or the one given.

    Raises PlanGeneratorError if there is none; the message suggests the nearest.
    """
    return PLAN_GENERATORS.find(given)


def generators_from(given: Any) -> list[PlanGenerator]:
    """The generators of a list of names or generators; None for the default ones.

    Raises PlanGeneratorError if it is not a list, or a name is unknown.
    """
    names = default_generators() if given is None else given
    return [
        find_generator(one)
        for one in elements(names, "generators", '["GREEDY", "DP-LD"]', PlanGeneratorError)
    ]


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
