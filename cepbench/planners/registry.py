"""The registry of plan generators, built-in and user-defined.

A plan generator is a function ``f(problem, rng)``: it takes a
:class:`~cepbench.costs.costed.CostedProblem` and a seeded NumPy generator, and returns a plan of
its kind: an order is a list of the indices 0 … n−1, a tree nested pairs of them. An anytime search
is a function ``f(problem, rng, budget)``, see :mod:`cepbench.planners.budget`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cepbench.arguments import choice, elements, flag, shown, texts, whole
from cepbench.costs.model import FORMS, CostModel
from cepbench.errors import PlanGeneratorError
from cepbench.plans.kinds import PLAN_KINDS
from cepbench.registry import Registry

GeneratorFunction = Callable[..., Any]
_F = TypeVar("_F", bound=GeneratorFunction)

_OWN = "cepbench.planners."


@dataclass(frozen=True)
class PlanGenerator:
    """One way to find a plan.

    Attributes
    ----------
    name : str
    kind : str
        Kind of its plans, a name in :data:`~cepbench.plans.kinds.PLAN_KINDS`.
    function : callable
        (problem, rng) → order, tree or other shape of that kind over indices.
    exact : bool
        Whether its plan is always of least cost over its space, for each cost that it takes.
    space : str
        The plans that it chooses from, in words.
    description : str
    source : str
        Where it comes from.
    max_size : int or None
        The most variables that it takes; it refuses more.
    anytime : bool
        Whether it is a search that takes a budget as its third argument.
    default : bool
        Whether it is compared where nothing else is said.
    costs : tuple of str
        The costs that it takes: names of cost models, or of forms in which a cost is known, see
        :mod:`cepbench.costs.model`; of a form, also those of the more special ones.
    """

    name: str
    kind: str
    function: GeneratorFunction
    exact: bool = False
    space: str = ""
    description: str = ""
    source: str = ""
    max_size: int | None = None
    anytime: bool = False
    default: bool = True
    costs: tuple[str, ...] = ("plans",)

    def takes(self, cost: CostModel) -> bool:
        """Whether it looks for plans of least such cost, exactly or not."""
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


#: Kind of plan -> the generator whose plans have the least cost of all.
OPTIMAL = {"order": "DP-LD", "tree": "DP-B"}

#: A plan within this part of the least cost has the least cost: sums in another order differ.
TOLERANCE = 1e-9

#: Name → plan generator, in the order of registration.
PLAN_GENERATORS: Registry[PlanGenerator] = Registry("plan generator", PlanGeneratorError)


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

    Registering a name again replaces the user's generator that had it, so that a faulty first
    version does not stay; cepbench's own cannot be replaced.

    Parameters
    ----------
    name : str
        Compared without regard to case, ``-`` and ``_``.
    kind : str
        A name in :data:`~cepbench.plans.kinds.PLAN_KINDS`: what the function returns, for
        ``"order"`` a list of the indices 0 … n−1, for ``"tree"`` nested pairs of them.
    exact : bool
        Whether its plan is always of least cost over its space, for each cost that it takes.
    space : str
        The plans that it chooses from, in words.
    description : str, optional
        One line; the first line of the docstring if not given.
    source : str
        Where it comes from.
    max_size : int, optional
        Patterns of more variables are refused with a clear error.
    anytime : bool
        Whether the function is a search that takes a :class:`~cepbench.planners.budget.Budget` as
        its third argument, keeps to it and returns the best plan so far, by itself or, with more
        to say of it, in a :class:`~cepbench.planners.budget.Found`.
    default : bool
        Whether it is compared where nothing else is said, see :func:`default_generators`.
    costs : str or sequence of str
        The costs that it takes, others are refused: names of cost models, or forms in which a cost
        is known. ``"plans"`` is any cost, for a function that asks ``problem.log_order_cost`` or
        ``log_tree_cost`` or none at all; ``"joins"`` those that ``problem.cost`` knows join by
        join; ``"sets"`` those of ``problem.terms``, sums of sizes of sets. See
        :mod:`cepbench.costs.model`.

    Raises
    ------
    PlanGeneratorError
        If there is no such kind, the name is that of one of cepbench's own, or what is decorated
        cannot be called.

    Examples
    --------
    >>> @plan_generator("MY-IDEA", kind="order")
    ... def my_idea(problem, rng):
    ...     return sorted(range(problem.n), key=problem.rate)
    """
    PLAN_GENERATORS.check_name(name, '@plan_generator("MY-IDEA", kind="order")')
    choice(kind, f"{name}: kind", PLAN_KINDS, PlanGeneratorError)
    if max_size is not None:
        max_size = whole(max_size, f"{name}: max_size", PlanGeneratorError, least=1)
    exact = flag(exact, f"{name}: exact", PlanGeneratorError)
    anytime = flag(anytime, f"{name}: anytime", PlanGeneratorError)
    default = flag(default, f"{name}: default", PlanGeneratorError)
    taken_costs = [costs] if isinstance(costs, str) else costs
    taken_costs = tuple(texts(taken_costs, f"{name}: costs", PlanGeneratorError))

    def register(function: _F) -> _F:
        if not callable(function):
            raise PlanGeneratorError(
                f"{name}: a plan generator is a function, not {shown(function)}"
            )
        docstring = (function.__doc__ or "").strip()
        first_line = docstring.splitlines()[0] if docstring else ""
        PLAN_GENERATORS.add(
            PlanGenerator(
                name=name,
                kind=kind,
                function=function,
                exact=exact,
                space=space,
                description=first_line if description is None else description,
                source=source,
                max_size=max_size,
                anytime=anytime,
                default=default,
                costs=taken_costs,
            )
        )
        return function

    return register


def own_generators() -> list[str]:
    """Names of the users' plan generators, in the order in which they were registered."""
    return [name for name, entry in PLAN_GENERATORS.items() if not entry.is_builtin]


def default_generators(*, own: bool = True) -> list[str]:
    """Names of the plan generators that are compared where nothing else is said.

    They are those registered with ``default``: of cepbench's the classic ones, whose plans
    [kolchinsky2018]_, section 6.1, compares, and every user-defined one that does not opt out.

    Parameters
    ----------
    own : bool
        Whether user-defined generators are among them.
    """
    return [
        name
        for name, entry in PLAN_GENERATORS.items()
        if entry.default and (own or entry.is_builtin)
    ]


def find_generator(given: str | PlanGenerator) -> PlanGenerator:
    """The plan generator of a name, without regard to case, ``-`` and ``_``, or the one given.

    Raises
    ------
    PlanGeneratorError
        If there is none; the message suggests the nearest.
    """
    return given if isinstance(given, PlanGenerator) else PLAN_GENERATORS.find(given)


def generators_from(given: Any) -> list[PlanGenerator]:
    """The generators of a list of names or generators; None for the default ones.

    Raises
    ------
    PlanGeneratorError
        If it is not a list, or a name is unknown.
    """
    names = default_generators() if given is None else given
    return [
        find_generator(one)
        for one in elements(names, "generators", '["GREEDY", "DP-LD"]', PlanGeneratorError)
    ]
