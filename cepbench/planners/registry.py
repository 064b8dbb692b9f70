"""The plan generators by name, the project's own and the users'.

A plan generator is a function ``f(problem, rng)``: it sees the numbers and the cost of a
:class:`~cepbench.costs.costed.CostedProblem` and a seeded NumPy generator, and returns a plan of
its kind: an order is a list of the indices 0 … n−1, a tree nested pairs of them. One that can be
stopped is a function ``f(problem, rng, budget)``, see :mod:`cepbench.planners.budget`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from cepbench.arguments import elements, flag, folded, shown, texts, whole
from cepbench.costs.model import FORMS, CostModel
from cepbench.errors import PlanGeneratorError, suggest
from cepbench.plans.kinds import PLAN_KINDS

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

_GENERATORS: dict[str, PlanGenerator] = {}

#: Name → plan generator, in the order in which they were registered.
PLAN_GENERATORS: Mapping[str, PlanGenerator] = MappingProxyType(_GENERATORS)


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
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise PlanGeneratorError(
            f'a plan generator needs a name, as in @plan_generator("MY-IDEA", kind="order"), '
            f"not {shown(name)}"
        )
    if not isinstance(kind, str) or kind not in PLAN_KINDS:
        known = " or ".join(f'"{known}"' for known in PLAN_KINDS)
        raise PlanGeneratorError(f"{name}: kind must be {known}, not {shown(kind)}")

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
        entry = PlanGenerator(
            name,
            kind,
            function,
            exact,
            space,
            first_line if description is None else description,
            source,
            max_size,
            anytime,
            default,
            taken_costs,
        )
        for taken in list(_GENERATORS.values()):
            if folded(taken.name) != folded(name):
                continue
            if taken.is_builtin and taken.qualified_name != entry.qualified_name:
                raise PlanGeneratorError(
                    f"the name {taken.name} is taken by cepbench itself; choose another one"
                )
            if taken.name != name:
                del _GENERATORS[taken.name]
        _GENERATORS[name] = entry
        return function

    return register


def own_generators() -> list[str]:
    """Names of the users' plan generators, in the order in which they were registered."""
    return [name for name, entry in _GENERATORS.items() if not entry.is_builtin]


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
        name for name, entry in _GENERATORS.items() if entry.default and (own or entry.is_builtin)
    ]


def find_generator(name: str) -> PlanGenerator:
    """The plan generator of that name, in any case, with ``-``, ``_`` or neither.

    Raises
    ------
    PlanGeneratorError
        If there is none; the message suggests the nearest.
    """
    by_name = {folded(known): entry for known, entry in _GENERATORS.items()}
    wanted = folded(name) if isinstance(name, str) else ""
    if wanted in by_name:
        return by_name[wanted]
    near = suggest(wanted, by_name, cutoff=0.5)
    hint = f"; did you mean {by_name[near].name}?" if near else "."
    raise PlanGeneratorError(
        f"there is no plan generator {shown(name)}{hint} Known are {', '.join(_GENERATORS)}"
    )


def generators_from(given: Any) -> list[PlanGenerator]:
    """The generators of a list of names, or of generators themselves; None for the default ones.

    Raises
    ------
    PlanGeneratorError
        If it is no list, or there is no generator of a name.
    """
    names = default_generators() if given is None else given
    return [
        one if isinstance(one, PlanGenerator) else find_generator(one)
        for one in elements(names, "generators", '["GREEDY", "DP-LD"]', PlanGeneratorError)
    ]
