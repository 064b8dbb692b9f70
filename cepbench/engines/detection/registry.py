"""The registry of evaluators, built-in and user-defined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from cepbench.arguments import choice, elements, flag, shown
from cepbench.engines.detection.user_defined import FunctionRun
from cepbench.engines.hierarchical_stacks.hierarchical_stacks import HIERARCHICAL_STACKS
from cepbench.engines.instances.lazy_nfa import LAZY_NFA_INSTANCES
from cepbench.engines.instances.tree import TREE_INSTANCES
from cepbench.engines.joins.lazy_nfa import LAZY_NFA
from cepbench.engines.joins.tree import TREE
from cepbench.engines.runs.protocol import (
    CONSTRUCTS,
    JOIN_STRATEGIES,
    WITHOUT_CONCEPTS,
    Evaluator,
    Option,
)
from cepbench.engines.sase.sase import SASE
from cepbench.engines.sase.sase_backtrack import SASE_BACKTRACK
from cepbench.engines.sase.sase_basic import SASE_BASIC
from cepbench.engines.stack_nfa.stack_nfa import STACK_NFA
from cepbench.engines.zstream.zstream import ZSTREAM
from cepbench.errors import EvaluationError
from cepbench.patterns.model import STRATEGIES
from cepbench.planning.plans import evaluator_names
from cepbench.planning.plans.kinds import PLAN_KINDS
from cepbench.registry import Registry

_F = TypeVar("_F", bound=Callable[..., Any])

#: The evaluators; the first one that supports all plans of a kind is its default.
EVALUATORS = Registry(
    Evaluator,
    "evaluator",
    EvaluationError,
    (
        LAZY_NFA,
        TREE,
        LAZY_NFA_INSTANCES,
        TREE_INSTANCES,
        ZSTREAM,
        STACK_NFA,
        SASE,
        SASE_BASIC,
        SASE_BACKTRACK,
        HIERARCHICAL_STACKS,
    ),
    example='@plan_evaluator("my-engine")',
    wanted="an evaluator is a function or a class, not {}",
)
evaluator_names.announce(EVALUATORS)


def plan_evaluator(
    name: str,
    *,
    kinds: Collection[str] = ("order", "tree"),
    without_plan: bool = False,
    constructs: Collection[str] = WITHOUT_CONCEPTS,
    strategies: Collection[str] = JOIN_STRATEGIES,
    outputs: Collection[str] = ("matches", "count"),
    options: Mapping[str, Option] | None = None,
    latency: bool = False,
    node_times: bool = False,
    source: str = "",
) -> Callable[[_F], _F]:
    """Register the decorated function or class as an evaluator, and return it unchanged.

    A function takes a pattern, a stream and a plan, and the evaluator's options by name. It returns
    all matches as a DataFrame with one row per match, in any order. Each variable that a match
    binds has a column with the positions of its events in the stream, tuples of positions under KL;
    a pattern with OR has a column ``branch`` too. Functions take only whole streams.

    A class takes a :class:`~cepbench.engines.runs.protocol.Task`; its objects are runs, see
    :class:`~cepbench.engines.runs.protocol.Run`, that take a stream batch by batch. If they have
    methods ``snapshot`` and ``restore``, detectors with them can be saved.

    :func:`cepbench.check_evaluator` compares it with another evaluator and tests its declarations.
    Registering a name again, compared without regard to case, ``-`` and ``_``, replaces a
    user-defined evaluator; built-in ones cannot be replaced.

    Raises EvaluationError if a declaration is invalid, the name is empty or a built-in evaluator's,
    the decorated object is not callable, or a function declares a capability of classes.

    Parameters
    ----------
    kinds : collection of str
        Supported kinds of plans, such as ``order`` and ``tree``; an order plan also has a left-deep
        ``tree``.
    without_plan : bool
        Whether it also runs without a plan; with ``kinds=()`` only without one.
    constructs, strategies, outputs, options, latency, node_times, source
        See :class:`~cepbench.engines.runs.protocol.Evaluator`; without ``constructs`` all but
        ``concept``, items whose events are of types below theirs.

    Examples
    --------
    >>> import cepbench as cep
    >>> @cep.plan_evaluator("my-engine")
    ... def my_engine(pattern, stream, plan):
    ...     return cep.evaluate(pattern, stream, plan, evaluator="tree").matches
    """
    EVALUATORS.check_name(name)

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

    def entry(function: Any) -> Evaluator:
        if isinstance(function, type):
            methods = ["push", "finish", "metrics", *["node_table"] * declared["node_times"]]
            lacking = [method for method in methods if not hasattr(function, method)]
            if lacking:
                raise EvaluationError(
                    f"{name}: objects of {function.__name__} are no runs, as they lack "
                    f"{', '.join(lacking)}; see cepbench.engines.runs.protocol.Run"
                )
            snapshots = hasattr(function, "snapshot") and hasattr(function, "restore")
            return Evaluator(
                name, function, snapshots=snapshots, implementation=function, **declared
            )
        if latency or node_times or "matches" not in declared["outputs"]:
            raise EvaluationError(
                f"{name}: a function gives all matches and measures nothing else; what measures "
                "latency or times of nodes, or only counts, is a class, see "
                "cepbench.engines.runs.protocol"
            )
        opened = partial(FunctionRun, function)
        return Evaluator(name, opened, batches=False, implementation=function, **declared)

    return EVALUATORS.decorator(name, entry)


def _checked_options(name: str, options: Mapping[str, Option] | None) -> dict[str, Option]:
    options = {} if options is None else options
    if not isinstance(options, Mapping) or not all(
        isinstance(key, str) and isinstance(value, Option) for key, value in options.items()
    ):
        raise EvaluationError(
            f"{name}: options are a mapping of names to cepbench.engines.runs.protocol.Option, "
            f"not {shown(options)}"
        )
    return dict(options)


def evaluator_for(name: str | Evaluator) -> Evaluator:
    """The evaluator of a name, or the one given; for another name an EvaluationError with the nearest."""
    return EVALUATORS.find(name)


def default_evaluator(kind: str) -> Evaluator:
    """The default evaluator for plans of a kind; EvaluationError if no evaluator runs them."""
    for entry in EVALUATORS.values():
        if kind in entry.kinds:
            return entry
    raise EvaluationError(f"no evaluator runs {kind} plans; there are {', '.join(EVALUATORS)}")
