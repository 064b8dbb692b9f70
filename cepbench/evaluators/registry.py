"""All evaluators by name, the project's own and the users'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from cepbench.arguments import shown
from cepbench.errors import EvaluationError, did_you_mean
from cepbench.evaluators.joins.lazy_nfa import chain
from cepbench.evaluators.joins.tree import tree_of_instances
from cepbench.plans.model import Plan, UnionPlan
from cepbench.plans.tree import Tree

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Evaluator:
    """An evaluator: a way to run a plan.

    Attributes
    ----------
    name : str
    plans : str
        The kind of plan that it was made for, ``"order"`` or ``"tree"``.
    structure : callable
        Plan → the tree of joins that it comes down to; refuses plans that it cannot run.
    source : str
    run : callable or None
        Of a user's evaluator: (pattern, stream, plan) → DataFrame of matches. The project's own
        have none, the engine runs them.
    """

    name: str
    plans: str
    structure: Callable[[Plan], Tree[str]]
    source: str
    run: Callable[..., Any] | None = None

    @property
    def qualified_name(self) -> str:
        """Module and name of the function that runs plans."""
        function = self.run or self.structure
        named = function if hasattr(function, "__qualname__") else type(function)
        return f"{named.__module__}.{named.__qualname__}"


_EVALUATORS: dict[str, Evaluator] = {
    evaluator.name: evaluator
    for evaluator in (
        Evaluator("lazy-nfa", "order", chain, "[kolchinsky2018]_, section 2.2"),
        Evaluator("tree", "tree", tree_of_instances, "[kolchinsky2018]_, section 2.3"),
    )
}

#: The evaluators; the first one made for a kind of plan is the default for it.
EVALUATORS: Mapping[str, Evaluator] = MappingProxyType(_EVALUATORS)


def plan_evaluator(name: str, *, plans: str = "tree", source: str = "") -> Callable[[_F], _F]:
    """Register the decorated function as an evaluator; it is returned unchanged.

    The function takes a pattern, a stream and a plan, and returns all matches as a DataFrame: a
    row a match, a column for each variable that a match binds with the positions of its events in
    the stream, tuples of positions for a variable under KL, and a column ``branch`` if the pattern
    has OR. Rows may be in any order. :func:`cepbench.check_evaluator` holds it against the others.

    Registering a name again replaces the user's evaluator that had it; cepbench's own cannot be
    replaced.

    Parameters
    ----------
    name : str
    plans : {"order", "tree"}
        ``tree`` for one that runs any plan, an order as a left-deep tree; ``order`` for one that
        runs order plans alone.
    source : str
        Where it comes from.

    Raises
    ------
    EvaluationError
        If ``plan_kind`` is neither, the name is none or that of one of cepbench's own, or what is
        decorated cannot be called.

    Examples
    --------
    >>> import cepbench as cep
    >>> @cep.plan_evaluator("my-engine")
    ... def my_engine(pattern, stream, plan):
    ...     return cep.evaluate(pattern, stream, plan, evaluator="tree").matches
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise EvaluationError(
            f'an evaluator needs a name, as in @plan_evaluator("my-engine"), not {shown(name)}'
        )
    if not isinstance(plans, str) or plans not in ("order", "tree"):
        raise EvaluationError(f'{name}: plans must be "order" or "tree", not {shown(plans)}')

    def register(function: _F) -> _F:
        if not callable(function):
            raise EvaluationError(f"{name}: an evaluator is a function, not {shown(function)}")
        structure = chain if plans == "order" else tree_of_instances
        entry = Evaluator(name, plans, structure, source, function)
        taken = _EVALUATORS.get(name)
        if taken is not None and taken.run is None:
            raise EvaluationError(
                f"the name {name} is taken by cepbench itself; choose another one"
            )
        _EVALUATORS[name] = entry
        return function

    return register


def evaluator_for(plan: Plan | UnionPlan, name: str | None = None) -> Evaluator:
    """The evaluator called ``name``, or the default one for this kind of plan.

    Raises
    ------
    EvaluationError
        If there is none of that name.
    """
    if name is None:
        return next(e for e in EVALUATORS.values() if e.plans == plan.kind)
    if not isinstance(name, str) or name not in EVALUATORS:
        raise EvaluationError(
            f"no evaluator {shown(name)}; there are {', '.join(EVALUATORS)}"
            f"{did_you_mean(name, EVALUATORS)}"
        )
    return EVALUATORS[name]
