"""The front end: from a pattern and its statistics to a plan, by any generator."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cepbench.arguments import seed as seed_from
from cepbench.errors import CepbenchError, PlanGeneratorError, PlanningRefusedError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Kind, Pattern
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.planners.budget import Budget, Found, budget_from
from cepbench.planning.planners.registry import (
    PLAN_GENERATORS,
    PlanGenerator,
    default_generator,
    find_generator,
)
from cepbench.planning.plans.kinds import PLAN_KINDS
from cepbench.planning.plans.model import AnyPlan, Plan, UnionPlan
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.model import Statistics


def plan(
    pattern: Pattern | str,
    statistics: Statistics,
    generator: str | PlanGenerator | None = None,
    *,
    seed: int = 0,
    time_selectivity: str = "adjacent",
    alpha: float = 0.0,
    last: str | Sequence[str | None] | None = None,
    budget: Budget | float | None = None,
    cost: str | CostModel = "throughput",
) -> AnyPlan:
    """Find an evaluation plan.

    Each branch of a pattern with OR is planned by itself, with the same seed.

    Parameters
    ----------
    statistics : Statistics
        Rates and selectivities of the pattern's variables.
    generator : str or PlanGenerator, optional
        A name in ``PLAN_GENERATORS``, in any case; by default DP-B, for branches beyond its number of
        variables ZSTREAM-ORD.
    seed : int
        Seed of randomized generators; the same seed gives the same plan.
    time_selectivity : {"adjacent", "exact"}
        How the order in time of a SEQ enters the estimates; see
        :meth:`CostedProblem.from_pattern`.
    alpha : float
        Weight of latency in ``cost="throughput"``: the cost is Costtrpt + α·Costlat
        [kolchinsky2018]_, section 5.1.
    last : str or sequence of (str or None), optional
        The variable whose event is expected to arrive last, needed if ``alpha`` is not 0 and the
        pattern leaves it open, as a conjunction does; see
        :class:`~cepbench.planning.statistics.output_profiler.OutputProfiler`. With OR either one name, for
        the branches that have it, or one for each branch.
    budget : Budget or float, optional
        Limits of a search, or its seconds; at the end of it the search returns the best plan so
        far. Branches share the seconds. Generators without a search ignore it.
    cost : str or CostModel
        The cost to minimize: a name in ``COST_MODELS``, in any case, or a cost model. Only
        ``"throughput"`` has a weight of latency.

    Returns
    -------
    OrderPlan, TreePlan or UnionPlan
        Over the variables that a match binds, with its estimated cost and partial matches, and the
        gap to a lower bound if there is one; of several branches a union of one plan each.

    Raises
    ------
    PlanGeneratorError
        If the generator or cost is unknown, the generator fails or returns no valid plan, or
        ``seed`` is invalid.
    PlanningRefusedError
        If the generator does not minimize this cost, or the pattern is beyond its limits or the
        machine's memory.
    StatisticsError, UnsupportedPatternError
        If the statistics are insufficient for the pattern, or ``alpha`` or ``last`` is invalid.
    """
    pattern, statistics = pattern_from(pattern), statistics_from(statistics)
    its_budget = budget_from(budget)
    problems = branch_problems(pattern, statistics, time_selectivity, alpha, last, cost)
    return plan_branches(pattern, problems, generator, seed=seed, budget=its_budget)


def plan_branches(
    pattern: Pattern,
    problems: Sequence[CostedProblem],
    generator: str | PlanGenerator | None,
    *,
    seed: int = 0,
    budget: Budget | float | None = None,
) -> AnyPlan:
    """Find a plan for the planning problems of a pattern's branches.

    Parameters and errors are those of :func:`plan`; the problems are those of
    :func:`cepbench.planning.costs.branches.branch_problems`.
    """
    branches = pattern.branches()
    its_budget = budget_from(budget).share(len(branches))
    plans = []
    for branch, problem in zip(branches, problems, strict=True):
        found = plan_problem(problem, generator, seed=seed, budget=its_budget)
        remarks = _remarks(branch, found)
        plans.append(replace(found, remarks=remarks) if remarks else found)
    return plans[0] if len(plans) == 1 else UnionPlan(plans)


def plan_problem(
    problem: PlanningProblem,
    generator: str | PlanGenerator | None = None,
    *,
    seed: int = 0,
    budget: Budget | float | None = None,
) -> Plan:
    """Find a plan for a planning problem; parameters and errors as for :func:`plan`.

    The cost is that of a :class:`~cepbench.planning.costs.costed.CostedProblem`, else throughput.
    """
    if not isinstance(problem, CostedProblem):
        problem = CostedProblem.of(problem, Throughput())
    if generator is None:
        generator = default_generator(problem.n, cost=problem.cost)
    generator = find_generator(generator)
    check_takes(generator, problem)
    kind = PLAN_KINDS[generator.kind]
    seed = seed_from(seed, PlanGeneratorError)
    rng = np.random.default_rng(seed)
    limits = budget_from(budget)
    try:
        found = (
            generator.function(problem, rng, limits)
            if generator.anytime
            else generator.function(problem, rng)
        )
        search = found if isinstance(found, Found) else Found(found)
        found = kind.read(search.plan, problem.n)
    except PlanningRefusedError:
        raise
    except MemoryError as error:
        raise PlanningRefusedError(
            f"{generator.name} ran out of memory over {problem.n} variables; "
            "choose a generator that needs less, such as GREEDY or ZSTREAM-ORD"
        ) from error
    except (Exception, SystemExit) as error:  # sys.exit of a generator ends nothing but its run
        detail = str(error) if isinstance(error, CepbenchError) else repr(error)
        message = f"plan generator {generator.name} failed: {detail}{_place(error, generator)}"
        raise _with_advice(PlanGeneratorError(message), generator) from error
    try:
        indices = kind.checked(found, problem.names, generator.name)
    except PlanGeneratorError as error:
        raise _with_advice(error, generator) from None
    notes = problem.cost.notes(problem, generator.kind, indices)
    notes |= {"generator": generator.name, "seed": seed, "complete": search.complete}
    if search.log_bound is not None:
        # Bound and cost are sums in different orders; rounding may put the bound above the cost.
        notes["log_bound"] = min(search.log_bound, notes["log_cost"])
    elif generator.exact and search.complete:
        notes["log_bound"] = notes["log_cost"]
    return kind.named(indices, problem.names, **notes)


def check_takes(generator: PlanGenerator, problem: CostedProblem) -> None:
    """A PlanningRefusedError if a problem's cost or size is beyond a generator."""
    if not generator.takes(problem.cost):
        able = [
            its.name
            for its in PLAN_GENERATORS.values()
            if its.kind == generator.kind and its.takes(problem.cost)
        ]
        raise PlanningRefusedError(
            f"{generator.name} does not minimize the cost {problem.cost.name}; "
            f"{', '.join(able) or f'no generator of {generator.kind} plans'} can"
        )
    if generator.max_size is not None and problem.n > generator.max_size:
        raise PlanningRefusedError(
            f"{generator.name} takes at most {generator.max_size} variables, and the pattern has "
            f"{problem.n}; choose a generator without such a limit, such as GREEDY or ZSTREAM-ORD"
        )


_REMARKS = {
    Kind.NEGATED: "negated, not a step of the plan",
    Kind.KLEENE: "sets of events",
    Kind.GROUP: "a group of events, not a step of the plan",
}


def _remarks(branch: Pattern, found: Plan) -> tuple[str, ...]:
    """Notes on the variables that are not plain, which a plan does not show unless it places them."""
    placed = dict(found.placements)
    return tuple(
        f"{variable}: {_REMARKS[variable.kind]}"
        for variable in branch.variables
        if variable.kind is not Kind.PLAIN and variable.name not in placed
    )


def _place(error: BaseException, generator: PlanGenerator) -> str:
    """The line of a user-defined generator that an error comes from; empty if none."""
    code = getattr(generator.function, "__code__", None)
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code is code and not generator.is_builtin
    ]
    return f" (in line {lines[-1]} of {generator.function.__name__})" if lines else ""


def _with_advice(error: PlanGeneratorError, generator: PlanGenerator) -> PlanGeneratorError:
    if not generator.is_builtin:
        error.add_note(
            f"cep.check_generator({generator.name!r}) tries it on planning problems of every kind "
            "and reports what is wrong"
        )
    return error
