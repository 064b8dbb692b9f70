"""Checks of a planner that reuses matches: a plan for each problem, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cepbench.arguments import seed as seed_from
from cepbench.errors import ExperimentError, PlanGeneratorError, PlanningRefusedError
from cepbench.experiments.conformance.check_report import CheckReport
from cepbench.experiments.sweeps.cells import ERROR, OK, REFUSED
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


@dataclass(frozen=True, repr=False)
class WorkloadPlannerReport(CheckReport):
    """The result of :func:`cepbench.check_workload_planner`.

    Attributes
    ----------
    planner : str
    table : DataFrame
        A row for each problem: ``pattern`` (its name), ``status``, ``reason``, ``queries``, ``edges``,
        ``cost``, and ``ratio``, of the cost to the least one.
    """

    planner: str
    table: pd.DataFrame
    counted: ClassVar[str] = "queries"

    def _heading(self) -> str:
        return f"planner {self.planner} {self._verdict()}"

    def _lines(self) -> list[str]:
        lines = []
        for row in self.table.to_dict("records"):
            said = (
                row["reason"] or f"{row['queries']} queries: {row['ratio']:.3f} of the least cost"
            )
            lines.append(f"  {row['status']:<8} {row['pattern']:<17} {said}")
        return lines


def check_workload_planner(
    planner: str | Callable[..., Any], *, seed: int = 0
) -> WorkloadPlannerReport:
    """Run a planner that reuses matches on problems of several sizes and report violated rules.

    The checks: no error; a source for each query, which is None or has an edge to it, without
    circles; the same plan for the same seed. The problem cannot be changed. Costs are compared
    with the least one. Refusing a problem with
    :class:`~cepbench.errors.PlanningRefusedError` is allowed unless all are refused.

    Parameters
    ----------
    planner : str or callable
        A name in ``cep.WORKLOAD_PLANNERS``, or the function that was registered.
    seed : int
        Of the problems and the planner.

    Returns
    -------
    WorkloadPlannerReport

    Raises
    ------
    PlanGeneratorError
        If the planner is not registered, or shares counts.
    ExperimentError
        If the seed is invalid.
    """
    entry = _entry(planner)
    seed = seed_from(seed, ExperimentError)
    rows = [_row(name, entry, seed) for name in PROBLEMS]
    return WorkloadPlannerReport(entry.name, pd.DataFrame(rows))


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


def _entry(planner: Any) -> WorkloadPlanner:
    found = next((its for its in WORKLOAD_PLANNERS.values() if its.plan is planner), None)
    if found is None and callable(planner):
        name = getattr(planner, "__name__", "mine").upper().replace("_", "-")
        raise PlanGeneratorError(
            f"{getattr(planner, '__name__', planner)} is not registered as a planner of workloads; "
            f'write @cep.workload_planner("{name}") above it'
        )
    found = found or WORKLOAD_PLANNERS.find(planner)
    if found.shares != "matches":
        raise PlanGeneratorError(
            f"{found.name} shares counts of sequences; cep.check_workload_planner is for planners that "
            "reuse matches"
        )
    return found


def _row(name: str, entry: WorkloadPlanner, seed: int) -> dict[str, Any]:
    problem = planner_problem(name, seed)
    sizes = {"queries": len(problem.scratch), "edges": len(problem.edges)}
    row: dict[str, Any] = {"pattern": name, "status": ERROR, "reason": None, **sizes}
    try:
        plans = [planned_sources(entry, problem, np.random.default_rng(seed)) for _ in range(2)]
    except PlanningRefusedError as error:
        return row | {"status": REFUSED, "reason": str(error)}
    except PlanGeneratorError as error:
        return row | {"reason": str(error)}
    if plans[0] != plans[1]:
        return row | {"reason": "two plans for the same seed; draw random numbers from rng only"}
    best = planned_sources(WORKLOAD_PLANNERS[_OPTIMAL], problem, np.random.default_rng(seed))
    cost, least = problem.cost(plans[0]), problem.cost(best)
    return row | {"status": OK, "cost": cost, "ratio": cost / least if least else 1.0}
