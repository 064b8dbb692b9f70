"""Checks of a planner that reuses matches: a plan for each problem, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from cepbench.arguments import seed as seed_from
from cepbench.errors import ExperimentError, PlanGeneratorError
from cepbench.experiments.conformance.checker import Check, CheckReport, checked, entry_of
from cepbench.planning.costs.reuse import ReuseProblem
from cepbench.planning.planners.sharing.generate import planned_sources
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS, WorkloadPlanner
from cepbench.planning.plans.reuse import Reuse

#: The planner of plans of least cost.
_OPTIMAL = "CHASE"

#: Name → the number of queries, and the share of pairs of which one refines the other.
PROBLEMS = {
    "one query": (1, 0.0),
    "few in common": (4, 0.0),
    "pair": (2, 1.0),
    "small": (5, 0.6),
    "medium": (20, 0.3),
    "all related": (30, 1.0),
    "large": (200, 0.02),
}


_COLUMNS = (
    "pattern", "text", "check", "status", "reason", "queries", "edges", "cost", "ratio", "seconds",
)  # fmt: skip


def check_workload_planner(planner: str | Callable[..., Any], *, seed: int = 0) -> CheckReport:
    """Run a planner that reuses matches on problems of several sizes and report violated rules.

    The checks: no error; a source for each query, which is None or has an edge to it, without
    circles; the same plan for the same seed. The problem cannot be changed. Costs are compared with
    the least one. Refusing a problem with :class:`~cepbench.errors.PlanningRefusedError` is allowed
    unless all are refused.

    Raises PlanGeneratorError if the planner is not registered, or shares counts; ExperimentError if
    the seed is invalid.

    Parameters
    ----------
    planner : str or callable
        A name in ``cep.WORKLOAD_PLANNERS``, or the function that was registered.
    seed : int
        Of the problems and the planner.

    Returns
    -------
    CheckReport
        With ``passed``, ``describe()`` and ``table``, a row for each problem: ``pattern`` (a key of
        :data:`PROBLEMS`), ``text`` (the call that makes it of the seed), ``status``, ``reason``, ``queries``,
        ``edges``, ``cost``, and ``ratio``, of the cost to the least one.
    """
    decorated = '@cep.workload_planner("{name}") above it'
    entry = entry_of(WORKLOAD_PLANNERS, planner, "plan", "a planner of workloads", decorated)
    if entry.shares != "matches":
        raise PlanGeneratorError(
            f"{entry.name} shares counts of sequences; cep.check_workload_planner is for planners that "
            "reuse matches"
        )
    seed = seed_from(seed, ExperimentError)
    table = checked((_check(name, entry, seed) for name in PROBLEMS), _COLUMNS)
    return CheckReport(entry.name, seed, table, "queries", "planner {name} {verdict}")


def planner_problem(name: str, seed: int = 0) -> ReuseProblem:
    """A problem of :data:`PROBLEMS`.

    Earlier queries are the more general ones. An edge costs from nothing to twice as much as its
    query from scratch; some queries are equal, and many costs too.
    """
    size, share = PROBLEMS[name]
    rng = np.random.default_rng([seed, size])
    scratch = {f"q{number}": float(rng.integers(1, 20)) for number in range(size)}
    edges = []
    levels = np.sort(rng.integers(0, size, size)).tolist()
    for (level, general), (below, specific) in combinations(zip(levels, scratch, strict=True), 2):
        costs = [float(scratch[q] * rng.integers(0, 9) / 4) for q in (specific, general)]
        if level == below:
            edges.append(Reuse(specific, general, "down", (0,), "nothing", cost=costs[0]))
        elif rng.random() < share:
            edges.append(Reuse(specific, general, "down", (0,), "pattern", cost=costs[0]))
            if rng.random() < 0.7:
                edges.append(Reuse(general, specific, "up", (0,), "pattern", cost=costs[1]))
    return ReuseProblem(scratch, edges)


def _check(name: str, entry: WorkloadPlanner, seed: int) -> Check:
    problem = planner_problem(name, seed)
    row: dict[str, object] = {
        "pattern": name, "text": f'planner_problem("{name}", seed)', "check": "sources",
        "queries": len(problem.scratch), "edges": len(problem.edges),
    }  # fmt: skip
    return row, partial(_wrong, entry, problem, seed, row)


def _wrong(
    entry: WorkloadPlanner, problem: ReuseProblem, seed: int, row: dict[str, object]
) -> str | None:
    """What is wrong with a planner's plans of a problem; adds their cost to the row."""
    plans = [planned_sources(entry, problem, np.random.default_rng(seed)) for _ in range(2)]
    if plans[0] != plans[1]:
        return "two plans for the same seed; draw random numbers from rng only"
    best = planned_sources(WORKLOAD_PLANNERS[_OPTIMAL], problem, np.random.default_rng(seed))
    cost, least = problem.cost(plans[0]), problem.cost(best)
    ratio = cost / least if least else 1.0
    row |= {"cost": cost, "ratio": ratio, "check": f"{ratio:.3f} of the least cost"}
    return None
