"""All evaluators by name, the project's own and the users'."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from cepbench.arguments import choice, elements, flag, folded, shown
from cepbench.errors import EvaluationError, did_you_mean
from cepbench.evaluators.instances.lazy_nfa import LAZY_NFA_INSTANCES
from cepbench.evaluators.instances.tree import TREE_INSTANCES
from cepbench.evaluators.joins.lazy_nfa import LAZY_NFA
from cepbench.evaluators.joins.tree import TREE
from cepbench.evaluators.protocol import CONSTRUCTS, Evaluator, Option
from cepbench.evaluators.user_defined import FunctionRun
from cepbench.patterns.model import STRATEGIES
from cepbench.plans.kinds import PLAN_KINDS

_F = TypeVar("_F", bound=Callable[..., Any])

_EVALUATORS: dict[str, Evaluator] = {
    entry.name: entry for entry in (LAZY_NFA, TREE, LAZY_NFA_INSTANCES, TREE_INSTANCES)
}

#: The evaluators; the first one that runs all plans of a kind is the default for it.
EVALUATORS: Mapping[str, Evaluator] = MappingProxyType(_EVALUATORS)


def plan_evaluator(
    name: str,
    *,
    kinds: Collection[str] = ("order", "tree"),
    without_plan: bool = False,
    constructs: Collection[str] = CONSTRUCTS,
    strategies: Collection[str] = STRATEGIES,
    outputs: Collection[str] = ("matches", "count"),
    options: Mapping[str, Option] | None = None,
    latency: bool = False,
    node_times: bool = False,
    source: str = "",
) -> Callable[[_F], _F]:
    """Register the decorated function or class as an evaluator; it is returned unchanged.

    A function takes a pattern, a stream and a plan, and the evaluator's options by name. It returns
    all matches as a DataFrame: a row a match, a column for each variable that a match binds with the
    positions of its events in the stream, tuples of positions for a variable under KL, and a column
    ``branch`` if the pattern has OR. Rows may be in any order. It takes whole streams alone.

    A class takes a :class:`~cepbench.evaluators.protocol.Task`; its objects are runs, see
    :class:`~cepbench.evaluators.protocol.Run`, that take a stream batch by batch. If they have
    methods ``snapshot`` and ``restore``, detectors with them can be saved.

    :func:`cepbench.check_evaluator` compares either with the other evaluators, and holds it
    against what it declares.

    Registering a name again replaces the user's evaluator that had it; cepbench's own cannot be
    replaced.

    Parameters
    ----------
    name : str
        Compared without regard to case, ``-`` and ``_``.
    kinds : collection of str
        Kinds of plans that it runs, such as ``order`` and ``tree``; an order plan has a ``tree``
        too, the left-deep one.
    without_plan : bool
        Whether it runs without a plan too; with ``kinds=()`` it runs without one only.
    constructs, strategies, outputs, options, latency, node_times, source
        See :class:`~cepbench.evaluators.protocol.Evaluator`.

    Raises
    ------
    EvaluationError
        If a declaration makes no sense, the name is none or that of one of cepbench's own, what is
        decorated cannot be called, or a function declares what only a class can do.

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

    def listed(given: Collection[str], what: str, known: Collection[str] | None) -> tuple[str, ...]:
        its = elements(given, f"{name}: {what}", '["order"]', EvaluationError)
        if known is None:
            return tuple(its)
        return tuple(choice(one, f"{name}: each of {what}", known, EvaluationError) for one in its)

    declared: dict[str, Any] = {
        "kinds": listed(kinds, "kinds", PLAN_KINDS),
        "constructs": listed(constructs, "constructs", CONSTRUCTS),
        "strategies": listed(strategies, "strategies", STRATEGIES),
        "outputs": listed(outputs, "outputs", ("matches", "count")),
        "without_plan": flag(without_plan, f"{name}: without_plan", EvaluationError),
        "latency": flag(latency, f"{name}: latency", EvaluationError),
        "node_times": flag(node_times, f"{name}: node_times", EvaluationError),
        "options": _checked_options(name, options),
        "source": source,
    }
    if not (declared["kinds"] or without_plan):
        raise EvaluationError(f"{name}: it runs neither plans of any kind nor without a plan")

    def register(function: _F) -> _F:
        if not callable(function):
            raise EvaluationError(
                f"{name}: an evaluator is a function or a class, not {shown(function)}"
            )
        if isinstance(function, type):
            methods = ["push", "finish", "metrics", *["node_table"] * declared["node_times"]]
            lacking = [method for method in methods if not hasattr(function, method)]
            if lacking:
                raise EvaluationError(
                    f"{name}: objects of {function.__name__} are no runs, for they have no "
                    f"{', '.join(lacking)}; see cepbench.evaluators.protocol.Run"
                )
            snapshots = hasattr(function, "snapshot") and hasattr(function, "restore")
            entry = Evaluator(
                name, function, snapshots=snapshots, implementation=function, **declared
            )
        elif latency or node_times or "matches" not in declared["outputs"]:
            raise EvaluationError(
                f"{name}: a function gives all matches and measures nothing else; what measures "
                "latency or times of nodes, or only counts, is a class, see "
                "cepbench.evaluators.protocol"
            )
        else:
            entry = Evaluator(
                name,
                partial(FunctionRun, function),
                batches=False,
                implementation=function,
                **declared,
            )
        add_evaluator(entry)
        return function

    return register


def add_evaluator(entry: Evaluator) -> None:
    """Register a user's evaluator, in place of another one of that name.

    Raises
    ------
    EvaluationError
        If the name is that of one of cepbench's own.
    """
    taken = _named(entry.name)
    if taken is not None:
        if taken.is_builtin:
            raise EvaluationError(
                f"the name {taken.name} is taken by cepbench itself; choose another one"
            )
        if taken.name != entry.name:
            del _EVALUATORS[taken.name]
    _EVALUATORS[entry.name] = entry


def _checked_options(name: str, options: Mapping[str, Option] | None) -> dict[str, Option]:
    options = {} if options is None else options
    if not isinstance(options, Mapping) or not all(
        isinstance(key, str) and isinstance(value, Option) for key, value in options.items()
    ):
        raise EvaluationError(
            f"{name}: options are a mapping of names to cepbench.evaluators.protocol.Option, "
            f"not {shown(options)}"
        )
    return dict(options)


def _named(name: str) -> Evaluator | None:
    if name in EVALUATORS:
        return EVALUATORS[name]
    wanted = folded(name)
    return next((entry for key, entry in EVALUATORS.items() if folded(key) == wanted), None)


def evaluator_for(name: str | Evaluator) -> Evaluator:
    """The evaluator of that name, whatever its case and whether it has ``-`` or ``_``.

    Parameters
    ----------
    name : str or Evaluator
        An evaluator is returned as it is.

    Raises
    ------
    EvaluationError
        If there is none of that name; the message suggests the nearest.
    """
    if isinstance(name, Evaluator):
        return name
    found = _named(name) if isinstance(name, str) else None
    if found is None:
        raise EvaluationError(
            f"no evaluator {shown(name)}; there are {', '.join(EVALUATORS)}"
            f"{did_you_mean(name, EVALUATORS)}"
        )
    return found


def default_evaluator(kind: str) -> Evaluator:
    """The evaluator that runs plans of a kind where none is named.

    Raises
    ------
    EvaluationError
        If no evaluator runs them.
    """
    for entry in EVALUATORS.values():
        if kind in entry.kinds:
            return entry
    raise EvaluationError(f"no evaluator runs {kind} plans; there are {', '.join(EVALUATORS)}")
