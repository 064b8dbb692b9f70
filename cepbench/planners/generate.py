"""The front end: from a pattern and its statistics to a plan, by any generator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any

import numpy as np

from cepbench.costs.models import COST_MODELS
from cepbench.costs.problem import PlanningProblem
from cepbench.errors import CepbenchError, PlanGeneratorError, PlanningRefusedError
from cepbench.patterns.model import Pattern
from cepbench.planners.registry import PlanGenerator, find_generator
from cepbench.plans.model import OrderPlan, Plan, TreePlan
from cepbench.statistics.model import Statistics

#: Which cost model stands behind the plans of each kind.
_COST_MODEL = {"order": "order-throughput", "tree": "tree-throughput"}


def plan(
    pattern: Pattern,
    statistics: Statistics,
    algorithm: str | PlanGenerator = "DP-B",
    *,
    seed: int = 0,
    time_selectivity: str = "adjacent",
) -> Plan:
    """Find an evaluation plan.

    Parameters
    ----------
    pattern : Pattern
    statistics : Statistics
        Rates and selectivities of the pattern's variables.
    algorithm : str or PlanGenerator
        A name in ``PLAN_GENERATORS``, in any case.
    seed : int
        Of the randomized generators; the same seed gives the same plan.
    time_selectivity : {"adjacent", "exact"}
        How the order in time of a SEQ enters the estimates; see
        :meth:`PlanningProblem.from_pattern`.

    Returns
    -------
    OrderPlan or TreePlan
        With its estimated cost and partial matches.

    Raises
    ------
    PlanGeneratorError
        If there is no such generator, it fails or returns no plan, or ``seed`` is no seed.
    PlanningRefusedError
        If the pattern is beyond the generator's limits or the machine's memory.
    StatisticsError, UnsupportedPatternError
        If no planning problem can be made of the pattern and the statistics.
    """
    problem = PlanningProblem.from_pattern(pattern, statistics, time_selectivity)
    return plan_problem(problem, algorithm, seed=seed)


def plan_problem(
    problem: PlanningProblem, algorithm: str | PlanGenerator = "DP-B", *, seed: int = 0
) -> Plan:
    """Find a plan for a problem made before; parameters and errors as for :func:`plan`."""
    generator = algorithm if isinstance(algorithm, PlanGenerator) else find_generator(algorithm)
    if generator.max_size is not None and problem.n > generator.max_size:
        raise PlanningRefusedError(
            f"{generator.name} takes at most {generator.max_size} variables, and the pattern has "
            f"{problem.n}; choose a generator without such a limit, such as GREEDY or ZSTREAM-ORD"
        )
    rng = _seeded(seed)
    try:
        found = generator.function(problem, rng)
        if generator.plans == "order":
            found = _listed(found, problem.n)
    except PlanningRefusedError:
        raise
    except MemoryError as error:
        raise PlanningRefusedError(
            f"{generator.name} ran out of memory over {problem.n} variables; "
            "choose a generator that needs less, such as GREEDY or ZSTREAM-ORD"
        ) from error
    except Exception as error:
        detail = str(error) if isinstance(error, CepbenchError) else repr(error)
        raise PlanGeneratorError(f"plan generator {generator.name} failed: {detail}") from error
    indices = (_checked_order if generator.plans == "order" else _checked_tree)(
        found, problem, generator.name
    )
    model = COST_MODELS[_COST_MODEL[generator.plans]]
    notes: dict[str, Any] = {
        "log_cost": model.log_cost(problem, indices),
        "cost_model": model.name,
        "algorithm": generator.name,
        "seed": seed,
        "estimates": tuple(model.log_node_sizes(problem, indices).tolist()),
    }
    if generator.plans == "order":
        return OrderPlan([problem.names[i] for i in indices], **notes)
    return TreePlan(_named(indices, problem.names), **notes)


def _seeded(seed: int) -> np.random.Generator:
    # NumPy would take None as well, and then no plan could be made again.
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise PlanGeneratorError(f"seed {seed!r} is no seed; use an integer that is not negative")
    return np.random.default_rng(seed)


def _named(tree: Any, names: tuple[str, ...]) -> Any:
    if isinstance(tree, tuple):
        return (_named(tree[0], names), _named(tree[1], names))
    return names[tree]


def _listed(found: Any, n: int) -> Any:
    """The elements of what was returned as an order; what is none is left as it is."""
    # Sets and mappings can be gone through too, but in no order that anyone chose.
    if isinstance(found, str | bytes | AbstractSet | Mapping) or not isinstance(found, Iterable):
        return found
    # Without end if a user's iterator is; one element too many is enough to tell.
    return list(islice(found, n + 1))


def _checked_order(found: Any, problem: PlanningProblem, name: str) -> list[int]:
    if not isinstance(found, list):
        raise PlanGeneratorError(
            f"{name} returned {found!r}; an order is a list of the indices 0 … {problem.n - 1}"
        )
    order = [_checked_index(item, found, problem, name) for item in found]
    _check_complete(order, problem, name)
    return order


def _checked_tree(found: Any, problem: PlanningProblem, name: str) -> Any:
    def check(node: Any) -> Any:
        if isinstance(node, tuple | list):
            if len(node) != 2:
                raise PlanGeneratorError(
                    f"{name} returned {found!r}, where {node!r} is no pair; a tree is an index or "
                    "a pair of trees, such as ((0, 2), 1)"
                )
            return (check(node[0]), check(node[1]))
        seen.append(_checked_index(node, found, problem, name))
        return seen[-1]

    seen: list[int] = []
    try:
        tree = check(found)
    except RecursionError:
        raise PlanGeneratorError(
            f"{name} returned a tree that is too deep, or holds itself"
        ) from None
    _check_complete(seen, problem, name)
    return tree


def _checked_index(item: Any, found: Any, problem: PlanningProblem, name: str) -> int:
    if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
        hint = " (an index, not a name)" if isinstance(item, str) else ""
        raise PlanGeneratorError(
            f"{name} returned {found!r}, where {item!r} is no index{hint}; "
            f"plans are made of the indices 0 … {problem.n - 1}"
        )
    if not 0 <= item < problem.n:
        raise PlanGeneratorError(
            f"{name} returned {found!r}, but the pattern's indices are 0 … {problem.n - 1}, "
            f"not {item}"
        )
    return int(item)


def _check_complete(indices: list[int], problem: PlanningProblem, name: str) -> None:
    for index, variable in enumerate(problem.names):
        times = indices.count(index)
        if times != 1:
            what = "lacks" if times == 0 else f"has {times} times"
            raise PlanGeneratorError(
                f"the plan that {name} returned {what} index {index} (variable {variable!r}); "
                "each must be there once"
            )
